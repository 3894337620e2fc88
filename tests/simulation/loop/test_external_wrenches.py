"""Pushes and external wrenches deliver their impulse to rounding, whatever the step, and their work is in the books."""

import itertools
import math

import numpy as np
import pytest

import legged
import robots
from legged.contact.rigid import FreeBody, Rigid
from legged.errors import ArgumentError, DefinitionError, NotFiniteError, ShapeError, UnknownNameError
from legged.ground import realistic_ground
from legged.rotations import quaternion_matrix
from legged.simulation import BDF

IMPULSE = np.array([3.0, -1.0, 2.0])  # [N s]
MASS = 2.0  # [kg]
UNTIL = 0.2  # [s]
# A sum of n steps has n roundings of numbers up to the impulse; pushes of 1 us also have the rounding of their times,
# eps UNTIL / 1 us = 4e-11, where a step begins inside of them.
ROUNDING = 1e-12


def brick(gravity=0.0):
    link = legged.Link("brick", legged.box_inertia(MASS, (0.1, 0.2, 0.3)), {"foot": (0.0, 0.0, -0.05)})
    return legged.RobotBuilder("brick", link, gravity=(0.0, 0.0, -gravity)).build()


BRICK = brick()
STIFF = realistic_ground(brick(9.81))
HIGH = BRICK.neutral() + np.array([0.0] * 6 + [5.0])
GROUNDS = {
    "none": (None, (legged.SemiImplicitEuler(4e-3), legged.RungeKutta4(4e-3), BDF())),
    "compliant": (
        STIFF,
        (legged.SemiImplicitEuler(1e-3), legged.LinearlyImplicitEuler(3e-3), legged.RungeKutta4(1e-3)),
    ),
    "variable": (STIFF, (BDF(),)),
    "rigid": (Rigid(), (legged.TimeStepping(3e-3),)),
}


def velocity_after(door, integrator, ground, pushes):
    """Return the velocity of the brick at the end, (3,), [m/s], through one of the three doors."""
    options = {"ground": ground, "q": HIGH, "integrator": integrator, "pushes": pushes}
    if door == "simulate":
        return legged.simulate(BRICK, until=UNTIL, sample=0.05, **options).v[-1, 3:]
    if door == "rollout":
        options["q"] = np.array([HIGH, HIGH])
        return legged.rollout(BRICK, until=UNTIL, sample=0.05, **options).v[1, -1, 3:]
    sim = legged.Simulation(BRICK, **options)
    if door == "steps":
        sim.step(n=math.ceil(UNTIL / sim.time_step))
    else:
        sim.advance(UNTIL)
    return sim.v[3:]


DURATIONS, TIMES = (0.0, 1e-7, 1e-4, 1e-3, 0.0123, 0.1), (0.0, 0.012, 0.01234567)  # [s]
DOORS = "simulate", "rollout", "steps", "advance"
PUSHES = [
    pytest.param(*(x[k] for x, k in zip((DURATIONS, TIMES, list(GROUNDS), DOORS), case, strict=True)), marks=marks)
    for case in itertools.product(range(6), range(3), range(4), range(4))
    for marks in [[] if sum(case) % 3 == 0 else [pytest.mark.slow]]
]
"""Each duration on each ground through each door, at one of the times; the others are slow."""


@pytest.mark.parametrize(("duration", "at", "ground", "door"), PUSHES)
def test_a_push_changes_the_momentum_by_its_impulse(duration, at, ground, door):
    terrain, integrators = GROUNDS[ground]
    for integrator in integrators:
        if door == "rollout" and isinstance(integrator, BDF):
            continue
        push = legged.Push("brick", tuple(IMPULSE), at=at, duration=duration)
        momentum = MASS * velocity_after(door, integrator, terrain, [push])
        np.testing.assert_allclose(momentum, IMPULSE, atol=ROUNDING * 5.0, err_msg=str(integrator))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("ground", ["none", "compliant", "rigid"])
