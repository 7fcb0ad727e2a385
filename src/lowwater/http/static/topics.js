// Topics, one topic, and the records in it.
import { api } from "./api.js";
import { bytes, count, exact, h, lines, notice, rate, repaint, shown, table, tile, time } from "./dom.js";

const PAGE = 100;
const LONG = 120;

export function topicsView() {
  const filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter topics by name" });
  const internal = h("input", { type: "checkbox" });
  const list = h("div", {});
  const more = h("button", { type: "button", hidden: true }, "Next page");
  const first = h("button", { type: "button", hidden: true }, "First page");
  const node = h("section", {}, h("div", { class: "bar" }, h("h1", {}, "Topics"), filter, h("label", {}, internal, " internal ones too")),
    list, h("div", { class: "pager" }, first, more));
  let after = null, following = null;
  const columns = [
    { label: "Topic", cell: (one) => h("a", { href: `#/topics/${encodeURIComponent(one.name)}`, class: "name" }, shown(one.name)) },
    { label: "Partitions", numeric: true, cell: (one) => count(one.partitions) },
    { label: "Records", numeric: true, cell: (one) => count(one.records) },
    { label: "Size", numeric: true, cell: (one) => bytes(one.bytes) },
    { label: "In", numeric: true, cell: (one) => rate(one.rate) },
  ];

  let turn = 0;

  async function refresh() {
    const mine = ++turn;
    const told = await api.topics({ prefix: filter.value, internal: internal.checked, limit: PAGE, after });
    if (mine !== turn) return; // a newer question was asked meanwhile
    following = told.next;
    repaint(list, ...told.errors.map((one) => h("p", { class: "failure" }, `${shown(one.what)}: ${shown(one.error)}`)), table(columns, told.topics, {
      empty: "No topics here. `lowwater topics create NAME` makes one.",
      href: (one) => `#/topics/${encodeURIComponent(one.name)}`,
    }));
    more.hidden = following === null;
    first.hidden = after === null;
  }

  const anew = () => { after = null; refresh(); };
  filter.addEventListener("input", anew);
  internal.addEventListener("change", anew);
  more.addEventListener("click", () => { after = following; refresh(); });
  first.addEventListener("click", anew);
  return { node, title: "Topics", refresh, close() {} };
}

export function topicView(name) {
  const tiles = h("div", { class: "tiles" });
  const groups = h("p", { class: "soft" });
  const list = h("div", {});
  const settings = h("div", {});
  const browser = recordsBrowser(name);
  const node = h("section", {}, h("div", { class: "bar" }, h("h1", {}, h("a", { href: "#/topics" }, "Topics"), " / ", h("span", { class: "name" }, shown(name)))),
    tiles, groups, browser.node, h("h2", {}, "Partitions"), list, settings);
  const columns = [
    { label: "Partition", numeric: true, cell: (one) => String(one.partition) },
    { label: "Leader", numeric: true, cell: (one) => (one.leader < 0 ? "none" : String(one.leader)) },
    { label: "In sync", cell: (one) => `${one.in_sync.length} of ${one.replicas.length}` },
    { label: "Start", numeric: true, cell: (one) => exact(one.start) },
    { label: "End", numeric: true, cell: (one) => exact(one.end) },
    { label: "Size", numeric: true, cell: (one) => bytes(one.bytes) },
    { label: "", cell: (one) => (one.error ? h("span", { class: "failure" }, shown(one.error)) : "") },
  ];

  async function refresh() {
    const told = await api.topic(name);
    const known = told.partitions.filter((one) => one.end !== null);
    tiles.replaceChildren(
      tile("Partitions", count(told.partitions.length)),
      tile("Records", count(known.reduce((sum, one) => sum + one.end - one.start, 0)), "offsets in the log"),
      tile("Size", bytes(told.partitions.reduce((sum, one) => sum + (one.bytes || 0), 0))),
      tile("In", rate(told.rate)),
    );
    groups.replaceChildren(...(told.groups.length ? ["Read by ", ...told.groups.flatMap((one, place) => [
      place ? ", " : "", h("a", { href: `#/groups/${encodeURIComponent(one)}` }, shown(one))])] : ["No group has committed offsets of it."]));
    list.replaceChildren(table(columns, told.partitions));
    browser.partitions(told.partitions.map((one) => one.partition));
    const set = Object.entries(told.settings);
    settings.replaceChildren(...(set.length ? [h("h2", {}, "Settings of its own"), table(
      [{ label: "Setting", cell: ([key]) => h("code", {}, shown(key)) }, { label: "Value", cell: ([, value]) => shown(value ?? "–") }], set)] : []));
  }

  return { node, title: name, refresh, close() {} };
}

