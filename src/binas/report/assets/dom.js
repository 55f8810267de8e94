"use strict";
// Elements are only ever filled with text nodes, so that no name in a table can become markup.

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function table(caption, columns, rows) {
  const head = el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)));
  const body = rows.map((row) => el("tr", {}, row.map((cell, i) => el("td", { "data-label": columns[i] }, cell))));
  return el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, head), el("tbody", {}, body));
}

const folded = (summary, ...children) => el("details", {}, el("summary", {}, summary), ...children);

function copyButton(text) {
  const button = el("button", { type: "button", class: "quiet", onclick: copy }, "Copy");
  async function copy() {
    const wanted = typeof text === "function" ? text() : text;
    try {
      await navigator.clipboard.writeText(wanted);
    } catch {
      // Pages opened from disk may not have a clipboard: select a copy of the text the old way.
      const area = el("textarea", { class: "unseen", "aria-hidden": "true" }, wanted);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }
  return button;
}

const numbersOfPage = () => JSON.parse(document.getElementById("numbers").textContent);

function themes() {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
  };
  button.addEventListener("click", () => apply(root.dataset.theme !== "dark"));
  system.addEventListener("change", () => apply(system.matches));
  apply(system.matches);
}
