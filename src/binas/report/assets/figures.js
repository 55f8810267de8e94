// The other sections of the page. Each takes the numbers and gives an element, or null where there is nothing to show.

const card = (...children) => el("div", { class: "card" }, ...children);
const withError = (value, stderr, write) => write(value) + (known(stderr) ? ` \u00b1 ${compact(stderr, 2)}` : "");

function chosenCards(data, show) {
  if (!data.chosen.length) return null;
  return el("div", { class: "cards" }, data.chosen.map((item, i) => chosenCard(data, item, i, show)));
}

function chosenCard(data, item, i, show) {
  const cost = data.costs[data.cost];
  const best = [["fine-tuned, on test images", item.fine_tuned], ["measured one-shot", item.one_shot], ["predicted", item.accuracy]]
    .find(([, value]) => known(value));
  const measured = item.measured_cost;
  const rows = [
    ["Predicted accuracy", withError(item.accuracy, item.stderr, (value) => percent(value))],
    item.confirmed && [`Confirmed on ${item.confirmed.images.toLocaleString("en")} ${item.confirmed.images_of} images that chose nothing`, withError(item.confirmed.accuracy, item.confirmed.error, (value) => percent(value))],
    item.confirmed && item.confirmed.lead && [`Ahead of ${item.confirmed.over} random networks of any cost`, `${withError(item.confirmed.lead[0], item.confirmed.lead[1], points)} points`],
    known(item.one_shot) && ["One-shot accuracy", percent(item.one_shot)],
    ...item.best_references.map((other) => [`Best of ${other.group} at this cost`, percent(other.accuracy)]),
    known(item.fine_tuned) && ["Fine-tuned test accuracy", percent(item.fine_tuned)],
    [`Predicted ${data.cost}`, quantity(item.cost, cost)],
    measured && [`Measured ${data.cost}`, `${quantity(measured.value, cost)} (${compact(measured.low)} to ${compact(measured.high)})`],
    known(item.parameters) && ["Parameters", quantity(item.parameters, { unit: "", kind: "count", factor: 1 })],
  ].filter(Boolean);
  return el("article", { class: "card chosen-card" },
    el("h3", {}, el("span", { class: "number", "aria-hidden": "true" }, String(i + 1)), asked(item)),
    el("p", { class: "lead" }, el("strong", { class: "figure" }, percent(best[1])), el("span", {}, best[0])),
    el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    item.compared && el("p", { class: "note" }, `${item.compared}.`),
    item.files.length > 0 && el("p", { class: "files" }, item.files.map((name) => el("code", {}, name))),
    folded("The network", el("div", { class: "network" }, drawNetwork(data, item.architecture)), el("code", {}, item.architecture)),
    onFrontier(data, item) && el("button", { type: "button", onclick: () => { show(item.at); document.getElementById("explore").scrollIntoView(); } }, "Show in the explorer"));
}

const asked = (item) => item.limit.replace("<=", "\u2264").replace(">=", "\u2265");

// Under further limits the chosen network may lie below the frontier that the explorer shows.
function onFrontier(data, item) {
  const i = bestWithin(data, item.at);
  return i !== null && networkAt(data, i) === item.architecture;
}

// Lines over stages or blocks. series: [{name, values: [{value, stderr}|null, ...]}]
function linesPlot(label, names, xTitle, series, right) {
  const reach = series.flatMap((line) => line.values.filter(Boolean).flatMap((item) => [item.value - Z * (item.stderr || 0), item.value + Z * (item.stderr || 0)]));
  const spec = {
    label, height: 270,
    x: { names, title: xTitle },
    y: { title: "points", ...range(reach, true) },
    right: right && { title: right.title, ...range(right.values, true) },
    draw: (frame) => {
      frame.add("line", { x1: frame.left, x2: frame.right, y1: frame.y(0), y2: frame.y(0), class: "axis" });
      if (right) frame.add("path", { d: path(right.values.map((value, i) => [frame.x(i), frame.y2(value)])), class: "cost-line dashed" });
      series.forEach((line, n) => drawLine(frame, line, n, names));
    },
  };
  const keys = series.map((line, n) => [line.name, `line c${n % 6}`, 10 + (n % SHAPES.length)]);
  return el("figure", {}, plot(spec), legend(right ? [...keys, [right.name, "cost-line", "dashed"]] : keys));
}

