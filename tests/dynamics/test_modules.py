"""The operators of modules: matrices and recursions agree, in the axes of the links and in world axes.

1e-11 is rounding of 40 links, as in the other tests of the dense theory.
"""

from itertools import pairwise

import numpy as np
import pytest
from oracles.cases import CONDITION, random_case

import legged
import robots
from benchmarks.studies.modules import ParallelModules
from legged import Inertia, Limb, Link, Revolute, RobotBuilder, denoc, rod_inertia
from legged.compiler import count_and_depth, record
from legged.denoc.kinematics import block_diagonal, kinematics
from legged.dynamics.inertia import ArticulatedChain, DenseArticulation, articulate, mass_matrices
from legged.dynamics.modules import by_module, dense, pairwise_sum, serial_chains
from legged.errors import ArgumentError, DefinitionError
from legged.spatial import factor_symmetric, solve_factored

SEEDS = range(8)
ROUNDING = 1e-11


def body_to_world(robot, q):
    """Return the rotation of a stacked twist of each body from its axes to world axes, (6 n, 6 n)."""
    at = kinematics(robot, q)
    return block_diagonal([R for R in at.rotation for _ in range(2)])


def rows(robot, i):
    bodies = robot.modules[i].bodies
    return slice(6 * bodies[0], 6 * bodies[-1] + 6)


@pytest.mark.parametrize("seed", SEEDS)
def test_operators_in_link_axes_are_those_of_the_paper_in_world_axes(seed):
    robot, q = random_case(seed).robot, random_case(seed).q
    R = body_to_world(robot, q)
    for chain in serial_chains(robot, q):
        own = rows(robot, chain.index)
        N = R[own, own] @ dense(chain.N)
        assert pytest.approx(denoc.module_joint_rate_propagation(robot, q, chain.index), abs=ROUNDING) == N
        if chain.parent >= 0:
            above = rows(robot, chain.parent)
            A = R[own, own] @ dense(chain.A) @ R[above, above].T
            assert pytest.approx(denoc.module_twist_propagation(robot, q, chain.index, chain.parent), abs=ROUNDING) == A


@pytest.mark.parametrize("seed", SEEDS)
def test_complement_has_the_geometric_jacobians_of_all_bodies(seed):
    """An oracle that shares nothing with the operators: columns from joint axes and cross products."""
    robot, q = random_case(seed).robot, random_case(seed).q
    pose = {}
    N = np.zeros((len(robot.bodies), 6, robot.nv))
    for body in robot.bodies:
        k = body.index
        if body.parent < 0:
            pose[k] = robot.base.pose(q)
            columns = robot.base.motion_matrix(q)
        else:
            pose[k] = body.transform(q).child_pose(*pose[body.parent])
            columns, arm = body.P, pose[k][1] - pose[body.parent][1]
            N[k] = N[body.parent]
            N[k, 3:] += np.cross(N[body.parent, :3].T, arm).T
        N[k][:3, body.v] += pose[k][0] @ columns[:3]
        N[k][3:, body.v] += pose[k][0] @ columns[3:]
    assert denoc.complement(robot, q) == pytest.approx(N.reshape(-1, robot.nv), abs=ROUNDING)


