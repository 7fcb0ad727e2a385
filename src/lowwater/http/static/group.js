// One group: how far behind, since when, who reads what, and how to move it.
import { api } from "./api.js";
import { Chart } from "./charts.js";
import { count, exact, h, lines, notice, pill, rate, repaint, several, shown, span, table, tile, time } from "./dom.js";

const LINES_MAX = 7;

export function groupView(name) {
  const tiles = h("div", { class: "tiles" });
  const advice = h("p", { class: "advice" });
  const lag = new Chart("Lag, records", count);
  const timeLag = new Chart("Time lag", span);
  const partitions = h("div", {});
  const members = h("div", {});
  const events = h("div", {});
  const changes = h("div", {});
  const reset = h("button", { type: "button", class: "main", onclick: () => resetDialog(name, latest, changed) }, "Move offsets…");
  const remove = h("button", { type: "button", onclick: () => removeDialog(name) }, "Delete…");
  const node = h("section", {},
    h("div", { class: "bar" }, h("h1", {}, h("a", { href: "#/groups" }, "Groups"), " / ", h("span", { class: "name" }, shown(name))), reset, remove),
    tiles, advice, h("div", { class: "charts" }, lag.node, timeLag.node),
    h("h2", {}, "Partitions"), partitions, h("h2", {}, "Members"), members,
    h("h2", {}, "Rebalances seen"), events, h("h2", {}, "Offsets moved by hand"), changes);
  let latest = null;
  let changesStale = true;
  const changed = () => { changesStale = true; return refresh(); };

  const columns = [
    { label: "Status", cell: (one) => pill(one.status) },
    { label: "Topic", cell: (one) => h("a", { href: `#/topics/${encodeURIComponent(one.topic)}` }, shown(one.topic)) },
    { label: "Partition", numeric: true, cell: (one) => String(one.partition) },
    { label: "Committed", numeric: true, cell: (one) => exact(one.committed) },
    { label: "End", numeric: true, cell: (one) => exact(one.end) },
    { label: "Lag", numeric: true, cell: (one) => count(one.lag) },
    { label: "Time lag", numeric: true, cell: (one) => span(one.time_lag_ms) },
    { label: "In", numeric: true, cell: (one) => rate(one.rate_in) },
    { label: "Out", numeric: true, cell: (one) => rate(one.rate_out) },
    { label: "Caught up in", numeric: true, cell: (one) => span(one.catch_up_ms) },
    { label: "Member", cell: (one) => h("span", { class: "soft", title: shown(one.member_id || "") }, shown(one.client_id || one.member_id || "–")) },
    { label: "", cell: (one) => (one.detail ? h("span", { class: "soft" }, shown(one.detail)) : "") },
  ];
  const memberColumns = [
    { label: "Member", cell: (one) => h("span", { class: "name" }, shown(one.member)) },
    { label: "Client id", cell: (one) => shown(one.client_id || "–") },
    { label: "Host", cell: (one) => shown(one.host || "–") },
    { label: "Instance", cell: (one) => shown(one.instance || "–") },
    { label: "Reads", cell: (one) => reads(one.partitions) },
  ];

  function reads(assigned) {
    if (assigned === null) return "not told";
    const by = new Map();
    for (const one of assigned) by.set(one.topic, [...(by.get(one.topic) || []), one.partition]);
    return [...by].map(([topic, numbers]) => h("div", {}, `${shown(topic)}: ${numbers.join(", ")}`));
  }

  async function refresh() {
    const [told, courses] = await Promise.all([api.group(name), api.courses(name)]);
    latest = told;
    const { lag: report } = told;
    tiles.replaceChildren(
      tile("Status", pill(report.status)),
      tile("State", told.state || "–", told.kind || ""),
      tile("Members", count(told.members.length)),
      tile("Lag", count(report.lag), "records"),
      tile("Time lag", span(longest(report.partitions)), "of the oldest record to be read"),
    );
    advice.textContent = shown([capital(report.recommendation.text), told.owner].filter(Boolean).join(" "));
    draw(courses);
    repaint(partitions, table(columns, report.partitions, { empty: "Nothing committed, and nothing assigned." }));
    repaint(members, table(memberColumns, told.members, { empty: "Nobody reads at the moment." }));
    events.replaceChildren(table([
      { label: "When", cell: (one) => time(one.at_ms) }, { label: "State", cell: (one) => one.state },
      { label: "Members", numeric: true, cell: (one) => count(one.members) }, { label: "What", cell: (one) => one.what },
    ], told.rebalances, { empty: "None since this server began to look." }));
    if (changesStale) {
      changesStale = false;
      showChanges(await api.changes(name));
    }
    remove.disabled = told.members.length > 0;
  }

  function draw(courses) {
    const most = [...courses.partitions].sort((one, other) => top(other.lag) - top(one.lag)).slice(0, LINES_MAX);
    const label = (one) => `${shown(one.topic)}-${one.partition}`;
    const lines = most.map((one) => ({ label: label(one), values: one.lag }));
    if (courses.partitions.length > 1) lines.unshift({ label: "all", values: courses.times.map((_, place) => sum(courses.partitions, place)) });
    lag.show(courses.times, lines);
    timeLag.show(courses.times, most.map((one) => ({ label: label(one), values: one.time_lag_ms })));
  }

  function showChanges(moved) {
    changes.replaceChildren(table([
      { label: "When", cell: (one) => time(one.at_ms) },
      { label: "What", cell: (one) => shown(one.outcome === "done" ? one.verb : `${one.verb}: ${one.outcome || "not finished"}`) },
      { label: "By", cell: (one) => shown(one.who) },
      { label: "Partitions", numeric: true, cell: (one) => count(one.partitions.length) },
      { label: "", cell: (one) => h("button", { type: "button", class: "chip", onclick: () => undo(name, one.id, changed) }, "Undo") },
    ], moved.changes, { empty: "None." }));
  }

  return {
    node, title: name, refresh,
    reset: () => resetDialog(name, latest, changed),
    close() { lag.close(); timeLag.close(); },
  };
}

