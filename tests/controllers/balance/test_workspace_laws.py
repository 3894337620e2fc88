"""The workspace controller: distribution, error dynamics, torques, stances, operation counts, compilation, errors."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles.standing import base_acceleration, held_acceleration, held_rows, standing_cases
from scipy.integrate import solve_ivp

import legged
import robots
from controllers import WorkspaceBalance
from controllers.balance.workspace.set_point import (
    gain_matrix,
)
from legged.errors import ArgumentError, DefinitionError, NotFiniteError, ShapeError, SingularError, UnknownNameError
from legged.rotations import (
    axis_quaternion,
    quaternion_matrix,
    quaternion_product,
)
from legged.spatial import skew
from robots.bipeds import crouch

CASES = standing_cases()
SET_POINT = {"position": (0.01, 0.0, 1.14), "orientation": (0.0, np.radians(15.0), 0.0)}


def started(name, **settings):
    robot, q, v = CASES[name]
    return WorkspaceBalance(**settings).start(robot, None, q, v)[0], robot, q, v


def biped(**settings):
    robot = robots.spatial_biped()
    q, v = crouch(robot)
    return WorkspaceBalance(**SET_POINT, **settings).start(robot, None, q, v)[0], robot, q, v


# Algorithms 5 and 6.


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weights", [False, True])
def test_feet_give_the_wanted_wrench_and_torques_are_their_jacobians_transposed(name, weights):
    robot, q, v = CASES[name]
    definition = WorkspaceBalance(others=lambda t, q, v: np.zeros(robot.nj))
    law, _ = definition.start(robot, None, q, v)
    if weights:
        given = {foot.name: 0.2 + k for k, foot in enumerate(law.feet)}
        law, _ = replace(definition, weights=given).start(robot, None, q, v)
    plan, feet = law.plan(0.0, q, v), law.feet
    R, _ = robot.base.pose(q[: robot.base.nq])
    turned = [
        (np.kron(np.eye(2), R) @ padded(f, foot.rows))[list(foot.rows)]
        for f, foot in zip(plan.forces, feet, strict=True)
    ]
    J, _ = held_rows(robot, feet, q, v)
    generalized = J.T @ np.concatenate(turned)
    wanted = robot.base.motion_matrix(q[: robot.base.nq]).T @ plan.wrench
    assert np.abs(generalized[: robot.base.nv] - wanted).max() < 1e-10 * max(np.abs(wanted).max(), 1.0)
    assert np.abs(plan.tau[robot.base.nv :] + generalized[robot.base.nv :]).max() < 1e-10 * np.abs(plan.tau).max()


def padded(f, rows):
    full = np.zeros(6)
    full[list(rows)] = f
    return full


def test_the_distribution_has_the_least_weighted_norm():
    law, robot, q, v = started("quadruped", weights={"leg1_foot": 4.0, "leg3_foot": 0.25})
    plan = law.plan(0.0, q, v)
    F, w = np.concatenate(plan.forces), law.weights
    assert w[:3] == pytest.approx(4.0) and w[6:9] == pytest.approx(0.25)
    assert w[3:6] == pytest.approx(1.0) and w[9:] == pytest.approx(1.0)
    R, o = robot.base.pose(q[:7])
    points = legged.point_positions(robot, q, [(c.link, c.position) for c in robot.contacts])
    G = np.hstack([np.vstack([skew(R.T @ (p - o)), np.eye(3)]) for p in points])
    inner = np.linalg.svd(G)[2][6:]  # forces that only strain the legs
    assert np.abs(inner @ (F / w)).max() < 1e-12 * np.abs(F / w).max()


def test_a_foot_of_more_weight_takes_more():
    law, _, q, v = biped()
    even = [foot[5] for foot in law.plan(0.0, q, v).forces]
    law, *_ = biped(weights={"left_foot_7": (1.0, 3.0)})
    shifted = [foot[5] for foot in law.plan(0.0, q, v).forces]
    assert even[0] == pytest.approx(even[1], rel=1e-9)
    assert shifted[0] > 1.5 * shifted[1]
    assert sum(shifted) == pytest.approx(sum(even), rel=1e-9)


# The closed loop.


@pytest.fixture(scope="module")
def held_motion():
    """Return (times, q) of the biped with fixed feet, from the crouch to the set point, by the dense equations.

    Its base has Euler angles, so that rates are v and the Runge-Kutta rule is that of the books.
    """
    robot = robots.spatial_biped(legged.EulerBase("xyz"))
    q, v = crouch(robot)
    law, _ = WorkspaceBalance(**SET_POINT, exact=True).start(robot, None, q, v)
    feet = law.feet

    @partial(legged.compile, robot=robot)
    def terms(robot, q, v):
        h = legged.inverse_dynamics(robot, q, v, 0.0 * v)
        return legged.inertia_matrix(robot, q), law.plan(0.0, q, v).tau - h, *held_rows(robot, feet, q, v)

    def rate(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        M, force, J, bias = terms(q, v)
        system = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
        return v, np.linalg.solve(system, np.concatenate([force, -bias]))[: robot.nv]

    step = 2e-3
    path: list[np.ndarray] = [q]
    for _ in range(300):
        k_1 = rate(q, v)
        k_2 = rate(q + step / 2 * k_1[0], v + step / 2 * k_1[1])
        k_3 = rate(q + step / 2 * k_2[0], v + step / 2 * k_2[1])
        k_4 = rate(q + step * k_3[0], v + step * k_3[1])
        q = q + step / 6 * (k_1[0] + 2 * k_2[0] + 2 * k_3[0] + k_4[0])
        v = v + step / 6 * (k_1[1] + 2 * k_2[1] + 2 * k_3[1] + k_4[1])
        path.append(q)
    return step * np.arange(301), np.array(path)


def test_the_held_biped_obeys_the_error_dynamics_of_its_gains(held_motion):
    """edd + K_v ed + K_p e = 0 of the position, whose closed form is a damped oscillation."""
    times, path = held_motion
    for axis, wanted, kp, kv in ((0, 0.01, 50.0, 7.07), (1, 0.0, 50.0, 7.07), (2, 1.14, 200.0, 14.142)):
        decay, rate, start = kv / 2, np.sqrt(kp - kv**2 / 4), path[0, 3 + axis] - wanted
        error = start * np.exp(-decay * times) * (np.cos(rate * times) + decay / rate * np.sin(rate * times))
        assert np.abs(path[:, 3 + axis] - wanted - error).max() < 1e-8  # the fourth power of a step


def test_the_held_biped_turns_as_its_gains_say(held_motion):
    """theta'' + K_v theta' + K_p sin(theta / 2) = 0 for a rotation about one axis."""
    times, path = held_motion
    pitch, wanted = path[:, 1], np.radians(15.0)
    turned = solve_ivp(
        lambda t, y: (y[1], -7.07 * y[1] - 50.0 * np.sin(y[0] / 2)),
        (0.0, times[-1]),
        (np.radians(5.0) - wanted, 0.0),
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    )
    assert np.abs(pitch - wanted - turned.y[0]).max() < 1e-8


