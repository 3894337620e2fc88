"""Multiple shooting: windows of a log with free initial states, simulated together with their sensitivities.

The derivatives S of the state with respect to z = [initial state; parameters] of a window propagate as S_next = A S +
[0 B], where [A B] is the Jacobian of a step with respect to its state and the parameters.
States that never influence each other, such as those of the legs of a robot with a fixed base, form blocks, whose
sensitivities are stored and multiplied separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from legged.errors import ArgumentError, NotFiniteError, ShapeError
from legged.identification.log import Log
from legged.identification.plant_step import PlantStep
from legged.robot.configuration import difference, integrate, normalized
from legged.spatial import Array

_DIVERGES = "the simulation of a window diverges; use shorter windows, a shorter time step or closer bounds"
_SMOOTHING = 5  # samples of the parabola that gives initial rates which were not measured


class Window(NamedTuple):
    """Samples from `start` to `end` of a log, the last one included.

    In logs that are joined, the samples from `first` to `last` are those of the window's own log.
    """

    start: int
    end: int
    first: int
    last: int


def windows(logs: Log | Sequence[Log], duration: float, chosen: Sequence[int] | None = None) -> list[Window]:
    """Return the windows of logs, one after the other, each sharing its last sample with the next one of its log.

    Args:
        logs: A log, or several, whose samples are counted as in `legged.identification.log.joined`.
        duration: Duration of a window, [s]. chosen: Numbers of the windows to return; by default all.

    Raises:
        ShapeError: The logs are not sampled at one period, or one is shorter than a window.
        ArgumentError: There is no window of a chosen number.
    """
    every, first, period = list[Window](), 0, 0.0
    for log in (logs,) if isinstance(logs, Log) else logs:
        if not log.is_uniform:
            steps = np.diff(log.times)
            raise ShapeError(
                f"the samples of the log are {steps.min():.6f} to {steps.max():.6f} s apart; "
                f"call resampled({np.median(steps):.6g})"
            )
        period = period or log.period
        if abs(log.period - period) > 1e-3 * period:
            raise ShapeError(
                f"the samples of one log are {log.period:.6f} s apart, those of another {period:.6f} s; "
                f"call resampled({period:.6g})"
            )
        n, count = max(round(duration / period), 1), len(log.times)
        if count <= n:
            raise ShapeError(f"the log lasts {log.duration:.3f} s, less than a window of {duration} s")
        every += [Window(first + k, first + k + n, first, first + count - 1) for k in range(0, count - n, n)]
        first += count
    if chosen is None:
        return every
    if not len(chosen) or min(chosen) < 0 or max(chosen) >= len(every):
        raise ArgumentError(f"chosen must hold numbers of windows from 0 to {len(every) - 1}, got {list(chosen)[:10]}")
    return [every[i] for i in chosen]


class Blocks:
    """Blocks of states that influence each other, as arrays of indices that are padded to one size.

    Attributes:
        count: Number of blocks G. states, columns, rows: Largest numbers of states, parameters and readings of a block.
        state, column: Index in z of each state and parameter of a block, -1 for padding, (G, states) and (G, columns).
        reading: Index of each reading of a block, -1 for padding, (G, rows).
        step_layout, reading_layout: Entries of the Jacobians of step and readings, see `Traced.kernel`.
    """

    def __init__(self, step: Array, readings: Array, n_states: int, n_parameters: int, n_readings: int):
        """Find the blocks: connected components of the graph of states, in which an edge is a nonzero derivative.

        Args:
            step, readings: Rows and columns of the nonzero entries of the Jacobians, (k, 2), [1].
            n_states, n_parameters, n_readings: Sizes of the Jacobians.
        """
        first = np.full(n_readings, -1)  # a state that each reading depends on
        for row, column in readings[readings[:, 1] < n_states][::-1]:
            first[row] = column
        # Pairs (i, j) of states of which one influences the other: in a step, or as parts of one reading. A coordinate
        # of the configuration and its velocity always belong together.
        pairs = [step, np.column_stack([first[readings[:, 0]], readings[:, 1]])]
        pairs = [x[(x[:, 0] >= 0) & (x[:, 1] < n_states)] for x in pairs]
        half = np.arange(n_states // 2)
        i, j = np.concatenate([*pairs, np.column_stack([half, half + n_states // 2])]).T
        graph = coo_array((np.ones(len(i)), (i, j)), shape=(n_states, n_states))
        self.count, label = connected_components(graph, directed=False)
        row_label = np.where(first >= 0, label[first], 0)
        # The parameters of a block are those on which its steps and its readings depend.
        labels = np.append(label[step[:, 0]], row_label[readings[:, 0]])
        columns = np.append(step[:, 1], readings[:, 1])
        groups = range(self.count)
        used = [np.unique(columns[(labels == g) & (columns >= n_states)]) for g in groups]
        self.state = _padded([np.flatnonzero(label == g) for g in groups])
        self.column = _padded(used)
        self.reading = _padded([np.flatnonzero(row_label == g) for g in groups])
        self.states, self.columns, self.rows = (x.shape[1] for x in (self.state, self.column, self.reading))
        z = np.concatenate([self.state, self.column], axis=1)
        self.step_layout, self.reading_layout = _layout(self.state, z), _layout(self.reading, z)


def _layout(rows: Array, columns: Array) -> Array:
    """Return the (row, column) of each entry of the blocks of a matrix, -1 for padding, (G, rows, columns, 2)."""
    shape = (len(rows), rows.shape[1], columns.shape[1])
    pairs = np.stack([np.broadcast_to(x, shape) for x in (rows[:, :, None], columns[:, None, :])], axis=-1)
    return np.where((pairs < 0).any(axis=-1, keepdims=True), -1, pairs)


def _padded(members: list[Array]) -> Array:
    """Return lists of indices as the rows of one matrix, padded by -1."""
    size = max(map(len, members), default=0)
    return np.array([[*indices, *[-1] * (size - len(indices))] for indices in members], int).reshape(len(members), size)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Simulated windows: W windows of N + 1 samples.

    Attributes:
        q, v: States at the samples, (N + 1, W, nq) and (N + 1, W, nv).
        residual: Predicted minus measured readings, (N + 1, W, m), in the units of the channels.
        jacobian: Its derivatives with respect to z by block, (W, G, N + 1, rows, states + columns), or None.
    """

    q: Array
    v: Array
    residual: Array
    jacobian: Array | None


