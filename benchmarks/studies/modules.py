"""Modules of one kind and modules in parallel, advantages (5) and (7) of section 3 of the paper.

Run it with `python -m benchmarks.studies.modules`, which takes a minute.

The robots are stars, equal legs around a trunk. The first table compares machine code for one state with and without
vector lanes for alike modules. The second one solves forward dynamics of one state by modules on two threads: each
thread runs the inward and the outward recursion of half of the legs, and the trunk is solved between.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import legged
import robots
from legged.compiler import count_and_depth, trace
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.kernels import scalar
from legged.dynamics.inertia import ArticulatedChain, JointFactors, mass_matrices
from legged.dynamics.modules import SerialChain, by_module, module_wrenches, pairwise_sum, serial_chains
from legged.table import Table

Array = np.ndarray
LEGS = (2, 3, 4, 6, 8, 12)
PARALLEL = ((4, 6), (16, 6), (32, 12), (64, 12))
"""(legs, joints of a leg) of the second table."""
_ARITHMETIC = re.compile(r" = (?:fadd|fsub|fmul|fdiv|fneg|call [^@]*@llvm\.fm)")


def repeated_modules(legs: Sequence[int] = LEGS, joints: int = 3) -> Table:
    """Return operations, instructions and size of the code of forward dynamics with and without lanes for modules."""
    rows = []
    for number in legs:
        robot = robots.star(number, joints)
        shapes = {"q": (robot.nq,), "v": (robot.nv,), "tau": (robot.nv,)}
        graph = trace(lambda q, v, tau, r=robot: legged.forward_dynamics(r, q, v, tau), shapes)
        counts, _ = count_and_depth(legged.forward_dynamics, robot)
        sizes = []
        for in_lanes in (False, True):
            ir = _single_state_ir(graph, in_lanes)
            sizes += [str(len(_ARITHMETIC.findall(ir))), f"{len(llvm.machine_code(ir)) / 1024:.0f}"]
        rows.append((str(number), str(counts.total), *sizes))
    header = ("legs", "operations", "instructions", "object [KiB]", "in lanes: instructions", "object [KiB]")
    return Table(f"Forward dynamics of equal legs with {joints} joints, one state", header, tuple(rows))


def _single_state_ir(graph: Any, in_lanes: bool) -> str:
    kept = selection.SLPKernelWriter
    if not in_lanes:
        selection.SLPKernelWriter = lambda graph, native, element, name: scalar.KernelWriter(  # type: ignore[misc,assignment]
            graph, 1, native, element, name
        )
    try:
        return selection.single_state_module(graph)
    finally:
        selection.SLPKernelWriter = kept  # type: ignore[misc]


class ParallelModules:
    """Forward dynamics of a star by kernels of its own for groups of legs, which run beside each other.

    Args:
        robot: A star with a floating base. groups: Number of groups of legs.
    """

    def __init__(self, robot: legged.Robot, groups: int = 2):
        legs = [m.index for m in robot.modules[1:]]
        self.robot = robot
        self.groups = [legs[k::groups] for k in range(groups)]
        q, v, tau = np.zeros(robot.nq), np.zeros(robot.nv), np.zeros(robot.nv)
        q[0] = 1.0
        self.inward, self.outward = [], []
        for members in self.groups:
            self.inward.append(legged.compile(_inward_of(members), robot))
            results = self.inward[-1](q, v, tau)
            shapes = {"phi": results[2].shape, "Psi": results[3].shape, "mu": (6,)}
            self.outward.append(legged.compile(_outward_of(members), robot, **shapes))
        self.trunk = legged.compile(_trunk, robot, M=(6, 6), eta=(6,))

    def __call__(self, run: Callable[..., Any], q: Array, v: Array, tau: Array) -> list[Array]:
        """Return the accelerations of the trunk and of each group; `run(function, arguments)` maps over the groups."""
        results = list(run(lambda kernel: kernel(q, v, tau), self.inward))
        vdot_0, mu = self.trunk(
            q, v, tau, np.sum([f[0] for f in results], axis=0), np.sum([f[1] for f in results], axis=0)
        )
        rest = run(lambda pair: pair[0](q, pair[1][2], pair[1][3], mu), list(zip(self.outward, results, strict=True)))
        return [vdot_0, *rest]


def _modules(robot: legged.Robot, q: Array, members: Sequence[int]) -> list[SerialChain]:
    chains = serial_chains(robot, q)
    return [chains[i] for i in members]


def _inward_of(members: Sequence[int]) -> Callable[..., Any]:
    def inward(robot: legged.Robot, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array, Array]:
        w, _ = module_wrenches(robot, q, v, None, None)
        M = mass_matrices(robot)
        rotors = by_module(robot, [body.rotor_inertia for body in robot.bodies])
        masses, etas, phis, Psis = [], [], [], []
        for chain in _modules(robot, q, members):
            module = ArticulatedChain(chain, M[chain.index], rotors[chain.index])
            phi, eta = module.inward(chain.joint_entries(tau), w[chain.index])
            masses.append(module.transmitted)
            etas.append(eta)
            phis += phi
            Psis += [factors.Psi for factors in module.factors]
        return pairwise_sum(masses), pairwise_sum(etas), np.array(phis), np.array(Psis)

    return inward


def _outward_of(members: Sequence[int]) -> Callable[..., Any]:
    def outward(robot: legged.Robot, q: Array, phi: Array, Psi: Array, mu: Array) -> Array:
        accelerations, k = [], 0
        for chain in _modules(robot, q, members):
            module = ArticulatedChain.__new__(ArticulatedChain)  # with the factors of the inward recursion
            eta = len(chain.bodies)
            module.chain, module.factors = chain, [JointFactors(P, ([], [])) for P in Psi[k : k + eta]]
            accelerations += module.outward(list(phi[k : k + eta]), mu)[0]
            k += eta
        return np.concatenate(accelerations)

    return outward


def _trunk(robot: legged.Robot, q: Array, v: Array, tau: Array, M: Array, eta: Array) -> tuple[Array, Array]:
    chain = serial_chains(robot, q)[0]
    w, _ = module_wrenches(robot, q, v, None, None)
    module = ArticulatedChain(chain, [mass_matrices(robot)[0][0] + M], [np.zeros((6, 6))])
    phi, _ = module.inward([tau[:6]], [w[0][0] + eta])
    qdd, mu = module.outward(phi, None)
    return qdd[0], mu


def parallel_modules(sizes: Sequence[tuple[int, int]] = PARALLEL, repeats: int = 300) -> Table:
    """Return times of forward dynamics of one state: one kernel, kernels by modules on one and on two threads."""
    rows = []
    with ThreadPoolExecutor(1) as other:

        def on_two(function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
            waiting = other.submit(function, items[1])
            return [function(items[0]), waiting.result()]

        def on_one(function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
            return [function(item) for item in items]

        for legs, joints in sizes:
            robot = robots.star(legs, joints)
            rng = np.random.default_rng(0)
            q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
            whole, parts = legged.compile(legged.forward_dynamics, robot), ParallelModules(robot)
            known, computed = whole(q, v, tau), parts(on_two, q, v, tau)
            order = [np.r_[:6]] + [np.concatenate([robot.modules[i].v for i in group]) for group in parts.groups]
            for entries, part in zip(order, computed, strict=True):
                assert np.abs(part - known[entries]).max() < 1e-8 * np.abs(known).max()
            calls = (partial(whole, q, v, tau), partial(parts, on_one, q, v, tau), partial(parts, on_two, q, v, tau))
            times = [min(_seconds(call) for _ in range(repeats)) * 1e6 for call in calls]
            depth = count_and_depth(legged.forward_dynamics, robot)[1]
            rows.append(
                (str(legs), str(joints), str(depth), *(f"{t:.1f}" for t in times), f"{times[1] / times[2]:.2f}")
            )
    header = ("legs", "joints of a leg", "depth", "one kernel [us]", "by modules [us]", "on two threads [us]", "gain")
    return Table("Forward dynamics of one state by modules on two threads", header, tuple(rows))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for table in (repeated_modules(), parallel_modules()):
        print(table.text(), end="\n\n")


if __name__ == "__main__":
    main()
