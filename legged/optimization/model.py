"""The linear-quadratic model of all nodes of a problem, evaluated in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from legged.compiler import Call, Counts, FusedCalls, Rows, default_threads
from legged.optimization.equations.dynamics import contact_names
from legged.optimization.equations.integration import StageDerivatives, runge_kutta_derivatives
from legged.optimization.equations.nodes import NodeModel
from legged.optimization.linearization import condensed, costates, motion_derivatives, next_configuration
from legged.optimization.problem import Problem, Stage
from legged.optimization.trajectories import LANES, Trajectories
from legged.spatial import Array


class LinearQuadraticModel(Trajectories):
    """Trajectories with their linear dynamics and the quadratic model of their costs.

    Attributes:
        F: Derivatives of the next state by state and controls, (.., 2 nv + P, n) with n = 2 nv + P + nu.
        gradient, hessian: Of the cost of each node by state and controls, (.., n) and (.., n, n), as in `riccati`.
        T, N: Derivatives of the next configuration by the configuration and by the next velocity, or with a Runge-Kutta
            method by the chart coordinates, (.., nv, nv).
        M_inv, J_M_inv, contact_inertia: As in `ContactModel.inverse`.
        equation_derivatives: Derivatives of the equations of motion by state and controls, (.., nv + m, n).
        Y: Derivatives of y = (f, t, h) by (1, state, controls), (.., ny, 1 + n); y is f alone without free durations.
        cost_yz, hessian_yy: Derivatives of the cost by y and (1, state, controls) as in `condensed`, and by y.
        gauss_newton: The Gauss-Newton approximation of the Hessian, if `hessian` is exact.
    """

    def __init__(self, problem: Problem, alphas: Array):
        """Allocate memory and prepare the calls.

        Args:
            problem: The problem. alphas: Step lengths of a line search, (n,), dimensionless.
        """
        super().__init__(problem, alphas)
        memory, nv, nx, m, P = self._memory, problem.tree.nv, self.nx, self.m, len(self.durations.names)
        n, ny = nx + P + self.nu, m + 2 * (P > 0)
        self.T, self.N = memory(nv, nv), memory(nv, nv)
        self.M_inv, self.J_M_inv, self.contact_inertia = memory(nv, nv), memory(m, nv), memory(m, m)
        self._inverse = [self.M_inv, self.J_M_inv, self.contact_inertia]
        self.equation_derivatives, self.Y, self._h = memory(nv + m, n), memory(ny, 1 + n), memory(2)
        self.cost_yz, self.hessian_yy = memory(ny, 1 + n), memory(ny, ny)
        self.F, self.gradient, self.hessian = self.riccati.F, self.riccati.gradient, self.riccati.hessian
        self.F[..., range(nx, nx + P), range(nx, nx + P)] = 1.0
        self._prepare_model()
        self._solutions, self._condensed = self._prepare_algebra()
        self._curvatures: list[FusedCalls] = []

    def counts(self) -> dict[str, Counts]:
        """Return name -> operation counts of the parts of an iteration, see `Solver.counts`."""
        kernels, models = Counts(), self.problem.models
        rollout = Counts()
        for group, model in zip(self.problem.groups, models, strict=True):
            used = [(models[0].inverse, model.stages), (model.quadratic, 1)]
            if model.method:
                used += [(model.points, 1), (model.stage, model.stages)]
            for kernel, repeats in used:
                kernels += kernel.counts.times(repeats * len(group.indices))
            rollout += model.rollout.counts.times(len(self.alphas) * len(group.indices))
        return {
            "equations of motion, costs and their derivatives": kernels,
            "linear dynamics": self._solutions.counts,
            "condensed costs": self._condensed.counts,
            "Riccati recursion": self.riccati.counts,
            "expected change along the step": self.riccati.direction_counts,
            "rollouts": rollout,
        }

    def directional_derivatives(self) -> tuple[Array, Array]:
        """Return slope and curvature of the quadratic model of the cost along the full step, (1,) each."""
        start = np.concatenate([np.zeros((1, self.nx)), self.durations.step], axis=1)
        return self.riccati.directional_derivatives(start)

    def _prepare_model(self) -> None:
        """Prepare the calls that evaluate all nodes of each group: motion and cost, and the linear-quadratic model."""
        self._motions, self._models, self._cost_entries = (list[FusedCalls]() for _ in range(3))
        self._stages: list[tuple[tuple[Array, ...], list[Array], Array, Array]] = []
        self._next_q, self._next_v = np.zeros_like(self._flat(self.q)), np.zeros_like(self._flat(self.v))
        self._control = np.zeros_like(self._flat(self.u))
        zero_gains, zero_step = np.zeros(self.riccati.gains.shape[2:]), np.zeros(self.durations.step.shape[1])
        for number, (_, model) in enumerate(self._with_models()):
            index, common = self._group_rows(number)
            after = index + ((index + 1) % (self.nodes + 1) > 0)

            def rows(array: Array, index: Array = index) -> Rows:
                return Rows(self._flat(array), index)

            unbounded = np.full(self.nu, np.inf)
            motions = [rows(x) for pair in zip(self._a, self._f, strict=True) for x in pair]
            self._motions += self._each_alone(
                [
                    model.rollout.prepare(
                        len(index),
                        *(rows(self.q), rows(self.v), rows(self.q), rows(self.v), rows(self.u)),
                        *(zero_gains, zero_step, np.zeros(()), np.zeros(self.nx), -unbounded, unbounded, *common),
                        results=[
                            *(Rows(self._next_q, index), Rows(self._next_v, index), Rows(self._control, index)),
                            *(rows(self.cost), *motions),
                        ],
                    )
                ]
            )
            derivatives, end = [self.equation_derivatives], list[Rows]()
            inverse = self._inverse_calls(number, np.zeros(self.problem.tree.nv), self._inverse)
            if model.method:
                derivatives, end, inverse = [], self._prepare_stages(model, index), []
            packed = np.zeros((len(index), *model.quadratic.graph.outputs[-1]))
            call = model.quadratic.prepare(
                len(index),
                *(rows(x) for x in (self.q, self.v, self.u, self.a, self.f)),
                *(rows(self.q, after), rows(self.v, after), *end, *common),
                results=[rows(self.gap), self.residuals[number], packed],
            )
            places = [self.T, self.N, *derivatives, self.riccati.cost, self.cost_yz, self.hessian_yy]
            scattered = [
                model.entries.scattered(i, packed, self._flat(x), index, add=x is self.riccati.cost)
                for i, x in enumerate(places)
            ]
            self._models.append(FusedCalls([*inverse, call.described(), *scattered[:-3], *scattered[-2:]], LANES))
            self._cost_entries.append(FusedCalls([scattered[-3]], 1))

    def _prepare_stages(self, model: NodeModel, index: Array) -> list[Rows]:
        """Prepare the calls for the stages of a Runge-Kutta method; return xi and v of the end."""
        nv, count, memory = model.nv, len(self._flat(self.v)), self._memory

        def rows(array: Array) -> Rows:
            return Rows(self._flat(array), index)

        points, velocities = ([memory(nv) for _ in range(model.stages + 1)] for _ in range(2))
        rates = [memory(nv) for _ in range(model.stages)]
        self._joined = np.zeros((count, model.stages, nv))
        mask, h = self._group_rows(0)[1][:2]
        places = [rows(x) for x in (*points, *velocities, *rates)]
        call = model.points.prepare(len(index), rows(self.v), Rows(self._joined, index), h, results=places)
        self._models += self._each_alone([call])
        for i in range(model.stages):
            inverse = self._inverse if i == 0 else [np.zeros_like(x) for x in self._inverse]
            derivatives = self.equation_derivatives if i == 0 else np.zeros_like(self.equation_derivatives)
            charts = [memory(nv, nv) for _ in range(4)]
            arguments = [rows(x) for x in (self.q, points[i], velocities[i], self._a[i], self._f[i])]
            packed = np.zeros((len(index), *model.stage.graph.outputs[0]))
            call = model.stage.prepare(len(index), *arguments, mask, results=[packed]).described()
            targets = enumerate([derivatives, *charts])
            scattered = [model.stage_entries.scattered(k, packed, self._flat(x), index) for k, x in targets]
            self._models.append(
                FusedCalls([*self._inverse_calls(0, rows(points[i]), inverse), call, *scattered], LANES)
            )
            self._stages.append(((*inverse, derivatives), charts, self._a[i], rates[i]))
        return [rows(points[-1]), rows(velocities[-1])]

    def _inverse_calls(self, number: int, xi: Array | Rows, results: Sequence[Array]) -> list[Call]:
        """Return the call for `ContactModel.inverse` of all nodes of a group, at integrate(q, xi), into `results`."""
        index, (mask, *_) = self._group_rows(number)
        q, *places = (Rows(self._flat(x), index) for x in (self.q, *results))
        return [self.problem.models[0].inverse.prepare(len(index), q, xi, mask, results=places).described()]

    def _model_arrays(self) -> tuple[Array, ...]:
        """Return further arrays by node that must be finite."""
        return self.gap, *self._inverse, self.equation_derivatives, self.T, self.N, self.cost_yz, self.riccati.cost

    def contact_remarks(self, problem_number: int, forces: Mapping[str, Array]) -> list[str]:
        """Return warnings about the contacts of a solution: redundant contacts, and forces that pull.

        A contact has a redundant row if its load is not determined, see `equations.dynamics`. A force pulls if it
        points down while no term of the node depends on the contact, such as `friction_cone`.

        Args:
            problem_number: Number of the problem.
            forces: Of each contact by its name, (nodes, 3) or (nodes, 6), [N] and [N m], world axes.
        """
        problem, redundant, pulling = self.problem, list[str](), list[str]()
        gravity = np.asarray(problem.tree.gravity, float)
        strength = max(float(np.linalg.norm(gravity)), 1e-300)
        least = 1e-3 * problem.tree.mass * float(np.linalg.norm(gravity))
        at = np.cumsum([0, *(contact.rows for contact in problem.contacts)])
        singular = np.einsum("...ii->...i", self.contact_inertia[problem_number, :-1]) == 0.0
        active = [set(contact_names(node.contacts)) for node in problem.nodes]
        unlimited = [
            names - {term.constants.get("contact") for term in node.terms}
            for names, node in zip(active, problem.nodes, strict=True)
        ]
        for i, contact in enumerate(problem.contacts):
            name = contact.name
            repeats = singular[:, at[i] : at[i + 1]].any(axis=1) & [name in names for names in active]
            if repeats.any():
                redundant.append(
                    f"at node {repeats.argmax()} contact {name!r} repeats constraints of others or is singular, and "
                    "carries no load there; damping=1e-6 of the problem distributes it"
                )
            upward = np.where([name in names for names in unlimited], forces[name][:, -3:] @ -gravity / strength, 0.0)
            k = int(upward.argmin())
            if upward[k] < -least:
                unit = "N" if isinstance(problem.nodes[k], Stage) else "N s"
                pulling.append(
                    f"the ground pulls at contact {name!r} with {-upward[k]:.3g} {unit} at node {k}; limit it by "
                    "terms.friction_cone"
                )
        return redundant + pulling

    def evaluate_motion(self) -> None:
        """Compute accelerations, forces and costs of all nodes at the present states and controls."""
        for call in self._motions:
            self._run(call, "the motion")

    def evaluate_model(self, second_order: bool = False) -> None:
        """Compute the linear-quadratic model of all nodes and the gaps between them.

        Args:
            second_order: Whether the Hessian is exact; otherwise it is the Gauss-Newton approximation.
        """
        if self._stages:
            np.stack([self._flat(a) for a in self._a], axis=1, out=self._joined)
        threads = default_threads()
        for call in self._models:
            if call(threads) >= 0:
                self._add_cost_entries(threads)  # so that `_failure` finds entries of the cost that are not finite
                raise self._failure("the linear-quadratic model")
        self.gap[:, -1] = 0.0
        nx, m, P, impacts = self.nx, self.m, len(self.durations.names), self._impacts
        self.riccati.gap[..., :nx] = self.gap
        self._h[..., 0] = self.durations.h
        self._h[:, impacts, 0] = 1.0  # a is the change of velocity
        self._h[..., 1] = -self._h[..., 0]
        self._solutions(threads)
        if self._stages:
            by_duration = self._runge_kutta()
        if P:
            if not self._stages:
                by_duration = self._by_duration()
            self.F[..., :nx, nx : nx + P] = by_duration[..., None] * self.durations.h_by_factor[:, None]
            times = np.stack([self.durations.t_by_factor, self.durations.h_by_factor], axis=1)
            self.Y[..., m:, 1 + nx : 1 + nx + P] = times
        self._condensed(threads)
        self._add_cost_entries(threads)
        for k in impacts:  # so that Q_uu is not singular
            self.hessian[:, k, nx + P :, nx + P :] = np.eye(self.nu)
        if second_order:
            self.gauss_newton = self.hessian.copy()
            self._add_curvature()

    def _add_cost_entries(self, threads: int) -> None:
        for call in self._cost_entries:
            call(threads)

    def _prepare_algebra(self) -> tuple[FusedCalls, FusedCalls]:
        """Prepare the calls that compute F and Y, and those for the part of the cost by y, see `condensed`.

        Returns:
            The two groups of calls.
        """
        nv, nx, m, P, flat = self.problem.tree.nv, self.nx, self.m, len(self.durations.names), self._flat
        F, Y, h = flat(self.F), flat(self.Y), flat(self._h)
        D, count = F[:, nv:nx], len(F)
        of_motion = *self._inverse, self.equation_derivatives
        same = np.broadcast_to(np.eye(nv, F.shape[-1], nv), D.shape)
        calls = [
            *motion_derivatives([flat(x) for x in of_motion], Y[:, :m, 1:], D, h, same),
            *next_configuration(flat(self.T), flat(self.N), D, F[:, :nv]),
        ]
        self._accelerations = [self._memory(nv, F.shape[-1]) for _ in self._stages]
        for (of_stage, *_), a in zip(self._stages, self._accelerations, strict=True):
            forces, factors = np.zeros((count, m, F.shape[-1])), np.tile([1.0, -1.0], (count, 1))
            calls += motion_derivatives([flat(x) for x in of_stage], forces, flat(a), factors)
        of_cost = condensed(Y, flat(self.cost_yz), flat(self.hessian_yy), flat(self.riccati.cost), nx + P)
        return FusedCalls(calls, 1), FusedCalls(of_cost, 1)

    def _by_duration(self) -> Array:
        """Return the derivative of the next state by the duration, (1, nodes + 1, nx)."""
        h = self._h[..., :1]
        rate = (self.v + h * self.a) / np.where(h > 0.0, h, 1.0) + self.a
        return np.concatenate([(self.N @ rate[..., None])[..., 0], self.a], axis=-1)

    def _runge_kutta(self) -> Array:
        """Set F of stages with a Runge-Kutta method, and return the derivative of the next state by the duration."""
        method = self.problem.models[0].method
        assert method
        models = [
            StageDerivatives(derivatives, charts[0], charts[1], charts[2], charts[3], a, rate)
            for derivatives, (_, charts, a, rate) in zip(self._accelerations, self._stages, strict=True)
        ]
        F, by_duration = runge_kutta_derivatives(method, models, (self.T, self.N), self.durations.h)
        self.F[:, self.problem.groups[0].indices, : self.nx] = F[:, self.problem.groups[0].indices]
        by_duration[:, self._impacts] = 0.0
        return by_duration

    def _add_curvature(self) -> None:
        """Add the second derivatives of the motion and of the residuals to the Hessian."""
        if not self._curvatures:
            self._prepare_curvature()
        nx, nv, m, P = self.nx, self.problem.tree.nv, self.m, len(self.durations.names)
        self._costate[:, :-1] = costates(self.F, self.gradient)[:, 1:, :nx]
        h = self._h[..., :1]
        by_a = h[..., None] * (self._costate[..., None, nv:] + self._costate[..., None, :nv] @ self.N)
        J, M_inv = self.J_M_inv, self.M_inv
        by_f = self.cost_yz[..., None, :m, 0] + by_a @ J.swapaxes(-1, -2)
        of_forces = by_f @ self.contact_inertia  # solution of the transposed equations of motion
        self._multipliers[..., :nv] = (of_forces @ J - by_a @ M_inv)[..., 0, :]
        self._multipliers[..., nv:] = -of_forces[..., 0, :]
        for call in self._curvatures:
            self._run(call, "the second derivative")
        zz, yz, yy = self._curvature_blocks
        by_state = self.F[..., nv:nx, :] - np.eye(nv, self.F.shape[-1], nv)
        by_state[..., nx : nx + P] = 0.0  # a does not depend on durations
        Y = np.concatenate([self.Y[..., 1:], by_state / np.where(h > 0.0, h, 1.0)[..., None]], axis=-2)
        cross = Y.swapaxes(-1, -2) @ (yz + 0.5 * yy @ Y)
        extra = zz + cross + cross.swapaxes(-1, -2)
        extra[:, self._impacts, nx + P :] = 0.0
        extra[:, self._impacts, :, nx + P :] = 0.0
        self.hessian += extra

    def _prepare_curvature(self) -> None:
        """Allocate memory for second derivatives, and prepare the calls."""
        nx, nv, n = self.nx, self.problem.tree.nv, self.F.shape[-1]
        ny = self.hessian_yy.shape[-1] + nv
        lead = 1, self.nodes + 1
        self._costate, self._multipliers = np.zeros((*lead, nx)), np.zeros((*lead, nv + self.m))
        self._curvature_blocks = np.zeros((*lead, n, n)), np.zeros((*lead, ny, n)), np.zeros((*lead, ny, ny))
        calls = []
        for number, model in enumerate(self.problem.models):
            index, common = self._group_rows(number)
            after = index + ((index + 1) % (self.nodes + 1) > 0)
            places = [(x, index) for x in (self.q, self.v, self.u, self.a, self.f)]
            places += [(self.q, after), (self.v, after), (self._costate, index), (self._multipliers, index)]
            arguments = [Rows(self._flat(x), at) for x, at in places]
            results = [Rows(self._flat(x), index) for x in self._curvature_blocks]
            calls.append(model.curvature.prepare(len(index), *arguments, *common, results=results))
        self._curvatures = self._each_alone(calls)
