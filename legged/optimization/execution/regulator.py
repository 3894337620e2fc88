"""The linear-quadratic regulator about a solution, whose contacts begin on the ground."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from legged.arguments import array
from legged.checked import checked
from legged.dynamics.frames import frame_pose
from legged.errors import ArgumentError
from legged.optimization import terms
from legged.optimization.equations.dynamics import contact_names
from legged.optimization.problem import Impact, Problem, Stage
from legged.optimization.solution import Solution
from legged.optimization.solver import solve
from legged.optimization.terms import Cost


@checked
def regulated(problem: Problem, solution: Solution, *, state: Any, control: Any, landing: Any = 0.0) -> Solution:
    """Return a solution with the gains of the linear-quadratic regulator about it.

    The regulator minimizes the sum of w r^2 / 2 of the deviations of states, controls, and feet at impacts:

        int (w_x |x - x*|^2 + w_u |u - u*|^2) / 2 dt + w_x |x_N - x*_N|^2 / 2 + sum of w_p |p - p*|^2 / 2

    with the linear dynamics about the solution. p is the position of a contact that begins at an impact. In the linear
    model contacts begin at the planned times wherever the feet are; the cost `landing` keeps the feet on the ground
    then, so that they touch down together, at the planned time.

    Args:
        problem: The problem. solution: Its solution.
        state: w_x, a number or (2 nv,), at least 0, in the order of `terms.state`.
        control: w_u, a number or (nu,), more than 0.
        landing: w_p, a number or (3,), at least 0, world axes.

    Raises:
        ArgumentError: The solution is not one of the problem.
    """
    robot = problem.tree
    for name, weight in (("state", state), ("control", control), ("landing", landing)):
        array(name, weight)
    if solution.q.shape != (len(problem.nodes) + 1, robot.nq) or solution.u.shape[1] != problem.nu:
        raise ArgumentError("the solution must be one of this problem")
    by_name = {contact.name: contact for contact in problem.contacts}
    durations, nodes, before = np.diff(solution.t), list[Stage | Impact](), set[str]()
    for k, node in enumerate(problem.nodes):
        names = contact_names(node.contacts)
        if isinstance(node, Stage):
            target = Cost(terms.state, state, q=solution.q[k], v=solution.v[k])
            effort = Cost(terms.control, control, reference=solution.u[k])
            nodes.append(Stage(durations[k], node.contacts, [target, effort]))
        else:
            frames = [by_name[name].frame for name in names if name not in before]
            places = [(frame, frame_pose(robot, solution.q[k], frame).position) for frame in frames]
            weights = np.broadcast_to(np.asarray(landing, float), (3,))
            costs = [Cost(terms.frame_translation, weights, frame=f, position=p) for f, p in places if weights.any()]
            nodes.append(Impact(node.contacts, costs))
        before = set(names)
    last = Cost(terms.state, state, q=solution.q[-1], v=solution.v[-1])
    tracked = problem.changed(nodes, [last], q=solution.q[0], v=solution.v[0])
    gains = solve(tracked, q=solution.q, v=solution.v, u=solution.u, iterations=3)
    return replace(solution, gain=gains.gain)
