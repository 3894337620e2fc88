"""Inverse kinematics: targets taken from random configurations are reached; limits, singular postures and errors."""

import numpy as np
import pytest

import legged
import robots
from legged.algorithms.inverse_kinematics import InverseKinematics, center_of_mass_jacobian
from legged.algorithms.levenberg_marquardt import LevenbergMarquardt
from legged.errors import ArgumentError, LeggedError, ReachError, ShapeError, UnknownNameError
from legged.rotations import axis_matrix

LEGS = [f"leg{i}_foot" for i in (1, 2, 3, 4)]


def target_of(robot, q, name, kind):
    if name == "center_of_mass":
        return legged.center_of_mass(robot, q)
    pose = legged.frame_pose(robot, q, name)
    return {"position": pose.position, "orientation": pose.rotation, "pose": (pose.rotation, pose.position)}[kind]


def near(robot, q, rng, size):
    return legged.integrate(robot, q, size * rng.normal(size=robot.nv))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 6))])
def test_targets_of_a_random_configuration_of_a_random_robot_are_reached(seed):
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, links=8)
    start = legged.random_configuration(robot, rng)
    there = near(robot, start, rng, 0.2)
    links = [link.name for link in robot.links]
    kinds = {links[-1]: "pose", links[-2]: "position", "center_of_mass": "position", links[1]: "orientation"}
    solution = InverseKinematics(robot, kinds).solve(
        start, {name: target_of(robot, there, name, kind) for name, kind in kinds.items()}
    )
    assert solution.converged
    for name, kind in kinds.items():
        reached, wanted = (target_of(robot, q, name, kind) for q in (solution.q, there))
        pairs = zip(reached, wanted, strict=True) if kind == "pose" else [(reached, wanted)]
        assert all(np.abs(a - b).max() < 3e-9 for a, b in pairs)  # the tolerance, in meters or entries of a rotation


def test_convergence_is_quadratic_near_the_solution():
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(1)
    start = near(robot, robot.neutral(), rng, 0.3)
    there = near(robot, start, rng, 1e-3)
    ik = InverseKinematics(robot, {**dict.fromkeys(LEGS, "position"), "trunk": "pose"})
    wanted = {name: target_of(robot, there, name, kind) for name, kind in ik.targets.items()}
    steps = ik.solve(start, wanted).iterations
    assert steps <= 4
    assert [ik.solve(start, wanted, iterations=n, partial=True).converged for n in (steps - 1, steps)] == [False, True]


def test_orientations_half_a_turn_away_are_reached():
    robot = robots.spatial_quadruped()
    ik = InverseKinematics(robot, {"trunk": "orientation"})
    for axis in "xyz":
        for angle in (np.pi, np.pi - 1e-9, 3.0, 1e-12):
            solution = ik.solve(robot.neutral(), {"trunk": axis_matrix(axis, angle)})
            assert np.allclose(
                legged.frame_pose(robot, solution.q, "trunk").rotation, axis_matrix(axis, angle), atol=2e-9
            )


def limited_arm():
    builder = legged.RobotBuilder("arm", legged.Link("base", legged.sphere_inertia(1.0, 0.1)), base=legged.FixedBase())
    for k, (name, parent) in enumerate((("upper", "base"), ("lower", "upper"))):
        physics = legged.JointPhysics(lower=-0.5, upper=0.8)
        link = legged.Link(
            name, legged.rod_inertia(1.0, (0, 0, 0), (1, 0, 0)), contacts={"tip": (1.0, 0, 0)} if k else {}
        )
        builder.add(legged.Revolute(f"joint{k}", "y", physics=physics), link, to=parent, at=(float(k), 0, 0))
    return builder.build()


def test_joint_limits_hold_and_the_best_posture_within_them_is_found():
    robot = limited_arm()
    name = "tip"
    ik = InverseKinematics(robot, {name: "position"})
    for wanted in ((1.0, 0.0, 1.0), (0.0, 0.0, -2.0), (1.5, 0.0, 0.4), (3.0, 0.0, 0.1)):
        best = ik.solve(np.array([0.1, 0.2]), {name: wanted}, partial=True)
        assert (best.q >= -0.5).all() and (best.q <= 0.8).all()
        grid = np.linspace(-0.5, 0.8, 131)
        reached = min(
            np.linalg.norm([np.cos(a) + np.cos(a + b) - wanted[0], wanted[1], -np.sin(a) - np.sin(a + b) - wanted[2]])
            for a in grid
            for b in grid
        )
        left = np.linalg.norm(best.errors[name])
        assert left <= reached + 1e-9  # no worse than the best of a grid of 0.01 rad


