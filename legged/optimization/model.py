"""The linear-quadratic model of all nodes of a problem, and rollouts, evaluated in batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from legged.compiler import FusedCalls, PreparedCall, Rows, default_threads
from legged.errors import NotFiniteError
from legged.optimization.nodes import NodeModel
from legged.optimization.problem import Problem
from legged.optimization.terms import Term
from legged.spatial import Array


class Trajectories:
    """The trajectories of problems that differ in their initial state, their models and rollouts, and their memory.

    Attributes:
        q, v, u: Trajectories, (problems, nodes + 1, nq), (.., nv), (.., nu); the last u is zero.
        a, f: Accelerations (.., nv) and forces of the constraints (.., m). cost: Of each node, (problems, nodes + 1).
        gap: State after node k minus the state x_k+1, in its tangent space, (.., 2 nv).
        F: Derivatives of the next state by (x, u), (.., 2 nv, 2 nv + nu).
        gradient, hessian: Of the cost of each node by (x, u), (.., n) and (.., n, n).
        feedforward, gain: k (.., nu) and K (.., nu, 2 nv) of the controls.
        T, N: Derivatives of the next configuration by the configuration and by the next velocity, (.., nv, nv).
        M_inv, J_M_inv, contact_inertia: As in `MotionDerivatives`.
        equation_derivatives: Derivatives of the equations of motion by x, (.., nv + m, 2 nv).
        gradients: Of the cost by (x, u, f), (.., n + m). hessian_fz, hessian_ff: Its Hessian by f and (x, u), and by f.
        trial: Results of a rollout, arrays by node and by problem and step length.
    """

    def __init__(self, problem: Problem, alphas: Array):
        """Allocate memory and prepare the calls.

        Args:
            problem: The problem. alphas: Step lengths of a line search, (n,).
        """
        tree, nu = problem.tree, problem.nu
        self.problem, self.alphas = problem, alphas
        self.count, self.nodes = len(problem.q), len(problem.nodes)
        B, M, nv, nx = self.count, self.nodes + 1, tree.nv, 2 * tree.nv
        n, m = nx + nu, problem.models[0].equations.rows
        self.nx, self.nu, self.m = nx, nu, m

        def memory(*shape: int) -> Array:
            return np.zeros((B, M, *shape))

        self.q, self.v, self.u = memory(tree.nq), memory(nv), memory(nu)
        self.a, self.f, self.cost = memory(nv), memory(m), memory()
        self.gap, self.T, self.N = memory(nx), memory(nv, nv), memory(nv, nv)
        self.M_inv, self.J_M_inv, self.contact_inertia = memory(nv, nv), memory(m, nv), memory(m, m)
        self.equation_derivatives, self.gradients, self.hessian = memory(nv + m, nx), memory(n + m), memory(n, n)
        self.hessian_fz, self.hessian_ff = memory(m, n), memory(m, m)
        self.F, self.gradient = memory(nx, n), memory(n)
        self.feedforward, self.gain = memory(nu), memory(nu, nx)
        self.q[...] = problem.q[:, None]
        self.v[:, 0] = problem.v
        self.inputs = [self._inputs(k) for k in range(len(problem.groups))]
        self.constraints = [self._constraints(k) for k in range(len(problem.groups))]
        self.residuals = [np.zeros((B * len(i["t"]), model.residual_count)) for i, model in self._with_models()]
        self._prepare_model()
        self._prepare_rollout(alphas)

    def _with_models(self) -> Iterator[tuple[dict[str, Array], NodeModel]]:
        return zip(self.inputs, self.problem.models, strict=True)

    def _inputs(self, number: int) -> dict[str, Array]:
        problem = self.problem
        group, model = problem.groups[number], problem.models[number]
        w, p = group.inputs(model)
        final = np.array([k == self.nodes for k in group.indices])
        h = problem.durations[group.indices]
        return {
            "mask": group.mask(problem),
            "h": h,
            "instant": np.where(final | group.impact, 1.0, 0.0),
            "t": problem.times[group.indices].copy(),
            "w": np.tile(w, (self.count, 1, 1)),
            "p": np.tile(p, (self.count, 1, 1)),
        }

    def _constraints(self, number: int) -> list[tuple[int, slice, slice, Term]]:
        """Return (number of the node in its group, entries of residuals and multipliers, term) of each constraint."""
        group, model = self.problem.groups[number], self.problem.models[number]
        every = ((row, n, term) for row, members in enumerate(group.members) for n, term in members)
        slices = ((row, model.residual_slices[n], model.multiplier_slices[n], term) for row, n, term in every)
        return [(row, rows, shift, term) for row, rows, shift, term in slices if shift is not None]

    def _each_constraint(self) -> Iterator[tuple[Array, Array, Array, int, Term]]:
        """Yield weights, multipliers and residuals (problems, n) of each constraint, its node and term."""
        groups = zip(self.problem.groups, self.inputs, self.constraints, self.residuals, strict=True)
        for group, inputs, constraints, residuals in groups:
            by_node = residuals.reshape(self.count, len(group.indices), residuals.shape[-1])
            for row, rows, shift, term in constraints:
                node = group.indices[row]
                yield inputs["w"][:, row, rows], inputs["p"][:, row, shift], by_node[:, row, rows], node, term

    def set_penalty(self, penalty: Array) -> None:
        """Set the penalties of all constraints.

        Args:
            penalty: mu, (problems,), dimensionless.
        """
        for w, _, _, node, _ in self._each_constraint():
            h = self.problem.durations[node]
            w[...] = penalty[:, None] / (h if h > 0.0 else 1.0)

    def update_multipliers(self, which: Array, factor: Array) -> None:
        """Update the multipliers of constraints by their present residuals.

        Args:
            which: Whether to update those of each problem, (problems,), dimensionless.
            factor: Old over new penalty, (problems,), dimensionless.
        """
        for _, y, r, _, _ in self._each_constraint():  # r contains y, see `NodeModel.residual`
            y[which] = r[which] * factor[which, None]

    def violations(self) -> Array:
        """Return the largest violation of a constraint or of its complementarity, over its scale, (problems,)."""
        worst = np.zeros(self.count)
        for _, y, r, _, _ in self._each_constraint():
            worst = np.maximum(worst, np.abs(r - y).max(axis=1, initial=0.0))
        return worst

    def worst_constraint(self, problem: int) -> str:
        """Return a sentence on the constraint with the largest violation.

        Args:
            problem: Index of the problem.
        """
        every = [(np.abs(r[problem] - y[problem]).max(initial=0.0), n, t) for _, y, r, n, t in self._each_constraint()]
        worst, node, term = max(every, key=lambda entry: entry[0])
        return f"constraint {term.name} of node {node} is violated by {worst * term.scale:.2g}"  # type: ignore[attr-defined]

    def true_costs(self) -> Array:
        """Return the sum of the costs without penalties of constraints, (problems,), of the last model."""
        total = self.cost.sum(axis=1)
        for w, _, r, node, _ in self._each_constraint():
            h = self.problem.durations[node]
            total = total - (h if h > 0.0 else 1.0) * 0.5 * (w * r * r).sum(axis=1)
        return total

    def directional_derivatives(self) -> tuple[Array, Array]:
        """Return slope and curvature of the quadratic model of the cost along the full step, (problems,) each."""
        slope, curvature, dx = np.zeros(self.count), np.zeros(self.count), np.zeros((self.count, self.nx))
        for k in range(self.nodes + 1):
            du = self.feedforward[:, k] + (self.gain[:, k] @ dx[..., None])[..., 0]
            z = np.concatenate([dx, du if k < self.nodes else 0.0 * du], axis=1)
            slope += (self.gradient[:, k] * z).sum(axis=1)
            curvature += (z * (self.hessian[:, k] @ z[..., None])[..., 0]).sum(axis=1)
            dx = (self.F[:, k] @ z[..., None])[..., 0] + self.gap[:, k]
        return slope, curvature

    def _flat(self, array: Array) -> Array:
        return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    def _prepare_model(self) -> None:
        """Prepare the calls that evaluate all nodes of a kind: motion and cost, and the linear-quadratic model."""
        B, M = self.count, self.nodes + 1
        self._motions, self._models = [], []
        self._next_q, self._next_v = np.zeros_like(self._flat(self.q)), np.zeros_like(self._flat(self.v))
        self._control = np.zeros_like(self._flat(self.u))
        zero_feedforward, zero_gain = np.zeros(self.nu), np.zeros((self.nu, self.nx))
        for number, (inputs, model) in enumerate(self._with_models()):
            nodes = np.array(self.problem.groups[number].indices)
            index = (np.arange(B)[:, None] * M + nodes).reshape(-1)
            after = (np.arange(B)[:, None] * M + np.minimum(nodes + 1, self.nodes)).reshape(-1)
            node_of_row = np.tile(np.arange(len(nodes)), B)
            every = np.arange(len(index))
            common = [Rows(inputs[name], node_of_row) for name in ("mask", "h", "instant", "t")]
            common += [Rows(self._flat(inputs[name]), every) for name in ("w", "p")]

            def rows(array: Array, index: Array = index) -> Rows:
                return Rows(self._flat(array), index)

            unbounded = np.full(self.nu, np.inf)
            self._motions.append(
                model.rollout.prepare(
                    len(index),
                    *(rows(self.q), rows(self.v), rows(self.q), rows(self.v), rows(self.u)),
                    *(zero_feedforward, zero_gain, np.zeros(()), np.zeros(self.nx), -unbounded, unbounded, *common),
                    results=[
                        *(Rows(self._next_q, index), Rows(self._next_v, index), Rows(self._control, index)),
                        *(rows(self.cost), rows(self.a), rows(self.f)),
                    ],
                )
            )
            self._models.append(
                model.quadratic.prepare(
                    len(index),
                    *(rows(self.q), rows(self.v), rows(self.u), rows(self.a), rows(self.f)),
                    *(rows(self.q, after), rows(self.v, after), *common),
                    results=[
                        *(rows(x) for x in (self.gap, self.T, self.N, self.M_inv, self.J_M_inv, self.contact_inertia)),
                        *(rows(x) for x in (self.equation_derivatives, self.gradients, self.hessian, self.hessian_fz)),
                        *(rows(self.hessian_ff), self.residuals[number]),
                    ],
                )
            )

    def _prepare_rollout(self, alphas: Array) -> None:
        """Prepare rollouts of all problems with all step lengths, side by side in lanes."""
        B, A, M = self.count, len(alphas), self.nodes + 1
        lanes, tree, problem = B * A, self.problem.tree, self.problem
        self.alpha = np.tile(alphas, B)
        self.trial = {
            "q": np.zeros((M + 1, lanes, tree.nq)),
            "v": np.zeros((M + 1, lanes, tree.nv)),
            "u": np.zeros((M, lanes, self.nu)),
            "cost": np.zeros((M, lanes)),
            "a": np.zeros((M, lanes, tree.nv)),
            "f": np.zeros((M, lanes, self.m)),
        }
        trial, places = self.trial, {}
        for number, group in enumerate(problem.groups):
            places |= {k: (number, row) for row, k in enumerate(group.indices)}
        calls = []
        for k in range(M):
            number, row = places[k]
            inputs, model = self.inputs[number], problem.models[number]
            index = np.repeat(np.arange(B) * M + k, A)
            node_of_row = np.repeat(np.arange(B) * len(inputs["t"]) + row, A)
            nominal = [Rows(self._flat(x), index) for x in (self.q, self.v, self.u, self.feedforward, self.gain)]
            call = model.rollout.prepare(
                lanes,
                *(trial["q"][k], trial["v"][k], *nominal, self.alpha, Rows(self._flat(self.gap), index)),
                *(problem.lower, problem.upper),
                *(inputs[name][row, ...] for name in ("mask", "h", "instant", "t")),
                *(Rows(self._flat(inputs[name]), node_of_row) for name in ("w", "p")),
                results=[
                    *(trial["q"][k + 1], trial["v"][k + 1], trial["u"][k]),
                    *(trial["cost"][k], trial["a"][k], trial["f"][k]),
                ],
            )
            calls.append(call)
        self._rollout_calls = calls
        self._rollout = FusedCalls([call.described() for call in calls], 8)

    def evaluate_motion(self) -> None:
        """Compute accelerations, forces and costs of all nodes at the present states and controls."""
        for call in self._motions:
            self._run(call, "the motion")

    def _run(self, call: PreparedCall, what: str) -> None:
        try:
            call()
        except NotFiniteError as error:
            raise self._failure(what) from error

    def _failure(self, what: str) -> NotFiniteError:
        """Return the error that names the first node without a finite value."""
        arrays = (self.cost[..., None], self.a, self.f, self.gradients, self.gap, self.contact_inertia)
        fine = np.ones(self.cost.shape, bool)
        for array in arrays:
            fine &= np.isfinite(array).reshape(*array.shape[:2], -1).all(axis=-1)
        at = np.argwhere(~fine)
        if not len(at):
            return NotFiniteError(f"{what} of a node has no finite value")
        k = int(at[0, 1])
        active = [] if k == self.nodes else self.problem.nodes[k].contacts
        names = ", ".join(c if isinstance(c, str) else c.name for c in active) or "none"
        return NotFiniteError(
            f"{what} of node {k} at t = {self.problem.times[k]:g} s has no finite value; active contacts: {names}. "
            f"Check that its terms are differentiable there, and the guess"
        )

    def evaluate_model(self) -> None:
        """Compute the linear-quadratic model of all nodes and the gaps between them."""
        for call in self._models:
            self._run(call, "the linear-quadratic model")
        self.gap[:, -1] = 0.0
        nv, nx, m = self.problem.tree.nv, self.nx, self.m
        act = list(self.problem.actuated)
        impacts = [k for group in self.problem.groups if group.impact for k in group.indices]
        # G is minus the inverse of [M -J^T; J 0], so that G times the derivatives of the equations are those of [a; f].
        G = np.empty((self.count, self.nodes + 1, nv + m, nv + m))
        W = self.contact_inertia @ self.J_M_inv
        G[..., :nv, :nv] = self.J_M_inv.swapaxes(-1, -2) @ W - self.M_inv
        G[..., nv:, nv:] = -self.contact_inertia
        G[..., nv:, :nv] = W
        G[..., :nv, nv:] = -W.swapaxes(-1, -2)
        Z = np.empty((self.count, self.nodes + 1, nv + m, nx + self.nu))
        np.matmul(G, self.equation_derivatives, out=Z[..., :nx])
        Z[..., nx:] = -G[..., act]
        Z[:, impacts, :, nx:] = 0.0  # impacts have no controls
        h = self.problem.durations.copy()
        h[impacts] = 1.0  # a is the change of velocity
        F = self.F
        D = np.multiply(Z[..., :nv, :], h[:, None, None], out=F[..., nv:, :])
        D[..., range(nv), range(nv, nx)] += 1.0
        nb = self.problem.tree.base.nv
        np.matmul(self.N, D, out=F[..., :nv, :]) if self._has_balls else self._multiply_by_N(D, nb)
        F[..., :nv, :nv] += self.T
        self.gradient[...] = self.gradients[..., : nx + self.nu]
        if m and self.hessian_ff.any():  # the forces depend on x and u: chain rule
            Zf = Z[..., nv:, :]
            ZfT = Zf.swapaxes(-1, -2)
            cross = ZfT @ self.hessian_fz
            self.hessian += ZfT @ (self.hessian_ff @ Zf) + cross + cross.swapaxes(-1, -2)
            self.gradient += (ZfT @ self.gradients[..., nx + self.nu :, None])[..., 0]
        for k in impacts:  # so that Q_uu is not singular
            self.hessian[:, k, nx:, nx:] = np.eye(self.nu)

    @property
    def _has_balls(self) -> bool:
        return any(body.kind == "ball" for body in self.problem.tree.bodies)

    def _multiply_by_N(self, D: Array, nb: int) -> None:
        """Set the rows N D of F; outside of the base's block, N is the duration times the identity."""
        F, nv = self.F, self.problem.tree.nv
        np.matmul(self.N[..., :nb, :nb], D[..., :nb, :], out=F[..., :nb, :])
        np.multiply(self.problem.durations[:, None, None], D[..., nb:, :], out=F[..., nb:nv, :])

    def rollout(self) -> Array:
        """Roll out all problems with all step lengths; return the costs, (problems, step lengths)."""
        trial, A = self.trial, len(self.alphas)
        trial["q"][0], trial["v"][0] = np.repeat(self.q[:, 0], A, axis=0), np.repeat(self.v[:, 0], A, axis=0)
        self._rollout(default_threads())
        return trial["cost"].sum(axis=0).reshape(self.count, A)

    def accept(self, problem: int, choice: int) -> None:
        """Replace the trajectory of a problem by that of a rollout.

        Args:
            problem: Index of the problem. choice: Index of the step length.
        """
        lane, trial = problem * len(self.alphas) + choice, self.trial
        self.q[problem], self.v[problem] = trial["q"][:-1, lane], trial["v"][:-1, lane]
        self.u[problem], self.a[problem] = trial["u"][:, lane], trial["a"][:, lane]
        self.f[problem], self.cost[problem] = trial["f"][:, lane], trial["cost"][:, lane]
