"""The trajectories of a problem, their constraints, and rollouts, evaluated in batches."""

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

_LANES = 8  # of vectors at most; threads take multiples of it


class Trajectories:
    """The trajectories of problems that differ in their initial state, their rollouts, and their memory.

    Attributes:
        q, v, u: Trajectories, (problems, nodes + 1, nq), (.., nv), (.., nu); the last u is zero.
        durations: Durations and times of the nodes.
        a, f: Accelerations (.., nv) and forces of the constraints (.., m). cost: Of each node, (problems, nodes + 1).
        gap: State after node k minus the state x_k+1, in its tangent space, (.., 2 nv).
        riccati: The linear-quadratic model and its solution. With P phases of free duration its state is (x, factors of
            the phases); otherwise P is 0.
        trial: Results of a rollout, arrays by node and by problem and step length.
    """

    def __init__(self, problem: Problem, alphas: Array, count: int = 1):
        """Allocate memory and prepare the rollouts.

        Args:
            problem: The problem. alphas: Step lengths of a line search, (n,). count: Number of its starts side by side.
        """
        tree, nu = problem.tree, problem.nu
        self.problem, self.alphas = problem, alphas
        self.count, self.nodes = count, len(problem.nodes)
        nv, self.nx, self.nu, self.m = tree.nv, 2 * tree.nv, nu, problem.models[0].equations.rows
        self.durations, memory, stages = Durations(problem, count), self._memory, problem.models[0].stages
        self._impacts = [k for group in problem.groups if group.impact for k in group.indices]
        self.q, self.v, self.u = memory(tree.nq), memory(nv), memory(nu)
        self._a, self._f = [memory(nv) for _ in range(stages)], [memory(self.m) for _ in range(stages)]
        self.a, self.f, self.cost, self.gap = self._a[0], self._f[0], memory(), memory(self.nx)
        self.riccati = RiccatiRecursion(self.count, self.nodes, self.nx + len(self.durations.names), nu)
        self.q[...] = problem.q[:count, None]
        self.v[:, 0] = problem.v[:count]
        self.inputs = [self._inputs(k) for k in range(len(problem.groups))]
        self.constraints = [self._constraints(k) for k in range(len(problem.groups))]
        self.residuals = [
            np.zeros((self.count * len(i["mask"]), model.residual_count)) for i, model in self._with_models()
        ]
        self._prepare_rollout(alphas)

    def _memory(self, *shape: int) -> Array:
        """Return zeros for all nodes of all problems, (problems, nodes + 1, ...)."""
        return np.zeros((self.count, self.nodes + 1, *shape))

    def _with_models(self) -> Iterator[tuple[dict[str, Array], NodeModel]]:
        return zip(self.inputs, self.problem.models, strict=True)

    def _inputs(self, number: int) -> dict[str, Array]:
        problem = self.problem
        group, model = problem.groups[number], problem.models[number]
        w, p = group.inputs(model)
        final = np.array([k == self.nodes for k in group.indices])
        return {
            "mask": group.mask(problem),
            "instant": np.where(final | group.impact, 1.0, 0.0),
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
        for w, *_ in self._each_constraint():
            w[...] = penalty[:, None]

    def update_multipliers(self, factor: Array) -> None:
        """Update the multipliers of constraints by their present residuals.

        Args:
            factor: Old over new penalty, (problems,), dimensionless.
        """
        for _, y, r, _, _ in self._each_constraint():  # r contains y, see `NodeModel.residual`
            y[...] = r * factor[:, None]

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
        for w, _, r, *_ in self._each_constraint():
            total = total - 0.5 * (w * r * r).sum(axis=1)
        return total

    def _flat(self, array: Array) -> Array:
        return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    def _group_rows(self, number: int) -> tuple[Array, list[Rows]]:
        """Return the rows of the nodes of a kind in flat arrays, and their common inputs of compiled functions."""
        inputs, nodes = self.inputs[number], np.array(self.problem.groups[number].indices)
        index = (np.arange(self.count)[:, None] * (self.nodes + 1) + nodes).reshape(-1)
        node_of_row, every = np.tile(np.arange(len(nodes)), self.count), np.arange(len(index))
        h, t = Rows(self._flat(self.durations.h), index), Rows(self._flat(self.durations.t), index)
        mask, instant = Rows(inputs["mask"], node_of_row), Rows(inputs["instant"], node_of_row)
        return index, [mask, h, instant, t, *(Rows(self._flat(inputs[name]), every) for name in ("w", "p"))]

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
            index = np.repeat(np.arange(B) * M + k, A)
            node_of_row = np.repeat(np.arange(B) * len(inputs["mask"]) + row, A)
            around = self.q, self.v, self.u, self.riccati.gains
            nominal = [Rows(self._flat(x), index) for x in around]
            nominal.append(Rows(self.durations.step, np.repeat(np.arange(B), A)))
            call = model.rollout.prepare(
                lanes,
                *(trial["q"][k], trial["v"][k], *nominal, self.alpha, Rows(self._flat(self.gap), index)),
                *(problem.lower, problem.upper),
                *(inputs["mask"][row], self._trial_h[k], inputs["instant"][row, ...], self._trial_t[k]),
                *(Rows(self._flat(inputs[name]), node_of_row) for name in ("w", "p")),
                results=[
                    *(trial["q"][k + 1], trial["v"][k + 1], trial["u"][k]),
                    *(trial["cost"][k], *(x[k] for motion in self._trial_motions for x in motion)),
                ],
            )
            calls.append(call)
        self._rollout = FusedCalls([call.described() for call in calls], _LANES)

    def _each_alone(self, calls: Sequence[PreparedCall]) -> list[FusedCalls]:
        """Return each call as one that threads execute."""
        return [FusedCalls([call.described()], _LANES) for call in calls]

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
        """Roll out all problems with all step lengths; return the costs, (problems, step lengths)."""
        trial, A = self.trial, len(self.alphas)
        if self.durations.names:
            self._trial_h[...], self._trial_t[...] = self.durations.trials(self.alphas)
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
        self.u[problem], self.cost[problem] = trial["u"][:, lane], trial["cost"][:, lane]
        for a, f, motion in zip(self._a, self._f, self._trial_motions, strict=True):
            a[problem], f[problem] = motion[0][:, lane], motion[1][:, lane]
        if self.durations.names:
            self.durations.factors[problem] += self.alphas[choice] * self.durations.step[problem]
            self.durations.update()