def test_wrenches_in_python_and_in_machine_code_give_the_same_numbers(ground, compiled):
    terrain, integrators = GROUNDS[ground]
    wrenches = [
        legged.ExternalWrench("brick", (1.0, 0.0, 0.2), (0.0, 0.01, 0.0), point=(0.01, 0.02, 0.0), frame="link"),
        legged.ExternalWrench(
            "brick", force=lambda t: np.stack([np.sin(9.0 * t), 0.0 * t, t]), start=0.05, duration=0.1
        ),
        legged.Push("brick", (0.3, 0.1, 0.0), at=0.02, duration=0.03, point=(0.0, 0.0, 0.1)),
    ]
    integrator = next(i for i in integrators if not isinstance(i, BDF))
    runs = [
        legged.simulate(BRICK, ground=terrain, q=HIGH, until=0.2, integrator=integrator, pushes=wrenches, compiled=c)
        for c in (compiled, None)
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-13)
    np.testing.assert_allclose(runs[0].energy.push_work, runs[1].energy.push_work, atol=1e-13)
    assert np.linalg.norm(runs[0].v[-1, :3]) > 0.1  # [rad/s], the torque and the arms have turned it


def test_a_constant_force_accelerates_and_its_work_is_the_kinetic_energy():
    wind = legged.ExternalWrench("brick", force=(4.0, 0.0, 0.0))
    for integrator in (legged.SemiImplicitEuler(1e-3), legged.RungeKutta4(1e-3), BDF()):
        run = legged.simulate(BRICK, until=1.0, integrator=integrator, pushes=[wind])
        assert run.v[-1, 3] == pytest.approx(4.0 / MASS, abs=1e-12)
        assert run.energy.push_work[-1] == pytest.approx(0.5 * MASS * 4.0, abs=1e-6)  # tolerance of BDF
        assert run.energy_drift < 1e-6


def test_a_torque_about_a_principal_axis_turns_the_brick():
    spin = legged.ExternalWrench("brick", torque=(0.0, 0.0, 0.1), frame="link", start=0.25)
    run = legged.simulate(BRICK, until=1.0, integrator=legged.RungeKutta4(1e-3), pushes=[spin])
    inertia = BRICK.links[0].inertia.tensor[2, 2]
    assert run.v[-1, 2] == pytest.approx(0.1 * 0.75 / inertia, abs=1e-11)
    assert run.energy.push_work[-1] == pytest.approx(0.5 * inertia * run.v[-1, 2] ** 2, abs=1e-12)


def test_frames_and_points_are_those_of_the_link():
    start = HIGH.copy()
    start[:4] = math.cos(0.4), 0.0, 0.0, math.sin(0.4)  # turned about z by 0.8 rad
    R, point = quaternion_matrix(start[:4]), np.array([0.02, -0.03, 0.05])
    tensor = BRICK.links[0].inertia.tensor
    for frame, to_world in (("world", np.eye(3)), ("link", R)):
        wrench = legged.ExternalWrench("brick", (1.0, 2.0, 3.0), (0.1, 0.2, 0.3), point=point, frame=frame)
        h = 1e-6
        run = legged.simulate(
            BRICK, q=start, until=h, integrator=legged.SemiImplicitEuler(h), sample=h, pushes=[wrench]
        )
        f, n = to_world @ np.array([1.0, 2.0, 3.0]), to_world @ np.array([0.1, 0.2, 0.3])
        np.testing.assert_allclose(R @ run.v[-1, 3:], f * h / MASS, rtol=1e-6)
        moment = R.T @ (n + np.cross(R @ point, f))
        np.testing.assert_allclose(run.v[-1, :3], np.linalg.solve(tensor, moment) * h, rtol=1e-6)


