// Architectures: read from text, added up from the tables, compared, drawn stage by stage.

const stagesOf = (text) => text.split("_").map((stage) => (stage === "0" ? [] : stage.split("-")));
const networkAt = (data, i) => data.frontier.stages.map((stage) => stage.variants[stage.points[i]]).join("_");
const configIndex = (data, s, b, name) => data.space.stages[s].blocks[b].findIndex((config) => config.name === name);

function costOf(data, name, text) {
  const cost = data.costs[name];
  const parts = [cost.fixed];
  stagesOf(text).forEach((names, s) => {
    parts.push(cost.depths[s][data.space.stages[s].depths.indexOf(names.length)]);
    names.forEach((config, b) => parts.push(cost.configs[s][b][configIndex(data, s, b, config)]));
  });
  return cost.combine === "max" ? Math.max(...parts) : parts.reduce((sum, part) => sum + part, 0);
}

// What makes another network different, in a few words: "s3 depth 3 to 2, s4 block 1 e6k3 to e4k3".
function changes(data, from, to) {
  const [old, now] = [stagesOf(from), stagesOf(to)];
  const found = [];
  data.space.stages.forEach((stage, s) => {
    if (old[s].length !== now[s].length) found.push(`${stage.name} depth ${old[s].length} \u2192 ${now[s].length}`);
    now[s].forEach((name, b) => {
      if (b >= old[s].length) found.push(`${stage.name} block ${b + 1} ${name}`);
      else if (name !== old[s][b]) found.push(`${stage.name} block ${b + 1} ${old[s][b]} \u2192 ${name}`);
    });
  });
  const most = 5;
  return found.slice(0, most).join(", ") + (found.length > most ? ` and ${found.length - most} more` : "");
}

// What a config brings per unit of cost, or by itself where the cost is a maximum and has no parts.
function worth(data, s, b, c) {
  const gain = data.contributions.configs[s][b][c];
  const cost = data.costs[data.cost];
  if (!data.insights.per) return gain;
  return cost.configs[s][b][c] > 0 ? (gain / cost.configs[s][b][c]) * data.insights.per.scale : null;
}

const worthUnit = (data) => (data.insights.per ? `points per ${data.insights.per.unit}` : "points");

// The size at which a colour is full: the 90th percentile over all configs, so that one outlier does not pale the rest.
function fullColour(data) {
  const sizes = data.space.stages
    .flatMap((stage, s) => stage.blocks.flatMap((block, b) => block.map((_, c) => worth(data, s, b, c))))
    .filter(known).map(Math.abs).sort((one, two) => one - two);
  return sizes[Math.floor(0.9 * (sizes.length - 1))] || 1;
}

// A kernel as a grid of dots.
function kernelGlyph(size) {
  const gap = 4, reach = size * gap + 1;
  const root = svg("svg", { width: reach, height: reach, class: "kernel", "aria-hidden": "true" });
  for (let i = 0; i < size * size; i++) {
    root.append(svg("circle", { cx: 2.5 + (i % size) * gap, cy: 2.5 + Math.floor(i / size) * gap, r: 1.35 }));
  }
  return root;
}

const badgeText = (key) => (key.length <= 3 ? key.toUpperCase() : key);

function describeBlock(data, s, b, name) {
  const c = configIndex(data, s, b, name);
  const cost = data.costs[data.cost];
  const each = worth(data, s, b, c);
  const options = Object.entries(data.space.stages[s].blocks[b][c]).filter(([key]) => key !== "name")
    .map(([key, value]) => (value === true ? key : value === false ? `no ${key}` : `${key} ${value}`));
  return [
    `Block ${b + 1}: ${[name, ...options].join(", ")}`,
    `${points(data.contributions.configs[s][b][c])} points`,
    `${data.cost} ${quantity(cost.configs[s][b][c], cost)}`,
    known(each) ? `${signed(each, 3)} ${worthUnit(data)}` : null,
  ].filter(Boolean).join("; ");
}

function blockItem(data, s, b, name, full) {
  const config = data.space.stages[s].blocks[b][configIndex(data, s, b, name)];
  const { width, glyph, badges, words, most } = data.drawing;
  const each = worth(data, s, b, configIndex(data, s, b, name));
  const share = known(each) ? Math.min(1, Math.abs(each) / full) : 0;
  const bare = config[width] === undefined && config[glyph] === undefined;
  const label = describeBlock(data, s, b, name);
  const item = el("li", { class: `block ${each >= 0 ? "gain" : "loss"}`, title: label });
  fill(item, { "--share": `${(8 + 47 * share).toFixed(0)}%`, "--size": (config[width] || most) / most }, [
    el("span", { class: "unseen" }, label),
    el("span", { class: "face", "aria-hidden": "true" }, [
      config[glyph] !== undefined && kernelGlyph(config[glyph]),
      bare ? el("b", {}, name) : config[width] !== undefined && el("b", {}, `\u00d7${config[width]}`),
      words.filter((key) => config[key] !== undefined && !bare).map((key) => el("span", {}, String(config[key]))),
    ]),
    badges.filter((key) => config[key]).map((key) => el("span", { class: "badge", "aria-hidden": "true" }, badgeText(key))),
  ]);
  return item;
}

function stageNote(stage) {
  const shown = ["channels", "stride"].filter((key) => stage.attributes[key] !== undefined);
  return shown.map((key) => `${stage.attributes[key]} ${key}`.replace(/^(\d+) stride$/, "stride $1")).join(", ");
}

function drawNetwork(data, text) {
  const full = fullColour(data);
  return stagesOf(text).map((names, s) => {
    const stage = data.space.stages[s];
    const unused = stage.blocks.length - names.length;
    return el("div", { class: "stage", "--columns": Math.min(6, stage.blocks.length) },
      el("h4", {}, stage.name, el("small", {}, stageNote(stage))),
      el("ol", { class: "blocks" },
        names.map((name, b) => blockItem(data, s, b, name, full)),
        unused > 3 ? el("li", { class: "block unused", "aria-hidden": "true" }, el("span", { class: "face" }, `+${unused}`))
          : Array.from({ length: unused }, () => el("li", { class: "block unused", "aria-hidden": "true" }))));
  });
}

// How to read the drawing.
function drawingKey(data) {
  const { width, glyph, badges } = data.drawing;
  const full = fullColour(data);
  const kernels = [...new Set(data.space.stages.flatMap((stage) => stage.blocks.flatMap((block) => block.map((config) => config[glyph]))))].filter(known).sort();
  return el("ul", { class: "legend" },
    el("li", {}, el("span", { class: "ramp", "aria-hidden": "true" }), `${compact(-full, 2)} to +${compact(full, 2)} ${worthUnit(data)}`),
    width && el("li", {}, `block width: ${width}`),
    kernels.map((size) => el("li", {}, kernelGlyph(size), `${glyph} ${size}`)),
    badges.map((key) => el("li", {}, el("span", { class: "badge inline" }, badgeText(key)), `has ${key}`)),
    el("li", {}, el("span", { class: "swatch", "aria-hidden": "true" }), "block not used"));
}

function blockTable(data, text) {
  const cost = data.costs[data.cost];
  const rows = stagesOf(text).flatMap((names, s) => names.map((name, b) => {
    const c = configIndex(data, s, b, name), each = worth(data, s, b, c);
    return [data.space.stages[s].name, String(b + 1), name, points(data.contributions.configs[s][b][c]),
      quantity(cost.configs[s][b][c], cost), known(each) ? signed(each, 3) : "-"];
  }));
  return table("Blocks of this network", ["Stage", "Block", "Config", "Points", data.cost, worthUnit(data)], rows);
}
