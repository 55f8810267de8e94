// The frontier, and a slider over the limit that shows the proven best network at that limit.

const Z = 1.96; // standard errors of a 95 % band

// Index of the best network within a limit; null where none is that cheap.
function bestWithin(data, limit) {
  const costs = data.frontier.costs;
  const most = limit + 1e-9 * Math.max(Math.abs(limit), 0.01 * costs[costs.length - 1]);
  let low = 0, high = costs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (costs[middle] <= most) low = middle + 1; else high = middle;
  }
  return low ? low - 1 : null;
}

// A round step of a few percent of the limit: 1 for 45, 0.1 for 5.
const priceStep = (limit) => (limit === 0 ? 1 : 10 ** Math.floor(Math.log10(Math.abs(limit) / 20)));

function price(data, limit, i) {
  const more = Number(priceStep(limit).toPrecision(6));
  const gain = data.frontier.accuracies[bestWithin(data, limit + more)] - data.frontier.accuracies[i];
  const amount = quantity(more, data.costs[data.cost]);
  const per = data.insights.per;
  const each = !per || more === per.scale ? "" : ` (${points((gain / more) * per.scale)} per ${per.unit})`;
  return gain > 0 ? `${amount} more buys ${points(gain)} points${each}` : `${amount} more buys nothing`;
}

const groupsOf = (data) => [...new Set(data.references.map((item) => item.group))];

// Points of the step curve that are a pixel or more apart: what the eye can see.
function visible(data, frame) {
  const { costs } = data.frontier;
  const kept = [];
  costs.forEach((cost, i) => {
    const x = frame.x(cost);
    if (!kept.length || x - kept[kept.length - 1].x >= 1 || i === costs.length - 1) kept.push({ x, i });
  });
  return kept;
}

function stepped(items) {
  return items.flatMap(([x, y], i) => (i ? [[x, items[i - 1][1]], [x, y]] : [[x, y]]));
}

function drawFrontier(data, frame) {
  const { accuracies, stderr } = data.frontier;
  const seen = visible(data, frame);
  if (stderr) {
    const edge = (sign) => stepped(seen.map(({ x, i }) => [x, frame.y(accuracies[i] + sign * Z * stderr[i])]));
    frame.add("path", { d: `${path([...edge(1), ...edge(-1).reverse()])}z`, class: "band" });
  }
  frame.add("path", { d: path(stepped(seen.map(({ x, i }) => [x, frame.y(accuracies[i])]))), class: "curve" });
  groupsOf(data).forEach((group, g) => {
    for (const item of data.references.filter((other) => other.group === group)) {
      mark(frame, g, frame.x(item.cost), frame.y(item.accuracy), 4, `reference r${g % 3}`,
        `${item.name}: ${percent(item.accuracy)}, ${quantity(item.cost, data.costs[data.cost])}`);
    }
  });
  data.chosen.forEach((item, i) => drawChosen(data, frame, item, i));
}

function drawChosen(data, frame, item, i) {
  const x = frame.x(item.cost), y = frame.y(item.accuracy);
  if (known(item.one_shot)) {
    const across = frame.x(item.measured_cost ? item.measured_cost.value : item.cost), up = frame.y(item.one_shot);
    frame.add("line", { x1: x, y1: y, x2: across, y2: up, class: "tie" });
    if (item.measured_cost) errorBar(frame, frame.x(item.measured_cost.low), up, frame.x(item.measured_cost.high), up, "chosen");
    mark(frame, DIAMOND, across, up, 5, "chosen hollow", `${asked(item)}: measured ${percent(item.one_shot)}`);
  }
  mark(frame, DIAMOND, x, y, 6, "chosen", `${asked(item)}: predicted ${percent(item.accuracy)}`);
  frame.add("text", { x, y: y - 11, "text-anchor": "middle", class: "tick strong" }, String(i + 1));
}