def test_a_force_of_time_has_its_integral_and_keeps_the_order_of_runge_kutta():
    force = legged.ExternalWrench("brick", force=lambda t: np.stack([np.sin(30.0 * t), 0.0 * t, 0.0 * t]))
    exact = (1.0 - math.cos(30.0)) / 30.0  # [N s] in 1 s
    place = (1.0 - math.sin(30.0) / 30.0) / 30.0 / MASS  # [m]
    errors = []
    for step in (1 / 50, 1 / 100):
        run = legged.simulate(BRICK, until=1.0, integrator=legged.RungeKutta4(step), pushes=[force], sample=0.02)
        # The quadrature of half a step has the relative error (30 step / 2)^6 / 2016000 < 4e-10.
        assert MASS * run.v[-1, 3] == pytest.approx(exact, abs=4e-10 / 30.0)
        errors.append(abs(run.q[-1, 4] - place))
    assert errors[1] < errors[0] / 6.0  # third order in positions


def test_a_force_that_cannot_be_traced_runs_in_python():
    force = legged.ExternalWrench("brick", force=lambda t: (math.sin(3.0 * t), 0.0, 0.0))
    for runs in (
        legged.simulate(BRICK, until=0.5, integrator=legged.SemiImplicitEuler(1e-2), pushes=[force]),
        legged.rollout(BRICK, until=0.5, integrator=legged.SemiImplicitEuler(1e-2), pushes=[force]),
    ):
        assert "Python" in runs.backend
        speed = runs.v[-1, 3] if isinstance(runs, legged.Run) else runs.v[0, -1, 3]
        assert MASS * speed == pytest.approx((1.0 - math.cos(1.5)) / 3.0, abs=1e-12)


def test_members_of_a_rollout_have_forces_points_and_times_of_their_own():
    wrench = legged.ExternalWrench("brick", start=0.1, duration=1.0)
    vary = {
        "pushes.0.force": [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]],
        "pushes.0.start": [0.1, 0.3333, 0.0],
        "pushes.0.duration": [0.05, 0.1, 0.2],
    }
    runs = legged.rollout(BRICK, until=0.6, integrator=legged.SemiImplicitEuler(7e-3), pushes=[wrench], vary=vary)
    np.testing.assert_allclose(MASS * runs.v[:, -1, 3:], np.diag([0.05, 0.2, 0.8]), atol=1e-12)
    assert runs.run(1).energy_drift < 1e-12
    assert {"pushes.0.force", "pushes.0.torque", "pushes.0.point"} < legged.rollout_parameters(
        BRICK, pushes=[wrench]
    ).keys()


def test_free_bodies_are_pushed_and_their_work_is_in_the_books():
    box = FreeBody("box", legged.box_inertia(3.0, (0.1, 0.1, 0.1)), (legged.Box((0.1, 0.1, 0.1)),), (3.0, 0.0, 9.0))
    pushes = [
        legged.Push("box", tuple(IMPULSE), at=0.0123, duration=1e-4),
        legged.ExternalWrench("box", torque=(0.0, 0.0, 0.02), frame="link", start=0.05),
    ]
    run = legged.simulate(BRICK, ground=Rigid(), q=HIGH, until=UNTIL, bodies=[box], pushes=pushes)
    np.testing.assert_allclose(3.0 * run.body("box").velocity[-1], IMPULSE, atol=1e-12)
    assert not run.v.any()
    assert run.energy.push_work[-1] > 0.5 * IMPULSE @ IMPULSE / 3.0
    assert run.energy_drift < 1e-10