def test_a_target_out_of_reach_is_an_error_that_holds_the_residual_and_names_the_target():
    robot = robots.spatial_quadruped()
    ik = InverseKinematics(robot, {LEGS[0]: "position"}, hold=["base"])
    with pytest.raises(ReachError, match=LEGS[0]) as caught:
        ik.solve(robot.neutral(), {LEGS[0]: (10.0, 0.0, 0.0)})
    assert 5.0 < caught.value.residual < 10.0
    best = ik.solve(robot.neutral(), {LEGS[0]: (10.0, 0.0, 0.0)}, partial=True)
    assert not best.converged and np.isfinite(best.q).all()


def test_a_robot_whose_joints_are_all_held_stays():
    robot = robots.spatial_quadruped()
    ik = InverseKinematics(robot, {LEGS[0]: "position"}, hold=["base", *(joint.name for joint in robot.joints)])
    best = ik.solve(robot.neutral(), {LEGS[0]: (0.0, 0.0, 0.0)}, partial=True)
    assert np.array_equal(best.q, robot.neutral())
    assert not best.converged


def test_held_joints_stay():
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(2)
    ik = InverseKinematics(robot, dict.fromkeys(LEGS[:1], "position"), hold=["base", "leg1_hip"])
    start = near(robot, robot.neutral(), rng, 0.2)
    joint = next(joint for joint in robot.joints if joint.name == "leg1_hip")
    best = ik.solve(start, {LEGS[0]: (0.5, 0.3, 0.0)}, partial=True)
    assert np.array_equal(best.q[:7], start[:7])
    assert np.array_equal(best.q[joint.q], start[joint.q])


def test_center_of_mass_jacobian_is_the_derivative_of_the_center_of_mass():
    for seed in range(5):
        robot, rng = legged.random_tree(seed, links=6), np.random.default_rng(seed)
        q, h = legged.random_configuration(robot, rng), 1e-6
        J = center_of_mass_jacobian(robot, q)
        for k in range(robot.nv):
            d = h * np.eye(robot.nv)[k]
            ahead, behind = (legged.center_of_mass(robot, legged.integrate(robot, q, s * d)) for s in (1, -1))
            assert np.allclose(J[:, k], (ahead - behind) / (2 * h), rtol=0, atol=1e-8)  # rounding over h


def test_more_attempts_find_another_branch():
    robot = robots.chain(2, base=legged.FixedBase())
    name = robot.links[-1].name
    ik = InverseKinematics(robot, {name: "pose"})
    there = np.array([2.5, -2.0])
    solution = ik.solve(np.zeros(2), {name: target_of(robot, there, name, "pose")}, attempts=20)
    assert solution.converged


def test_wrong_arguments_are_named():
    robot = robots.spatial_quadruped()
    for error, words, call in (
        (ArgumentError, "robot must be a legged.Robot", lambda: InverseKinematics(None, {"trunk": "pose"})),
        (ArgumentError, "the kind of target 'trunk'", lambda: InverseKinematics(robot, {"trunk": "place"})),
        (ArgumentError, "'position'", lambda: InverseKinematics(robot, {"center_of_mass": "pose"})),
        (ArgumentError, "at least one", lambda: InverseKinematics(robot, {})),
        (UnknownNameError, "trunc", lambda: InverseKinematics(robot, {"trunc": "pose"})),
        (UnknownNameError, "leg1_hipp", lambda: InverseKinematics(robot, {"trunk": "pose"}, hold=["leg1_hipp"])),
        (ArgumentError, "weight", lambda: InverseKinematics(robot, {"trunk": "pose"}, weights={"trunk": -1})),
    ):
        with pytest.raises(error, match=words):
            call()
    ik = InverseKinematics(robot, {"trunk": "pose"})
    for values in ({}, {"trunk": 1.0}, {"trunk": (np.eye(3), (1, 2))}, {"trunk": (2 * np.eye(3), (1, 2, 3))},
                   {"trunk": (np.eye(3), (np.nan, 0, 0))}, {"trunk": (np.eye(3), np.zeros(3)), "arm": 1}):  # fmt: skip
        with pytest.raises(LeggedError):
            ik.solve(robot.neutral(), values)


