// Curves beside the scene, with a cursor at the time of the timeline; a click moves the timeline there.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

const COLORS = ["#1f5a99", "#c8502d", "#3c8c50", "#8a5aa8", "#b08a1e", "#4a9aa8", "#7a7a7a", "#d06a9c"];
const HEIGHT = 132;

export class Plots {
  /** `seek` is called with a time. */
  constructor(folder, plots, arrays, seek) {
    this.charts = plots.map((plot, k) => chart(folder, plot, arrays, seek, k));
    this.time = 0;
    new ResizeObserver(() => this.resize(folder)).observe(folder);
  }

  resize(folder) {
    const width = folder.clientWidth - 16;
    if (width > 0) this.charts.forEach((made) => made.setSize({ width, height: HEIGHT }));
    this.show(this.time);
  }

  show(time) {
    this.time = time;
    for (const made of this.charts) {
      made.setCursor({ left: made.valToPos(time, "x"), top: made.over.clientHeight / 2 }, false);
    }
  }
}

function chart(folder, plot, arrays, seek, number) {
  const { shape, values } = arrays[plot.values];
  const times = arrays[plot.times].values;
  const columns = plot.labels.map((_, c) => Float64Array.from(times, (_, r) => values[r * shape[1] + c]));
  const gaps = columns.map((column) => Array.from(column, (x) => (Number.isNaN(x) ? null : x)));
  let color = 0;
  const series = plot.labels.map((label) => {
    const dashed = label.startsWith("reference");
    const stroke = dashed ? "#222" : COLORS[color++ % COLORS.length];
    return { label, stroke, width: dashed ? 0.8 : 1.4, dash: dashed ? [5, 4] : undefined, value: (_, x) => shown(x) };
  });
  const options = {
    title: plot.title,
    width: 400,
    height: HEIGHT,
    scales: { x: { time: false }, y: { range: plot.range ?? rangeOf } },
    series: [{ label: "t", value: (_, x) => shown(x) + " s" }, ...series],
    axes: [
      { size: 28, font: "11px sans-serif" },
      { size: 62, space: 20, font: "11px sans-serif", values: (_, ticks) => labels(ticks) },
    ],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    legend: { live: true },
  };
  const made = new uPlot(options, [times, ...gaps], folder);
  made.root.dataset.plot = number;
  made.over.addEventListener("click", (event) => seek(made.posToVal(event.offsetX, "x")));
  return made;
}

/** Returns the range of the vertical axis; values that differ by rounding errors alone are a straight line. */
function rangeOf(_, low, high) {
  if (low == null) return [0, 1];
  const largest = Math.max(Math.abs(low), Math.abs(high));
  const spread = high - low;
  const pad = spread > Math.max(1e-9 * largest, 1e-11) ? 0.08 * spread : Math.max(0.1 * largest, 0.01);
  return [low - pad, high + pad];
}

/** Returns the texts of ticks, with as many digits as tell them apart. */
function labels(ticks) {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : Math.abs(ticks[0]) || 1;
  const largest = Math.max(...ticks.map(Math.abs));
  if (largest >= 1e5 || largest < 1e-3) return ticks.map((x) => (Math.abs(x) < 1e-6 * step ? "0" : x.toExponential(Math.max(Math.ceil(Math.log10(largest / step)), 0))));
  let digits = 0;
  while (digits < 8 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits++;
  return ticks.map((x) => x.toFixed(digits));
}

const shown = (x) => (x == null ? "-" : Math.abs(x) >= 1e4 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(1) : Number(x.toPrecision(4)));
