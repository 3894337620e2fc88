"""The serial equivalent of a robot with closed loops: the tree that laws for serial legs control in its place.

A leg with closed loops, such as a five-bar linkage or a shank that a crank moves by a rod, has as many motors as a
serial leg has joints. The joints from the base to its foot, its *chain*, then determine the positions of all its
joints, and forces at the joints of the chain correspond to forces of the motors, which may be elsewhere in the loops.

Source:
    S. Kumar, H. Woehrle, J. de Gea Fernandez, A. Mueller, F. Kirchner, "A survey on modularity and distributivity in
    series-parallel hybrid robots", Mechatronics 68, 2020, for serial abstractions of parallel mechanisms. The forces of
    the motors follow from the principle of virtual power.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from legged.algorithms.legs.knees import knee_ranges
from legged.algorithms.legs.leg_chains import leg_chains
from legged.algorithms.legs.standing import home_of
from legged.arguments import array, known_name
from legged.checked import checked
from legged.dynamics.arguments import read
from legged.dynamics.inertia import inertia_matrix
from legged.errors import DefinitionError
from legged.loops.assembly import assemble
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import jacobian
from legged.loops.ranges import configuration_within_ranges
from legged.loops.redundancy import dimensionless, looped_entries
from legged.robot.joint import PlacedJoint
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, is_zero, mirror, solve_factored, solve_symmetric

_INDEPENDENT = 0.02
"""Least norm of the part of a joint's column of phi' that is orthogonal to the columns chosen before, relative to that
of the column, at which the joint can be dependent."""
_MOVES = 1e-3  # least norm of a joint's column of phi', relative to that of the largest column
_SINGLE = 0.1  # largest ratio of the second-largest rate to the largest one of a joint that follows one other joint
_DRIVEN = 1e-6  # least singular value of the rates of the motors, relative to the largest one
_ROUNDING = 1e-9
_NO_RANGE = (-np.inf, np.inf)


@checked
@dataclass(frozen=True, eq=False)
class SerialEquivalent:
    """The serial equivalent of a robot with closed loops, and the maps between both.

    Attributes:
        closed: The robot with closed loops.
        robot: Its serial equivalent, see `serial_equivalent`.
        at: Configuration of the spanning tree of `closed` for which it was made, (nq,), mixed units.
        q_entries, v_entries: Entries of q and of v of the spanning tree that are those of the serial equivalent.
        dependent: Entries of v of the spanning tree that follow from these by the loops.
        motors: Entries of v of the spanning tree that belong to motors in loops.
        held: Names of the joints in loops with a spring and without a motor, which are fixed in the serial equivalent.
    """

    closed: ClosedRobot
    robot: Robot
    at: Array
    q_entries: tuple[int, ...]
    v_entries: tuple[int, ...]
    dependent: tuple[int, ...]
    motors: tuple[int, ...]
    held: tuple[str, ...]

    def state(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return (q, v) of the serial equivalent, (nq of it,) and (nv of it,), mixed units.

        Args:
            q: Configuration of the spanning tree, (nq,), mixed units. v: Its velocity, (nv,), mixed units.
        """
        q, v = read(self.closed.robot, q=q, v=v)
        return q[list(self.q_entries)], v[list(self.v_entries)]

    def wrenches(self, wrenches: Array) -> Array:
        """Return wrenches on the links of the serial equivalent, (n_links of it, 6), [N m] and [N], link axes.

        Args:
            wrenches: Wrenches on the links of the spanning tree, (n_links, 6), [N m] and [N], link axes.
        """
        wrenches = array("wrenches", wrenches, (len(self.closed.robot.links), 6))
        index = {link.name: k for k, link in enumerate(self.closed.robot.links)}
        return wrenches[[index[link.name] for link in self.robot.links]]

    def configuration(self, q: Array) -> Array:
        """Return the configuration of the spanning tree with closed loops, (nq,), mixed units.

        Args:
            q: Configuration of the serial equivalent, (nq of it,), mixed units.

        Raises:
            LoopError: The loops cannot be closed there.
        """
        (q,), start = read(self.robot, q=q), self.at.copy()
        start[list(self.q_entries)] = q
        held = [*(joint.name for joint in self.robot.joints), *self.held]
        return assemble(self.closed, start, hold=held, hold_base=True)

    def rates(self, q: Array) -> Array:
        """Return the velocity of the spanning tree per velocity of the serial equivalent, (nv, nv of it), mixed units.

        Args:
            q: Configuration of the spanning tree, (nq,), mixed units.
        """
        return _rates(jacobian(self.closed, q), self.v_entries, self.dependent)

    def forces(self, q: Array, tau: Array) -> Array:
        """Return the forces of the spanning tree, (nv,), [N m] or [N], with the power of given forces of `robot`.

        They are zero in joints of loops without motors. If there are more motors than joints, the sum of the squares
        of the forces of the motors is least.

        Args:
            q: Configuration of the spanning tree, (nq,), mixed units.
            tau: Forces of the serial equivalent, (nv of it,), [N m] or [N], joint axes.
        """
        (tau,) = read(self.robot, tau=tau)
        forces: list[object] = [0.0] * self.closed.nv
        columns = looped_columns(self)
        for k, entry in enumerate(self.v_entries):
            if k not in columns:
                forces[entry] = tau[k]
        if columns:
            E = self.rates(q)[np.ix_(list(self.motors), columns)]
            own = E @ solve_symmetric(mirror(E.T @ E), tau[columns])
            for entry, force in zip(self.motors, own, strict=True):
                forces[entry] = force
        return np.array(forces)


