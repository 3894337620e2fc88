"""Accumulated impulses, largest forces, and times of first and last touch of the contacts of a closed loop.

Every time step adds its own impulses, so that nothing depends on when a run is sampled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.contact.impulses.impact import Impact
from legged.robot.configuration import as_vector
from legged.spatial import Array


class ContactHistory(NamedTuple):
    """History of m contacts since the start of a run, or since the start of the last call of `Simulation.step`.

    Attributes:
        impulse: Sum of the impulses, (m, 3), [N s], world axes.
        peak: Largest force, (m,), [N]: the impulse of a step over its length.
        touched: Time of the first force, in the middle of its step, (m,), [s]; zero without one.
        last: Time of the last force, likewise, (m,), [s].
    """

    impulse: Array
    peak: Array
    touched: Array
    last: Array

    @staticmethod
    def size(m: int) -> int:
        """Return the length of `flat` for m contacts."""
        return 6 * m

    @classmethod
    def of(cls, flat: Array) -> ContactHistory:
        """Return the parts of a flat history.

        Args:
            flat: (..., 6 m), mixed units.
        """
        m = flat.shape[-1] // 6
        impulse = flat[..., : 3 * m].reshape(*flat.shape[:-1], m, 3)
        return cls(impulse, *(flat[..., k * m : (k + 1) * m] for k in (3, 4, 5)))

    def flat(self) -> Array:
        """Return the history of one state as a vector, (6 m,), mixed units."""
        return np.concatenate([self.impulse.reshape(-1), self.peak, self.touched, self.last])

    def after(self, t: Any, h: Any, forces: Array) -> ContactHistory:
        """Return the history after a step.

        Args:
            t: Time in the middle of the step, [s]. h: The step, [s].
            forces: Mean forces in the step, (m, 3), [N], world axes.
        """
        history = self.recorded(t, np.sqrt((forces * forces).sum(axis=1)))
        return history._replace(impulse=self.impulse + h * forces)

    def recorded(self, t: Any, force: Array) -> ContactHistory:
        """Return the history with the same impulses, and peaks and times after forces have acted.

        Args:
            t: When they act, [s]. force: Magnitudes of the forces, (m,), [N], of any frame.
        """
        acts = force > 0.0
        first = where((self.touched == 0.0) & acts, t, self.touched)
        return ContactHistory(self.impulse, np.maximum(self.peak, force), first, where(acts, t, self.last))


class ContactMemory(NamedTuple):
    """Memory of m rigid contacts in the state of the closed loop.

    Attributes:
        forces: Forces of the last step, (m, 3), [N], contact frames: the initial guess of the next step, and the input
            of controllers.
        impulse, peak, touched, last: As in `ContactHistory`.
        drift: Integral over time of the residual, see `solver.natural_map_residual`, [m].
        worst: Largest residual of a step since the start, [m/s].
    """

    forces: Array
    impulse: Array
    peak: Array
    touched: Array
    last: Array
    drift: Any
    worst: Any

    @staticmethod
    def size(m: int) -> int:
        """Return the length of `flat` for m contacts."""
        return 9 * m + 2

    @classmethod
    def of(cls, flat: Array) -> ContactMemory:
        """Return the parts of a flat memory.

        Args:
            flat: (..., 9 m + 2), mixed units.
        """
        m = flat.shape[-1] // 9
        forces = flat[..., : 3 * m].reshape(*flat.shape[:-1], m, 3)
        return cls(forces, *ContactHistory.of(flat[..., 3 * m : 9 * m]), flat[..., -2], flat[..., -1])

    def flat(self) -> Array:
        """Return the memory of one state as a vector, (9 m + 2,), mixed units."""
        return np.concatenate([self.forces.reshape(-1), self.history.flat(), np.stack([self.drift, self.worst])])

    @property
    def history(self) -> ContactHistory:
        """Impulses, peaks, first and last touch."""
        return ContactHistory(self.impulse, self.peak, self.touched, self.last)

    def after(self, t: Any, h: Any, frames: Array, impact: Impact) -> ContactMemory:
        """Return the memory after a step.

        Args:
            t: Time in the middle of the step, [s]. h: The step, [s].
            frames: Rows n, t1, t2 of each contact frame, (m, 3, 3), dimensionless, world axes.
            impact: The impulses of the step.
        """
        p = as_vector(list(impact.p.ravel())).reshape(-1, 3) if impact.p.dtype == object else impact.p
        history = self.history.recorded(t, np.sqrt((p * p).sum(axis=1)) * (1.0 / h))
        history = history._replace(impulse=self.impulse + (frames * p[:, :, None]).sum(axis=1))
        drift, worst = self.drift + h * impact.residual, np.maximum(self.worst, impact.residual)
        return ContactMemory(p * (1.0 / h), *history, drift, worst)


def memory_after(
    t: Any,
    h: Any,
    frame: Array,
    p: Array,
    before: Array,
    u: Array,
    residual: Any,
    impulse: Array,
    peak: Any,
    touched: Any,
    last: Any,
    totals: Array,
) -> tuple[Any, ...]:
    """Return the `ContactMemory` of a contact after a step, and the work of its impulse in the step.

    It takes and returns arrays alone, as a kernel of scenes in parts needs them (`legged.simulation.scene_steps`).

    Args:
        t: Time in the middle of the step, [s]. h: The step, [s].
        frame: Rows n, t1, t2 of the contact frame, (3, 3), dimensionless, world axes.
        p: Impulse, (3,), [N s], contact frame.
        before, u: Velocities before and after the step, (3,), [m/s], contact frame. residual: That of the step, [m/s].
        impulse, peak, touched, last: Parts of the memory before the step, (3,), [N s], world axes, () [N], () and
            () [s].
        totals: drift and worst before the step, (2,), mixed units.

    Returns:
        Forces, (3,), impulse, (3,), peak, touched, last, drift and worst, (2,), and work, [J].
    """
    parts = (np.stack([x]) for x in (peak, touched, last))
    memory = ContactMemory(np.zeros((1, 3)), impulse[None], *parts, *totals)
    after = memory.after(t, h, frame[None], Impact(p[None], [], residual, 0.0))
    totals = np.stack([after.drift, after.worst])
    work = 0.5 * (p @ (before + u))
    return after.forces[0], after.impulse[0], after.peak[0], after.touched[0], after.last[0], totals, work