function drawLine(frame, line, n, names) {
  const shift = (n % 5) * 3 - 6; // so that error bars of several lines do not hide each other
  const seen = line.values.map((item, i) => item && { x: frame.x(i) + shift, ...item, at: names[i] }).filter(Boolean);
  frame.add("path", { d: path(seen.map((item) => [item.x, frame.y(item.value)])), class: `line c${n % 6}` });
  for (const item of seen) {
    if (known(item.stderr)) errorBar(frame, item.x, frame.y(item.value - Z * item.stderr), item.x, frame.y(item.value + Z * item.stderr), `c${n % 6}`);
    mark(frame, n, item.x, frame.y(item.value), 4, `line dot c${n % 6}`, `${line.name}, ${item.at}: ${withError(item.value, item.stderr, points)} points`);
  }
}

function insightFigures(data) {
  const { insights } = data;
  const stages = data.space.stages.map((stage) => stage.name);
  const panel = (title, figure, rows) => el("div", { class: "panel" }, el("h3", {}, title), figure, rows);
  const panels = [];
  if (insights.depths.length) panels.push(panel("What depth brings", depthFigure(data, stages)));
  if (insights.options.length) {
    const blocks = [...new Set(insights.options.flatMap((step) => Object.keys(step.per_block)))].sort((one, two) => one - two);
    const lines = (key, places) => insights.options.map((step) => ({ name: optionName(step), values: places.map((place) => step[key][place] || null) }));
    panels.push(panel("What options bring, per stage", linesPlot("Contribution of options per stage", stages, "stage", lines("per_stage", stages))));
    panels.push(panel("What options bring, per block", linesPlot("Contribution of options per block", blocks, "block within the stage", lines("per_block", blocks))));
  }
  return panels.length ? el("div", { class: "panels" }, panels) : null;
}

const optionName = (step) => step.name + (step.balanced ? "" : " *");

function depthFigure(data, stages) {
  const { depths, per, cost } = data.insights;
  const names = [...new Set(depths.map((step) => step.name))];
  const series = names.map((name) => ({
    name,
    values: stages.map((stage) => depths.find((step) => step.stage === stage && step.name === name) || null),
  }));
  const paid = stages.map((stage) => (depths.find((step) => step.stage === stage) || {}).block_cost);
  const right = paid.every(known) ? { title: per.unit, name: `${cost} of a block (right)`, values: paid.map((value) => value / per.scale) } : null;
  return linesPlot("Contribution of depth per stage", stages, "stage", series, right);
}

const FIRST = 6; // sentences that are shown at once

function saidInWords(data) {
  const list = (texts) => el("ul", { class: "said" }, texts.map((text) => el("li", {}, text)));
  const { sentences, errors_known, options } = data.insights;
  const notes = [];
  if (!sentences.length) notes.push("Nothing stands out clearly enough to be put into words.");
  else if (!errors_known) notes.push("The table has no standard errors; these sentences take its numbers as exact.");
  if (options.some((step) => !step.balanced)) notes.push("* moves together with another option in this space, so the effect is of both.");
  return el("div", {},
    list(sentences.slice(0, FIRST)),
    sentences.length > FIRST && folded(`${sentences.length - FIRST} more`, list(sentences.slice(FIRST))),
    notes.map((text) => el("p", { class: "note" }, text)));
}

function rulesFigure(data) {
  const per = data.insights.per;
  const rules = data.insights.rules.filter((rule) => known(rule.per_cost)).slice(0, 14).map((rule) => ({
    ...rule, per_cost: rule.per_cost * per.scale, per_cost_stderr: known(rule.per_cost_stderr) ? rule.per_cost_stderr * per.scale : null,
  }));
  if (!rules.length) return null;
  const values = rules.map((rule) => rule.per_cost);
  const log = Math.min(...values) > 0 && Math.max(...values) > 30 * Math.min(...values);
  const spread = rules.flatMap((rule) => [rule.per_cost - Z * (rule.per_cost_stderr || 0), rule.per_cost + Z * (rule.per_cost_stderr || 0)]);
  const x = log ? { low: Math.min(...values) * 0.7, high: Math.max(...values) * 1.4, log } : range(spread, true);
  const names = rules.map((rule) => `${rule.stage} ${rule.rule}`).reverse();
  const spec = {
    label: "Design rules by contribution per unit of cost", height: 70 + 26 * rules.length,
    left: Math.min(190, 14 + 6.6 * Math.max(...names.map((name) => name.length))),
    x: { ...x, grid: true, title: `points per ${per.unit}${log ? " (log scale)" : ""}` }, y: { names },
    draw: (frame) => [...rules].reverse().forEach((rule, i) => drawRule(data, frame, rule, i, x)),
  };
  return el("figure", {}, plot(spec), el("figcaption", {}, `What a change brings for each ${per.unit} it costs, stage by stage: the first rules are where the next ${per.unit} is spent best.`));
}

