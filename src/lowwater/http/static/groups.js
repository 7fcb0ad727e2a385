// All groups: what is behind, by how much, and which way it goes.
import { api } from "./api.js";
import { spark } from "./charts.js";
import { count, h, pill, repaint, shown, span, table, tile } from "./dom.js";

const PAGE = 100;

export function groupsView() {
  const filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter groups by name" });
  const status = h("select", { "aria-label": "Which groups" },
    h("option", { value: "" }, "all groups"), h("option", { value: "trouble" }, "in trouble"), h("option", { value: "lagging" }, "behind"));
  const tiles = h("div", { class: "tiles" });
  const list = h("div", {});
  const errors = h("div", {});
  const more = h("button", { type: "button", hidden: true }, "Next page");
  const first = h("button", { type: "button", hidden: true }, "First page");
  const node = h("section", {}, h("div", { class: "bar" }, h("h1", {}, "Consumer groups"), filter, status), tiles, errors, list,
    h("div", { class: "pager" }, first, more));
  let after = null, following = null;

  const columns = [
    { label: "Status", cell: (one) => pill(one.status) },
    { label: "Group", cell: (one) => h("a", { href: `#/groups/${encodeURIComponent(one.group)}`, class: "name" }, shown(one.group)) },
    { label: "State", cell: (one) => one.state || "–" },
    { label: "Members", numeric: true, cell: (one) => count(one.members) },
    { label: "Topics", cell: (one) => topics(one.topics) },
    { label: "Lag", numeric: true, cell: (one) => count(one.lag) },
    { label: "Time lag", numeric: true, cell: (one) => span(one.time_lag_ms) },
    { label: "Lag lately", cell: (one) => spark(one.trend, `Lag of ${shown(one.group)} lately`) },
  ];

  function topics(names) {
    const few = names.slice(0, 3).map(shown).join(", ");
    return h("span", { class: "soft", title: names.map(shown).join("\n") }, names.length > 3 ? `${few} and ${names.length - 3} more` : few || "–");
  }

  let turn = 0;

  async function refresh() {
    const mine = ++turn;
    const told = await api.groups({ prefix: filter.value, show: status.value, limit: PAGE, after });
    if (mine !== turn) return; // a newer question was asked meanwhile
    following = told.next;
    tiles.replaceChildren(
      tile("Groups", count(told.totals.groups)),
      tile("In trouble", count(told.totals.trouble), "", told.totals.trouble ? "bad" : "good"),
      tile("Lag of all", count(told.totals.lag), "records"),
      tile("Longest time lag", span(told.totals.time_lag_ms)),
    );
    errors.replaceChildren(...told.errors.map((one) => h("p", { class: "failure" }, `${shown(one.what)}: ${shown(one.error)}`)));
    repaint(list, table(columns, told.groups, {
      empty: told.totals.groups ? "No group fits the filter." : "No groups yet. They appear as soon as a consumer joins or commits.",
      href: (one) => `#/groups/${encodeURIComponent(one.group)}`,
    }));
    more.hidden = following === null;
    first.hidden = after === null;
  }

  const anew = () => { after = null; refresh(); };
  filter.addEventListener("input", anew);
  status.addEventListener("change", anew);
  more.addEventListener("click", () => { after = following; refresh(); });
  first.addEventListener("click", anew);
  return { node, title: "Groups", refresh, close() {} };
}