# Stances.


def test_a_foot_that_feels_nothing_carries_only_what_the_others_cannot():
    law, robot, q, v = started("quadruped", stance="measured")
    all_stand = law.plan(0.0, q, v)
    felt = np.zeros((len(robot.links), 6))
    assert law.plan(0.0, q, v, felt).tau == pytest.approx(all_stand.tau, abs=1e-12)  # in the air it keeps all its feet
    for contact in robot.contacts[:3]:
        felt[contact.link, 5] = 30.0
    three = law.plan(0.0, q, v, felt)
    sizes = [np.linalg.norm(f) for f in three.forces]
    assert sizes[3] < 1e-4 * min(sizes[:3])
    held = law.feet[:3]
    vdot = held_acceleration(robot, held, q, v, three.tau)
    assert base_acceleration(robot, q, v, vdot) == pytest.approx(three.acceleration, abs=1e-2)
    exact, _ = WorkspaceBalance(stance="measured", exact=True).start(robot, None, q, v)
    assert exact.plan(0.0, q, v, felt).tau == pytest.approx(three.tau, abs=1e-3)
    assert np.isfinite(
        law.plan(0.0, q, v, 0.0 * felt + np.eye(6)[5] * (np.arange(len(felt)) == 3)[:, None] * 30).tau
    ).all()


def test_named_feet_stand():
    law, robot, q, v = started("quadruped", stance=("leg1_foot", "leg2_foot", "leg4_shank"))
    assert [foot.name for foot in law.feet] == ["leg1_foot", "leg2_foot", "leg4_foot"]
    plan = law.plan(0.0, q, v)
    vdot = held_acceleration(robot, law.feet, q, v, plan.tau)
    assert base_acceleration(robot, q, v, vdot) == pytest.approx(plan.acceleration, abs=1e-3)


# Counted and compiled.


def torques(law):
    return lambda robot, t, q, v: law.plan(t, q, v).tau


@pytest.mark.parametrize(
    ("name", "exact"),
    [("biped", False), ("biped", True), ("quadruped", False), ("planar biped", True), ("random 1", True)],
)
def test_compiled_it_gives_the_same_torques(name, exact):
    law, robot, q, v = started(name, exact=exact)
    plain = law.plan(0.0, q, v).tau
    compiled = legged.compile(torques(law), robot)(0.0, q, v)
    assert np.abs(compiled - plain).max() < 1e-6 * max(np.abs(plain).max(), 1.0)  # 10^6 times rounding, the big base's


