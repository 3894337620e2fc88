"""Multiple shooting: windows of a log with free initial states, simulated side by side with their sensitivities.

Deviations z = [initial state; parameters] of a window propagate as S_next = A S + B with the Jacobian [A B] of a step.
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
from legged.identification.plant_step import PlantStep, Sparse
from legged.robot.configuration import difference, integrate, normalized
from legged.spatial import Array

_DIVERGES = "the simulation of a window diverges; use shorter windows, a shorter time step or closer bounds"
_SMOOTHING = 5  # samples of the parabola that gives initial rates which were not measured


class Window(NamedTuple):
    """Samples from `start` to `end` of a log, the last one included."""

    start: int
    end: int


def windows(log: Log, duration: float, chosen: Sequence[int] | None = None) -> list[Window]:
    """Return the windows of a log, one after the other, each sharing its last sample with the next one.

    Args:
        log: The log. duration: Of a window, [s]. chosen: Numbers of the windows to return; by default all.

    Raises:
        ShapeError: The log is not sampled at one period, or is shorter than a window.
        ArgumentError: There is no window of a chosen number.
    """
    if not log.is_uniform:
        steps = np.diff(log.times)
        raise ShapeError(
            f"the samples of the log are {steps.min():.6f} to {steps.max():.6f} s apart; "
            f"call resampled({np.median(steps):.6g})"
        )
    period = log.duration / (len(log.times) - 1)
    n = max(round(duration / period), 1)
    if len(log.times) <= n:
        raise ShapeError(f"the log lasts {log.duration:.3f} s, less than a window of {duration} s")
    found = [Window(k, k + n) for k in range(0, len(log.times) - n, n)]
    if chosen is None:
        return found
    if not len(chosen) or min(chosen) < 0 or max(chosen) >= len(found):
        raise ArgumentError(f"chosen must hold numbers of windows from 0 to {len(found) - 1}, got {list(chosen)[:10]}")
    return [found[i] for i in chosen]


class Blocks:
    """Blocks of states that influence each other, and where their entries are in arrays padded to one size.

    Attributes:
        count: Number of blocks G. states, columns, rows: Largest numbers of states, parameters and readings of a block.
        state, column: Index in z of each state and parameter of a block, -1 for padding, (G, states) and (G, columns).
    """

    def __init__(self, step: Sparse, readings: Sparse, n_states: int, n_parameters: int, n_readings: int):
        is_state = step.columns < n_states
        reads = readings.columns < n_states
        links = [(step.rows[is_state], step.columns[is_state])]
        first = np.full(n_readings, -1)
        for row, column in zip(readings.rows[reads], readings.columns[reads], strict=True):
            first[row] = column if first[row] < 0 else first[row]
        links.append((first[readings.rows[reads]], readings.columns[reads]))
        links.append((np.arange(n_states // 2), np.arange(n_states // 2) + n_states // 2))
        i, j = (np.concatenate(x) for x in zip(*links, strict=True))
        graph = coo_array((np.ones(len(i)), (i, j)), shape=(n_states, n_states))
        self.count, label = connected_components(graph, directed=False)
        block_of_row = np.where(first >= 0, label[first], 0)
        members = [np.flatnonzero(label == g) for g in range(self.count)]
        used = [
            np.unique(
                np.concatenate(
                    [
                        step.columns[~is_state & (label[step.rows] == g)],
                        readings.columns[~reads & (block_of_row[readings.rows] == g)],
                    ]
                )
            )
            for g in range(self.count)
        ]
        read = [np.flatnonzero(block_of_row == g) for g in range(self.count)]
        self.state, self.column, self.reading = _padded(members), _padded(used), _padded(read)
        self.states, self.columns, self.rows = (x.shape[1] for x in (self.state, self.column, self.reading))
        place = np.full((self.count, n_states + n_parameters), -1)
        for g in range(self.count):
            place[g, members[g]] = np.arange(len(members[g]))
            place[g, used[g]] = self.states + np.arange(len(used[g]))
        self.row_place = np.full((self.count, n_readings), -1)
        for g in range(self.count):
            self.row_place[g, read[g]] = np.arange(len(read[g]))
        own = label[step.rows]
        self.step_entries = own, place[own, step.rows], place[own, step.columns]
        own = block_of_row[readings.rows]
        self.reading_entries = own, self.row_place[own, readings.rows], place[own, readings.columns]


def _padded(members: list[Array]) -> Array:
    size = max(map(len, members), default=0)
    return np.array([[*own, *[-1] * (size - len(own))] for own in members], int).reshape(len(members), size)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Simulated windows: W windows of N + 1 samples.

    Attributes:
        q, v: States at the samples, (N + 1, W, nq) and (N + 1, W, nv).
        residual: Predicted minus measured readings, (N + 1, W, m), in the units of the channels.
        jacobian: Its derivatives, (W, G, N + 1, rows, states + columns), or None.
    """

    q: Array
    v: Array
    residual: Array
    jacobian: Array | None