@checked
def serial_equivalent(
    closed: ClosedRobot, motors: Sequence[str] | None = None, near: Array | None = None
) -> SerialEquivalent:
    """Return the serial equivalent of a robot with closed loops.

    It is made for one configuration: the standing posture of `legged.algorithms.legs.standing.home_of` if the base is
    floating, and otherwise that with closed loops near `near`. Its joints are those outside of loops and, of the loops,
    those of the chains from the base to contact points. A joint of a chain that follows from others, such as a tarsus
    that a rod turns with the knee, follows one of them with the ratio of their rates in this configuration. Other
    joints of loops are fixed at their positions in it, and so are joints of loops with springs and without motors. The
    joints of the chains get additional armature, damping and friction for the joints that are left out, and limits of
    effort and speed that the motors can reach for all of them at once. Knees in loops stay on the side to which they
    bend in this configuration, because loops close in another way beyond the straight leg.

    Args:
        closed: The robot.
        motors: Names of the joints in loops that have motors; None for those whose effort is limited and not zero.
        near: Configuration, (nq,), mixed units, near which the loops are closed; by default one within the ranges of
            the joints, with joints at zero whose ranges contain it.

    Returns:
        The serial equivalent. It is computed once for each robot, motors and configuration.

    Raises:
        DefinitionError: The robot has no contact points, no joint in a loop has a motor, the motors do not move all
            joints of the chains, or a joint of a chain follows several others.
        LoopError: The loops cannot be closed.
        ReachError: The robot has legs, but cannot stand.
        UnknownNameError: A motor is not a joint in a loop.
    """
    known = closed.serial_equivalents
    key = (None if motors is None else tuple(motors), None if near is None else np.asarray(near, float).tobytes())
    if key not in known:
        equivalent = _at(closed, motors, near)
        robot = equivalent.robot
        if robot.contacts and robot.base.nv == 6:
            standing = np.concatenate([robot.base.neutral(), home_of(robot).angles])
            equivalent = _at(closed, motors, equivalent.configuration(standing))
        known[key] = equivalent
    return known[key]


