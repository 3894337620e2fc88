"""Predictive control of a rigid body: agreement with a conic solver, its limits, its laws, and machine code."""

import dataclasses

import numpy as np
import pytest
from oracles.predictive_problems import (
    GRAVITY,
    OFFSETS,
    clarabel_forces,
    control,
    control_arguments,
    control_kernel,
    control_shapes,
    random_problem,
)

from controllers.locomotion.forces.predictive import predictive_control
from controllers.locomotion.forces.rigid_body import Problem, suited_weights
from legged.compiler.codegen import selection
from legged.compiler.codegen.kernels.outlined import OutlinedKernelWriter
from legged.compiler.ir import record
from legged.errors import ShapeError

AGREEMENT = 1e-4
"""Of forces, relative to the weight. The oracle's gap of 1e-11 leaves its forces uncertain by sqrt(2e-11) times the
tolerated force of a point, and ten times more where its tolerance is relative to a cost of 100."""
ROUNDING = 1e-9
"""Of forces relative to the weight after convergence; the condition number of the cost is about 1e6."""


def solve(problem, iterations=60, tolerance=1e-9):
    return predictive_control(problem, None, iterations, tolerance)


def assert_within_cones(problem, forces):
    weight = problem.mass * GRAVITY
    normal = np.sum(forces * problem.normals, axis=2)
    tangential = np.linalg.norm(forces - normal[..., None] * problem.normals, axis=2)
    assert np.all(tangential <= problem.friction * normal + 1e-12 * weight)
    assert np.all(normal <= problem.most * (1.0 + 1e-12))
    assert np.all(forces[problem.active == 0.0] == 0.0)


@pytest.mark.parametrize("gait", OFFSETS)
@pytest.mark.parametrize("n", [2, 4, 8])
def test_forces_agree_with_those_of_a_conic_interior_point_method(gait, n):
    problem = random_problem(np.random.default_rng(n), gait, n, N=5)
    plan = solve(problem)
    assert_within_cones(problem, plan.forces)
    assert np.allclose(plan.forces, clarabel_forces(problem), rtol=0.0, atol=AGREEMENT * problem.mass * GRAVITY)
    assert plan.residual < ROUNDING * GRAVITY


def test_the_default_tolerance_leaves_a_small_error():
    for seed in range(5):
        problem = random_problem(np.random.default_rng(seed), "trot", 4, N=5)
        plan = predictive_control(problem)
        error = np.abs(plan.forces - solve(problem).forces).max() / (problem.mass * GRAVITY)
        assert error < 1e-2  # the tolerance, in units of the tolerated force


def test_forces_stay_in_the_cones_when_the_iterations_end_early():
    problem = random_problem(np.random.default_rng(0), "bound", 4, N=5, disturbance=10.0)
    plan = predictive_control(problem, iterations=1)
    assert plan.residual > 1.0
    assert_within_cones(problem, plan.forces)


def test_the_last_plan_is_a_warm_start():
    problem = random_problem(np.random.default_rng(1), "trot", 4, N=5)
    plan = solve(problem)
    again = predictive_control(problem, plan.costates)
    assert again.iterations == 1.0 < plan.iterations
    assert np.allclose(again.forces, plan.forces, rtol=0.0, atol=ROUNDING * problem.mass * GRAVITY)


def test_the_next_call_takes_one_iteration_unless_contacts_begin_or_cease_to_slide():
    rng, iterations = np.random.default_rng(6), []
    for gait in OFFSETS:
        problem = random_problem(rng, gait, 4, N=5, disturbance=0.3)
        later = dataclasses.replace(
            problem,
            position=problem.position + 0.002 * problem.velocity,
            velocity=problem.velocity + 0.01 * rng.normal(size=3),
        )
        plan = predictive_control(later, solve(problem).costates)
        iterations.append(plan.iterations)
        assert np.allclose(plan.forces, solve(later).forces, rtol=0.0, atol=1e-4 * problem.mass * GRAVITY)
    assert np.mean(iterations) <= 1.4 and max(iterations) <= 2.0


def test_the_iterations_converge_from_nominal_forces_after_large_disturbances():
    """A full step of Newton's method can raise the dual cost, and one that is shortened too much hardly reduces it."""
    for seed in (0, 1, 2, 3, 4, 25):
        problem = random_problem(np.random.default_rng(seed), list(OFFSETS)[seed % 5], 4, N=10, disturbance=7.0)
        assert solve(problem).residual < ROUNDING * GRAVITY