def test_its_operations_are_those_of_six_algorithms():
    law, robot, _, _ = biped()
    counts = legged.count(torques(law), robot)
    stages = [
        "1 initialization",
        "2 velocities",
        "3 workspace dynamics",
        "4 desired wrench",
        "5 distribution",
        "6 torques",
    ]
    assert sorted(counts.by_stage) == stages
    assert counts.M < 1500 and counts.A < 1200  # 1412 and 1118, against 2568 M of one forward dynamics by the formula
    heavier = legged.count(torques(started("humanoid")[0]), CASES["humanoid"][0])
    assert heavier.M < 4 * counts.M  # 36 freedoms against 18: the cost grows with the bodies


def test_the_measured_stance_is_traced():
    law, robot, q, v = started("quadruped", stance="measured")
    kernel = legged.compile(lambda robot, t, q, v, wrenches: law.plan(t, q, v, wrenches).tau, robot, wrenches=True)
    felt = np.zeros((len(robot.links), 6))
    for contacts in (0, 3, 4):
        for contact in robot.contacts[:contacts]:
            felt[contact.link, 5] = 30.0
        assert kernel(0.0, q, v, felt) == pytest.approx(law.plan(0.0, q, v, felt).tau, abs=1e-5)


# What it refuses.


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"stance": ("left_foo_7",)}, UnknownNameError, "did you mean 'left_foot_7'"),
        ({"stance": "all"}, DefinitionError, "measured"),
        ({"weights": {"left_foot": 1.0}}, UnknownNameError, "left_foot_7"),
        ({"weights": {"left_foot_7": 0.0}}, DefinitionError, "above 0"),
        ({"kp": -1.0}, DefinitionError, "positive semidefinite, its least eigenvalue is -1.0"),
        ({"kv": (1.0, 2.0)}, ShapeError, "kv must be"),
        ({"kp_orientation": np.nan}, NotFiniteError, "kp_orientation must be finite"),
        ({"position": (0.0, 1.0)}, ShapeError, "position of the set point"),
        ({"orientation": (0.0, 0.0, 0.0, 0.0)}, NotFiniteError, "quaternion must not be zero"),
        ({"big_base": 0.0}, DefinitionError, "big_base"),
        ({"posture": (1.0, -1.0)}, ArgumentError, "posture must be at least 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, error, words):
    robot = robots.spatial_biped()
    with pytest.raises(error, match=words):
        WorkspaceBalance(**settings).start(robot, None, *crouch(robot))


def test_robots_that_it_cannot_balance_are_refused():
    quadruped = robots.spatial_quadruped()
    with pytest.raises(DefinitionError, match="cannot hold"):
        WorkspaceBalance(stance=("leg1_foot", "leg4_foot")).start(quadruped, None, quadruped.neutral(), np.zeros(18))
    held = robots.spatial_quadruped(legged.FixedBase())
    with pytest.raises(DefinitionError, match="fixed base"):
        WorkspaceBalance().start(held, None, held.neutral(), np.zeros(held.nv))
    chain = legged.random_tree(3, 4, bases=("floating",))
    with pytest.raises(DefinitionError, match="no feet to stand on"):
        WorkspaceBalance().start(chain, None, chain.neutral(), np.zeros(chain.nv))


def test_feet_that_come_to_stand_in_one_place_are_an_error_not_a_nan():
    robot = robots.spatial_quadruped()
    q, v = robot.neutral(), np.zeros(robot.nv)
    law = WorkspaceBalance(stance=("leg1_foot", "leg2_foot", "leg3_foot"), others=lambda t, q, v: np.zeros(robot.nj))
    law, _ = law.start(robot, None, q, v)
    merged = replace(law, feet=law.feet[:1] * 3)
    with pytest.raises(SingularError, match="cannot hold its base"):
        merged.plan(0.0, q, v)


def test_gains_are_numbers_diagonals_or_matrices():
    assert gain_matrix("kp", 3.0) == pytest.approx(3.0 * np.eye(3))
    assert gain_matrix("kp", (1.0, 2.0, 3.0)) == pytest.approx(np.diag([1.0, 2.0, 3.0]))
    turned = quaternion_matrix(quaternion_product(axis_quaternion("x", 0.3), axis_quaternion("z", 1.0)))
    full = turned @ np.diag([1.0, 2.0, 3.0]) @ turned.T
    assert gain_matrix("kp", full) == pytest.approx(full)
