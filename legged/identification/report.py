"""A report of a fit as one HTML page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.identification.log import Log
from legged.output import as_html, as_label, write_file
from legged.table import Table

if TYPE_CHECKING:
    from legged.identification.fit import Fit

_CURVES = 12  # largest number of readings that are drawn
_CORRELATION = 0.9  # pairs of parameters with a larger absolute correlation are listed
_STYLE = (
    "body{font-family:sans-serif;max-width:64em;margin:2em auto}td,th{padding:0 .8em}img{max-width:100%}"
    "table{margin:1.2em 0 .3em}caption{text-align:left;font-weight:bold;padding:0 .8em}"
)
_UNITS = {
    "positions": "rad or m",
    "rates": "rad/s or m/s",
    "torques": "N m or N",
    "base": "rad and m",
    "twist": "rad/s and m/s",
    "gyro": "rad/s",
    "accelerometer": "m/s^2",
}
"""Channel -> unit."""


def save_report(fit: Fit, path: str | Path, held_out: Log | Sequence[Log] | None) -> Path:
    """Write a page with the values, errors, open directions, correlations and curves of a fit, and return its path.

    Args:
        fit: The fit. path: The file. held_out: A log, or several, not used for the fit, or None.
    """
    parameters, identifiability = fit.model.parameters, fit.identifiability
    intervals = fit.intervals()
    few = len(fit.solution.q) < 2 * fit.shooting.blocks.columns  # windows for an estimate from their scatter
    rows = [
        (
            name,
            f"{nominal:.4g}",
            f"{value:.4g}",
            f"{intervals[name][0]:.4g} to {intervals[name][1]:.4g}",
            "too few windows" if few else f"{robust:.2g}",
            "at a bound" if value in (low, high) else "",
        )
        for name, nominal, value, robust, low, high in zip(
            parameters.names,
            parameters.nominal,
            fit.numbers,
            identifiability.robust_deviations,
            parameters.lower,
            parameters.upper,
            strict=True,
        )
    ]
    heads = "parameter", "nominal", "fitted", "95 % interval", "deviation by the scatter of the windows", ""
    parts = [Table("Parameters", heads, tuple(rows), ("SI units, angles in rad.",), left=1)]
    errors = [("fitted windows", fit.error())]
    if held_out is not None:
        errors += [("held out, nominal", fit.error(held_out, fitted=False)), ("held out, fitted", fit.error(held_out))]
    lines = tuple((label, *(f"{x:.4g}" for x in error.values())) for label, error in errors)
    columns = "log", *(f"{channel}, {_UNITS[channel]}" for channel in errors[0][1])
    parts.append(Table("Root mean square errors", columns, lines, left=1))
    pairs = np.argwhere(np.triu(np.abs(identifiability.correlations) > _CORRELATION, 1))
    close = tuple(
        (identifiability.names[i], identifiability.names[j], f"{identifiability.correlations[i, j]:.3f}")
        for i, j in pairs[:40]
    )
    if close:
        parts.append(Table(f"Correlations above {_CORRELATION}", ("first", "second", "correlation"), close, left=2))
    costs = fit.solution.costs
    verdict = str(identifiability)
    facts = (
        f"{len(fit.solution.q)} windows of {fit.shooting.length * fit.shooting.period:.3g} s, loss {fit.loss!r}, "
        f"{len(costs) - 1} steps, cost {costs[0]:.4g} to {costs[-1]:.4g}; the variance of the residuals is "
        f"{fit.variance:.3g} times that of the given noise. {verdict[0].upper()}{verdict[1:]}."
    )
    title = f"Identification of {fit.model.robot.name}"
    head = f"<!doctype html><meta charset=utf-8><title>{as_html(title)}</title><style>{_STYLE}</style>"
    body = f"<h1>{as_html(title)}</h1><p>{as_html(facts)}</p>" + "".join(part.html() for part in parts)
    return write_file(path, head + body + _image(_figure(fit)), ".html")


def _figure(fit: Fit) -> Any:
    """Return a figure of measured and predicted readings of the first channel over time; no curves for a base."""
    from matplotlib.figure import Figure

    shooting, channel = fit.shooting, fit.shooting.channels[0]
    log = shooting.log
    measured = getattr(log, channel)
    count = min(measured.shape[1], _CURVES) if channel != "base" else 0
    figure = Figure(figsize=(11, 2.2 * max((count + 2) // 3, 1)), layout="constrained")
    axes = figure.subplots(max((count + 2) // 3, 1), 3, squeeze=False, sharex=True)
    times = log.times[shooting.index]
    for i in range(count):
        ax = axes.flat[i]
        ax.plot(log.times, measured[:, i], color="0.6", linewidth=1.5, label="measured")
        predicted = shooting.measured[:, :, i] + fit.solution.prediction.residual[:, :, i]
        for w in range(predicted.shape[1]):
            ax.plot(times[w], predicted[:, w], color="tab:blue", linewidth=0.8, label="predicted" if w == 0 else None)
        ax.set_title(as_label(log.joints[i]) if i < len(log.joints) else "", fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in list(axes.flat)[count:]:
        ax.set_visible(False)
    if count:
        axes.flat[0].legend(fontsize=7)
        figure.supxlabel("time [s]", fontsize=8)
        figure.supylabel(f"{channel} [{_UNITS[channel]}]", fontsize=8)
    return figure


def _image(figure: Any) -> str:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file)
    encoded = base64.b64encode(file.getvalue()).decode()
    return f'<p><img alt="measured and predicted readings" src="data:image/png;base64,{encoded}"></p>'
