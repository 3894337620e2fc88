"""Samples of a study: one row per trial, from grids, random distributions and designs of experiments.

The distribution of a parameter is a pair (low, high), uniform in between, a `Choice`, or a frozen distribution of
`scipy.stats`, such as `scipy.stats.norm(0.0, 2.0)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from legged.arguments import real_array, shown, whole
from legged.checked import checked
from legged.errors import ArgumentError, MissingError, NotFiniteError, ShapeError, UnknownNameError
from legged.output import visible

Array = np.ndarray
MOST_LETTERS = 200


@checked
@dataclass(frozen=True, eq=False)
class Samples:
    """The parameters of n trials.

    Attributes:
        columns: Name of a parameter -> its values, (n,): numbers, truth values or texts, in `units`.
        units: Name of a parameter -> its unit; those that are missing have none.
        order: Order in which the rows are computed, (n,); of a grid a random one, so that every chunk covers it.
        design: What the rows are for: "" for any purpose, "sobol" or "morris" for indices of sensitivity.
        points: Of a design, the rows as points of the unit cube, (n, d), dimensionless.

    Raises:
        ShapeError: The columns have different lengths, no rows, or more than one dimension.
        NotFiniteError: A number is not finite. ArgumentError: Values of another type, or an invalid name.
    """

    columns: Mapping[str, Any]
    units: Mapping[str, str] = field(default_factory=dict)
    order: Any = None
    design: str = ""
    points: Any = None

    def __post_init__(self) -> None:
        columns = {check_name(name): _column(name, values) for name, values in self.columns.items()}
        lengths = {name: len(values) for name, values in columns.items()}
        if not columns or len(set(lengths.values())) > 1 or not next(iter(lengths.values())):
            raise ShapeError(f"samples need columns of one length and at least one row, got {lengths or 'none'}")
        for name in self.units:
            if name not in columns:
                raise UnknownNameError("parameter", name, columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "units", {str(name): str(unit) for name, unit in self.units.items()})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"<{len(self)} samples of {', '.join(map(visible, self.columns))}>"

    def rows(self, index: Any) -> dict[str, Array]:
        """Return the values of some rows: name -> (m,), in the units of the parameters.

        Args:
            index: Indices of the rows, (m,).
        """
        return {name: values[index] for name, values in self.columns.items()}


def check_name(name: Any) -> str:
    """Return the name of a column, or raise an error if it is no text, empty, too long or not printable.

    Raises:
        ArgumentError: An invalid name.
    """
    if not (isinstance(name, str) and 0 < len(name) <= MOST_LETTERS and name.isprintable()):
        words = f"a printable text of at most {MOST_LETTERS} characters"
        raise ArgumentError(f"the name of a parameter or metric must be {words}, got {shown(name)}")
    return name


def _column(name: str, values: Any) -> Array:
    try:
        texts = np.asarray(values).dtype.kind in "bU"
    except Exception:
        texts = False
    array = np.array(values) if texts else real_array(f"parameter {name!r}", values)
    if array.ndim != 1:
        raise ShapeError(
            f"parameter {name!r} must have one value per trial, (n,), got shape {array.shape}; name the entries of an "
            f"array one by one, such as '{name}[0]'"
        )
    if array.dtype.kind in "biufU":
        array = array.astype({"i": np.int64, "u": np.int64, "f": np.float64}.get(array.dtype.kind, array.dtype))
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array))[0])
            raise NotFiniteError(f"parameter {name!r} must be finite, got {array[row]} in row {row}")
        return array
    raise ArgumentError(f"parameter {name!r} must hold numbers, truth values or texts, got {array.dtype}")


@checked
@dataclass(frozen=True)
class Choice:
    """The distribution of a parameter that has one of some values, all with the same probability.

    Attributes:
        values: The values, (k,): numbers or texts.
    """

    values: Sequence[Any]

    def __post_init__(self) -> None:
        _column("values", self.values)

    def ppf(self, probability: Array) -> Array:
        """Return the values at probabilities, (...), any unit.

        Args:
            probability: (...), dimensionless.
        """
        values = np.array(self.values)
        return values[np.minimum((probability * len(values)).astype(int), len(values) - 1)]


@checked
def grid(values: Mapping[str, Any], units: Mapping[str, str] | None = None) -> Samples:
    """Return all combinations of the values of some parameters; the last parameter changes fastest.

    Args:
        values: Name -> values, (k,), in the unit of the parameter. units: Name -> unit.
    """
    axes = [_column(name, x) for name, x in values.items()]
    rows = [x.ravel() for x in np.meshgrid(*axes, indexing="ij")]
    order = np.random.default_rng(0).permutation(len(rows[0])) if rows else None
    return Samples(dict(zip(values, rows, strict=True)), units or {}, order)


@checked
def random(n: int, distributions: Mapping[str, Any], seed: int = 0, units: Mapping[str, str] | None = None) -> Samples:
    """Return independent random rows; the first rows of a larger sample with the same seed are the same.

    Args:
        n: Number of rows. distributions: Name -> distribution. seed: Of the random numbers. units: Name -> unit.
    """
    return _at(_generator(n, seed).random((n, len(distributions))), distributions, units)


@checked
def sobol(n: int, distributions: Mapping[str, Any], seed: int = 0, units: Mapping[str, str] | None = None) -> Samples:
    """Return rows at the points of a scrambled Sobol sequence, which fills space evenly; n is best a power of two.

    Args:
        n, distributions, seed, units: As in `random`.
    """
    from scipy.stats import qmc  # which takes as long to import as all the rest

    return _at(qmc.Sobol(len(distributions), rng=_generator(n, seed)).random(n), distributions, units)


@checked
def latin_hypercube(
    n: int, distributions: Mapping[str, Any], seed: int = 0, units: Mapping[str, str] | None = None
) -> Samples:
    """Return rows of a Latin hypercube: each of n intervals of equal probability of each parameter has one row.

    Args:
        n, distributions, seed, units: As in `random`.
    """
    from scipy.stats import qmc

    return _at(qmc.LatinHypercube(len(distributions), rng=_generator(n, seed)).random(n), distributions, units)


@checked
def sobol_design(
    n: int, distributions: Mapping[str, Any], seed: int = 0, units: Mapping[str, str] | None = None
) -> Samples:
    """Return the n (d + 2) rows from which `sensitivity` estimates Sobol indices of d parameters (Saltelli's design).

    Args:
        n: Number of base points, best a power of two. distributions, seed, units: As in `random`.

    Raises:
        MissingError: SALib is not installed.
    """
    _generator(n, seed)
    from_problem = salib().sample.sobol.sample
    points = from_problem(unit_problem(distributions), n, calc_second_order=False, seed=seed)
    return _at(points, distributions, units, "sobol")


@checked
def morris_design(
    n: int, distributions: Mapping[str, Any], seed: int = 0, units: Mapping[str, str] | None = None
) -> Samples:
    """Return the n (d + 1) rows from which `sensitivity` estimates elementary effects of d parameters (Morris).

    Args:
        n: Number of trajectories. distributions, seed, units: As in `random`.

    Raises:
        MissingError: SALib is not installed.
    """
    _generator(n, seed)
    points = salib().sample.morris.sample(unit_problem(distributions), n, num_levels=4, seed=seed)
    return _at(0.05 + 0.9 * points, distributions, units, "morris")  # the ends of a distribution may be infinite


def _generator(n: int, seed: int) -> np.random.Generator:
    """Return the random numbers of n rows after a check of both numbers."""
    whole("n", n, least=1)
    return np.random.default_rng(whole("seed", seed, least=0))


def unit_problem(names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the problem of SALib for parameters as probabilities, between 0 and 1."""
    return {"num_vars": len(names), "names": list(names), "bounds": [[0.0, 1.0]] * len(names)}


def salib() -> Any:
    """Return the library SALib with its designs and analyses.

    Raises:
        MissingError: It is not installed.
    """
    try:
        import SALib
        import SALib.analyze.morris
        import SALib.analyze.sobol
        import SALib.sample.morris
        import SALib.sample.sobol
    except ImportError as error:
        raise MissingError("indices of sensitivity need SALib: pip install 'legged[design]'") from error
    return SALib


def _at(points: Array, distributions: Mapping[str, Any], units: Mapping[str, str] | None, design: str = "") -> Samples:
    """Return the rows at points of the unit cube, (n, d)."""
    columns = {name: quantile(name, d, points[:, k]) for k, (name, d) in enumerate(distributions.items())}
    return Samples(columns, units or {}, None, design, points if design else None)


def quantile(name: str, distribution: Any, probability: Array) -> Array:
    """Return the values of a distribution at probabilities, (n,), in the unit of the parameter.

    Args:
        name: Name of the parameter, for messages. distribution: A pair (low, high), or an object with a method `ppf`.
        probability: (n,), dimensionless.
    """
    if isinstance(distribution, tuple | list) and len(distribution) == 2:
        low, high = (float(x) for x in distribution)
        if not (np.isfinite([low, high]).all() and low <= high):
            raise ArgumentError(f"the range of {name!r} must be (low, high), low <= high, got {shown(distribution)}")
        return low + (high - low) * probability
    ppf = getattr(distribution, "ppf", None)
    if ppf is None:
        raise ArgumentError(
            f"the distribution of {name!r} must be (low, high), a Choice or a frozen distribution of scipy.stats, "
            f"got {shown(distribution)}"
        )
    return ppf(probability)
