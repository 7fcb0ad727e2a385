// The cluster, and the counters of the broker beside this server.
import { api } from "./api.js";
import { Chart } from "./charts.js";
import { bytes, count, h, rate, several, shown, span, table, tile } from "./dom.js";

const KEPT = 150;

export function brokerView() {
  const tiles = h("div", { class: "tiles" });
  const brokers = h("div", {});
  const own = h("div", {});
  const requests = new Chart("Requests a second", rate);
  const traffic = new Chart("Bytes a second", bytes);
  const charts = h("div", { class: "charts", hidden: true }, requests.node, traffic.node);
  const node = h("section", {}, h("div", { class: "bar" }, h("h1", {}, "Broker")), tiles, charts, own, h("h2", {}, "Brokers of the cluster"), brokers);
  const seen = [];
  let before = null;

  function note(counters) {
    const now = { at: Date.now(), requests: total(counters.requests), in: counters.traffic.bytes_in, out: counters.traffic.bytes_out };
    if (before && now.at > before.at && now.requests >= before.requests) {
      const s = (now.at - before.at) / 1000;
      seen.push({ at: now.at, requests: (now.requests - before.requests) / s, in: (now.in - before.in) / s, out: (now.out - before.out) / s });
      if (seen.length > KEPT) seen.shift();
    }
    before = now;
    const times = seen.map((one) => one.at);
    requests.show(times, [{ label: "requests", values: seen.map((one) => one.requests) }]);
    traffic.show(times, [{ label: "in", values: seen.map((one) => one.in) }, { label: "out", values: seen.map((one) => one.out) }]);
  }

  async function refresh() {
    const told = await api.cluster();
    brokers.replaceChildren(table([
      { label: "Id", numeric: true, cell: (one) => String(one.id) },
      { label: "Address", cell: (one) => `${shown(one.host)}:${one.port}` },
      { label: "Rack", cell: (one) => shown(one.rack || "–") },
      { label: "", cell: (one) => (one.id === told.controller ? "controller" : "") },
    ], told.brokers));
    const counters = told.counters;
    charts.hidden = counters === null;
    if (counters === null) {
      tiles.replaceChildren(tile("Cluster", h("span", { class: "name" }, shown(told.id))), tile("Brokers", count(told.brokers.length)));
      own.replaceChildren(h("p", { class: "soft" }, "Counters of the broker itself are shown when it is a Lowwater broker that started this server."));
      return;
    }
    note(counters);
    const size = counters.logs.reduce((sum, one) => sum + one.bytes, 0);
    const offline = counters.logs.filter((one) => one.offline !== null);
    tiles.replaceChildren(
      tile("Connections", count(counters.connections)),
      tile("Topics", count(counters.topics), several(counters.partitions, "partition")),
      tile("Log", bytes(size), counters.disk ? `${bytes(counters.disk.free_bytes)} free` : "", counters.disk && counters.disk.free_bytes < counters.disk.total_bytes / 20 ? "bad" : ""),
      tile("Groups", count(counters.groups.active), several(counters.groups.members, "member")),
      tile("Transactions open", count(counters.transactions.ongoing)),
      tile("99 % of fsyncs within", span(quantile(counters.fsyncs, 0.99)), several(times(counters.fsyncs), "fsync")),
      tile("Offline partitions", count(offline.length), "", offline.length ? "bad" : "good"),
    );
    const apis = Object.entries(counters.requests).sort((one, other) => other[1] - one[1]);
    own.replaceChildren(...offline.map((one) => h("p", { class: "failure" }, `${shown(one.topic)}-${one.partition}: ${shown(one.offline)}`)),
      h("h2", {}, "Requests since the start"), table([
        { label: "Request", cell: ([name]) => name },
        { label: "Served", numeric: true, cell: ([, served]) => count(served) },
        { label: "Half within", numeric: true, cell: ([name]) => span(quantile(counters.took[name], 0.5)) },
        { label: "99 % within", numeric: true, cell: ([name]) => span(quantile(counters.took[name], 0.99)) },
      ], apis, { caption: "With the time that a Fetch or Join waits on purpose." }));
  }

  return { node, title: "Broker", refresh, close() { requests.close(); traffic.close(); } };
}

function total(by) {
  return Object.values(by).reduce((sum, one) => sum + one, 0);
}

function times(took) {
  return took ? took.counts.reduce((sum, one) => sum + one, 0) : 0;
}

/** The bound of the bucket in which the quantile lies. */
function quantile(took, share) {
  const all = times(took);
  if (!all) return null;
  let below = 0;
  for (let place = 0; place < took.counts.length; place += 1) {
    below += took.counts[place];
    if (below >= share * all) return took.le_ms[Math.min(place, took.le_ms.length - 1)];
  }
  return null;
}
