// Building the page. Everything that comes from the cluster becomes text, never markup.

/** h("td", {class: "n"}, "text", node…): attributes, `on…` listeners, children; null children are left out. */
export function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

/** Control characters and marks that turn the reading direction, made visible: names may hold anything. */
export function shown(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (one) => {
    const code = one.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** A message of several lines, each made visible. */
export function lines(message) {
  return message.split("\n").map(shown).join("\n");
}

export function notice(text, { bad = false, action = null } = {}) {
  const line = h("div", { class: bad ? "notice bad" : "notice" }, h("span", {}, text));
  if (action) {
    line.append(h("button", { type: "button", onclick: () => { line.remove(); action.run(); } }, action.label));
  }
  line.append(h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => line.remove() }, "×"));
  document.getElementById("notices").append(line);
  if (!bad) setTimeout(() => line.remove(), 12000);
}

const UNKNOWN = "–";
const SI = ["", "k", "M", "G", "T"];

/** 1234 → 1,234; from a million on 1.23 M. Unknown is a dash, never 0. */
export function count(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (Math.abs(value) < 1e6) return Math.round(value).toLocaleString("en");
  const step = Math.min(Math.floor(Math.log10(Math.abs(value)) / 3), 4);
  return `${(value / 1000 ** step).toPrecision(3)} ${SI[step]}`;
}

/** An offset, to the last digit: two that differ must look different. */
export function exact(value) {
  return value === null || value === undefined ? UNKNOWN : value.toLocaleString("en");
}

/** New content, with the focus where it was. */
export function repaint(place, ...nodes) {
  const focusable = "a, button, input, select";
  const at = [...place.querySelectorAll(focusable)].indexOf(document.activeElement);
  place.replaceChildren(...nodes);
  if (at >= 0) place.querySelectorAll(focusable)[at]?.focus({ preventScroll: true });
}

export function rate(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return `${value < 10 ? value.toFixed(1) : count(value)}/s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  const units = ["B", "KB", "MB", "GB", "TB"];
  let step = 0;
  while (value >= 1000 && step < 4) { value /= 1000; step += 1; }
  return `${step === 0 ? value : value.toPrecision(3)} ${units[step]}`;
}

export function span(ms) {
  if (ms === null || ms === undefined) return UNKNOWN;
  if (ms < 1000) return `${ms < 10 ? Number(ms.toFixed(2)) : Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
  return `${Math.round(s / 86400)} days`;
}

export function time(ms) {
  if (ms === null || ms === undefined || ms < 0) return UNKNOWN;
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return `${ms} ms`;
  const two = (value) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export function several(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function pill(status) {
  const known = status === null || status === undefined ? "unknown" : status;
  return h("span", { class: `pill ${known.toLowerCase()}` }, known);
}

export function tile(label, value, more = "", kind = "") {
  return h("div", { class: `tile ${kind}` }, h("div", { class: "label" }, label), h("div", { class: "value" }, value), h("div", { class: "more" }, more));
}

/** columns: [{label, cell(row), numeric}]. On narrow screens each row is a card, its cells with their labels. */
export function table(columns, rows, { empty = "Nothing here.", caption = "", href = null } = {}) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const head = h("tr", {}, columns.map((one) => h("th", { scope: "col", class: one.numeric ? "n" : null }, one.label)));
  const body = rows.map((row) => {
    const line = h("tr", { class: href ? "link" : null }, columns.map((one) =>
      h("td", { class: one.numeric ? "n" : null, "data-label": one.label }, one.cell(row))));
    if (href) line.addEventListener("click", (event) => { if (!event.target.closest("a, button")) location.hash = href(row); });
    return line;
  });
  return h("div", { class: "scroll" }, h("table", {}, caption ? h("caption", {}, caption) : null, h("thead", {}, head), h("tbody", {}, body)));
}
