"""Tables and figures of studies: success with intervals, maps, parallel coordinates, sensitivity, a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.arguments import known_name, number, shown, whole
from legged.checked import checked
from legged.errors import ArgumentError
from legged.output import as_html, as_label, write_file
from legged.sweeps.samples import salib, unit_problem
from legged.sweeps.sweep import Sweep
from legged.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
INTERVALS = {"wilson": "wilson", "clopper-pearson": "exact"}
"""Intervals of a proportion -> their names in scipy.stats."""


@checked
def success_interval(
    successes: int, trials: int, confidence: float = 0.95, method: str = "wilson"
) -> tuple[float, float]:
    """Return the confidence interval of a probability of success, between 0 and 1; (0, 1) without trials.

    Args:
        successes, trials: Their numbers. confidence: Between 0 and 1.
        method: "wilson", or "clopper-pearson", which contains the probability at least as often as stated.

    Source:
        Wilson 1927; Clopper, Pearson 1934, as in scipy.stats.
    """
    from scipy.stats import binomtest

    known_name("interval", method, INTERVALS)
    number("confidence", confidence, above=0.0, below=1.0)
    if not whole("trials", trials, 0):
        return 0.0, 1.0
    whole("successes", successes, 0, trials)
    result = binomtest(successes, trials).proportion_ci(confidence, method=INTERVALS[method])
    return float(result.low), float(result.high)


@dataclass(frozen=True, eq=False)
class SuccessMap:
    """Success over one or two parameters.

    Attributes:
        names: Names of the parameters. edges: Edges of the cells of each, (k + 1,), in its unit.
        successes, trials: Numbers in each cell, (k, ...), dimensionless.
        low, high: Confidence interval of the probability in each cell, (k, ...).
        units: Units of the parameters that have one.
    """

    names: tuple[str, ...]
    edges: tuple[Array, ...]
    successes: Array
    trials: Array
    low: Array
    high: Array
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> Array:
        """Share of successes, (k, ...), dimensionless; NaN in cells without trials."""
        return np.where(self.trials > 0, self.successes / np.maximum(self.trials, 1), np.nan)

    def table(self) -> Table:
        """Return a table with a line for each cell that has trials."""
        lines = []
        for index in np.ndindex(self.trials.shape):
            if self.trials[index]:
                cells = [f"{e[i]:.3g} to {e[i + 1]:.3g}" for e, i in zip(self.edges, index, strict=True)]
                count = f"{self.successes[index]}/{self.trials[index]}"
                bounds = f"{self.low[index]:.3f} to {self.high[index]:.3f}"
                lines.append((*cells, count, f"{self.successes[index] / self.trials[index]:.3f}", bounds))
        heads = (*self.names, "successes", "share", "interval")
        return Table("Success", heads, tuple(lines), left=len(self.names))

    def figure(self) -> Figure:
        """Return a figure: the share with its interval over one parameter, or a map over two."""
        made, ax = _figure()
        if len(self.names) == 1:
            middle, rate = 0.5 * (self.edges[0][1:] + self.edges[0][:-1]), self.rate
            error = [np.nan_to_num(rate - self.low), np.nan_to_num(self.high - rate)]
            ax.errorbar(middle, rate, np.maximum(error, 0.0), fmt="o-", capsize=3)
            ax.set(xlabel=_with_unit(self.names[0], self.units), ylabel="share of successes", ylim=(-0.02, 1.02))
        else:
            shown = ax.pcolormesh(self.edges[0], self.edges[1], self.rate.T, cmap="RdYlBu", vmin=0.0, vmax=1.0)
            x, y = (_with_unit(name, self.units) for name in self.names)
            ax.set(xlabel=x, ylabel=y)
            made.colorbar(shown, ax=ax, label="share of successes")
        return made


@checked
def success_map(
    table: Any,
    parameters: Sequence[str],
    success: str = "success",
    bins: int = 8,
    confidence: float = 0.95,
    method: str = "wilson",
) -> SuccessMap:
    """Return the success of the trials of a table over one or two parameters, with confidence intervals.

    Args:
        table: As of `Sweep.table`. Trials that have failed, without a result, are left out.
        parameters: Names of one or two columns. success: Name of a column of truth values.
        bins: Number of cells of a parameter; one with at most as many different values has a cell for each.
        confidence, method: As in `success_interval`.
    """
    if not hasattr(table, "columns"):
        raise ArgumentError(f"table must be a data frame, such as sweep.table(), got {shown(table)}")
    for name in (*parameters, success):
        known_name("column", name, list(table.columns))
    if len(parameters) not in (1, 2):
        raise ArgumentError(f"a map has one or two parameters, got {len(parameters)}")
    valid = table[table[success].notna()]
    if not len(valid):
        raise ArgumentError(f"column {success!r} has no results")
    axes = [valid[name].to_numpy(float) for name in parameters]
    edges = tuple(_edges(x, whole("bins", bins, 1)) for x in axes)
    trials = np.histogramdd(axes, edges)[0].astype(int)
    weights = valid[success].astype(float).to_numpy()
    successes = np.histogramdd(axes, edges, weights=weights)[0].round().astype(int)
    cells = [
        success_interval(int(k), int(n), confidence, method) for k, n in zip(successes.flat, trials.flat, strict=True)
    ]
    low, high = (np.array(x).reshape(trials.shape) for x in zip(*cells, strict=True))
    units = {name: unit for name, unit in table.attrs.get("units", {}).items() if name in parameters}
    return SuccessMap(tuple(parameters), edges, successes, trials, low, high, units)


def _with_unit(name: str, units: Mapping[str, str]) -> str:
    return f"{as_label(name, 24)}{f' [{as_label(units[name])}]' if name in units else ''}"


def _edges(x: Array, bins: int) -> Array:
    values = np.unique(x)
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    if len(values) <= bins:
        middle = 0.5 * (values[1:] + values[:-1])
        return np.array([1.5 * values[0] - 0.5 * values[1], *middle, 1.5 * values[-1] - 0.5 * values[-2]])
    return np.linspace(values[0], values[-1], bins + 1)


@checked
def parallel_coordinates(table: Any, columns: Sequence[str], color: str, most: int = 2000) -> Figure:
    """Return a figure with a vertical axis for each column and a line for each trial.

    Args:
        table: As of `Sweep.table`. columns: Names of columns with numbers. color: Name of the column of the colors.
        most: Largest number of lines; of more trials, evenly spaced ones are drawn.
    """
    from matplotlib.collections import LineCollection

    for name in (*columns, color):
        known_name("column", name, list(table.columns))
    if len(columns) < 2:
        raise ArgumentError(f"parallel coordinates need two columns or more, got {len(columns)}")
    valid = table.dropna(subset=[*columns, color])
    valid = valid.iloc[np.unique(np.linspace(0, len(valid) - 1, min(most, len(valid))).round().astype(int))]
    values = valid[list(columns)].astype(float).to_numpy()
    low, high = values.min(axis=0), values.max(axis=0)
    heights = (values - low) / np.where(high > low, high - low, 1.0)
    made, ax = _figure(1.3 * len(columns) + 2.0)
    lines = [np.stack([np.arange(len(columns)), row], axis=1) for row in heights]
    drawn = LineCollection(lines, array=valid[color].astype(float).to_numpy(), cmap="viridis", lw=0.6, alpha=0.6)
    ax.add_collection(drawn)
    units = table.attrs.get("units", {})
    names = [_with_unit(name, units) for name in columns]
    ax.set_xticks(range(len(columns)), names, rotation=20, ha="right", fontsize=8)
    ax.set(xlim=(-0.1, len(columns) - 0.9), ylim=(-0.05, 1.05), yticks=[])
    ax.spines[:].set_visible(False)
    for k in range(len(columns)):
        ax.plot([k, k], [0.0, 1.0], color="#888888", lw=0.8)
        ax.text(k, -0.02, f"{low[k]:.3g}", fontsize=7, ha="center", va="top")
        ax.text(k, 1.02, f"{high[k]:.3g}", fontsize=7, ha="center")
    made.colorbar(drawn, ax=ax, label=_with_unit(color, units))
    return made


@checked
def pareto_figure(optimum: Any, x: str, y: str) -> Figure:
    """Return a figure of all trials of an `Optimum` over two results, with the front.

    Args:
        optimum: The result of `optimize`. x, y: Names of columns.
    """
    made, ax = _figure()
    shown = ax.scatter(optimum.table[x], optimum.table[y], c=optimum.table["generation"], s=8, cmap="Blues")
    front = optimum.front.sort_values(x)
    ax.plot(front[x], front[y], "o-", color="#d55e00", ms=4, label="front")
    ax.set(xlabel=as_label(x), ylabel=as_label(y))
    ax.legend(frameon=False)
    made.colorbar(shown, ax=ax, label="generation")
    return made


@checked
def sensitivity(study: Sweep, result: str, seed: int = 0) -> Any:
    """Return indices of sensitivity of a result as a pandas DataFrame, one row per parameter.

    Of a `sobol_design`: S1, the share of the variance that the parameter explains alone, and ST, with interactions, and
    their 95 % intervals. Of a `morris_design`: mu_star, the mean size of its elementary effects, their mean mu and
    standard deviation sigma, over the range of the parameter.

    Args:
        study: A sweep over a design. result: Name of a column of numbers or truth values. seed: Of the intervals.

    Raises:
        ArgumentError: The samples are no design, or trials have no result. MissingError: SALib is not installed.

    Source:
        Saltelli et al. 2010; Morris 1991; the estimators are those of SALib.
    """
    import pandas

    samples = study.samples
    if not samples.design:
        raise ArgumentError("sensitivity needs samples of sobol_design or morris_design")
    table = study.table()
    known_name("result", result, list(table.columns))
    values = table[result].astype(float).to_numpy()
    if missing := int((~np.isfinite(values)).sum()):
        raise ArgumentError(
            f"{result!r} is missing in {missing} of {len(values)} trials, and indices need all of them: narrow the "
            f"distributions, or analyze a result that every trial has, such as 'success'"
        )
    problem = unit_problem(samples.columns)
    if samples.design == "sobol":
        indices = salib().analyze.sobol.analyze(problem, values, calc_second_order=False, seed=seed)
        names = ("S1", "S1_conf", "ST", "ST_conf")
    else:
        indices = salib().analyze.morris.analyze(problem, samples.points, values, num_levels=4, seed=seed)
        names = ("mu_star", "mu_star_conf", "mu", "sigma")
    return pandas.DataFrame({name: np.asarray(indices[name], float) for name in names}, index=list(samples.columns))


@checked
def sensitivity_figure(indices: Any, title: str = "") -> Figure:
    """Return a bar chart of indices of sensitivity.

    Args:
        indices: As of `sensitivity`. title: A line above it.
    """
    made, ax = _figure()
    main = [name for name in ("S1", "ST", "mu_star") if name in indices]
    place = np.arange(len(indices))
    for k, name in enumerate(main):
        height = 0.8 / len(main)
        ax.barh(place + k * height, indices[name], height, xerr=indices[f"{name}_conf"], label=name)
    ax.set_yticks(place + 0.4 - 0.4 / len(main), [as_label(name, 40) for name in indices.index], fontsize=8)
    ax.set_title(as_label(title), fontsize=10, loc="left")
    ax.legend(frameon=False)
    return made


@checked
def save_page(study: Any, path: str | Path, figures: Sequence[Any] = (), title: str = "Study") -> Path:
    """Write a page about a study, one HTML file: status, statistics of all columns, failures and figures.

    Args:
        study: A `Sweep` or a `Study`. path: The file; .html is appended where it is missing.
        figures: Matplotlib figures. title: Title of the page.
    """
    study = study.study() if isinstance(study, Sweep) else study
    table, facts = study.table(), study.status()
    units = table.attrs["units"]
    lines = [(name, f"{x:.3g}" if isinstance(x, float) else str(x)) for name, x in facts.items() if name != "versions"]
    numbers = table.select_dtypes(["number", "bool"]).astype(float)
    rows = [
        (name, units.get(name, ""), *(f"{x:.4g}" for x in (own.mean(), own.std(), own.min(), own.max())))
        for name, own in numbers.items()
    ]
    heads = ("column", "unit", "mean", "deviation", "least", "most")
    parts = [Table("Status", ("", ""), tuple(lines)), Table("Columns", heads, tuple(rows), left=2)]
    if "error" in table and (table["error"] != "").any():
        counts = table["error"][table["error"] != ""].value_counts().head(20)
        parts.append(Table("Failures", ("message", "trials"), tuple((str(k), str(n)) for k, n in counts.items())))
    body = "".join(part.html() for part in parts) + "".join(map(_image, figures))
    style = "body{font-family:sans-serif;max-width:60em;margin:2em auto}td,th{padding:0 .8em}table{margin:1em 0}"
    head = f"<!doctype html><meta charset=utf-8><title>{as_html(title)}</title><style>{style}</style>"
    return write_file(path, f"{head}<h1>{as_html(title)}</h1>{body}", ".html")


def _image(figure: Figure) -> str:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file)
    return f'<p><img alt="" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"></p>'


def _figure(width: float = 6.4) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, 4.2), layout="constrained")
    ax = made.add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    return made, ax