@pytest.mark.parametrize("case", ["no contact", "contact in the last step", "one line", "huge errors", "no friction"])
def test_degenerate_problems_have_finite_plans(case):
    problem = random_problem(np.random.default_rng(2), "trot", 4, N=5)
    active, arms = problem.active.copy(), problem.arms.copy()
    if case == "no contact":
        active[:] = 0.0
    if case == "contact in the last step":
        active[:-1] = 0.0
    if case == "one line":
        arms[:, :, 1] = 0.0
    changes = {"active": active, "arms": arms}
    if case == "huge errors":
        changes |= {"position": np.array([1e3, -1e4, 1e3]), "angular_velocity": np.array([1e3, 1e2, -1e3])}
    if case == "no friction":
        changes |= {"friction": 0.0}
    problem = dataclasses.replace(problem, **changes)
    plan = solve(problem)
    assert all(np.all(np.isfinite(x)) for x in plan)
    assert_within_cones(problem, plan.forces)
    if case == "no contact":
        assert np.all(plan.wrenches == 0.0) and np.allclose(plan.acceleration, problem.gravity)
    assert plan.residual < 1e-6 * GRAVITY


def test_a_body_at_rest_over_its_feet_stands_on_nominal_forces():
    problem = resting()
    plan = solve(problem)
    assert np.allclose(plan.forces, [0.0, 0.0, problem.mass * GRAVITY / 4.0], atol=ROUNDING * problem.mass * GRAVITY)
    assert np.allclose(plan.acceleration, 0.0, atol=ROUNDING * GRAVITY)


def test_accelerations_are_those_of_the_forces():
    problem = random_problem(np.random.default_rng(3), "bound", 4, N=5)
    problem = dataclasses.replace(problem, active=np.ones((5, 4)))
    plan = solve(problem)
    force, moment = plan.forces[0].sum(axis=0), np.cross(problem.arms[0], plan.forces[0]).sum(axis=0)
    assert np.allclose(problem.mass * (plan.acceleration - problem.gravity), force, rtol=1e-12)
    assert np.allclose(problem.inertia @ plan.angular_acceleration, moment, rtol=1e-9)
    assert np.allclose(plan.wrenches[0], [*moment, *force], atol=ROUNDING * problem.mass * GRAVITY)


def test_the_acceleration_is_that_of_the_time_with_contact_and_so_are_the_nominal_forces():
    """All feet lift off in the middle of the first step: until then all of their forces act."""
    active = np.ones((5, 4))
    active[0] = 0.5
    problem = dataclasses.replace(resting(5), active=active, supported=active[:, 0])
    plan = solve(problem)
    force, moment = plan.forces[0].sum(axis=0), np.cross(problem.arms[0], plan.forces[0]).sum(axis=0)
    assert np.allclose(problem.mass * (plan.acceleration - problem.gravity), force, rtol=1e-9)
    assert np.allclose(problem.inertia @ plan.angular_acceleration, moment, atol=ROUNDING)
    assert np.allclose(problem.nominal_forces.sum(axis=1)[:, 2], problem.mass * GRAVITY / 0.9)
    assert np.allclose(plan.wrenches[0, 5], 0.5 * force[2], rtol=1e-6)
    two = np.array([[0.4, 0.4, 0.6, 0.6]] * 5)  # two feet land when the others lift off
    nominal = dataclasses.replace(problem, active=two, supported=np.ones(5)).nominal_forces
    assert np.allclose((two[..., None] * nominal).sum(axis=1)[:, 2], problem.mass * GRAVITY)


def test_a_flight_is_bridged_by_larger_forces_before_and_after():
    active = np.ones((10, 4))
    active[4:7] = 0.0
    problem = dataclasses.replace(resting(10), active=active)
    plan, h = solve(problem), problem.time_step
    supported = plan.forces[active[:, 0] > 0.0].sum(axis=1)[:, 2] / (problem.mass * GRAVITY)
    assert np.all(supported > 0.5) and supported[3] > 1.2 and supported[4] > 1.2
    z, dz = 0.0, 0.0
    heights = []
    for force in plan.forces.sum(axis=1)[:, 2]:
        ddz = force / problem.mass - GRAVITY
        z, dz = z + h * dz + 0.5 * h * h * ddz, dz + h * ddz
        heights.append(z)
    fall = 0.5 * GRAVITY * 0.15**2  # from rest; a flight that ends as high as it began rises by a quarter of it
    assert max(heights) < 0.5 * fall and min(heights) > -0.25 * fall
    without = solve(dataclasses.replace(problem, active=np.ones((10, 4))))
    assert np.allclose(without.forces[..., 2], problem.mass * GRAVITY / 4.0)


