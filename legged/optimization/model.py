"""The linear-quadratic model of all nodes of a problem, evaluated in batches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from legged.compiler import PreparedCall, Rows
from legged.optimization.equations.dynamics import contact_names
from legged.optimization.equations.integration import StageDerivatives, runge_kutta_derivatives
from legged.optimization.equations.nodes import NodeModel
from legged.optimization.linearization import add_condensed, costates, extended, solved_derivatives
from legged.optimization.problem import Problem, Stage
from legged.optimization.trajectories import Trajectories
from legged.spatial import Array


class LinearQuadraticModel(Trajectories):
    """Trajectories with their linear dynamics and the quadratic model of their costs.

    With P phases of free duration, the state of the linear-quadratic model is (x, factors of the phases); otherwise P
    is 0.

    Attributes:
        F: Derivatives of the next state by state and controls, (.., 2 nv + P, n) with n = 2 nv + P + nu.
        full_gap: The gaps, with P zeros, (.., 2 nv + P).
        gradient, hessian: Of the cost of each node by state and controls, (.., n) and (.., n, n).
        T, N: Derivatives of the next configuration by the configuration and by the next velocity, or with a Runge-Kutta
            method by the chart coordinates, (.., nv, nv).
        M_inv, J_M_inv, contact_inertia: As in `MotionDerivatives`.
        equation_derivatives: Derivatives of the equations of motion by x, (.., nv + m, 2 nv).
        gradients: Of the cost by z = (x, u) and y = (f, t, h); y is f alone without free durations.
        hessian_z, hessian_yz, hessian_yy: Its Hessian by z and by y.
        gauss_newton: The Gauss-Newton approximation of the Hessian, if `hessian` is exact.
    """

    def __init__(self, problem: Problem, alphas: Array):
        """Allocate memory and prepare the calls.

        Args:
            problem: The problem. alphas: Step lengths of a line search, (n,).
        """
        super().__init__(problem, alphas)
        memory, nv, nx, m, P = self._memory, problem.tree.nv, self.nx, self.m, len(self.durations.names)
        n, ny = nx + self.nu, m + 2 * (P > 0)
        self.columns = [*range(nx), *range(nx + P, n + P)]  # entries of z among those of state and controls
        self.T, self.N = memory(nv, nv), memory(nv, nv)
        self.M_inv, self.J_M_inv, self.contact_inertia = memory(nv, nv), memory(m, nv), memory(m, m)
        self.equation_derivatives, self.gradients, self.hessian_z = memory(nv + m, nx), memory(n + ny), memory(n, n)
        self.hessian_yz, self.hessian_yy = memory(ny, n), memory(ny, ny)
        self.F, self.gradient = memory(nx + P, n + P), memory(n + P)
        self.F[..., range(nx, nx + P), range(nx, nx + P)] = 1.0
        self.hessian = memory(n + P, n + P) if P else self.hessian_z
        self.full_gap = memory(nx + P) if P else self.gap
        self._prepare_model()
        self._curvatures: list[PreparedCall] = []

    def directional_derivatives(self) -> tuple[Array, Array]:
        """Return slope and curvature of the quadratic model of the cost along the full step, (problems,) each."""
        slope, curvature = np.zeros(self.count), np.zeros(self.count)
        dx = np.concatenate([np.zeros((self.count, self.nx)), self.durations.step], axis=1)
        for k in range(self.nodes + 1):
            du = self.feedforward[:, k] + (self.gain[:, k] @ dx[:, : self.nx, None])[..., 0]
            z = np.concatenate([dx, du if k < self.nodes else 0.0 * du], axis=1)
            slope += (self.gradient[:, k] * z).sum(axis=1)
            curvature += (z * (self.hessian[:, k] @ z[..., None])[..., 0]).sum(axis=1)
            dx = (self.F[:, k] @ z[..., None])[..., 0] + self.full_gap[:, k]
        return slope, curvature

    def _prepare_model(self) -> None:
        """Prepare the calls that evaluate all nodes of a kind: motion and cost, and the linear-quadratic model."""
        self._motions, self._models = list[PreparedCall](), list[PreparedCall]()
        self._stages: list[tuple[tuple[Array, ...], list[Array], Array, Array]] = []
        self._next_q, self._next_v = np.zeros_like(self._flat(self.q)), np.zeros_like(self._flat(self.v))
        self._control = np.zeros_like(self._flat(self.u))
        zero_feedforward, zero_gain = np.zeros(self.nu), np.zeros((self.nu, self.nx))
        for number, (_, model) in enumerate(self._with_models()):
            index, common = self._group_rows(number)
            after = index + ((index + 1) % (self.nodes + 1) > 0)

            def rows(array: Array, index: Array = index) -> Rows:
                return Rows(self._flat(array), index)

            unbounded = np.full(self.nu, np.inf)
            motions = [rows(x) for pair in zip(self._a, self._f, strict=True) for x in pair]
            self._motions.append(
                model.rollout.prepare(
                    len(index),
                    *(rows(self.q), rows(self.v), rows(self.q), rows(self.v), rows(self.u)),
                    *(zero_feedforward, zero_gain, np.zeros(()), np.zeros(self.nx), -unbounded, unbounded, *common),
                    results=[
                        *(Rows(self._next_q, index), Rows(self._next_v, index), Rows(self._control, index)),
                        *(rows(self.cost), *motions),
                    ],
                )
            )
            end, of_motion = [], (self.M_inv, self.J_M_inv, self.contact_inertia, self.equation_derivatives)
            if model.method:
                end, of_motion = self._prepare_stages(model, index), ()
            self._models.append(
                model.quadratic.prepare(
                    len(index),
                    *(rows(x) for x in (self.q, self.v, self.u, self.a, self.f)),
                    *(rows(self.q, after), rows(self.v, after), *end, *common),
                    results=[
                        *(rows(x) for x in (self.gap, self.T, self.N, *of_motion)),
                        *(rows(x) for x in (self.gradients, self.hessian_z, self.hessian_yz, self.hessian_yy)),
                        self.residuals[number],
                    ],
                )
            )

    def _prepare_stages(self, model: NodeModel, index: Array) -> list[Rows]:
        """Prepare the calls for the stages of a Runge-Kutta method; return xi and v of the end."""
        nv, m, count, memory = model.nv, self.m, len(self._flat(self.v)), self._memory

        def rows(array: Array) -> Rows:
            return Rows(self._flat(array), index)

        points, velocities = ([memory(nv) for _ in range(model.stages + 1)] for _ in range(2))
        rates = [memory(nv) for _ in range(model.stages)]
        self._joined = np.zeros((count, model.stages, nv))
        mask, h = self._group_rows(0)[1][:2]
        places = [rows(x) for x in (*points, *velocities, *rates)]
        self._models.append(
            model.points.prepare(len(index), rows(self.v), Rows(self._joined, index), h, results=places)
        )
        for i in range(model.stages):
            of_motion = self.M_inv, self.J_M_inv, self.contact_inertia, self.equation_derivatives
            if i:
                of_motion = memory(nv, nv), memory(m, nv), memory(m, m), memory(nv + m, self.nx)
            charts = [memory(nv, nv) for _ in range(4)]
            arguments = [rows(x) for x in (self.q, points[i], velocities[i], self._a[i], self._f[i])]
            results = [rows(x) for x in (*of_motion, *charts)]
            self._models.append(model.stage.prepare(len(index), *arguments, mask, results=results))
            self._stages.append((of_motion, charts, self._a[i], rates[i]))
        return [rows(points[-1]), rows(velocities[-1])]

    def _model_arrays(self) -> tuple[Array, ...]:
        """Return further arrays by node that must be finite."""
        return self.gradients, self.gap, self.contact_inertia

    def contact_remarks(self, problem_number: int, forces: Mapping[str, Array]) -> list[str]:
        """Return warnings about the contacts of a solution: redundant contacts, and forces that pull.

        A contact has a redundant row if its load is not determined, see `equations.dynamics`. A force pulls if it
        points down while no term of the node depends on the contact, such as `friction_cone`.

        Args:
            problem_number: Number of the problem.
            forces: Of each contact by its name, (nodes, 3) or (nodes, 6), [N] and [N m], world axes.
        """
        problem, remarks = self.problem, list[str]()
        redundant, pulling = dict[str, int](), dict[str, tuple[float, int]]()
        gravity = np.asarray(problem.tree.gravity, float)
        least = 1e-3 * problem.tree.mass * np.linalg.norm(gravity)
        at = np.cumsum([0, *(contact.rows for contact in problem.contacts)])
        diagonal = np.einsum("...ii->...i", self.contact_inertia[problem_number])
        for k, node in enumerate(problem.nodes):
            active = set(contact_names(node.contacts))
            limited = {term.constants.get("contact") for term in node.terms}
            for i, contact in enumerate(problem.contacts):
                if contact.name not in active:
                    continue
                if (diagonal[k, at[i] : at[i + 1]] == 0.0).any():
                    redundant.setdefault(contact.name, k)
                upward = float(-gravity @ forces[contact.name][k, -3:]) / max(float(np.linalg.norm(gravity)), 1e-300)
                if contact.name not in limited and upward < min(-least, pulling.get(contact.name, (0.0, 0))[0]):
                    pulling[contact.name] = upward, k
        for name, k in redundant.items():
            remarks.append(
                f"at node {k} contact {name!r} repeats constraints of others or is singular, and carries no load "
                "there; damping=1e-6 of the problem distributes it"
            )
        for name, (force, k) in pulling.items():
            unit = "N" if isinstance(problem.nodes[k], Stage) else "N s"
            remarks.append(
                f"the ground pulls at contact {name!r} with {-force:.3g} {unit} at node {k}; limit it by "
                "terms.friction_cone"
            )
        return remarks

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
        for call in self._models:
            self._run(call, "the linear-quadratic model")
        self.gap[:, -1] = 0.0
        nx, nv, m, P = self.nx, self.problem.tree.nv, self.m, len(self.durations.names)
        act, impacts = self.problem.actuated, self._impacts
        G, Z = solved_derivatives(self.M_inv, self.J_M_inv, self.contact_inertia, self.equation_derivatives, act)
        Z[:, impacts, :, nx:] = 0.0  # impacts have no controls
        by_duration = self._linear_dynamics(Z)
        Y = Z[..., nv:, :]  # the forces depend on x and u
        if P:
            self.full_gap[..., :nx] = self.gap
            self.F[..., :nx, nx : nx + P] = by_duration[..., None] * self.durations.h_by_factor[:, None]
            times = np.stack([self.durations.t_by_factor, self.durations.h_by_factor], axis=1)
            Y = self._spread(np.concatenate([Y, np.zeros((*Y.shape[:2], 2, Y.shape[-1]))], axis=-2))
            Y[..., m:, nx : nx + P] = times
            self.hessian[...] = extended(self.hessian_z, self.columns, Y.shape[-1])
        self.gradient[...] = self._spread(self.gradients[..., : nx + self.nu])
        if Y.shape[-2] and (P or self.hessian_yy.any() or self.gradients[..., nx + self.nu :].any()):
            add_condensed(self.hessian, self.hessian_yz, self.hessian_yy, Y, self.columns if P else slice(None))
            self.gradient += (Y.swapaxes(-1, -2) @ self.gradients[..., nx + self.nu :, None])[..., 0]
        for k in impacts:  # so that Q_uu is not singular
            self.hessian[:, k, nx + P :, nx + P :] = np.eye(self.nu)
        if second_order:
            self.gauss_newton = self.hessian.copy()
            self._add_curvature(G, Y, self._spread(Z[..., :nv, :]))

    def _spread(self, array: Array) -> Array:
        """Return derivatives by z as derivatives by state and controls, with zero columns for the factors of phases."""
        return extended(array, self.columns, self.F.shape[-1], both=False) if self.durations.names else array

    def _linear_dynamics(self, Z: Array) -> Array:
        """Set the rows of F, and return the derivative of the next state by the duration, (problems, nodes + 1, nx)."""
        nx, nv = self.nx, self.problem.tree.nv
        h = self.durations.h.copy()
        h[:, self._impacts] = 1.0  # a is the change of velocity
        F = self.F if self.F.shape[-2] == nx else np.empty((*self.F.shape[:2], nx, nx + self.nu))
        D = np.multiply(Z[..., :nv, :], h[..., None, None], out=F[..., nv:, :])
        D[..., range(nv), range(nv, nx)] += 1.0
        nb = self.problem.tree.base.nv
        if self._has_balls or self._stages:
            np.matmul(self.N, D, out=F[..., :nv, :])
        else:
            self._multiply_by_N(F, D, nb)
        F[..., :nv, :nv] += self.T
        by_duration = np.zeros((*F.shape[:2], nx))
        if self._stages:
            self._runge_kutta(F, by_duration)
        elif F is not self.F:
            rate = (self.v + h[..., None] * self.a) / np.where(h > 0.0, h, 1.0)[..., None] + self.a
            by_duration[..., :nv], by_duration[..., nv:] = (self.N @ rate[..., None])[..., 0], self.a
        if F is not self.F:
            self.F[..., :nx, self.columns] = F
        return by_duration

    def _runge_kutta(self, F: Array, by_duration: Array) -> None:
        """Set the linear dynamics of stages with a Runge-Kutta method."""
        method, act = self.problem.models[0].method, self.problem.actuated
        assert method
        nv, stages = self.problem.tree.nv, self.problem.groups[0].indices
        models = list[StageDerivatives]()
        for of_motion, charts, a, rate in self._stages:
            M_inv, J_M_inv, contact_inertia, equations = of_motion
            Z = solved_derivatives(M_inv, J_M_inv, contact_inertia, equations, act)[1]
            by_start, by_chart, rate_xi, rate_v = charts
            models.append(StageDerivatives(Z[..., :nv, :], by_start, by_chart, rate_xi, rate_v, a, rate))
        found, rates = runge_kutta_derivatives(method, models, (self.T, self.N), self.durations.h)
        F[:, stages], by_duration[:, stages] = found[:, stages], rates[:, stages]

    def _add_curvature(self, G: Array, Y: Array, Za: Array) -> None:
        """Add the second derivatives of the motion and of the residuals to the Hessian.

        Args:
            G: As in `solved_derivatives`. Y, Za: Derivatives of (f, t, h) and of a by state and controls.
        """
        if not self._curvatures:
            self._prepare_curvature()
        nx, nv, m = self.nx, self.problem.tree.nv, self.m
        self._costate[:, :-1] = costates(self.F, self.gradient)[:, 1:, :nx]
        h = self.durations.h.copy()
        h[:, self._impacts] = 1.0
        by_a = self._costate[..., nv:] + (self._costate[..., None, :nv] @ self.N)[..., 0, :]
        n = nx + self.nu
        by = np.concatenate([h[..., None] * by_a, self.gradients[..., n : n + m]], axis=-1)
        self._multipliers[...] = (by[..., None, :] @ G)[..., 0, :]
        for call in self._curvatures:
            self._run(call, "the second derivative")
        zz, yz, yy = self._curvature_blocks
        P = len(self.durations.names)
        extra = extended(zz, self.columns, n + P) if P else zz.copy()
        Y = np.concatenate([Y, Za], axis=-2)
        add_condensed(extra, yz, yy, Y, self.columns if P else slice(None))
        extra[:, self._impacts, nx + P :] = 0.0
        extra[:, self._impacts, :, nx + P :] = 0.0
        self.hessian += extra

    def _prepare_curvature(self) -> None:
        """Allocate memory for second derivatives, and prepare the calls."""
        nx, nv, n = self.nx, self.problem.tree.nv, self.nx + self.nu
        ny = self.hessian_yy.shape[-1] + nv
        lead = self.count, self.nodes + 1
        self._costate, self._multipliers = np.zeros((*lead, nx)), np.zeros((*lead, nv + self.m))
        self._curvature_blocks = np.zeros((*lead, n, n)), np.zeros((*lead, ny, n)), np.zeros((*lead, ny, ny))
        for number, model in enumerate(self.problem.models):
            index, common = self._group_rows(number)
            after = index + ((index + 1) % (self.nodes + 1) > 0)
            places = [(x, index) for x in (self.q, self.v, self.u, self.a, self.f)]
            places += [(self.q, after), (self.v, after), (self._costate, index), (self._multipliers, index)]
            arguments = [Rows(self._flat(x), at) for x, at in places]
            results = [Rows(self._flat(x), index) for x in self._curvature_blocks]
            self._curvatures.append(model.curvature.prepare(len(index), *arguments, *common, results=results))

    @property
    def _has_balls(self) -> bool:
        return any(body.kind == "ball" for body in self.problem.tree.bodies)

    def _multiply_by_N(self, F: Array, D: Array, nb: int) -> None:
        """Set the rows N D of F; outside of the base's block, N is the duration times the identity."""
        nv = self.problem.tree.nv
        np.matmul(self.N[..., :nb, :nb], D[..., :nb, :], out=F[..., :nb, :])
        np.multiply(self.durations.h[..., None, None], D[..., nb:, :], out=F[..., nb:nv, :])