class Shooting:
    """Windows of one log, ready to be simulated with any initial states and parameters.

    Args:
        step: The step of the plant. log: The log, with the joints in the robot's order. channels: Channels to predict.
        cuts: The windows, all of one length. time_step: Largest time step, [s].
        like: Windows of the same plant and channels, whose compiled code is used again.

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
        self.plant, self.log, self.channels, self.cuts = step, log, channels, cuts
        self.period = log.duration / (len(log.times) - 1)
        self.length = cuts[0].end - cuts[0].start
        self.substeps = max(int(np.ceil(self.period / time_step * (1.0 - 1e-9))), 1)
        if like is None:
            self.kernel, step_places = step.step_kernel()
            self.readings, reading_places = step.residual_kernel(channels)
            n, size = len(step.parameters.names), sum(map(step.size, channels))
            self.blocks = Blocks(step_places, reading_places, 2 * robot.nv, n, size)
        else:
            self.kernel, self.readings, self.blocks = like.kernel, like.readings, like.blocks
        self.delay, self.delay_column = step.parameters.delays()
        index = np.array([np.arange(cut.start, cut.end + 1) for cut in cuts])  # (W, N + 1)
        self.measured = np.concatenate([getattr(log, name) for name in self.channels], axis=1)[index].swapaxes(0, 1)
        self.index = index

    def initial_states(self, p: Array) -> tuple[Array, Array]:
        """Return (q, v) at the start of each window from the readings, (W, nq) and (W, nv).

        Args:
            p: Values of the free parameters, (n,), mixed units.
        """
        robot, log, starts = self.plant.robot, self.log, self.index[:, 0]
        offset = np.array([float(x) for x in self.plant.parameters.plant(p).offset])
        rates = _slopes(log.positions, self.period, starts) if log.rates is None else log.rates[starts]
        q, v = np.tile(robot.neutral(), (len(starts), 1)), np.zeros((len(starts), robot.nv))
        q[:, robot.base.nq :], v[:, robot.base.nv :] = log.positions[starts] - offset, rates
        if robot.base.nq and log.base is not None:
            q[:, : robot.base.nq] = log.base[starts]
            v[:, : robot.base.nv] = self._twists() if log.twist is None else log.twist[starts]
        return q, v

    def _twists(self) -> Array:
        """Return the twists of the base at the start of each window from its poses around it, (W, nv of the base)."""
        robot, base, twists = self.plant.robot, self.log.base, []
        assert base is not None
        joints = robot.neutral()[robot.base.nq :]
        for k in self.index[:, 0]:
            first, last = max(k - 1, 0), min(k + 1, len(base) - 1)
            moved = difference(robot, np.append(base[first], joints), np.append(base[last], joints))
            twists.append(moved[: robot.base.nv] / ((last - first) * self.period))
        return np.array(twists)

    def moved(self, q: Array, v: Array, change: Array) -> tuple[Array, Array]:
        """Return initial states (q, v) after a change, (W, nq) and (W, nv).

        Args:
            q: Configurations, (W, nq), [rad] and [m]. v: Velocities, (W, nv), base axes and joint axes.
            change: Deviations [dq; dv], (W, 2 nv), tangent space and frames as `legged.integrate`.
        """
        nv = self.plant.nv
        new = np.stack(
            [normalized(self.plant.robot, integrate(self.plant.robot, *x)) for x in zip(q, change[:, :nv], strict=True)]
        )
        return new, v + change[:, nv:]

    def commands(self, p: Array) -> tuple[Array, Array]:
        """Return the commands that act in each time step and their rates, (N substeps + 1, W, nj).

        Args:
            p: Values of the free parameters, (n,), mixed units.
        """
        column = self.delay_column
        delay = np.where(column >= 0, np.append(p, 0.0)[column], self.delay)
        source = self.log.desired if self.plant.has_servos else self.log.torques
        assert source is not None
        fraction = (np.arange(self.length * self.substeps + 1) + 0.5) / self.substeps
        fraction[-1] = self.length  # the readings of the last sample
        at = self.index[:, 0][None, :, None] + fraction[:, None, None] - delay / self.period
        return _interpolated(source, at, self.period)

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
        M = np.zeros_like(S)
        block, row, column = self.blocks.step_entries
        flat, places = M.reshape(W, -1), (block * blocks.states + row) * size + column
        q, v, command, slope = np.array(q, float), np.array(v, float), np.empty_like(u[0]), np.empty_like(u[0])
        after = np.empty_like(q), np.empty_like(v), np.empty((W, len(places)))
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
                    flat[:, places] = after[2]
                    S = M[..., : blocks.states] @ S
                    S[..., blocks.states :] += M[..., blocks.states :]
        sampled = u[:: self.substeps], rate[:: self.substeps]
        residual, entries = self.readings(qs, vs, *sampled, p, self.measured)
        if sensitivities is None:
            return Prediction(qs, vs, residual, None)
        L = np.zeros((n + 1, W, blocks.count, blocks.rows, size))
        L[(slice(None), slice(None), *blocks.reading_entries)] = entries
        R = L[..., : blocks.states] @ sensitivities
        R[..., blocks.states :] += L[..., blocks.states :]
        return Prediction(qs, vs, residual, np.ascontiguousarray(np.moveaxis(R, 0, 2)))

    def by_block(self, readings: Array) -> Array:
        """Return readings by block, (W, G, N + 1, rows), zero for padding.

        Args:
            readings: (N + 1, W, m), mixed units.
        """
        found = np.append(readings, np.zeros((*readings.shape[:2], 1)), axis=2)[..., self.blocks.reading]
        return np.moveaxis(found, 0, 2)


def _interpolated(source: Array, at: Array, period: float) -> tuple[Array, Array]:
    """Return samples at fractional indices and their rates, (..., n), constant beyond the ends."""
    wanted = np.broadcast_to(at, (*at.shape[:-1], source.shape[1]))
    at = np.clip(wanted, 0.0, len(source) - 1.0)
    left = np.minimum(at.astype(int), len(source) - 2)
    column = np.arange(source.shape[1])
    a, b = source[left, column], source[left + 1, column]
    return a + (at - left) * (b - a), np.where(at == wanted, (b - a) / period, 0.0)


def _slopes(values: Array, period: float, starts: Array) -> Array:
    """Return the rates of a channel at some samples from parabolas through the samples around them, (W, k)."""
    half = _SMOOTHING // 2
    first = np.clip(starts - half, 0, max(len(values) - _SMOOTHING, 0))
    found = []
    for start, k in zip(first, starts, strict=True):
        own = values[start : start + _SMOOTHING]
        at = (np.arange(start, start + len(own)) - k) * period
        found.append(np.polynomial.polynomial.polyfit(at, own, min(2, len(own) - 1))[1])
    return np.array(found)