function frontierAxes(data) {
  const { costs, accuracies, stderr } = data.frontier;
  const others = [...data.references, ...data.chosen];
  const measured = data.chosen.flatMap((item) => (item.measured_cost ? [item.measured_cost.value] : []));
  const band = stderr ? accuracies.flatMap((value, i) => [value - Z * stderr[i], value + Z * stderr[i]]) : [];
  const ends = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  return {
    x: { title: costTitle(data), format: (tick) => short(tick, data.costs[data.cost]), ...range([...ends(costs), ...others.map((item) => item.cost), ...measured]) },
    y: { title: "accuracy (%)", ...range([...ends([...accuracies, ...band]), ...others.map((item) => item.accuracy), ...data.chosen.map((item) => item.one_shot)]) },
  };
}

function frontierLegend(data) {
  const items = [["best network at each limit", "curve", "line"]];
  if (data.frontier.stderr) items.push(["95 % band", "band", "band"]);
  groupsOf(data).forEach((group, g) => items.push([`${group} (measured)`, `reference r${g % 3}`, g % SHAPES.length]));
  if (data.chosen.length) items.push(["chosen, predicted", "chosen", DIAMOND]);
  if (data.chosen.some((item) => known(item.one_shot))) items.push(["chosen, measured", "chosen hollow", DIAMOND]);
  return legend(items);
}

function explorer(data) {
  const { slider, costs, accuracies, stderr } = data.frontier;
  const cost = data.costs[data.cost];
  const parts = explorerParts(data, slider);
  let frame = null, limit = null, index = 0;

  function show(wanted) {
    limit = Math.min(Math.max(wanted, costs[0]), Math.max(slider.max, costs[costs.length - 1]));
    index = bestWithin(data, limit);
    const text = networkAt(data, index);
    parts.range.value = limit;
    parts.number.value = Number(limit.toPrecision(12));
    const error = stderr ? ` \u00b1 ${compact(stderr[index], 2)}` : "";
    parts.range.setAttribute("aria-valuetext", `${quantity(limit, cost)}: ${percent(accuracies[index])}`);
    parts.limit.textContent = quantity(limit, cost);
    parts.within.textContent = percent(accuracies[index]);
    parts.accuracy.replaceChildren(percent(accuracies[index]), el("small", {}, error));
    parts.spoken.textContent = `Within ${quantity(limit, cost)}: ${percent(accuracies[index])} at ${quantity(costs[index], cost)}.`;
    parts.costs.replaceChildren(...costRows(data, text));
    parts.price.textContent = price(data, limit, index);
    parts.runners.replaceChildren(...runnerUps(data, limit));
    parts.text.textContent = text;
    parts.drawing.replaceChildren(...drawNetwork(data, text));
    parts.table.replaceChildren(blockTable(data, text));
    parts.cheaper.disabled = index === 0;
    parts.better.disabled = index === costs.length - 1;
    cursor();
  }

  function cursor() {
    if (!frame) return;
    frame.root.querySelector(".cursor")?.remove();
    const x = frame.x(limit);
    const group = frame.add("g", { class: "cursor" });
    group.append(
      svg("line", { x1: x, x2: x, y1: frame.top, y2: frame.bottom }),
      svg("circle", { cx: frame.x(costs[index]), cy: frame.y(accuracies[index]), r: 6 }));
  }

  const { x, y } = frontierAxes(data);
  const figure = plot({
    label: `Accuracy against ${data.cost}: the best network at each limit, from ${percent(accuracies[0])} to ${percent(accuracies[accuracies.length - 1])}`,
    height: 430, x, y,
    draw: (made) => { frame = made; drawFrontier(data, made); cursor(); },
  });
  const pick = (event) => {
    const place = event.clientX - figure.getBoundingClientRect().left;
    show(x.low + ((place - frame.left) / (frame.right - frame.left)) * (x.high - x.low));
  };
  figure.addEventListener("pointerdown", pick);
  figure.addEventListener("pointermove", (event) => event.buttons && pick(event));
  parts.range.addEventListener("input", () => show(Number(parts.range.value)));
  parts.number.addEventListener("change", () => show(Number(parts.number.value) || costs[0]));
  parts.cheaper.addEventListener("click", () => show(costs[Math.max(0, index - 1)]));
  parts.better.addEventListener("click", () => show(costs[Math.min(costs.length - 1, index + 1)]));
  show(data.chosen.length ? data.chosen[0].at : slider.min + slider.step * Math.round((slider.max - slider.min) / slider.step / 3));
  return { node: assembled(data, parts, figure), show };
}