@pytest.mark.parametrize("physics", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_psi_and_the_articulated_inertia_of_a_chain_have_the_matrices_of_the_theory(seed, physics):
    case = random_case(seed, physics=physics)
    robot, q = case.robot, case.q
    if np.linalg.cond(legged.inertia_matrix(robot, q)) > CONDITION:
        return
    M = mass_matrices(robot)
    rotors = by_module(robot, [body.rotor_inertia for body in robot.bodies])
    chains = serial_chains(robot, q)
    recursive = articulate(chains, M, rotors)
    matrices = articulate(chains, M, rotors, intra_modular=dict.fromkeys(range(len(chains)), DenseArticulation))
    for chain, fast, slow in zip(chains, recursive, matrices, strict=True):
        assert isinstance(fast, ArticulatedChain)
        scale = np.abs(slow.Psi).max(initial=1.0)
        assert dense(fast.Psi) == pytest.approx(slow.Psi, abs=1e-9 * scale)  # loses the digits of the condition number
        w = np.random.default_rng(seed).normal(size=6 * len(chain.bodies))
        along = np.concatenate(fast.Psi.T @ np.split(w, len(chain.bodies))) if chain.N.sizes else np.zeros(0)
        assert along == pytest.approx(slow.Psi.T @ w, abs=1e-9 * scale * np.abs(w).max())
        if chain.parent >= 0:
            size = np.abs(slow.M_hat).max()
            assert fast.transmitted == pytest.approx(slow.transmitted, abs=1e-9 * size)


class CompositeCholesky:
    """An algorithm of a user for the inside of a module: composite inertias, and a factorization of I^^i."""

    def __init__(self, chain, M_hat, rotors, prescribed):
        self.chain = chain
        columns = [[p.T @ w for p, w in zip(chain.p_k, ws, strict=True)] for ws in self._columns(M_hat)]
        self.sizes = [p.shape[1] for p in chain.p_k]
        ends = np.cumsum([0, *self.sizes])
        self.places = [slice(a, b) for a, b in pairwise(ends)]
        I_hat = np.array([np.concatenate(c) for c in columns]) if columns else np.zeros((0, 0))
        for place, rotor in zip(self.places, rotors, strict=True):
            I_hat[place, place] = I_hat[place, place] + rotor
        self.factors = factor_symmetric(I_hat)
        self.response = [np.concatenate(chain.N.T @ self._masses(M_hat, t)) for t in self._along_parent()]
        self.M = M_hat
        mass = []
        for t, response in zip(self._along_parent(), self.response, strict=True):
            x = solve_factored(self.factors, response)
            moved = [a - b for a, b in zip(t, chain.N @ np.split(x, ends[1:-1]), strict=True)]
            mass.append(chain.A.T @ self._masses(M_hat, moved) if chain.parent >= 0 else np.zeros(6))
        self.transmitted = np.array(mass)

    def _along_parent(self):
        if self.chain.parent < 0:
            return []
        return [self.chain.twists([unit], [np.zeros(n) for n in self.sizes]) for unit in np.eye(6)]

    def _masses(self, M, t):
        return [M_k @ t_k for M_k, t_k in zip(M, t, strict=True)]

    def _columns(self, M):
        for k, p in enumerate(self.chain.p_k):
            for j in range(p.shape[1]):
                rates = [
                    np.eye(other.shape[1])[j] if i == k else np.zeros(other.shape[1])
                    for i, other in enumerate(self.chain.p_k)
                ]
                yield self.chain.accumulated_wrenches(self._masses(M, self.chain.N @ rates))

    def inward(self, tau, w):
        chain = self.chain
        force = [a - b for a, b in zip(tau, chain.N.T @ w, strict=True)]
        x = solve_factored(self.factors, np.concatenate(force))
        t = chain.N @ np.split(x, np.cumsum(self.sizes)[:-1])
        eta = [a + b for a, b in zip(w, self._masses(self.M, t), strict=True)]
        return x, chain.A.T @ eta if chain.parent >= 0 else np.zeros(6)

    def outward(self, phi, mu):
        chain = self.chain
        x = phi
        if mu is not None:
            x = phi - solve_factored(self.factors, sum(m * r for m, r in zip(mu, self.response, strict=True)))
        qdd = np.split(x, np.cumsum(self.sizes)[:-1])
        return qdd, chain.twists([mu] if mu is not None else [], qdd)[-1]


@pytest.mark.parametrize("intra", [DenseArticulation, CompositeCholesky])
@pytest.mark.parametrize("seed", SEEDS)
def test_any_intra_modular_algorithm_gives_the_same_accelerations(seed, intra):
    case = random_case(seed)
    robot = case.robot
    inertia = legged.inertia_matrix(robot, case.q)
    if robot.nv == 0 or np.linalg.cond(inertia) > CONDITION:
        return
    state = case.q, case.v, case.tau, case.wrenches
    wanted = legged.forward_dynamics(robot, *state)
    tolerance = 1e-9 * np.abs(wanted).max()  # rounding times the largest condition number
    for modules in ([len(robot.modules) - 1], range(len(robot.modules))):
        vdot = legged.forward_dynamics(robot, *state, intra_modular=dict.fromkeys(modules, intra))
        assert vdot == pytest.approx(wanted, abs=tolerance)


@pytest.mark.parametrize("intra", [DenseArticulation, CompositeCholesky])
def test_an_intra_modular_algorithm_of_ones_own_is_traced_and_compiled(intra):
    robot = robots.spatial_quadruped()
    rng = np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))

    def dynamics(robot, q, v, tau):
        return legged.forward_dynamics(robot, q, v, tau, intra_modular={2: intra})

    kernel = legged.compile(dynamics, robot)
    assert kernel(q, v, tau) == pytest.approx(legged.forward_dynamics(robot, q, v, tau), abs=1e-10)
    # one module of five by another algorithm: the recursion is the cheaper one
    assert legged.count(dynamics, robot).total > legged.count(legged.forward_dynamics, robot).total


