// Plots: an SVG that is drawn again when its container gets another width. Colours come from the style sheet.

function ticksOf(axis, most) {
  if (axis.names) return axis.names.map((_, i) => i);
  if (axis.log) return logTicks(axis.low, axis.high);
  const span = axis.high - axis.low;
  const power = 10 ** Math.floor(Math.log10(span / most));
  const fitting = [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= most);
  const step = axis.whole ? Math.max(1, fitting) : fitting;
  const ticks = [];
  for (let i = Math.ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * span; i++) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const factor of high / low > 200 ? [1] : [1, 3]) {
      const tick = Number((factor * 10 ** power).toPrecision(3));
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

// The range of numbers with a margin; zero is shown where asked for.
function range(values, withZero) {
  const numbers = values.filter(known).concat(withZero ? [0] : []);
  let low = Math.min(...numbers), high = Math.max(...numbers);
  if (!(high > low)) { low -= Math.abs(low) * 0.05 || 0.5; high += Math.abs(high) * 0.05 || 0.5; }
  const margin = (high - low) * 0.06;
  return { low: withZero && low === 0 ? 0 : low - margin, high: high + margin };
}

function scale(axis, from, to) {
  const turn = axis.log ? Math.log : (value) => value;
  const [low, high] = axis.names ? [-0.5, axis.names.length - 0.5] : [axis.low, axis.high];
  return (value) => from + ((turn(value) - turn(low)) / (turn(high) - turn(low))) * (to - from);
}

// spec: label, height, x, y, right (axes: title, low, high, names, log, whole, format), draw(frame)
function plot(spec) {
  const box = el("div", { class: "plot" });
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(box.clientWidth);
    if (now > 0 && now !== width) { width = now; box.replaceChildren(drawn(spec, width)); }
  }).observe(box);
  return box;
}

function drawn(spec, width) {
  const height = spec.height || 280;
  const left = spec.left || 46, right = spec.right ? 44 : 14, top = 30, bottom = 46;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": spec.label });
  const frame = {
    root, width, height, left, top, right: width - right, bottom: height - bottom,
    x: scale(spec.x, left, width - right),
    y: scale(spec.y, height - bottom, top),
    add: (tag, attributes, ...children) => root.appendChild(svg(tag, attributes, ...children)),
  };
  if (spec.right) frame.y2 = scale(spec.right, height - bottom, top);
  axes(spec, frame);
  spec.draw(frame);
  return root;
}

const labelled = (axis, tick) => (axis.names ? axis.names[tick] : axis.format ? axis.format(tick) : minus(String(tick)));

function axes(spec, frame) {
  const write = (x, y, anchor, text, kind) =>
    frame.add("text", { x, y, "text-anchor": anchor, class: kind || "tick" }, text);
  for (const tick of ticksOf(spec.y, 6)) {
    const y = frame.y(tick);
    frame.add("line", { x1: frame.left, x2: frame.right, y1: y, y2: y, class: spec.y.names ? "faint" : "grid" });
    write(frame.left - 8, y + 4, "end", labelled(spec.y, tick));
  }
  // Crowded names are thinned so that they never run into each other.
  const wanted = spec.x.names ? spec.x.names : [];
  const longest = Math.max(0, ...wanted.map((name) => name.length)) * 7 + 8;
  const every = wanted.length ? Math.ceil((longest * wanted.length) / (frame.right - frame.left)) : 1;
  for (const tick of ticksOf(spec.x, frame.width < 420 ? 5 : 8)) {
    if (tick % every && spec.x.names) continue;
    const x = frame.x(tick);
    if (spec.x.grid) frame.add("line", { x1: x, x2: x, y1: frame.top, y2: frame.bottom, class: "grid" });
    write(x, frame.bottom + 18, "middle", labelled(spec.x, tick));
  }
  frame.add("line", { x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom, class: "axis" });
  if (spec.x.title) write((frame.left + frame.right) / 2, frame.height - 8, "middle", spec.x.title, "axis-title");
  if (spec.y.title) write(2, 14, "start", spec.y.title, "axis-title");
  if (spec.right) {
    for (const tick of ticksOf(spec.right, 6)) write(frame.right + 8, frame.y2(tick) + 4, "start", labelled(spec.right, tick));
    write(frame.width - 2, 14, "end", spec.right.title, "axis-title");
  }
}

const path = (items) => items.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

const SHAPES = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (x, y, r) => `M${x - r * 0.9} ${y - r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  (x, y, r) => `M${x} ${y - r * 1.2}l${r * 1.15} ${r * 2}h${-r * 2.3}z`,
  (x, y, r) => `M${x} ${y - r * 1.3}l${r * 1.3} ${r * 1.3}l${-r * 1.3} ${r * 1.3}l${-r * 1.3} ${-r * 1.3}z`,
];
const DIAMOND = 3;

function mark(frame, shape, x, y, size, kind, title) {
  return frame.add("path", { d: SHAPES[shape % SHAPES.length](x, y, size), class: kind }, title && svg("title", {}, title));
}

function errorBar(frame, x1, y1, x2, y2, kind) {
  frame.add("line", { x1, y1, x2, y2, class: `error ${kind || ""}` });
}

// A legend in HTML, so that it wraps on a narrow screen. items: [name, class, sign]; a sign is "line", "dashed", "band",
// the number of a shape, or 10 more for a shape on a line.
function legend(items) {
  return el("ul", { class: "legend" }, items.map(([name, kind, shape]) => {
    const sign = svg("svg", { width: 22, height: 14, "aria-hidden": "true" });
    if (shape === "band") sign.append(svg("rect", { x: 1, y: 2, width: 20, height: 10, rx: 2, class: kind }));
    else {
      if (typeof shape !== "number" || shape >= 10) sign.append(svg("line", { x1: 1, x2: 21, y1: 7, y2: 7, class: `${kind} ${shape === "dashed" ? "dashed" : ""}` }));
      if (typeof shape === "number") sign.append(svg("path", { d: SHAPES[shape % 10](11, 7, 4.5), class: `${kind} dot` }));
    }
    return el("li", {}, sign, name);
  }));
}