def test_scenes_in_parts_push_robots_and_bodies_alike():
    boxes = [
        FreeBody(f"box{k}", legged.box_inertia(1.0, (0.1,) * 3), (legged.Box((0.1,) * 3),), (0.4 * k, 1.0, 9.0))
        for k in range(14)
    ]
    group = legged.combine({"a": BRICK, "b": BRICK})
    q = group.neutral()
    for member, x in zip(group.members, (0.0, 2.0), strict=True):
        q[member.q.start : member.q.start + 3] = x, 0.0, 5.0
    pushes = [
        legged.Push("a/brick", tuple(IMPULSE), at=0.01, duration=1e-4),
        legged.Push("box1", tuple(-IMPULSE), at=0.02, duration=0.0),
        legged.ExternalWrench("box3", force=(0.0, 6.0, 0.0), start=0.1),
    ]
    runs = [
        legged.simulate(group, ground=Rigid(), q=q, until=UNTIL, bodies=boxes, pushes=pushes, compiled=c, sample=0.1)
        for c in (None, False)
    ]
    assert "parts" in runs[0].backend
    for run in runs:
        a = group.members[0].v.start
        np.testing.assert_allclose(MASS * run.v[-1, a : a + 3], IMPULSE, atol=1e-12)
        np.testing.assert_allclose(run.body("box1").velocity[-1], -IMPULSE, atol=1e-12)
        np.testing.assert_allclose(run.body("box3").velocity[-1], [0.0, 0.6, 0.0], atol=1e-12)
        assert run.energy_drift < 1e-10
    sim = legged.Simulation(group, ground=Rigid(), q=q, bodies=boxes, integrator=legged.TimeStepping(1e-3))
    sim.step(n=5, wrenches=[legged.ExternalWrench(name, force=(0.0, 6.0, 0.0)) for name in ("b/brick", "box2")])
    assert "parts" in sim.backend
    b = group.members[1].v.start
    np.testing.assert_allclose(sim.v[b : b + 3], [0.0, 30e-3 / MASS, 0.0], atol=1e-15)
    velocities = sim.state.rest[-13 * len(boxes) :].reshape(len(boxes), 13)[:, 10:]
    np.testing.assert_allclose(velocities[2], [0.0, 30e-3, 0.0], atol=1e-15)


def test_a_kick_of_a_leg_does_the_work_that_the_books_say():
    robot = robots.spatial_quadruped()
    kick = legged.Push(robot.links[-1].name, (0.5, 0.3, -0.2), at=0.0102, duration=1e-4, point=(0.05, 0.0, 0.02))
    for integrator in (legged.SemiImplicitEuler(1e-4), legged.RungeKutta4(1e-3), BDF()):
        run = legged.simulate(robot, until=0.02, sample=1e-3, integrator=integrator, pushes=[kick])
        work = run.energy.push_work[-1]
        assert work > 0.3  # [J]
        # The linear part of the motion in the step of the kick is exact; its rotation by 1e-2 rad is not.
        assert run.energy_drift < 0.01 * work, integrator


# The input of a step.


@pytest.mark.parametrize("num", [None, 3])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_step_takes_wrenches_for_its_time_only(num, compiled):
    sim = legged.Simulation(BRICK, num=num, integrator=legged.SemiImplicitEuler(1e-3), compiled=compiled)
    force = np.array([1.0, 2.0, 3.0])
    sim.step(n=3)
    sim.step(n=10, wrenches=legged.ExternalWrench("brick", force=force))
    sim.step(n=2)
    sim.step(np.zeros(6), 5, wrenches=[legged.ExternalWrench("brick", force=force)] * 2)
    momentum = MASS * np.atleast_2d(sim.v)[:, 3:]
    np.testing.assert_allclose(momentum, np.tile(20e-3 * force, (num or 1, 1)), atol=1e-15)


def test_each_robot_of_a_step_has_its_own_wrench():
    sim = legged.Simulation(BRICK, num=2, integrator=legged.SemiImplicitEuler(1e-3))
    forces = np.array([[1.0, 0.0, 0.0], [0.0, -2.0, 0.0]])
    sim.step(n=4, wrenches=legged.ExternalWrench("brick", force=forces))
    np.testing.assert_allclose(MASS * sim.v[:, 3:], 4e-3 * forces, atol=1e-15)