function recordsBrowser(name) {
  const start = h("input", { value: "-50", "aria-label": "Start position", spellcheck: "false", autocomplete: "off" });
  const partition = h("select", { "aria-label": "Partition" }, h("option", { value: "" }, "all partitions"));
  const limit = h("select", { "aria-label": "How many" }, [20, 50, 100, 200].map((one) => h("option", { value: one, selected: one === 50 }, `${one} records`)));
  const failure = h("p", { class: "failure", hidden: true });
  const list = h("div", { class: "records" }, h("p", { class: "empty" }, "Say where to start, then look."));
  const examples = ["earliest", "-50", "-1h", "today"].map((one) =>
    h("button", { type: "button", class: "chip", onclick: () => { start.value = one; look(); } }, one));
  const form = h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); look(); } },
    h("label", {}, "From ", start), partition, limit, h("button", { class: "main" }, "Look"), examples);
  const node = h("section", { class: "panel" }, h("h2", {}, "Records"), form, failure, list);
  const columns = [
    { label: "Time", cell: (one) => h("span", { class: "soft" }, time(one.timestamp)) },
    { label: "Partition", numeric: true, cell: (one) => String(one.partition) },
    { label: "Offset", numeric: true, cell: (one) => String(one.offset) },
    { label: "Key", cell: (one) => value(one.key) },
    { label: "Value", cell: (one) => [value(one.value), one.cut ? h("span", { class: "soft" }, " (longer)") : null].flat() },
    { label: "Headers", cell: (one) => one.headers.map(([key, each]) => h("div", { class: "header" }, h("b", {}, text(key)), " ", value(each))) },
  ];

  async function look() {
    failure.hidden = true;
    try {
      const told = await api.records(name, { start: start.value.trim(), limit: limit.value, partition: partition.value });
      list.replaceChildren(table(columns, told.records, { empty: "No records from there on." }));
      for (const one of told.errors) notice(`${shown(one.what)}: ${shown(one.error)}`, { bad: true });
    } catch (error) {
      failure.hidden = false;
      failure.textContent = lines(error.message);
    }
  }

  return {
    node,
    partitions(numbers) {
      if (partition.options.length === numbers.length + 1) return;
      const chosen = partition.value;
      partition.replaceChildren(h("option", { value: "" }, "all partitions"), ...numbers.map((one) => h("option", { value: one }, `partition ${one}`)));
      partition.value = chosen;
    },
  };
}

function text(one) {
  if (one === null) return "null";
  return typeof one === "string" ? shown(one) : `base64 ${one.base64}`;
}

function value(one) {
  if (one === null) return h("span", { class: "soft" }, "null");
  const whole = text(one);
  if (whole.length <= LONG) return h("code", {}, whole);
  const code = h("code", {}, `${whole.slice(0, LONG)}…`);
  const toggle = h("button", { type: "button", class: "chip", onclick: () => {
    const open = toggle.getAttribute("aria-expanded") === "true";
    code.textContent = open ? `${whole.slice(0, LONG)}…` : pretty(whole);
    code.className = open ? "" : "whole";
    toggle.setAttribute("aria-expanded", String(!open));
    toggle.textContent = open ? "all of it" : "less";
  }, "aria-expanded": "false" }, "all of it");
  return [code, " ", toggle];
}

function pretty(whole) {
  try { return JSON.stringify(JSON.parse(whole), null, 2); } catch { return whole; }
}
