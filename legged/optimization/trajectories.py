"""The trajectory of an optimal control problem, its constraints, and rollouts with several step lengths at once.

`LinearQuadraticModel` adds derivatives and the solution of Riccati's equation. `FDDP` iterates: it sets penalties and
multipliers, calls `rollout` with the gains of `riccati`, and takes over the best rollout with `accept`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from legged.compiler import FusedCalls, PreparedCall, Rows, default_threads
from legged.errors import NotFiniteError
from legged.optimization.durations import Durations
from legged.optimization.equations.nodes import NodeModel
from legged.optimization.problem import Problem
from legged.optimization.riccati import RiccatiRecursion
from legged.optimization.terms import Term
from legged.spatial import Array

LANES = 8  # of the longest SIMD vectors; threads take multiples of as many items


class Trajectories:
    """The trajectory of a problem from one initial state, its rollouts, and their memory.

    Arrays have a leading axis of one, where `RiccatiRecursion` has problems.

    Attributes:
        q, v, u: Trajectory, (1, nodes + 1, nq), (.., nv), (.., nu); the last u is zero.
        durations: Durations and times of the nodes.
        a, f: Accelerations (.., nv) and forces of the constraints (.., m). cost: Of each node, (1, nodes + 1).
        gap: State after node k minus the state x_k+1, in its tangent space, (.., 2 nv).
        riccati: The linear-quadratic model and its solution. With P phases of free duration its state is (x, factors of
            the phases); otherwise P is 0.
        trial: Results of a rollout, arrays by node and step length.
    """

    def __init__(self, problem: Problem, alphas: Array):
        """Allocate memory and prepare the rollouts.

        Args:
            problem: The problem. alphas: Step lengths of a line search, (n,), dimensionless.
        """
        tree, nu = problem.tree, problem.nu
        self.problem, self.alphas = problem, alphas
        self.nodes = len(problem.nodes)
        nv, self.nx, self.nu, self.m = tree.nv, 2 * tree.nv, nu, problem.models[0].equations.rows
        self.durations, memory, stages = Durations(problem), self._memory, problem.models[0].stages
        self._impacts = [k for group in problem.groups if group.impact for k in group.indices]
        self.q, self.v, self.u = memory(tree.nq), memory(nv), memory(nu)
        self._a, self._f = [memory(nv) for _ in range(stages)], [memory(self.m) for _ in range(stages)]
        self.a, self.f, self.cost, self.gap = self._a[0], self._f[0], memory(), memory(self.nx)
        self.riccati = RiccatiRecursion(1, self.nodes, self.nx + len(self.durations.names), nu)
        self.q[...] = problem.q[:1, None]
        self.v[:, 0] = problem.v[:1]
        self.inputs = [self._inputs(k) for k in range(len(problem.groups))]
        self.constraints = [self._constraints(k) for k in range(len(problem.groups))]
        self.residuals = [np.zeros((len(i["mask"]), model.residual_count)) for i, model in self._with_models()]
        self._prepare_rollout(alphas)

    def _memory(self, *shape: int) -> Array:
        """Return zeros for all nodes, (1, nodes + 1, ...)."""
        return np.zeros((1, self.nodes + 1, *shape))

    def _with_models(self) -> Iterator[tuple[dict[str, Array], NodeModel]]:
        return zip(self.inputs, self.problem.models, strict=True)

    def _inputs(self, number: int) -> dict[str, Array]:
        """Return the inputs of the nodes of a group: active contacts, `instant` of `NodeModel`, weights, parameters."""
        problem = self.problem
        group, model = problem.groups[number], problem.models[number]
        w, p = group.inputs(model)
        final = np.array([k == self.nodes for k in group.indices])
        return {
            "mask": group.mask(problem),
            "instant": np.where(final | group.impact, 1.0, 0.0),
            "w": w[None],
            "p": p[None],
        }

    def _constraints(self, number: int) -> list[tuple[int, slice, slice, Term]]:
        """Return (number of the node in its group, entries of residuals and multipliers, term) of each constraint."""
        group, model = self.problem.groups[number], self.problem.models[number]
        every = ((row, n, term) for row, members in enumerate(group.members) for n, term in members)
        slices = ((row, model.residual_slices[n], model.multiplier_slices[n], term) for row, n, term in every)
        return [(row, rows, shift, term) for row, rows, shift, term in slices if shift is not None]

    def _each_constraint(self) -> Iterator[tuple[Array, Array, Array, int, Term]]:
        """Yield weights, multipliers and residuals (1, n) of each constraint, its node and term."""
        groups = zip(self.problem.groups, self.inputs, self.constraints, self.residuals, strict=True)
        for group, inputs, constraints, residuals in groups:
            by_node = residuals[None]
            for row, rows, shift, term in constraints:
                node = group.indices[row]
                yield inputs["w"][:, row, rows], inputs["p"][:, row, shift], by_node[:, row, rows], node, term

    def set_penalty(self, penalty: Array) -> None:
        """Set the penalties of all constraints.

        Args:
            penalty: mu, (1,), dimensionless.
        """
        for w, *_ in self._each_constraint():
            w[...] = penalty[:, None]

    def update_multipliers(self, factor: Array) -> None:
        """Update the multipliers of constraints by their present residuals.

        Args:
            factor: Old over new penalty, (1,), dimensionless.
        """
        for _, y, r, _, _ in self._each_constraint():  # r contains y, see `NodeModel.residual`
            y[...] = r * factor[:, None]

    def violations(self) -> Array:
        """Return the largest violation of a constraint or of its complementarity, over its scale, (1,)."""
        worst = np.zeros(1)
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
        """Return the sum of the costs without penalties of constraints, (1,), of the last model."""
        total = self.cost.sum(axis=1)
        for w, _, r, *_ in self._each_constraint():
            total = total - 0.5 * (w * r * r).sum(axis=1)
        return total

    def _flat(self, array: Array) -> Array:
        return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    def _group_rows(self, number: int) -> tuple[Array, list[Array | Rows]]:
        """Return the rows of the nodes of a group in flat arrays, and the inputs that all compiled functions take."""
        inputs, nodes = self.inputs[number], np.array(self.problem.groups[number].indices)
        h, t = Rows(self._flat(self.durations.h), nodes), Rows(self._flat(self.durations.t), nodes)
        return nodes, [inputs["mask"], h, inputs["instant"], t, *(inputs[name][0] for name in ("w", "p"))]

    def _prepare_rollout(self, alphas: Array) -> None:
        """Prepare rollouts with all step lengths, side by side in lanes."""
        lanes, M, tree, problem = len(alphas), self.nodes + 1, self.problem.tree, self.problem
        self.trial = {
            "q": np.zeros((M + 1, lanes, tree.nq)),
            "v": np.zeros((M + 1, lanes, tree.nv)),
            "u": np.zeros((M, lanes, self.nu)),
            "cost": np.zeros((M, lanes)),
        }
        self._trial_motions = [
            (np.zeros((M, lanes, tree.nv)), np.zeros((M, lanes, self.m))) for _ in range(problem.models[0].stages)
        ]
        self._trial_h, self._trial_t = (np.array(x) for x in self.durations.trials(alphas))
        trial, places = self.trial, {}
        for number, group in enumerate(problem.groups):
            places |= {k: (number, row) for row, k in enumerate(group.indices)}
        calls = []
        for k in range(M):
            number, row = places[k]
            inputs, model = self.inputs[number], problem.models[number]
            nominal = [x[0, k] for x in (self.q, self.v, self.u, self.riccati.gains)]
            call = model.rollout.prepare(
                lanes,
                *(trial["q"][k], trial["v"][k], *nominal, self.durations.step[0], alphas, self.gap[0, k]),
                *(problem.lower, problem.upper),
                *(inputs["mask"][row], self._trial_h[k], inputs["instant"][row, ...], self._trial_t[k]),
                *(inputs[name][0, row] for name in ("w", "p")),
                results=[
                    *(trial["q"][k + 1], trial["v"][k + 1], trial["u"][k]),
                    *(trial["cost"][k], *(x[k] for motion in self._trial_motions for x in motion)),
                ],
            )
            calls.append(call)
        self._rollout = FusedCalls([call.described() for call in calls], LANES)

    def _each_alone(self, calls: Sequence[PreparedCall]) -> list[FusedCalls]:
        """Return a `FusedCalls` for each call."""
        return [FusedCalls([call.described()], LANES) for call in calls]

    def _run(self, call: FusedCalls, what: str) -> None:
        if call(default_threads()) >= 0:
            raise self._failure(what)

    def _failure(self, what: str) -> NotFiniteError:
        """Return the error that names the first node without a finite value."""
        arrays = (self.cost[..., None], self.a, self.f, *self._model_arrays())
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
            f"{what} of node {k} at t = {self.durations.t[at[0, 0], k]:g} s has no finite value; "
            f"active contacts: {names}. Check that its terms are differentiable there, and the guess"
        )

    def _model_arrays(self) -> tuple[Array, ...]:
        """Return further arrays by node that must be finite."""
        return ()

    def refresh_inputs(self) -> None:
        """Set contacts, weights, parameters and times of the nodes to those of a problem that has advanced."""
        for number, (inputs, model) in enumerate(self._with_models()):
            group = self.problem.groups[number]
            w, p = group.inputs(model)
            inputs["mask"][...], inputs["w"][...], inputs["p"][...] = group.mask(self.problem), w, p
            self.constraints[number] = self._constraints(number)
        self.durations.refresh(self.problem)
        self._trial_h[...], self._trial_t[...] = self.durations.trials(self.alphas)

    def rollout(self) -> Array:
        """Roll out with all step lengths; return the costs, (step lengths,)."""
        trial = self.trial
        if self.durations.names:
            self._trial_h[...], self._trial_t[...] = self.durations.trials(self.alphas)
        trial["q"][0], trial["v"][0] = self.q[:, 0], self.v[:, 0]
        self._rollout(default_threads())
        return trial["cost"].sum(axis=0)

    def accept(self, choice: int) -> None:
        """Replace the trajectory by that of a rollout.

        Args:
            choice: Index of the step length.
        """
        trial = self.trial
        self.q[0], self.v[0] = trial["q"][:-1, choice], trial["v"][:-1, choice]
        self.u[0], self.cost[0] = trial["u"][:, choice], trial["cost"][:, choice]
        for a, f, motion in zip(self._a, self._f, self._trial_motions, strict=True):
            a[0], f[0] = motion[0][:, choice], motion[1][:, choice]
        if self.durations.names:
            self.durations.factors += self.alphas[choice] * self.durations.step
            self.durations.update()