def test_steps_push_bodies_and_new_points_without_a_new_engine():
    box = FreeBody("box", legged.box_inertia(3.0, (0.1,) * 3), (legged.Box((0.1,) * 3),), (3.0, 0.0, 9.0))
    sim = legged.Simulation(BRICK, ground=Rigid(), q=HIGH, bodies=[box], integrator=legged.TimeStepping(1e-3))
    sim.step(n=10, wrenches=legged.ExternalWrench("box", force=(0.0, 0.0, 3.0)))
    engine = sim._robots.engine
    sim.step(n=10, wrenches=legged.ExternalWrench("box", force=(0.0, 0.0, 3.0), point=(0.01, 0.0, 0.0)))
    assert sim._robots.engine is engine
    velocity, rotation = sim.state.rest[-6:], quaternion_matrix(sim.state.rest[-13:-9])
    assert (rotation @ velocity[3:])[2] == pytest.approx(20e-3, abs=1e-12)
    assert velocity[1] < -1e-3  # [rad/s], the arm has turned it


def test_wrenches_of_steps_and_commands_go_together():
    arm = legged.Link("arm", legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.5)))
    builder = legged.RobotBuilder("arm", legged.Link("base"), base=legged.FixedBase(), gravity=(0.0, 0.0, 0.0))
    robot = builder.attach(legged.Limb().add(legged.Revolute("shoulder", "y"), arm), to="base").build()
    sim = legged.Simulation(robot, integrator=legged.SemiImplicitEuler(1e-4))
    lever = legged.ExternalWrench("arm", force=(2.0, 0.0, 0.0), point=(0.0, 0.0, -0.5), frame="link")
    sim.step(np.array([1.0]), n=100, wrenches=lever)  # 2 N at 0.5 m turn by -1 N m
    assert sim.v[0] == pytest.approx(0.0, abs=1e-12)


def test_a_refused_wrench_has_no_effect():
    sim = legged.Simulation(BRICK, integrator=legged.SemiImplicitEuler(1e-3))
    sim.step(np.full(6, 0.5))
    before = sim.state
    for wrong, error, words in (
        (legged.ExternalWrench("brik"), UnknownNameError, "did you mean 'brick'"),
        (legged.ExternalWrench("brick", start=1.0), ArgumentError, "acts as long as the call"),
        (legged.ExternalWrench("brick", force=lambda t: (0.0, 0.0, t)), ArgumentError, "as numbers"),
        (legged.ExternalWrench("brick", force=np.ones((2, 3))), ShapeError, r"must be \(3,\), got \(2, 3\)"),
        (5.0, ArgumentError, "an ExternalWrench or a list"),
    ):
        with pytest.raises(error, match=words):
            sim.step(np.full(6, 0.7), wrenches=wrong)
        np.testing.assert_array_equal(sim.v, before.v)
        assert sim.t == before.t


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: legged.ExternalWrench("brick", force=(1.0, 2.0)), ShapeError, r"force .* must be \(3,\)"),
        (lambda: legged.ExternalWrench("brick", torque=(0.0, 0.0, np.nan)), NotFiniteError, "torque .* must be finite"),
        (lambda: legged.ExternalWrench("brick", frame="body"), UnknownNameError, "world, link"),
        (lambda: legged.ExternalWrench("brick", duration=-1.0), DefinitionError, "must not be negative"),
        (lambda: legged.Push("brick", (1.0, 0.0, 0.0), at=0.0, duration=-0.1), DefinitionError, "must not be negative"),
        (lambda: legged.simulate(BRICK, until=0.1, pushes=[legged.ExternalWrench("box")]), UnknownNameError, "no link"),
        (
            lambda: legged.simulate(BRICK, until=0.1, pushes=[legged.ExternalWrench("brick", force=np.ones((2, 3)))]),
            ShapeError,
            "for Simulation.step",
        ),
        (
            lambda: legged.simulate(BRICK, until=0.1, pushes=[legged.ExternalWrench("brick", force=lambda t: t)]),
            ShapeError,
            r"must return \(3,\)",
        ),
    ],
)
def test_impossible_wrenches_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()
