// Numbers for people.

const known = (value) => typeof value === "number" && Number.isFinite(value);
const minus = (text) => text.replace("-", "\u2212");
const compact = (value, digits) => minus(String(Number(value.toPrecision(digits || 4))));
const signed = (value, digits) => (value > 0 ? "+" : "") + minus(value.toFixed(digits));

// Points of accuracy: as many decimals as the size asks for.
function points(value) {
  const size = Math.abs(value);
  return signed(value, size >= 1 ? 2 : size >= 0.01 || size === 0 ? 3 : 5);
}

const percent = (value, digits) => minus(value.toFixed(digits === undefined ? 2 : digits)) + "\u00a0%";

const NOUNS = ["MACs", "FLOPs", "params", "count"];

// Large counts and bytes get a fitting prefix, others keep their unit.
function quantity(value, cost, digits) {
  const plain = value * cost.factor;
  const scaled = (units) => {
    const [name, size] = units.find(([, least]) => Math.abs(plain) >= least);
    return `${compact(plain / size, digits)}\u00a0${name}`;
  };
  if (Math.abs(plain) >= 1e4 && cost.kind === "count") {
    const noun = NOUNS.find((word) => cost.unit.endsWith(word)) || "";
    return scaled([["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]].map(([p, size]) => [p + noun, size]));
  }
  if (Math.abs(plain) >= 1e4 && cost.kind === "bytes") {
    return scaled([["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]);
  }
  return cost.unit === "1" ? compact(value, digits) : `${compact(value, digits)}\u00a0${cost.unit}`;
}

// The same for the ticks of an axis: no unit but a prefix, as the title names the unit.
function short(value, cost) {
  const prefixes = cost.kind === "count" || cost.kind === "bytes" ? [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]] : [];
  const [name, size] = prefixes.find(([, least]) => Math.abs(value) >= 10 * least) || ["", 1];
  return compact(value / size, 6) + name;
}

const costTitle = (data) => (data.unit === "1" ? data.cost : `${data.cost} (${data.unit})`);

function duration(seconds) {
  if (seconds < 1) return `${compact(seconds * 1000, 2)}\u00a0ms`;
  if (seconds < 60) return `${compact(seconds, 3)}\u00a0s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}\u00a0min ${Math.round(seconds % 60)}\u00a0s`;
  return `${Math.floor(seconds / 3600)}\u00a0h ${Math.round((seconds % 3600) / 60)}\u00a0min`;
}

// How many architectures: written out while short, else as a power of ten.
function count(text) {
  if (text.length <= 7) return text.replace(/\B(?=(\d{3})+$)/g, ",");
  const power = String(text.length - 1).replace(/\d/g, (digit) => "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[digit]);
  return `${text[0]}.${text[1]}\u00a0\u00d7\u00a010${power}`;
}