function drawRule(data, frame, rule, i, x) {
  const y = frame.y(i), kind = rule.kind === "depth" ? "c0" : "c1";
  const clipped = (value) => frame.x(Math.min(x.high, Math.max(x.low, value)));
  frame.add("line", { x1: frame.x(x.log ? x.low : 0), x2: frame.x(rule.per_cost), y1: y, y2: y, class: `stem ${kind}` });
  if (known(rule.per_cost_stderr)) errorBar(frame, clipped(rule.per_cost - Z * rule.per_cost_stderr), y, clipped(rule.per_cost + Z * rule.per_cost_stderr), y, kind);
  mark(frame, 0, frame.x(rule.per_cost), y, 5, `line dot ${kind}`, `${rule.stage} ${rule.rule}: ${points(rule.value)} points for ${quantity(rule.cost, data.costs[data.cost])}`);
}

function insightTable(data) {
  const { per, cost } = data.insights;
  const rows = data.insights.rules.map((rule) => [rule.stage, rule.rule + (rule.balanced ? "" : " *"), withError(rule.value, rule.stderr, points),
    quantity(rule.cost, data.costs[data.cost]), known(rule.per_cost) ? signed(rule.per_cost * per.scale, 3) : "-"]);
  return folded("All rules in numbers", table("Design rules", ["Stage", "Change", "Points", cost, `points per ${per.unit}`], rows));
}

function insightSection(data) {
  const figures = insightFigures(data);
  const rules = rulesFigure(data);
  return figures && [card(saidInWords(data), figures), rules && card(el("h3", {}, `Where the next ${data.insights.per.unit} is spent best`), rules, insightTable(data))];
}

// Points against the line of equality. items: [{x, y, group, title, low, high (of x)}]
function equalityPlot(label, xTitle, yTitle, groups, items) {
  const both = range(items.flatMap((item) => [item.x, item.y, item.low, item.high]));
  return el("figure", {}, plot({
    label, height: 360, x: { title: xTitle, grid: true, ...both }, y: { title: yTitle, ...both },
    draw: (frame) => {
      frame.add("line", { x1: frame.x(both.low), y1: frame.y(both.low), x2: frame.x(both.high), y2: frame.y(both.high), class: "equal" });
      for (const item of items) {
        const n = groups.indexOf(item.group);
        if (known(item.low)) errorBar(frame, frame.x(item.low), frame.y(item.y), frame.x(item.high), frame.y(item.y), `c${n}`);
        mark(frame, n, frame.x(item.x), frame.y(item.y), 4, `line dot c${n}`, item.title);
      }
    },
  }), legend([...groups.map((group, n) => [group, `line c${n}`, n]), ["equal", "equal", "line"]]));
}

const statistic = (name, value, note) => el("div", { class: "stat" }, el("dt", {}, name), el("dd", {}, value, note && el("small", {}, note)));
const interval = (found, digits) => (known(found.low) ? `${found.low.toFixed(digits)} to ${found.high.toFixed(digits)}` : null);

function verificationSection(data) {
  const found = data.verification;
  if (!found) return null;
  const cost = data.costs[data.cost];
  const items = found.checks.map((check) => ({
    x: check.measured, y: check.predicted, low: check.low, high: check.high, group: check.part,
    title: `${check.architecture}: measured ${quantity(check.measured, cost)}, predicted ${quantity(check.predicted, cost)}`,
  }));
  const groups = ["held-out", "fit"].filter((part) => items.some((item) => item.group === part));
  return card(el("div", { class: "split" },
    equalityPlot(`${data.cost} by the formula against measured networks`, `measured (${data.unit})`, `predicted (${data.unit})`, groups, items),
    el("dl", { class: "stats" },
      statistic("Mean error", percent(found.mape_percent.value), interval(found.mape_percent, 2)),
      statistic("Worst", percent(found.worst_percent)),
      statistic("Bias", `${signed(found.bias_percent.value, 2)}\u00a0%`, interval(found.bias_percent, 2)),
      statistic("Spearman", found.spearman.value.toFixed(3), interval(found.spearman, 3)),
      statistic("Kendall", found.kendall.value.toFixed(3), interval(found.kendall, 3)),
      known(found.retest_percent) && statistic("Measuring twice differs by", percent(found.retest_percent)),
      statistic("Plain sum of blocks errs by", percent(found.sum_percent)),
      known(found.macs_percent) && statistic("A line through MACs errs by", percent(found.macs_percent)))));
}