class Shooting:
    """Windows of a log, ready to be simulated with any initial states and parameters.

    Args:
        step: The step of the plant. log: The log, with the joints in the robot's order, or several that are joined.
        channels: Channels to predict.
        cuts: The windows, all of one length. time_step: Largest time step, [s].
        like: Another `Shooting` of the same plant and channels, whose compiled code is used.

    Raises:
        ShapeError: The robot's joints do not have one degree of freedom each.
    """

    def __init__(
        self,
        step: PlantStep,
        log: Log,
        channels: tuple[str, ...],
        cuts: list[Window],
        time_step: float,
        like: Shooting | None = None,
    ):
        robot = step.robot
        if robot.nv != robot.base.nv + len(robot.joints):
            raise ShapeError("a log can be fitted for joints of one degree of freedom")
        self.plant_step, self.log, self.channels, self.cuts = step, log, channels, cuts
        self.period = log.period
        self.length = cuts[0].end - cuts[0].start
        self.substeps = max(int(np.ceil(self.period / time_step * (1.0 - 1e-9))), 1)
        if like is None:
            traced, readings = step.step_derivatives(), step.residual_derivatives(channels)
            size = sum(step.residual_size(name) for name in channels)
            n = len(step.parameters.names)
            self.blocks = Blocks(traced.nonzero_entries(), readings.nonzero_entries(), 2 * robot.nv, n, size)
            self.kernel = traced.kernel(self.blocks.step_layout)
            self.readings = readings.kernel(self.blocks.reading_layout)
        else:
            self.kernel, self.readings, self.blocks = like.kernel, like.readings, like.blocks
        self.delay, self.delay_column = step.parameters.delays()
        index = np.array([np.arange(cut.start, cut.end + 1) for cut in cuts])  # (W, N + 1)
        self.measured = np.concatenate([getattr(log, name) for name in self.channels], axis=1)[index].swapaxes(0, 1)
        self.index = index
        self.bounds = np.array([(cut.first, cut.last) for cut in cuts])  # of the samples of the window's log, (W, 2)

    def initial_states(self, p: Array) -> tuple[Array, Array]:
        """Return (q, v) at the start of each window from the readings, (W, nq) and (W, nv).

        Args:
            p: Values of the free parameters, (n,), mixed units.
        """
        robot, log, starts = self.plant_step.robot, self.log, self.index[:, 0]
        offset = np.array([float(x) for x in self.plant_step.parameters.plant(p).offset])
        rates = _slopes(log.positions, self.period, starts, self.bounds) if log.rates is None else log.rates[starts]
        q, v = np.tile(robot.neutral(), (len(starts), 1)), np.zeros((len(starts), robot.nv))
        q[:, robot.base.nq :], v[:, robot.base.nv :] = log.positions[starts] - offset, rates
        if robot.base.nq and log.base is not None:
            q[:, : robot.base.nq] = log.base[starts]
            v[:, : robot.base.nv] = self._twists() if log.twist is None else log.twist[starts]
        return q, v

    def _twists(self) -> Array:
        """Return the twists of the base at the start of each window from its poses around it, (W, nv of the base)."""
        robot, base, twists = self.plant_step.robot, self.log.base, []
        assert base is not None
        joints = robot.neutral()[robot.base.nq :]
        for k, (low, high) in zip(self.index[:, 0], self.bounds, strict=True):
            first, last = max(k - 1, low), min(k + 1, high)
            moved = difference(robot, np.append(base[first], joints), np.append(base[last], joints))
            twists.append(moved[: robot.base.nv] / ((last - first) * self.period))
        return np.array(twists)

    def moved(self, q: Array, v: Array, change: Array) -> tuple[Array, Array]:
        """Return initial states (q, v) after a change, (W, nq) and (W, nv).

        Args:
            q: Configurations, (W, nq), [rad] and [m]. v: Velocities, (W, nv), base axes and joint axes.
            change: Deviations [dq; dv], (W, 2 nv), tangent space and frames as `legged.integrate`.
        """
        nv = self.plant_step.nv
        new = np.stack(
            [
                normalized(self.plant_step.robot, integrate(self.plant_step.robot, *x))
                for x in zip(q, change[:, :nv], strict=True)
            ]
        )
        return new, v + change[:, nv:]

    def commands(self, p: Array) -> tuple[Array, Array]:
        """Return the commands that act in each time step and their rates, (N substeps + 1, W, nj).

        Args:
            p: Values of the free parameters, (n,), mixed units.
        """
        column = self.delay_column
        delay = np.where(column >= 0, np.append(p, 0.0)[column], self.delay)
        source = self.log.desired if self.plant_step.has_servos else self.log.torques
        assert source is not None
        fraction = (np.arange(self.length * self.substeps + 1) + 0.5) / self.substeps
        fraction[-1] = self.length  # the readings of the last sample
        at = self.index[:, 0][None, :, None] + fraction[:, None, None] - delay / self.period
        return _interpolated(source, at, self.period, self.bounds)

    def simulate(self, q: Array, v: Array, p: Array, with_derivatives: bool = True) -> Prediction:
        """Return the simulated windows.

        Args:
            q, v: Initial states, (W, nq) and (W, nv). p: Values of the free parameters, (n,), mixed units.
            with_derivatives: Whether to compute the derivatives of the residual.

        Raises:
            NotFiniteError: The simulation diverges.
        """
        W, n, blocks = len(self.cuts), self.length, self.blocks
        u, rate = self.commands(p)
        h = np.full(W, self.period / self.substeps)
        qs, vs = np.empty((n + 1, W, q.shape[1])), np.empty((n + 1, W, v.shape[1]))
        size = blocks.states + blocks.columns
        S = np.zeros((W, blocks.count, blocks.states, size))
        S[:, :, np.arange(blocks.states), np.arange(blocks.states)] = 1.0
        sensitivities = np.empty((n + 1, *S.shape)) if with_derivatives else None
        q, v, command, slope = np.array(q, float), np.array(v, float), np.empty_like(u[0]), np.empty_like(u[0])
        after = np.empty_like(q), np.empty_like(v), np.empty_like(S)
        step = self.kernel.prepare(W, q, v, command, slope, h, np.array(p, float), results=after)
        for k in range(n + 1):
            qs[k], vs[k] = q, v
            if sensitivities is not None:
                sensitivities[k] = S
            for i in range(k * self.substeps, (k + 1) * self.substeps if k < n else 0):
                command[:], slope[:] = u[i], rate[i]
                try:
                    step()
                except NotFiniteError as error:
                    raise NotFiniteError(_DIVERGES) from error
                q[:], v[:] = after[:2]
                if sensitivities is not None:
                    M = after[2]
                    S = M[..., : blocks.states] @ S
                    S[..., blocks.states :] += M[..., blocks.states :]
        sampled = u[:: self.substeps], rate[:: self.substeps]
        residual, L = self.readings(qs, vs, *sampled, p, self.measured)
        if sensitivities is None:
            return Prediction(qs, vs, residual, None)
        R = L[..., : blocks.states] @ sensitivities
        R[..., blocks.states :] += L[..., blocks.states :]
        return Prediction(qs, vs, residual, np.ascontiguousarray(np.moveaxis(R, 0, 2)))

    def by_block(self, readings: Array) -> Array:
        """Return readings by block, (W, G, N + 1, rows), zero for padding.

        Args:
            readings: (N + 1, W, m), mixed units.
        """
        blocks = np.append(readings, np.zeros((*readings.shape[:2], 1)), axis=2)[..., self.blocks.reading]
        return np.moveaxis(blocks, 0, 2)


def _interpolated(source: Array, at: Array, period: float, bounds: Array) -> tuple[Array, Array]:
    """Return interpolated samples at fractional indices and their rates, (..., W, n); constant beyond the bounds."""
    wanted = np.broadcast_to(at, (*at.shape[:-1], source.shape[1]))
    low, high = bounds.T[:, :, None]
    at = np.clip(wanted, low, high)
    left = np.minimum(at.astype(int), high - 1)
    column = np.arange(source.shape[1])
    a, b = source[left, column], source[left + 1, column]
    return a + (at - left) * (b - a), np.where(at == wanted, (b - a) / period, 0.0)


def _slopes(values: Array, period: float, starts: Array, bounds: Array) -> Array:
    """Return the rates of a channel at some samples from least squares parabolas of the samples around, (W, k)."""
    rates = []
    for k, (low, high) in zip(starts, bounds, strict=True):
        start = min(max(k - _SMOOTHING // 2, low), max(high + 1 - _SMOOTHING, low))
        samples = values[start : min(start + _SMOOTHING, high + 1)]
        at = (np.arange(start, start + len(samples)) - k) * period
        rates.append(np.polynomial.polynomial.polyfit(at, samples, min(2, len(samples) - 1))[1])
    return np.array(rates)