def test_members_of_a_batch_are_solved_as_single_problems_and_report_failures():
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(4)
    ik = InverseKinematics(robot, {**dict.fromkeys(LEGS[:2], "position"), "trunk": "pose"})
    starts = np.array([near(robot, robot.neutral(), rng, 0.3) for _ in range(5)])
    there = [near(robot, start, rng, 0.1) for start in starts]
    feet = {name: np.array([target_of(robot, q, name, "position") for q in there]) for name in LEGS[:2]}
    feet[LEGS[0]][3] = (10.0, 0.0, 0.0)
    turns, places = zip(*(target_of(robot, q, "trunk", "pose") for q in there), strict=True)
    solutions = ik.solve_batch(starts, {**feet, "trunk": (np.array(turns), np.array(places))})
    assert solutions.converged.tolist() == [True, True, True, False, True]
    assert (solutions.residual[solutions.converged] <= 1e-9).all() and solutions.residual[3] > 1.0
    for i, start in enumerate(starts):
        wanted = {**{name: x[i] for name, x in feet.items()}, "trunk": (turns[i], places[i])}
        one = ik.solve(start, wanted, partial=True)
        assert (one.iterations, one.converged) == (solutions.iterations[i], solutions.converged[i])
        assert np.allclose(solutions.q[i], one.q, rtol=0, atol=1e-9)
        assert all(np.allclose(solutions.errors[name][i], e, rtol=0, atol=1e-9) for name, e in one.errors.items())


def test_one_start_or_one_target_serves_a_whole_batch():
    robot = limited_arm()
    ik = InverseKinematics(robot, {"tip": "position"})
    points = np.array([target_of(robot, q, "tip", "position") for q in np.array([[0.3, -0.4], [-0.2, 0.6]])])
    solutions = ik.solve_batch(np.array([0.1, 0.2]), {"tip": points})
    for q, point in zip(solutions.q, points, strict=True):
        assert np.abs(legged.frame_pose(robot, q, "tip").position - point).max() < 2e-9
    starts = np.array([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.8]])
    solutions = ik.solve_batch(starts, {"tip": points[0]})
    assert solutions.q.shape == (3, 2) and (solutions.q >= -0.5).all() and (solutions.q <= 0.8).all()
    with pytest.raises(ShapeError, match=r"same number of them; got start 3, the position of 'tip' 2"):
        ik.solve_batch(starts, {"tip": points})
    with pytest.raises(ShapeError, match=r"the position of 'tip' must be"):
        ik.solve_batch(starts, {"tip": points[:, :2]})
    with pytest.raises(ShapeError, match=r"the position of 'tip' must be \(3,\)"):
        ik.solve(starts[0], {"tip": points})


def test_only_members_that_have_not_converged_start_again():
    """A tip turned to its target from within the limit of the first joint, which a lower limit of the second blocks."""
    robot = limited_arm()
    ik = InverseKinematics(robot, {"tip": "position"})
    inward = [2.0 * np.cos(0.4), 0.0, 0.0]  # the stretched arm is at a saddle of the distance to it
    wanted = {"tip": np.array([inward, target_of(robot, np.array([0.3, -0.4]), "tip", "position")])}
    first = ik.solve_batch(np.zeros(2), wanted)
    assert first.converged.all()  # the saddle is left by a second-order step
    solutions = ik.solve_batch(np.zeros(2), wanted, attempts=20)
    assert solutions.converged.all()
    np.testing.assert_array_equal(solutions.q[1], first.q[1])
    assert np.linalg.norm(solutions.q[0]) <= np.linalg.norm(first.q[0]) + 1e-12


def straight_leg(lower=-np.inf, upper=np.inf):
    """A leg of two bars of 0.4 m below a fixed hip, straight at zero; the knee within limits."""
    builder = legged.RobotBuilder("leg", legged.Link("hip", legged.sphere_inertia(1.0, 0.1)), base=legged.FixedBase())
    bar = legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -0.4))
    builder.add(legged.Revolute("thigh joint", "y"), legged.Link("thigh", bar), to="hip")
    physics = legged.JointPhysics(lower=lower, upper=upper)
    shank = legged.Link("shank", bar, contacts={"foot": (0, 0, -0.4)})
    builder.add(legged.Revolute("knee", "y", physics=physics), shank, to="thigh", at=(0, 0, -0.4))
    return builder.build()


