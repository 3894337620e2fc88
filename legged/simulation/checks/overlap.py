"""Starts inside the ground: contacts that begin deep inside of another surface, which throws or pushes them out.

One check serves `simulate`, all members of `rollout`, and the start and every reset of a `Simulation`, on compliant and
rigid ground. A start that the user gives is warned of. One that the controller or the robot chooses is refused, since
it does not suit the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from legged.compiler import Kernel
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import point_positions
from legged.errors import NotFiniteError, SingularError, StateError
from legged.ground.ground import Ground
from legged.ground.terrain import Flat
from legged.simulation.backend import has_parts
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.rigid_loop import RigidLoop

if TYPE_CHECKING:  # these modules import this package
    from legged.simulation.stepping.batch import MemberTemplate
    from legged.simulation.stepping.starts import InitialStates

Array = np.ndarray
PENETRATION = 5e-3
"""Depth up to which surfaces may overlap at the start without a warning, [m]."""
LOAD = 2.0
"""Forces of compliant ground on the robot at rest, relative to its weight, up to which there is no warning either."""
_FEW = 4  # states that are examined without a kernel


def refuse_chosen(text: str) -> None:
    """Raise StateError for a start inside of the ground that the controller or the robot has chosen.

    Args:
        text: The warning of the overlap, or "" if there is none.
    """
    if text:
        raise StateError(f"{text}; only a start that is given by q= is simulated with an overlap")


def overlap_warning(loop: ClosedLoop, q: Array, s: Array, name: str = "") -> str:
    """Return a warning if a contact begins inside of another surface, or "".

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        name: Words before the message, such as "member 3: ".
    """
    if isinstance(loop, RigidLoop):
        gap, contact = loop.scene.deepest([x for x, _ in loop.states(q, s)])
        return "" if gap >= -PENETRATION else name + _rigid_message(loop, contact, -gap)
    return _warning(loop, *_depths(loop, q, s), name)


class OverlapCheck:
    """The check of many starts; it warns once."""

    def __init__(self) -> None:
        self._kernel: tuple[MemberTemplate, Kernel] | None = None
        self._seen, self._warned = 0, False

    def warning(self, template: MemberTemplate, starts: InitialStates, robots: Sequence[int], word: str = "") -> str:
        """Return a warning about the first of some robots that begins inside of a surface, or "".

        Args:
            template: The robots as functions of their numbers.
            starts: Robots at the start. robots: The numbers of those to examine.
            word: What a robot is called, such as "member"; "" if there is only one.
        """
        first = starts.loops[0]
        if self._warned or (first.ground is None) or not first.contact_names:
            return ""
        rows = np.concatenate([starts.numbers, starts.states], axis=1)[list(robots)]
        _, index = np.unique(rows, axis=0, return_index=True)
        chosen = [robots[k] for k in sorted(index.tolist())]
        self._seen += len(chosen)
        if starts.refused or self._seen <= _FEW or has_parts(first):
            text = self._one_by_one(starts, chosen, word)
        else:
            text = self._at_once(template, starts, chosen, word)
        self._warned = bool(text)
        return text

    def _one_by_one(self, starts: InitialStates, robots: Sequence[int], word: str) -> str:
        for i in robots:
            loop, state = starts.loops[i], starts.states[i]
            text = overlap_warning(loop, state[: loop.robot.nq], state[loop.robot.nq :], _name(word, i))
            if text:
                return text
        return ""

    def _at_once(self, template: MemberTemplate, starts: InitialStates, robots: Sequence[int], word: str) -> str:
        try:
            if self._kernel is None or self._kernel[0] is not template:
                nq, size = template.batch.robot.nq, starts.states.shape[1]
                self._kernel = (
                    template,
                    template.kernel(
                        lambda loop, state: _depths(loop, state[:nq], state[nq:]), "overlap", state=(size,)
                    ),
                )
            depths, loads = self._kernel[1](starts.numbers[robots][:, template.varying], starts.states[robots])
        except (NotFiniteError, SingularError):
            return ""
        except Exception:  # a user's ground that cannot be traced may raise anything
            return self._one_by_one(starts, robots, word)
        for i, depth, load in zip(robots, depths, loads, strict=True):
            text = _warning(starts.loops[i], depth, load, _name(word, i))
            if text:
                return text
        return ""


def _depths(loop: ClosedLoop, q: Array, s: Array) -> tuple[Array, Array]:
    """Return the depths of the contacts inside of other surfaces, (n,), [m], and the ground's forces at rest, [N]."""
    if isinstance(loop, RigidLoop):
        gap = loop.scene.contact_geometry([x for x, _ in loop.states(q, s)]).gap
        return -gap, 0.0 * gap
    ground, robot = loop.ground, loop.robot
    if not isinstance(ground, Ground) or not robot.contacts:
        return np.zeros(0), np.zeros(0)
    points = point_positions(robot, q, [(contact.link, contact.position) for contact in robot.contacts])
    depths = ground.penetration(points)
    return depths, ground.normal.force(depths, 0.0 * depths)


def _warning(loop: ClosedLoop, depths: Array, loads: Array, name: str) -> str:
    """Return the warning about given depths, (n,), [m], and forces at rest, (n,), [N], or ""."""
    k = int(np.argmax(depths)) if len(depths) else 0
    if not len(depths) or depths[k] <= PENETRATION:
        return ""
    contact, depth = loop.contact_names[k], float(depths[k])
    if isinstance(loop, RigidLoop):
        return name + _rigid_message(loop, contact, depth)
    weight, load = loop.robot.mass * float(np.linalg.norm(loop.robot.gravity)), float(np.sum(loads))
    if load <= LOAD * weight:
        return ""
    size = f"{load / weight:.3g} times the weight" if weight else f"{load:.3g} N"
    return (
        f"{name}contact {contact!r} begins {1e3 * depth:.3g} mm inside of the ground, whose forces of {size} throw the "
        f"robot out; {_way(loop)}"
    )


def _rigid_message(loop: RigidLoop, contact: str, depth: float) -> str:
    return (
        f"contact {contact!r} begins {1e3 * depth:.3g} mm inside of the other surface: it is pushed out at up to "
        f"{loop.scene.ground.recovery:g} m/s, which adds energy; {_way(loop)}"
    )


def _way(loop: ClosedLoop) -> str:
    """Return the advice of a message: a start without overlap, on uneven ground the state of `Locomotion`."""
    if isinstance(loop.ground, (Ground, Rigid)) and loop.robot.contacts and not isinstance(loop.ground.terrain, Flat):
        return (
            "gaits and postures are planned for level ground: on terrain, start in the state of "
            "controllers.Locomotion(..., terrain=terrain).initial_state(robot), which stands on it"
        )
    return "start from a configuration without overlap"


def _name(word: str, i: int) -> str:
    return f"{word} {i}: " if word else ""