def test_wrong_numbers_of_modules_and_coupled_joints_are_refused():
    robot = robots.planar_biped()
    q, v = robot.neutral(), np.zeros(robot.nv)
    with pytest.raises(ArgumentError, match="number of a module in intra_modular"):
        legged.forward_dynamics(robot, q, v, v, intra_modular={3: DenseArticulation})
    coupled = legged.random_tree(0, coupled=True)
    q, v = coupled.neutral(), np.zeros(coupled.nv)
    with pytest.raises(DefinitionError, match="coupled joints"):
        legged.forward_dynamics(coupled, q, v, v, intra_modular={1: DenseArticulation})


def legs(number):
    """Return a robot with equal legs of three joints around its trunk."""
    rod = (0.0, 0.0, -0.3)
    leg = Limb().add(Revolute("roll", "x"), Link("hip", rod_inertia(1.0, (0, 0, 0), rod)))
    leg.add(Revolute("pitch", "y"), Link("thigh", rod_inertia(1.0, (0, 0, 0), rod)), at=rod)
    leg.add(Revolute("knee", "y"), Link("shank", rod_inertia(1.0, (0, 0, 0), rod)), at=rod)
    builder = RobotBuilder("legs", Link("trunk", Inertia(10.0, (0, 0, 0), (0.3, 0.4, 0.5))))
    for k in range(number):
        angle = 2 * np.pi * k / number
        builder.attach(leg, to="trunk", prefix=f"l{k}_", at=(np.cos(angle), np.sin(angle), 0.0))
    return builder.build()


def test_depth_of_forward_dynamics_grows_with_the_logarithm_of_the_number_of_legs():
    numbers = (2, 4, 8, 16, 32, 64)
    depths = [count_and_depth(legged.forward_dynamics, legs(number))[1] for number in numbers]
    # Each doubling adds one level to the sums at the trunk: of the masses, whose factors take three operations for each
    # entry of it, and of the wrenches. A sum of one leg after the other would add two levels for each leg.
    assert max(np.diff(depths)) <= 20
    assert depths[-1] - depths[0] <= 10 * np.log2(numbers[-1] / numbers[0])


def test_pairwise_sum_adds_all_terms_with_logarithmic_depth():
    for number in range(1, 20):
        graph = record(lambda x: pairwise_sum(list(x)), {"x": (number,)})
        assert graph.evaluate(np.arange(number, dtype=float)) == number * (number - 1) / 2
        assert graph.depth() == int(np.ceil(np.log2(number)))


def test_modules_solved_by_kernels_of_their_own_give_the_accelerations_of_the_whole():
    robot = robots.star(4, 2)
    rng = np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    parts = ParallelModules(robot)
    acceleration = np.zeros(robot.nv)
    for members, part in zip([[0], *parts.groups], parts(map, q, v, tau), strict=True):
        acceleration[np.concatenate([robot.modules[i].v for i in members])] = part
    assert acceleration == pytest.approx(legged.forward_dynamics(robot, q, v, tau), abs=1e-10)
