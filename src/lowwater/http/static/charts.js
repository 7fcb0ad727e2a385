// Lines over time: uPlot for what one studies, a bare path for what one glances at.
import { h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = ["#0d9488", "#d97706", "#7c3aed", "#db2777", "#2563eb", "#65a30d", "#dc2626", "#0891b2"];

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function clock(s) {
  return new Date(s * 1000).toTimeString().slice(0, 8);
}

/** A small line without axes; gaps where nothing is known. */
export function spark(values, label) {
  const width = 96, height = 24, pad = 2;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "spark");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const known = values.filter((one) => one !== null);
  if (known.length < 2) return svg;
  const most = Math.max(...known, 1);
  let path = "", drawing = false;
  values.forEach((value, place) => {
    if (value === null) { drawing = false; return; }
    const x = pad + (place * (width - 2 * pad)) / (values.length - 1);
    const y = height - pad - (value * (height - 2 * pad)) / most;
    path += `${drawing ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    drawing = true;
  });
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

/** A chart that can be given new data. lines: [{label, values}]; times in ms. */
export class Chart {
  constructor(title, format) {
    this.format = format;
    this.place = h("div", { class: "plot" });
    this.node = h("figure", { class: "chart" }, h("figcaption", {}, title), this.place);
    this.plot = null;
    this.labels = "";
    this.sized = new ResizeObserver(() => this.fit());
    this.sized.observe(this.place);
  }

  fit() {
    if (this.plot && this.place.clientWidth) this.plot.setSize({ width: this.place.clientWidth, height: 220 });
  }

  show(times, lines) {
    if (this.closed) return;
    const data = [times.map((one) => one / 1000), ...lines.map((one) => one.values)];
    const labels = JSON.stringify(lines.map((one) => one.label));
    if (this.plot && labels === this.labels) {
      this.plot.setData(data);
      return;
    }
    if (this.plot) this.plot.destroy();
    this.labels = labels;
    this.plot = new uPlot(this.options(lines), data, this.place);
  }

  options(lines) {
    const ink = css("--ink-soft"), grid = css("--line");
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui" };
    return {
      width: this.place.clientWidth || 600,
      height: 220,
      scales: { x: { time: true }, y: { range: (_, least, most) => [0, most > 0 ? most * 1.1 : 1] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 72, values: (_, ticks) => ticks.map((one) => this.format(one)) }],
      series: [{ label: "Time", value: (_, s) => (s === null ? "–" : clock(s)) }, ...lines.map((one, place) => ({
        label: one.label,
        stroke: COLOURS[place % COLOURS.length],
        width: 2,
        spanGaps: false,
        points: { show: false },
        value: (_, value) => (value === null || value === undefined ? "–" : this.format(value)),
      }))],
      legend: { live: true },
    };
  }

  close() {
    this.closed = true;
    this.sized.disconnect();
    if (this.plot) this.plot.destroy();
    this.plot = null;
  }
}