function explorerParts(data, slider) {
  const button = (text) => el("button", { type: "button" }, text);
  return {
    range: el("input", { type: "range", id: "limit", min: slider.min, max: slider.max, step: slider.step }),
    number: el("input", { type: "number", id: "exact", step: "any", inputmode: "decimal" }),
    cheaper: button("\u2039 Cheaper"),
    better: button("Better \u203a"),
    limit: el("output", { for: "limit", class: "figure" }),
    within: el("span", { class: "within", "aria-hidden": "true" }),
    accuracy: el("strong", { class: "figure", id: "accuracy" }),
    spoken: el("p", { class: "unseen", "aria-live": "polite" }),
    costs: el("dl", { class: "facts" }),
    price: el("p", { class: "price", id: "price" }),
    runners: el("div", { id: "runners" }),
    text: el("code", { id: "architecture" }),
    drawing: el("div", { class: "network", id: "network" }),
    table: el("div", {}),
  };
}

function assembled(data, parts, figure) {
  return el("div", { class: "card" },
    el("div", { class: "control" },
      el("label", { for: "limit" }, `Limit on ${data.cost}`), el("span", {}, parts.within, parts.limit), parts.range),
    el("div", { class: "buttons" }, parts.cheaper, parts.better,
      el("label", { for: "exact" }, data.unit === "1" ? "exact" : `exact, in ${data.unit}`), parts.number),
    parts.spoken,
    el("div", { class: "split" },
      el("figure", {}, figure, frontierLegend(data), el("figcaption", {}, frontierCaption(data))),
      el("div", {},
        el("p", { class: "lead" }, parts.accuracy, el("span", {}, "predicted, the best within this limit")),
        parts.costs, parts.price, parts.runners)),
    el("h3", {}, "The network"),
    parts.drawing, drawingKey(data),
    el("div", { class: "copyable" }, parts.text, copyButton(() => parts.text.textContent)),
    folded("Every block in numbers", parts.table));
}

function frontierCaption(data) {
  const { networks, exact, certainty, loss, costs } = data.frontier;
  const proof = exact ? "proven best, no rounding" : certainty;
  const thinned = networks > costs.length
    ? ` The page holds ${costs.length} of them; at some limits a network up to ${compact(loss, 2)} points better exists.` : "";
  return `${networks} networks that no other beats in accuracy and ${data.cost} (${proof}).${thinned} Click the figure to set the limit.`;
}

function costRows(data, text) {
  return Object.entries(data.costs).map(([name, cost]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, quantity(costOf(data, name, text), cost))));
}

// Runner-ups are known at many limits; those of the nearest one below are shown, unless it is far away.
function runnerUps(data, limit) {
  const { slider } = data.frontier;
  const found = data.runner_ups.filter((entry) => entry.limit <= limit + 1e-9 * Math.abs(limit)).pop();
  if (!found || limit - found.limit > 0.05 * (slider.max - slider.min)) return [];
  const cost = data.costs[data.cost];
  return [
    el("h3", {}, `Runner-ups at ${quantity(found.limit, cost)}`),
    el("ul", { class: "runners" }, found.items.map((item) => el("li", { title: item.architecture },
      el("b", {}, points(item.accuracy - found.accuracy)),
      el("span", {}, quantity(item.cost, cost)),
      el("span", {}, changes(data, found.architecture, item.architecture))))),
  ];
}
