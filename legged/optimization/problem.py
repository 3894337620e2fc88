"""Optimal control problems: a robot, a sequence of stages and impacts with their contacts, costs and constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from legged.arguments import array, instance, known_name, number, real_array, shown
from legged.checked import checked, reads_arguments
from legged.compiler import Counts
from legged.errors import ArgumentError, LeggedError, ShapeError, UnknownNameError
from legged.loops import ClosedRobot
from legged.optimization.equations.dynamics import Contact, ContactModel, contact_names
from legged.optimization.equations.integration import INTEGRATORS
from legged.optimization.equations.nodes import NodeModel
from legged.optimization.terms import Constraint, Cost, Point, Term
from legged.robot.configuration import read
from legged.robot.robot import Robot
from legged.spatial import Array


@checked
@dataclass(frozen=True)
class Stage:
    """A time step with constant controls, in which the given contacts do not move.

    Attributes:
        duration: h, [s].
        contacts: Active contacts: names of links, whose origin is the contact, or of contact points, or `Contact`s. A
            name of both means the link.
        terms: Costs, which are multiplied by the duration, and constraints.
        phase: Name of a phase whose duration is free: the solver multiplies the durations of all stages with the same
            name by one factor. By default the duration is given.
    """

    duration: float
    contacts: Sequence[str | Contact] = ()
    terms: Sequence[Term] = ()
    phase: str = ""

    def __post_init__(self) -> None:
        if not self.duration > 0.0:
            raise ArgumentError(f"the duration of a stage must be more than 0 s, got {self.duration}")


@checked
@dataclass(frozen=True)
class Impact:
    """An instant at which contacts begin: the velocity jumps by impulses.

    Attributes:
        contacts: The contacts that are active after it, as in `Stage`.
        terms: Costs and constraints of the state before the impact and of the impulses; there are no controls.
    """

    contacts: Sequence[str | Contact]
    terms: Sequence[Term] = ()


@checked
class Problem:
    """An optimal control problem.

        minimize   sum over nodes of costs,     x_0 given,     x_k+1 = f_k(x_k, u_k)

    The state x is (q, v), f_k the motion of a stage or an impact.

    Attributes:
        robot: The robot, or one with closed loops. nodes: Stages and impacts. final: Terms of the final state.
        contacts: All contacts. actuated: Entries of v with a control, (nu,).
        lower, upper: Bounds of the controls, (nu,), [N m] or [N].
        q, v: The initial states, (problems, nq) and (problems, nv).
        times: Time of each node and of the end, (nodes + 1,), [s]; with free durations that of the guess.
        durations: Of each node, (nodes + 1,), [s]; zero for impacts and the final state.
        phases: Name of a phase of free duration -> least and largest factor of its durations.
        method: Runge-Kutta method of the time steps; None for semi-implicit Euler steps.
        groups: The nodes of each kind: stages with the final state, and impacts.
    """

    def __init__(
        self,
        robot: Robot | ClosedRobot,
        nodes: Sequence[Stage | Impact],
        final: Sequence[Term] = (),
        *,
        q: Any,
        v: Any = None,
        actuated: Sequence[str] | None = None,
        lower: Any = None,
        upper: Any = None,
        velocity_gain: float = 0.0,
        restitution: float = 0.0,
        damping: float = 0.0,
        start_time: float = 0.0,
        integrator: str = "semi-implicit Euler",
        duration_factors: tuple[float, float] | Mapping[str, tuple[float, float]] = (0.2, 5.0),
    ):
        """Define a problem.

        Args:
            robot: The robot, or one with closed loops.
            nodes: Stages and impacts in their order.
            final: Costs and constraints of the final state, which do not depend on controls and forces.
            q: Initial configuration, (nq,), or one for each of several problems, (problems, nq), mixed units.
            v: Initial velocity, (nv,) or (problems, nv), mixed units; zero by default.
            actuated: Names of the joints with controls; all by default.
            lower, upper: Bounds of the controls, numbers or (nu,), [N m] or [N]; none by default.
            velocity_gain: Rate at which velocities of contacts decay in stages, [1/s].
            restitution: Coefficient of restitution of impacts.
            damping: Number added to the diagonal of the Delassus matrix J M^-1 J^T, [1/kg] or [1/(kg m^2)]: redundant
                contacts, such as four points of a sole, then share the load. If it is zero, constraints that depend on
                earlier ones carry no load.
            start_time: Time of the first node, [s].
            integrator: "semi-implicit Euler", "midpoint" (order 2) or "RK4" (order 4): Runge-Kutta methods, controls
                constant in a step. Costs are evaluated at the beginning of a step.
            duration_factors: Least and largest factor of the durations of phases, or these for each phase by its name.

        Raises:
            ArgumentError, ShapeError, UnknownNameError: For definitions that do not fit the robot.
        """
        tree = robot if isinstance(robot, Robot) else robot.robot
        self.robot, self._tree = robot, tree
        self.nodes, self.final = list(nodes), list(final)
        if not self.nodes:
            raise ArgumentError("nodes must have at least one entry: a problem needs a Stage")
        for k, node in enumerate(self.nodes):
            instance(f"entry {k} of nodes", node, (Stage, Impact), "a Stage or an Impact")
        for k, term in enumerate(self.final):
            instance(f"entry {k} of final", term, (Cost, Constraint), "a Cost or a Constraint")
        for value, name in ((velocity_gain, "velocity_gain"), (restitution, "restitution"), (damping, "damping")):
            number(name, value, least=0.0)
        number("start_time", start_time, "s")
        self.set_start(q, np.zeros(tree.nv) if v is None else v)
        self.actuated = _actuated(tree, actuated)
        self.lower = control_bound("lower", lower, -np.inf, len(self.actuated))
        self.upper = control_bound("upper", upper, np.inf, len(self.actuated))
        if (self.lower > self.upper).any():
            raise ArgumentError(f"lower bounds of controls exceed upper ones: {self.lower}, {self.upper}")
        self.contacts = _contacts(self.nodes)
        self.phases = _phases(self.nodes, duration_factors)
        if integrator not in INTEGRATORS:
            raise ArgumentError(f"integrator must be one of {', '.join(map(repr, INTEGRATORS))}, got {integrator!r}")
        self.method = INTEGRATORS[integrator]
        self._equations = {"velocity_gain": velocity_gain, "restitution": restitution, "damping": damping}
        self._options: dict[str, Any] = {**self._equations, "actuated": actuated, "integrator": integrator}
        stages = [k for k, node in enumerate(self.nodes) if isinstance(node, Stage)] + [len(self.nodes)]
        impacts = [k for k, node in enumerate(self.nodes) if isinstance(node, Impact)]
        self.groups = [NodeGroup(self, stages, False)] + ([NodeGroup(self, impacts, True)] if impacts else [])
        self._set_times(start_time)

    def __repr__(self) -> str:
        return f"<Problem of {self._tree.name!r}: {len(self.nodes)} nodes, {self.times[-1] - self.times[0]:g} s>"

    @property
    def nu(self) -> int:
        """Number of controls of a stage."""
        return len(self.actuated)

    @property
    def tree(self) -> Robot:
        """The robot, or the spanning tree of one with closed loops."""
        return self._tree

    @reads_arguments
    def set_start(self, q: Any, v: Any) -> None:
        """Set the initial state, or those of several problems.

        Args:
            q: Configuration, (nq,) or (problems, nq). v: Velocity, (nv,) or (problems, nv).
        """
        rows_q, rows_v = (np.atleast_2d(array(*pair).astype(float)) for pair in (("q", q), ("v", v)))
        counts = {len(rows_q), len(rows_v)}
        if rows_q.ndim != 2 or rows_v.ndim != 2 or len(counts - {1}) > 1:
            shapes = f"{np.shape(q)} and {np.shape(v)}"
            raise ShapeError(f"q and v must be (nq,) and (nv,), or one row per problem, got {shapes}")
        count = max(len(rows_q), len(rows_v))
        rows_q = np.broadcast_to(rows_q, (count, rows_q.shape[1]))
        rows_v = np.broadcast_to(rows_v, (count, rows_v.shape[1]))
        for one_q, one_v in zip(rows_q, rows_v, strict=True):
            read(self._tree, q=one_q, v=one_v)
        self.q, self.v = np.array(rows_q), np.array(rows_v)

    def changed(self, nodes: Sequence[Stage | Impact], final: Sequence[Term], *, q: Any, v: Any = None) -> Problem:
        """Return a problem of the same robot, contact equations and time steps, without bounds of controls.

        Args:
            nodes: Its stages and impacts. final: Its terms of the final state.
            q: Initial configuration, (nq,) or (problems, nq). v: Initial velocity, (nv,) or (problems, nv); or None.
        """
        return Problem(self.robot, nodes, final, q=q, v=v, start_time=self.times[0], **self._options)

    @cached_property
    def models(self) -> list[NodeModel]:
        """The compiled functions of each of the `groups`."""
        models = []
        for group in self.groups:
            equations = ContactModel(self.robot, self.contacts, self.actuated, group.impact, **self._equations)
            models.append(NodeModel(equations, group.terms, group.sizes, self.nu, self.method, len(self.phases)))
        return models

    @reads_arguments
    def advance(self, nodes: Sequence[Stage]) -> None:
        """Remove the first nodes and append others at the end, for a receding horizon; `Solver.advance` calls it.

        Args:
            nodes: As many stages as are removed, with terms and contacts that the problem has: numbers among the
                parameters, and durations, may differ.

        Raises:
            ArgumentError: The problem has impacts, or a node has another term, contact or phase.
        """
        if len(self.groups) > 1 or not all(isinstance(node, Stage) for node in nodes) or len(nodes) > len(self.nodes):
            raise ArgumentError("only problems of stages can be advanced, by at most as many stages as they have")
        known, phases = {contact.name for contact in self.contacts}, set(self.phases) | {""}
        for node in nodes:
            names = set(contact_names(node.contacts))
            if not names <= known or node.phase not in phases:
                raise ArgumentError(
                    f"a new node has contacts {sorted(names)} or a phase that the problem does not have"
                )
        before = self.nodes
        self.nodes = [*before[len(nodes) :], *nodes]
        try:
            group = NodeGroup(self, range(len(self.nodes) + 1), False, self.groups[0])
        except ArgumentError:
            self.nodes = before
            raise
        self.groups = [group]
        start = self.times[len(nodes)]
        self._set_times(start)

    def _set_times(self, start_time: float) -> None:
        steps = [node.duration if isinstance(node, Stage) else 0.0 for node in self.nodes]
        self.times = start_time + np.concatenate([[0.0], np.cumsum(steps)])
        self.durations = np.array([*steps, 0.0])

    def counts(self) -> dict[str, Counts]:
        """Return name -> operation counts of the functions of one node; `Solver.counts` has those of an iteration."""
        kernels = {"inverse of the equations of motion": self.models[0].inverse}
        for group, model in zip(self.groups, self.models, strict=True):
            kind = "an impact" if group.impact else "a stage"
            kernels |= {f"rollout of {kind}": model.rollout, f"quadratic model of {kind}": model.quadratic}
        return {name: kernel.counts for name, kernel in kernels.items()}


class NodeGroup:
    """The nodes of one kind, stages with the final state or impacts, and their terms.

    Attributes:
        indices: Numbers of the nodes. impact: Whether they are impacts.
        terms: Their distinct terms, which differ in function, constants or shapes of parameters.
        sizes: Number of residuals of each distinct term.
        members: For each node, (index of the distinct term, term) of its terms.
    """

    def __init__(self, problem: Problem, indices: Sequence[int], impact: bool, like: NodeGroup | None = None):
        """Collect the distinct terms of nodes.

        Args:
            problem: The problem. indices: Numbers of its nodes. impact: Whether they are impacts.
            like: A group whose distinct terms contain those of the nodes, for which the functions are compiled.

        Raises:
            ArgumentError: A node has a term that the other group does not have.
        """
        self.indices, self.impact = list(indices), impact
        self.terms: list[Term] = list(like.terms) if like else []
        self._numbers: dict[tuple, int] = dict(like._numbers) if like else {}
        numbers = self._numbers
        self.members: list[list[tuple[int, Term]]] = []
        for k in indices:
            terms = problem.final if k == len(problem.nodes) else problem.nodes[k].terms
            seen: dict[tuple, int] = {}
            row = []
            for term in terms:
                if not isinstance(term, Cost | Constraint):
                    raise ArgumentError(f"a term of node {k} must be a Cost or a Constraint, got {term!r}")
                seen[term.key] = seen.get(term.key, -1) + 1
                key = (*term.key, seen[term.key])
                if key not in numbers and like:
                    raise ArgumentError(f"node {k} has the term {term.name}, which the problem did not have")
                if key not in numbers:
                    numbers[key] = len(self.terms)
                    self.terms.append(term)
                row.append((numbers[key], term))
            self.members.append(row)
        self.sizes = like.sizes if like else [_size(problem, term) for term in self.terms]

    def mask(self, problem: Problem) -> Array:
        """Return 1 for the active contacts of each node, else 0, (nodes, contacts)."""
        names = [contact.name for contact in problem.contacts]
        mask = np.zeros((len(self.indices), len(names)))
        for row, k in zip(mask, self.indices, strict=True):
            for name in contact_names(problem.nodes[k].contacts) if k < len(problem.nodes) else ():
                row[names.index(name)] = 1.0
        return mask

    def inputs(self, model: NodeModel) -> tuple[Array, Array]:
        """Return weights (nodes, residual_count) and inputs (nodes, input_count) of the terms.

        Weights and multipliers of constraints are zero; the solver sets them.

        Args:
            model: The compiled functions.
        """
        w = np.zeros((len(self.indices), model.residual_count))
        p = np.zeros((len(self.indices), model.input_count))
        # Nodes without a term have its first parameters: zeros, e.g. for a rotation matrix, may have no finite value.
        for index, places in enumerate(model.parameter_slices):
            for name, place in places.items():
                p[:, place] = self.terms[index].parameters[name].reshape(-1)
        for row, members in enumerate(self.members):
            for index, term in members:
                for name, place in model.parameter_slices[index].items():
                    p[row, place] = term.parameters[name].reshape(-1)
                if isinstance(term, Cost):
                    w[row, model.residual_slices[index]] = term.weight
        return w, p


def _actuated(tree: Robot, names: Sequence[str] | None) -> tuple[int, ...]:
    if names is None:
        return tuple(range(tree.base.nv, tree.nv))
    joints = {joint.name: joint for joint in tree.joints}
    entries: list[int] = []
    for name in names:
        known_name("joint", name, joints)
        entries += range(joints[name].v.start, joints[name].v.stop)
    return tuple(entries)


def control_bound(name: str, value: Any, default: float, nu: int) -> Array:
    """Return bounds of the controls, (nu,), [N m] or [N], joint axes.

    Args:
        name: Name of the argument. value: A number or (nu,), [N m] or [N], joint axes; None for the default.
        default: [N m] or [N]. nu: Number of controls.

    Raises:
        ArgumentError: The value is no array of real numbers, or a bound is NaN.
        ShapeError: The value is neither a number nor (nu,).
    """
    given = real_array(name, default if value is None else value).astype(float)
    if given.shape not in ((), (nu,)):
        raise ShapeError(f"{name} must be a number or ({nu},), one entry per control, got shape {given.shape}")
    if np.isnan(given).any():
        raise ArgumentError(f"{name} must hold numbers, got {shown(value)}")
    return np.broadcast_to(given, (nu,)).copy()


def _phases(nodes: Sequence[Stage | Impact], bounds: Any) -> dict[str, tuple[float, float]]:
    """Return name -> (least, largest factor) of the phases of nodes, in the order of their first stages."""
    names = list(dict.fromkeys(node.phase for node in nodes if isinstance(node, Stage) and node.phase))
    if isinstance(bounds, Mapping):
        for name in bounds:
            if name not in names:
                raise UnknownNameError("phase of the problem", name, names)
    ranges = {name: bounds.get(name, (0.2, 5.0)) if isinstance(bounds, Mapping) else bounds for name in names}
    for name, (lower, upper) in ranges.items():
        if not 0.0 < number("the least factor", lower) <= number("the largest factor", upper):
            raise ArgumentError(
                f"duration factors of phase {name!r} must be 0 < least <= largest, got {lower}, {upper}"
            )
        if not lower <= 1.0 <= upper:
            raise ArgumentError(f"the duration factors {lower} to {upper} of phase {name!r} must include 1, the guess")
    return ranges


def _contacts(nodes: Sequence[Stage | Impact]) -> tuple[Contact, ...]:
    contacts: dict[str, Contact] = {}
    for k, node in enumerate(nodes):
        for contact in node.contacts:
            contact = Contact(contact) if isinstance(contact, str) else contact
            if contacts.setdefault(contact.name, contact) != contact:
                raise ArgumentError(f"contact {contact.name!r} of node {k} is defined twice; give one another name")
    return tuple(contacts.values())


def _size(problem: Problem, term: Term) -> int:
    """Return the number of residuals of a term, from an evaluation at the initial state with zero forces."""
    tree = problem.tree
    model = ContactModel(problem.robot, problem.contacts, problem.actuated)
    forces = model.forces(problem.q[0], np.zeros(model.rows))
    at = Point(0.0, problem.q[0], problem.v[0], np.zeros(problem.nu), forces)
    values = {name: value if value.shape else float(value) for name, value in term.parameters.items()}
    try:
        r = np.asarray(term.function(tree, at, **term.constants, **values))
    except LeggedError:
        raise
    except Exception as error:
        raise ArgumentError(f"term {term.name} cannot be evaluated at the start: {error!r}") from error
    if r.ndim != 1:
        raise ShapeError(f"term {term.name} must return residuals (n,), got shape {r.shape}")
    if isinstance(term, Cost) and term.weight.shape not in ((), r.shape):
        raise ShapeError(f"the weight of cost {term.name} must be a number or {r.shape}, got {term.weight.shape}")
    return len(r)