function rankingSection(data) {
  const found = data.ranking;
  if (!found) return null;
  const own = found.estimators[0], macs = found.macs_only, ceiling = found.noise_ceiling;
  const items = found.predicted.map((value, i) => {
    const x = found.measured[i], error = found.measured_stderr[i];
    return { x, y: value, group: "measured networks", low: known(error) ? x - Z * error : null, high: known(error) ? x + Z * error : null,
      title: `${found.architectures[i]}: measured ${percent(x)}, predicted ${percent(value)}` };
  });
  const show = (name, part) => part && known(part.value) && statistic(name, part.value.toFixed(3), interval(part, 3));
  return card(el("div", { class: "split" },
    equalityPlot("Predicted against measured accuracy", "measured accuracy (%)", "predicted accuracy (%)", ["measured networks"], items),
    el("dl", { class: "stats" },
      show("Kendall", own.kendall), show("Spearman", own.spearman),
      macs && show("Kendall of MACs alone", macs.kendall), macs && show("Spearman of MACs alone", macs.spearman),
      ceiling && known(ceiling.kendall) && statistic("Kendall of a perfect predictor", ceiling.kendall.toFixed(3), `noise ceiling, ${ceiling.how}`),
      own.mse && known(own.mse.value) && statistic("Typical error", `${compact(Math.sqrt(own.mse.value), 3)} points`),
      statistic("Networks", String(found.samples)))));
}

function trainingSection(data) {
  const phases = [...new Set(data.training.map((row) => row.phase))];
  const panels = phases.flatMap((phase) => {
    const rows = data.training.filter((row) => row.phase === phase);
    const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))]
      .filter((key) => !["phase", "epoch", "step", "learning_rate"].includes(key) && rows.some((row) => known(row[key])));
    const losses = keys.filter((key) => key.includes("loss"));
    const others = keys.filter((key) => !losses.includes(key));
    return [[others, "accuracy (%)"], [losses, "loss"]].filter(([some]) => some.length)
      .map(([some, unit]) => el("div", { class: "panel" }, el("h3", {}, `${phase}: ${unit}`), curves(phase, rows, some, unit)));
  });
  return panels.length ? card(el("div", { class: "panels wide" }, panels)) : null;
}

function curves(phase, rows, keys, unit) {
  const at = (row) => (known(row.epoch) ? row.epoch : row.step);
  return el("figure", {}, plot({
    label: `${phase}: ${unit} after each epoch`, height: 240,
    x: { title: known(rows[0].epoch) ? "epoch" : "step", whole: true, ...range(rows.map(at)) },
    y: { title: unit, ...range(rows.flatMap((row) => keys.map((key) => row[key]))) },
    draw: (frame) => keys.forEach((key, n) => {
      const seen = rows.filter((row) => known(row[key]));
      frame.add("path", { d: path(seen.map((row) => [frame.x(at(row)), frame.y(row[key])])), class: `line c${n % 6}` });
      if (seen.length < 60) seen.forEach((row) => mark(frame, n, frame.x(at(row)), frame.y(row[key]), 3.5, `line dot c${n % 6}`, `${key} ${compact(row[key])}`));
    }),
  }), legend(keys.map((key, n) => [key, `line c${n % 6}`, 10 + (n % SHAPES.length)])));
}

function timesSection(data) {
  if (!data.times.length) return null;
  const total = data.times.reduce((sum, item) => sum + item.seconds, 0);
  const most = Math.max(...data.times.map((item) => item.seconds)) || 1;
  return card(
    el("dl", { class: "bars" }, data.times.map((item) => el("div", {},
      el("dt", {}, item.name), el("dd", {}, el("span", { class: "bar-fill", "--part": `${(100 * item.seconds) / most}%`, "aria-hidden": "true" }), el("span", {}, duration(item.seconds)))))),
    el("p", { class: "note" }, `In all ${duration(total)}.`));
}

function againSection(data) {
  if (!data.config && !data.commands.length) return null;
  const lines = data.commands.join("\n");
  return card(
    lines && el("div", {}, el("h3", {}, "Commands"), el("pre", { tabindex: "0" }, lines), copyButton(lines)),
    data.config && folded("Configuration", el("pre", { tabindex: "0" }, data.config), copyButton(data.config)));
}
