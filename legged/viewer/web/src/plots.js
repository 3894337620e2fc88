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
    scales: { x: { time: false }, y: plot.range ? { range: plot.range } : {} },
    series: [{ label: "t", value: (_, x) => shown(x) + " s" }, ...series],
    axes: [
      { size: 28, font: "11px sans-serif" },
      { size: 54, font: "11px sans-serif", values: (_, ticks) => ticks.map(shown) },
    ],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    legend: { live: true },
  };
  const made = new uPlot(options, [times, ...gaps], folder);
  made.root.dataset.plot = number;
  made.over.addEventListener("click", (event) => seek(made.posToVal(event.offsetX, "x")));
  return made;
}

const shown = (x) => (x == null ? "-" : Math.abs(x) >= 1e4 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(1) : Number(x.toPrecision(4)));