def _at(closed: ClosedRobot, motors: Sequence[str] | None, q: Array | None) -> SerialEquivalent:
    """Return the serial equivalent for a configuration near q, (nq,), or for one within the ranges of the joints.

    Args:
        closed: The robot. motors: As in `serial_equivalent`. q: The configuration or None.
    """
    tree, looped = closed.robot, looped_entries(closed)
    if looped and not tree.contacts:
        raise DefinitionError(
            f"robot {closed.name!r} has no contact points, to which chains of its serial equivalent lead; give "
            f"contacts to a legged.Link, or feet to legged.loops.load"
        )
    joints = [joint for joint in tree.joints if not looped.isdisjoint(_entries(joint))]
    driven = _driven(closed, joints, motors)
    held = tuple(j.name for j in joints if j.name not in driven and np.any(j.definition.physics.stiffness))
    q = configuration_within_ranges(closed, held) if q is None else assemble(closed, q, hold=held)
    ends = {tree.links[point.link].body for point in tree.contacts}
    chains = {e for end in ends for k in tree.ancestors(end) for e in range(tree.nv)[tree.bodies[k].v]}
    own = {e for joint in joints if joint.name in driven for e in _entries(joint)}
    order = [e for joint in joints if joint.name not in held for e in _entries(joint)]
    J = dimensionless(closed, jacobian(closed, q))
    dependent = _dependent(J, sorted(order, key=lambda e: (e in chains, e in own, -e)))
    kept = [j for j in tree.joints if j not in joints or (j.name not in held and chains.issuperset(_entries(j)))]
    free = [joint for joint in kept if dependent.isdisjoint(_entries(joint))]
    nb = tree.base
    equivalent = SerialEquivalent(
        closed,
        tree,
        q,
        (*range(nb.nq), *(e for joint in free for e in range(joint.q.start, joint.q.stop))),
        (*range(nb.nv), *(e for joint in free for e in _entries(joint))),
        tuple(sorted(dependent)),
        tuple(sorted(own)),
        held,
    )
    E = equivalent.rates(q)
    sizes = np.linalg.svd(E[np.ix_(equivalent.motors, looped_columns(equivalent))], compute_uv=False)
    if len(sizes) < len(looped_columns(equivalent)) or np.any(sizes < _DRIVEN * sizes.max(initial=0.0)):
        raise DefinitionError(
            f"the motors of {closed.name!r} in loops, {_listed(driven)}, do not move all joints of the loops between "
            f"the base and contact points, {_listed(j.name for j in free if j in joints)}; give motors="
        )
    followers = [joint for joint in kept if joint not in free]
    fixed = {j.name: q[j.q] if j.nq > 1 else q[j.q.start] for j in joints if j not in kept}
    editor = tree.locked(fixed).edit()
    for joint in followers:
        editor.couple(joint.name, *_coupling(equivalent, joint, free, E))
    return _with_limits(replace(equivalent, robot=editor.build()), E)


def _with_limits(equivalent: SerialEquivalent, E: Array) -> SerialEquivalent:
    """Return a serial equivalent with the inertia, friction and limits of its joints in loops.

    Args:
        equivalent: The serial equivalent without them. E: Its rates at `at`, (nv, nv of it).
    """
    tree, robot, columns = equivalent.closed.robot, equivalent.robot, looped_columns(equivalent)
    rates, at = E[np.ix_(equivalent.motors, columns)], equivalent.at
    effort, speed = (_numbers(tree, name)[list(equivalent.motors)] for name in ("effort", "speed"))
    efforts, speeds = _box(np.linalg.pinv(rates.T), effort), _box(rates, speed)
    q, _ = equivalent.state(at, np.zeros(tree.nv))
    inertia = np.diag(E.T @ inertia_matrix(tree, at) @ E) - np.diag(inertia_matrix(robot, q))
    left = np.ones(tree.nv)  # 1 for joints that are left out; followers keep their own friction
    left[list(equivalent.v_entries)] = 0.0
    for follower in robot.followers:
        left[tree.joint(follower.name).v] = 0.0
    damping, friction = (E**2).T @ (left * _numbers(tree, "damping")), np.abs(E).T @ (left * _numbers(tree, "friction"))
    knees, editor = knee_ranges(robot, leg_chains(robot), q), robot.edit()
    for joint in robot.joints:
        k, physics = joint.v.start, joint.definition.physics
        if k in columns:
            least, most = knees.get(k - robot.base.nv, _NO_RANGE)
            if np.isfinite(least) != np.isfinite(most):  # half a turn from the only limit
                least, most = (least, least + np.pi) if np.isfinite(least) else (most - np.pi, most)
            editor.change_joint(
                joint.name,
                armature=np.asarray(physics.armature) + max(0.0, float(inertia[k])),
                damping=np.asarray(physics.damping) + damping[k],
                friction=np.asarray(physics.friction) + friction[k],
                effort=efforts[columns.index(k)],
                speed=speeds[columns.index(k)],
                lower=np.maximum(physics.lower, least),
                upper=np.minimum(physics.upper, most),
            )
    return replace(equivalent, robot=editor.build())


def looped_columns(equivalent: SerialEquivalent) -> list[int]:
    """Return the entries of v of a serial equivalent that belong to joints in loops."""
    looped = looped_entries(equivalent.closed)
    return [k for k, entry in enumerate(equivalent.v_entries) if entry in looped]