def test_robots_of_another_size_have_the_same_plan_in_their_own_units():
    problem, s = random_problem(np.random.default_rng(4), "pace", 4, N=5), 3.0
    length, velocity, rate, m = s, s**0.5, s**-0.5, s**3
    scaled = dataclasses.replace(
        problem,
        **{name: length * getattr(problem, name) for name in ("position", "positions", "arms")},
        **{name: velocity * getattr(problem, name) for name in ("velocity", "velocities")},
        **{name: rate * getattr(problem, name) for name in ("angular_velocity", "angular_velocities")},
        mass=m * problem.mass,
        inertia=m * length**2 * problem.inertia,
        most=m * problem.most,
        time_step=problem.time_step / rate,
        weights=suited_weights(m * problem.mass, length * 0.3, GRAVITY, 4),
    )
    problem = dataclasses.replace(problem, weights=suited_weights(problem.mass, 0.3, GRAVITY, 4))
    expected = m * solve(problem).forces
    assert np.allclose(solve(scaled).forces, expected, rtol=0.0, atol=1e-7 * m * problem.mass * GRAVITY)


def test_machine_code_agrees_with_python_for_one_state_and_batches():
    rng, N, n = np.random.default_rng(5), 2, 2
    kernel = control_kernel(N, n)
    problems = [random_problem(rng, gait, n, N, disturbance) for gait in OFFSETS for disturbance in (0.3, 3.0)]
    arguments = [control_arguments(problem, np.zeros((N, 6))) for problem in problems]
    batch = kernel(*(np.array(x) for x in zip(*arguments, strict=True)))
    for k, (problem, own) in enumerate(zip(problems, arguments, strict=True)):
        expected, single = control(*own)[:4], kernel(*own)
        for x, one, many in zip(expected, single, batch, strict=False):
            scale = ROUNDING * (1.0 + problem.mass * GRAVITY)
            assert np.allclose(one, x, rtol=ROUNDING, atol=scale)
            assert np.allclose(many[k], x, rtol=ROUNDING, atol=scale)


def test_the_steps_of_the_horizon_share_their_code():
    (loop,) = record(control, control_shapes(7, 4)).loops
    # The first two and the last two steps have code of their own, since zeros are folded there.
    writer = selection.body_writer(loop, 1)
    assert isinstance(writer, OutlinedKernelWriter) and writer.operation_count < 0.45 * len(loop.body.nodes)


def test_arrays_that_do_not_fit_are_refused():
    problem = resting()
    with pytest.raises(ShapeError, match=r"arms must be \(5, 4, 3\) for 5 steps and 4 contact points, got shape"):
        dataclasses.replace(problem, arms=problem.arms[:4])
    with pytest.raises(ShapeError, match=r"active must be \(N, n\)"):
        dataclasses.replace(problem, active=problem.active[0])


def resting(N=5):
    """Return a body of 10 kg at rest, 0.3 m over four feet."""
    corners = np.array([[0.2, 0.1, -0.3], [0.2, -0.1, -0.3], [-0.2, 0.1, -0.3], [-0.2, -0.1, -0.3]])
    zero, zeros = np.zeros(3), np.zeros((N, 3))
    return Problem(
        position=zero,
        velocity=zero,
        orientation=zero,
        angular_velocity=zero,
        positions=zeros,
        velocities=zeros,
        orientations=zeros,
        angular_velocities=zeros,
        mass=10.0,
        inertia=np.diag([0.1, 0.3, 0.35]),
        gravity=np.array([0.0, 0.0, -GRAVITY]),
        arms=np.tile(corners, (N, 1, 1)),
        normals=np.tile([0.0, 0.0, 1.0], (N, 4, 1)),
        active=np.ones((N, 4)),
        friction=0.6,
        most=np.inf,
        weights=suited_weights(10.0, 0.3, GRAVITY, 4),
        time_step=0.05,
    )