@pytest.mark.parametrize("limits", [(-np.inf, np.inf), (0.0, 2.5), (-2.5, 0.0), (-0.1, 2.5)])
@pytest.mark.parametrize("height", [1e-4, 0.02, 0.3])
def test_a_straight_leg_bends_to_draw_its_foot_in(limits, height):
    """By the law of cosines the foot at distance d from the hip needs |knee| = 2 acos(d / 0.8)."""
    robot = straight_leg(*limits)
    ik = InverseKinematics(robot, {"foot": "position"})
    solution = ik.solve(np.zeros(2), {"foot": (0.0, 0.0, -0.8 + height)})
    bend = 2.0 * np.arccos((0.8 - height) / 0.8)
    assert abs(solution.q[1]) == pytest.approx(bend, abs=1e-6)  # 1e-9 m over the slope at the smallest bend
    assert limits[0] <= solution.q[1] <= limits[1]
    assert solution.q[0] == pytest.approx(-solution.q[1] / 2.0, abs=1e-6)


def test_a_target_beyond_a_straight_leg_stays_out_of_reach():
    robot = straight_leg()
    with pytest.raises(ReachError) as caught:
        InverseKinematics(robot, {"foot": "position"}).solve(np.zeros(2), {"foot": (0.0, 0.0, -0.9)})
    assert caught.value.residual == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize("name", ["talos_reduced", "solo12", "bolt", "g1_29dof_rev_1_0"])
def test_feet_are_drawn_in_from_the_neutral_postures_of_public_robots(name):
    pytest.importorskip("pinocchio")
    from oracles.urdfs import all_urdfs

    robot = legged.load(next(path for key, path in all_urdfs().items() if key.endswith(f"/{name}")))
    q = robot.neutral()
    feet = sorted({robot.links[point.link].name for point in robot.contacts})
    goals = {foot: legged.frame_pose(robot, q, foot).position + np.array([0.0, 0.0, 0.02]) for foot in feet}
    ik = InverseKinematics(robot, dict.fromkeys(feet, "position"), hold=["base"])
    one, several = ik.solve(q, goals), ik.solve(q, goals, attempts=20)
    assert one.converged and several.converged
    distance = np.linalg.norm(several.q - q)
    assert distance <= np.linalg.norm(one.q - q) + 1e-12
    assert distance < 0.6 * len(feet)  # a leg of 0.3 to 1 m bends its hip, knee and ankle by 0.2 to 0.6 rad


@pytest.mark.parametrize("ratio, offset", [(2.0, 0.1), (-0.5, -0.2)])
def test_the_limits_of_joints_that_follow_others_hold(ratio, offset):
    builder = legged.RobotBuilder("arm", legged.Link("base", legged.sphere_inertia(1.0, 0.1)), base=legged.FixedBase())
    bar = legged.rod_inertia(1.0, (0, 0, 0), (1, 0, 0))
    narrow = legged.JointPhysics(lower=-0.6, upper=0.3)
    builder.add(legged.Revolute("first", "y"), legged.Link("upper", bar), to="base")
    lower = legged.Link("lower", bar, contacts={"tip": (1.0, 0, 0)})
    builder.add(legged.Revolute("second", "y", physics=narrow), lower, to="upper", at=(1, 0, 0))
    robot = builder.couple("second", "first", ratio, offset).build()
    ik = InverseKinematics(robot, {"tip": "position"})
    for goal in ((0.0, 0.0, 2.0), (0.0, 0.0, -2.0)):
        solution = ik.solve(np.zeros(1), {"tip": goal}, partial=True)
        follower = ratio * solution.q[0] + offset
        assert min(abs(follower + 0.6), abs(follower - 0.3)) < 1e-9  # at the limit
    tight = legged.JointPhysics(lower=2.0, upper=2.1)
    other = robot.edit().change_joint("first", physics=tight).build()
    with pytest.raises(ArgumentError, match="limits have no position in common"):
        InverseKinematics(other, {"tip": "position"})


def test_the_steps_to_a_minimum_do_not_depend_on_the_scale_of_the_weights():
    robot = robots.chain(3, base=legged.FixedBase())
    point = [(robot.links[-1].name, (0.0, 0.0, -0.5))]

    def errors(q, values):
        return values - legged.point_positions(robot, q, point)[0], legged.point_jacobian(robot, q, *point[0])[3:]

    q = np.random.default_rng(0).normal(size=(4, robot.nq))
    goal = np.stack([legged.point_positions(robot, x, point)[0] for x in q + 0.4])
    solutions = [
        LevenbergMarquardt(robot, errors, 3, np.full(3, scale), np.ones(robot.nv, bool), []).minimize(q, goal, 1e-9, 50)
        for scale in (1.0, 64.0)
    ]
    assert np.abs(solutions[0].e).max() < 1e-9
    np.testing.assert_array_equal(solutions[0].iterations, solutions[1].iterations)
    np.testing.assert_allclose(solutions[0].q, solutions[1].q, atol=1e-9)
