// Puts the page together from the numbers it carries.

function section(id, title, lead, ...content) {
  if (!content.flat().some(Boolean)) return null;
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), lead && el("p", { class: "intro" }, lead), ...content);
}

function intro(data) {
  const { frontier } = data;
  const texts = [...new Set(Object.values(data.sources))];
  const named = (text) => Object.keys(data.sources).filter((name) => data.sources[name] === text).join(", ");
  const sources = texts.map((text) => `Source of ${named(text)}: ${text}.`);
  return el("div", {},
    data.story.map((text) => el("p", { class: "intro" }, text)),
    el("p", { class: "intro" }, data.space.description || `The space ${data.space.name}.`),
    el("dl", { class: "tiles" },
      statistic("Architectures in the space", count(data.space.architectures)),
      statistic("Best networks, for every limit", count(String(frontier.networks)), frontier.exact ? "proven" : "certified"),
      statistic("Predicted accuracy", `${frontier.accuracies[0].toFixed(1)} to ${percent(frontier.accuracies[frontier.accuracies.length - 1], 1)}`),
      statistic(`Range of ${data.cost}`, [frontier.costs[0], frontier.costs[frontier.costs.length - 1]].map((value) => quantity(value, data.costs[data.cost], 3)).join(" to "))),
    data.conditions && el("p", { class: "note" }, `Conditions of ${data.cost}: ${data.conditions}.`),
    data.disturbed && el("p", { class: "note" }, data.disturbed),
    sources.length > 0 && el("p", { class: "note" }, sources.join(" ")));
}

function build(data) {
  for (const stage of data.space.stages) stage.blocks = stage.blocks.map((kind) => data.space.kinds[kind]);
  const { node, show } = explorer(data);
  const sections = [
    section("chosen", "The networks that were chosen", null, chosenCards(data, show)),
    section("explore", "Every limit at once", "Move the limit: the best network within it is looked up, not searched for again.", node),
    section("insights", "Why they look like that", "What each design choice brings on average, from the same numbers that the search maximises.", insightSection(data)),
    section("formula", `Does the formula for ${data.cost} hold?`, "Whole networks, built and measured, against the sum over their blocks.", verificationSection(data)),
    section("ranking", "Does the predicted accuracy hold?", "Networks measured one by one, against the prediction. A ranking correlation means little alone, so two others are shown with it.", data.estimator && el("p", { class: "note" }, `Predicted by the estimator ${data.estimator.name}. ${data.estimator.why}`), rankingSection(data)),
    section("training", "Training", null, trainingSection(data)),
    section("time", "Where the time went", null, timesSection(data)),
    section("again", "Do it again", null, againSection(data)),
  ].filter(Boolean);
  document.getElementById("main").append(intro(data), ...sections);
  const names = { chosen: "Networks", explore: "Explore", insights: "Insights", formula: "Formula", ranking: "Prediction", training: "Training", time: "Time", again: "Again" };
  document.getElementById("contents").append(...sections.map((part) => el("a", { href: `#${part.id}` }, names[part.id])));
  document.getElementById("footer").append(`Made by ${data.tool}. The numbers are in this page; nothing is loaded.`);
}

themes();
build(numbersOfPage());