function capital(text) {
  return text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "";
}

function top(values) {
  return Math.max(...values.filter((one) => one !== null), 0);
}

function sum(rows, place) {
  const known = rows.map((one) => one.lag[place]).filter((one) => one !== null);
  return known.length ? known.reduce((total, one) => total + one, 0) : null;
}

function longest(rows) {
  const known = rows.map((one) => one.time_lag_ms).filter((one) => one !== null);
  return known.length ? Math.max(...known) : null;
}

async function undo(name, change, refresh) {
  try {
    const told = await api.undo(name, change);
    notice(`Back where it was: ${several(told.moved.length, "partition")}.`);
    await refresh();
  } catch (error) {
    notice(error.message, { bad: true });
  }
}

function removeDialog(name) {
  const failure = h("p", { class: "failure" });
  const dialog = h("dialog", { onclose: () => dialog.remove() },
    h("h2", {}, "Delete this group?"),
    h("p", {}, "All that ", h("b", { class: "name" }, shown(name)), " has committed is forgotten. `lowwater groups undo` brings it back."),
    failure,
    h("div", { class: "bar" },
      h("button", { type: "button", onclick: () => dialog.close() }, "Keep it"),
      h("button", { type: "button", class: "danger", onclick: async () => {
        try {
          await api.remove(name);
          dialog.close();
          location.hash = "#/groups";
        } catch (error) {
          failure.textContent = error.message;
        }
      } }, "Delete")));
  document.body.append(dialog);
  dialog.showModal();
}

function resetDialog(name, told, refresh) {
  if (!told) return;
  const names = [...new Set(told.lag.partitions.map((one) => one.topic))].sort();
  const to = h("input", { name: "to", value: "earliest", spellcheck: "false", autocomplete: "off", "aria-label": "New position" });
  const topic = h("select", { "aria-label": "Topic" }, h("option", { value: "" }, "all its topics"), names.map((one) => h("option", { value: one }, shown(one))));
  const failure = h("p", { class: "failure", role: "alert" });
  const preview = h("div", { class: "preview" });
  const execute = h("button", { type: "button", class: "main", disabled: true, onclick: run }, "Move them");
  const examples = ["earliest", "latest", "-1h", "-100", "stored-10"].map((one) =>
    h("button", { type: "button", class: "chip", onclick: () => { to.value = one; look(); } }, one));
  const dialog = h("dialog", { class: "wide", onclose: () => dialog.remove() },
    h("h2", {}, "Move offsets of ", h("span", { class: "name" }, shown(name))),
    told.owner ? h("p", { class: "advice" }, told.owner) : null,
    h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); look(); } }, h("label", {}, "To ", to), topic, h("button", {}, "Preview"), examples),
    failure, preview,
    h("div", { class: "bar end" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), execute));
  let wanted = null, turn = 0;

  const forget = () => { turn += 1; execute.disabled = true; preview.replaceChildren(); };
  to.addEventListener("input", forget);
  topic.addEventListener("change", forget);

  async function look() {
    const mine = ++turn;
    failure.textContent = "";
    execute.disabled = true;
    const asked = { to: to.value.trim(), ...(topic.value ? { topics: [topic.value] } : {}) };
    try {
      const plan = await api.reset(name, asked);
      if (mine !== turn) return; // what is shown is what will be done
      wanted = asked;
      preview.replaceChildren(table([
        { label: "Topic", cell: (one) => shown(one.topic) },
        { label: "Partition", numeric: true, cell: (one) => String(one.partition) },
        { label: "Now", numeric: true, cell: (one) => exact(one.old) },
        { label: "", cell: () => "→" },
        { label: "Then", numeric: true, cell: (one) => exact(one.new) },
        { label: "Note", cell: (one) => h("span", { class: "soft" }, shown(one.note || "")) },
      ], plan.moved, { empty: "Nothing would change." }));
      execute.disabled = plan.moved.length === 0;
    } catch (error) {
      if (mine !== turn) return;
      preview.replaceChildren();
      failure.textContent = lines(error.message);
    }
  }

  async function run() {
    execute.disabled = true;
    try {
      const done = await api.reset(name, { ...wanted, execute: true, force: Boolean(told.owner) });
      dialog.close();
      notice(`${several(done.moved.length, "partition")} moved.`, { action: { label: "Undo", run: () => undo(name, done.change, refresh) } });
      await refresh();
    } catch (error) {
      failure.textContent = lines(error.message);
    }
  }

  document.body.append(dialog);
  dialog.showModal();
  to.select();
}