def _box(T: Array, most: Array) -> Array:
    """Return the half sides x of a box, (n,), with |T y| <= most for every |y| <= x.

    Each side is the largest value of one entry of y with the others zero, reduced where several contribute to a row.

    Args:
        T: (m, n), any unit. most: (m,), positive, infinite for no limit.
    """
    sizes = np.where(np.abs(T) > _ROUNDING, np.abs(T), 0.0)
    with np.errstate(divide="ignore"):
        shares = sizes / most[:, None]
        alone = 1.0 / shares.max(axis=0, initial=0.0)
    loads = np.where(shares > 0.0, shares * np.where(np.isfinite(alone), alone, 0.0), 0.0).sum(axis=1)
    return alone / np.maximum(np.max(np.where(shares > 0.0, loads[:, None], 1.0), axis=0, initial=1.0), 1.0)


def _numbers(robot: Robot, name: str) -> Array:
    """Return one of the numbers of the physics of joints, (nv,), zero for the base."""
    values = np.zeros(robot.nv)
    for joint in robot.joints:
        values[joint.v] = getattr(joint.definition.physics, name)
    return values


def _coupling(
    equivalent: SerialEquivalent, joint: PlacedJoint, free: Sequence[PlacedJoint], E: Array
) -> tuple[str, float, float]:
    """Return the name of the joint that a joint of a chain follows, ratio and offset."""
    row, entries = E[joint.v.start], equivalent.v_entries
    k = int(np.argmax(np.abs(row)))
    if joint.nv > 1 or not row[k] or np.abs(np.delete(row, k)).max(initial=0.0) > _SINGLE * abs(row[k]):
        raise DefinitionError(
            f"joint {joint.name!r} of {equivalent.closed.name!r} lies between the base and contact points and follows "
            f"several joints, which a serial equivalent cannot; name other motors"
        )
    master = next(each for each in free if entries[k] in _entries(each))
    ratio, q = float(row[k]), equivalent.at
    return master.name, ratio, float(q[joint.q.start] - ratio * q[master.q.start])


def _driven(closed: ClosedRobot, joints: Sequence[PlacedJoint], motors: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the joints in loops with motors."""
    names = [joint.name for joint in joints]
    if motors is not None:
        return tuple(known_name("joint in a loop", name, names) for name in motors)
    efforts = {joint.name: np.asarray(joint.definition.physics.effort) for joint in joints}
    found = tuple(name for name, effort in efforts.items() if np.all(np.isfinite(effort) & (effort > 0.0)))
    if names and not found:
        raise DefinitionError(
            f"no joint in the loops of {closed.name!r} has a limit of effort, by which motors are found; name those "
            f"with motors: serial_equivalent(closed, motors=[...]) or OnSerialEquivalent(law, closed, motors=[...]), "
            f"from {_listed(names)}"
        )
    return found


def _dependent(J: Array, order: Sequence[int]) -> frozenset[int]:
    """Return the entries of v that follow from the others, chosen in an order of preference.

    Args:
        J: phi', (rows, nv), dimensionless. order: Entries that may follow from others.
    """
    chosen: list[int] = []
    basis, sizes = np.zeros((0, len(J))), np.linalg.norm(J, axis=0)
    for entry in order:
        rest = J[:, entry] - basis.T @ (basis @ J[:, entry])
        length = float(np.linalg.norm(rest))
        if length > max(_INDEPENDENT * sizes[entry], _MOVES * sizes.max()):
            chosen.append(entry)
            basis = np.vstack([basis, rest / length])
    return frozenset(chosen)


def _rates(J: Array, own: Sequence[int], dependent: Sequence[int]) -> Array:
    """Return the velocities of all entries of v per velocity of some, (nv, n); entries of neither kind are at rest.

    Args:
        J: phi', (rows, nv). own: The n entries. dependent: Entries that follow from them.
    """
    E = np.zeros((J.shape[1], len(own)), dtype=J.dtype)
    A = J[:, list(dependent)]
    factors = factor_symmetric(mirror(A.T @ A))
    for k, entry in enumerate(own):
        E[entry, k] = 1.0
        if not all(is_zero(x) for x in J[:, entry]):
            E[list(dependent), k] = -solve_factored(factors, A.T @ J[:, entry])
    return E


def _entries(joint: PlacedJoint) -> range:
    """Return the entries of v of a joint."""
    return range(joint.v.start, joint.v.stop)


def _listed(names: Iterable[str]) -> str:
    """Return names as text."""
    return ", ".join(map(repr, names)) or "none"
