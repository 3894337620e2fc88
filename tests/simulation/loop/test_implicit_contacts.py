"""Contact forces of compliant ground that time steps integrate implicitly."""

from dataclasses import dataclass

import numpy as np
import pytest
from oracles.cases import random_case

import controllers
import legged
import robots
from legged import denoc
from legged.dynamics.forward import accelerations
from legged.dynamics.kinematics import link_poses, on_bodies
from legged.errors import DefinitionError
from legged.ground import (
    AxisFriction,
    AzadFeatherstone,
    BristleFriction,
    Ground,
    HuntCrossley,
    KelvinVoigt,
    PaperNormal,
    Slope,
    VectorFriction,
    paper_ground,
    realistic_ground,
)
from legged.ground.ground import contact_masses, implicit_forces

G = 9.81
NORMAL = [KelvinVoigt(4e4, 300.0), HuntCrossley(3e6, 0.4), AzadFeatherstone(3e6, 9e3), PaperNormal(2e4, 900.0)]
FRICTION = [VectorFriction(0.7, 2e3), AxisFriction(0.7, 2e3), BristleFriction(0.7, 4e4, 300.0)]


@pytest.mark.parametrize("seed", range(6))
def test_added_masses_enter_as_the_dense_equations_say(seed):
    """(I + diag(extra) + J^T A J) vdot = tau - h, for trees of any joints, with coupled joints among them."""
    case = random_case(seed, links=8, physics=seed % 2 == 1, **({"coupled": True} if seed > 3 else {}))
    robot, rng = case.robot, np.random.default_rng(seed)
    total, masses = denoc.generalized_inertia_matrix(robot, case.q), {}
    extra = np.concatenate([np.zeros(robot.base.nv), rng.uniform(0.0, 1.0, robot.nj)])
    for link in range(0, len(robot.links), 3):
        ((k, _),) = on_bodies(robot, [(link, rng.normal(size=3))])
        root = rng.normal(size=(6, 6))
        A = root @ root.T  # about the origin of the body, in its axes
        placed = robot.links[link]
        origin = placed.rotation.T @ -placed.position
        J = legged.point_jacobian(robot, case.q, link, origin)
        to_body = np.kron(np.eye(2), (link_poses(robot, case.q)[0][link] @ placed.rotation.T).T)
        total = total + (to_body @ J).T @ A @ (to_body @ J)
        masses[k] = masses.get(k, 0.0) + A
    h = denoc.bias_forces(robot, case.q, case.v, case.wrenches)
    wanted = np.linalg.solve(total + np.diag(extra), case.tau - h)
    vdot = accelerations(robot, case.q, case.v, case.tau, case.wrenches, extra, masses)
    np.testing.assert_allclose(vdot, wanted, rtol=0.0, atol=1e-9 * np.abs(wanted).max())  # condition up to 1e6


def test_masses_at_contact_points_have_the_kinetic_energy_of_their_velocities():
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(0)
    q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
    root = rng.normal(size=(len(robot.contacts), 3, 3))
    masses = root @ root.transpose(0, 2, 1)
    _, velocities = legged.point_motion(robot, q, v, [(c.link, c.position) for c in robot.contacts])
    energy = 0.0
    for k, A in contact_masses(robot, q, masses).items():
        link = next(link for link in robot.links if link.body == k)
        twist = legged.point_jacobian(robot, q, link.index, link.rotation.T @ -link.position) @ v
        R = link_poses(robot, q)[0][link.index] @ link.rotation.T
        in_body = np.concatenate([R.T @ twist[:3], R.T @ twist[3:]])
        energy += in_body @ A @ in_body
    assert energy == pytest.approx(np.einsum("ni,nij,nj", velocities, masses, velocities), rel=1e-12)


@pytest.mark.parametrize("law", NORMAL, ids=lambda law: type(law).__name__)
def test_the_normal_force_is_linear_in_the_velocity_at_the_end_of_the_step(law):
    """Against the force at depths and rates at the end of the step, for small changes of the velocity."""
    terrain, h = Slope(0.3), 1e-3
    ground = Ground(law, VectorFriction(0.0, 1.0), terrain)
    normal = terrain.normal(0.0, 0.0)
    points = np.array([[0.0, 0.0, -2e-3], [0.1, 0.3, 0.05]])
    points[1, 2] += terrain.height(0.1, 0.3)  # in the air
    velocities = np.array([0.2, -0.3, -0.1]) + np.outer([0.0, 1.0], normal)
    forces, damping = implicit_forces(ground, points, velocities, np.zeros(0), h)
    assert not forces[1].any() and not damping[1].any()
    for change in 1e-3 * np.eye(3):
        moved, _ = ground.forces(points + h * (velocities + change), velocities + change)
        np.testing.assert_allclose(forces[0] - damping[0] @ change, moved[0], atol=2e-4 * np.linalg.norm(forces[0]))


@pytest.mark.parametrize("law", FRICTION, ids=lambda law: type(law).__name__)
def test_friction_opposes_sliding_without_reversing_it(law):
    """The force at zero velocity is that of the stored deflection alone; its slope is positive semi-definite."""
    ground, h = Ground(KelvinVoigt(1e4, 0.0), law), 2e-3
    rng = np.random.default_rng(1)
    points = np.array([[0.0, 0.0, -1e-3]])
    for size in (0.0, 1e-6, 1e-2, 1.0, 30.0):
        u = np.append(size * rng.normal(size=2), 0.0)[None]
        z = 1e-4 * rng.normal(size=law.memory)
        forces, damping = implicit_forces(ground, points, u, z, h)
        assert np.linalg.eigvalsh(damping[0]).min() >= 0.0
        limit = 0.7 * 10.0 * (np.sqrt(2.0) if isinstance(law, AxisFriction) else 1.0)
        assert np.linalg.norm(forces[0, :2]) <= limit * (1.0 + 1e-9)
        stopped = forces[0] + damping[0] @ u[0]
        if law.memory:
            stick = 4e4 * z + (300.0 + h * 4e4) * u[0, :2]
            wanted = -4e4 * z * min(1.0, 7.0 / np.linalg.norm(stick))
        else:
            wanted = np.zeros(2)
        np.testing.assert_allclose(stopped[:2], wanted, atol=1e-5)  # 1e-9 m/s times the slope of 2e3 N s/m


def test_a_law_of_ones_own_with_memory_needs_a_method():
    @dataclass(frozen=True)
    class Own:
        memory = 1

        def force(self, normal_force, velocity, memory):
            return 0.0 * velocity, 0.0 * memory

    robot, closed = robots.spatial_quadruped(), robots.four_bar()
    q = legged.loops.assemble(closed, [1.0, -0.7, 1.5], hold=["crank joint"])
    ground = Ground(KelvinVoigt(1e4, 100.0), Own())
    with pytest.raises(DefinitionError, match="Own has a memory: LinearlyImplicitEuler needs its method `implicit`"):
        start = robot.neutral() + np.eye(robot.nq)[6]
        legged.simulate(robot, q=start, ground=ground, until=0.01, integrator=legged.LinearlyImplicitEuler())
    with pytest.raises(DefinitionError, match="closed loops, which LinearlyImplicitEuler does not support"):
        legged.simulate(closed, q=q, until=0.01, integrator=legged.LinearlyImplicitEuler())


def ball_on(ground, **options):
    ball = legged.Link("ball", legged.sphere_inertia(2.0, 0.1), {"foot": (0.0, 0.0, 0.0)})
    return legged.simulate(legged.RobotBuilder("ball", ball).build(), ground=ground, **options)


@pytest.mark.parametrize("law", NORMAL[1:], ids=lambda law: type(law).__name__)
def test_an_impact_converges_with_the_first_order(law):
    """Against Runge-Kutta steps of 2e-6 s: a step of an eighth has about an eighth of the error."""
    options = {"q": [1, 0, 0, 0, 0, 0, 0.01], "v": [0, 0, 0, 0.3, 0, 0], "until": 0.1, "sample": 0.1, "fall": False}
    ground = Ground(law, BristleFriction(0.7, 4e4, 300.0))
    exact = ball_on(ground, integrator=legged.RungeKutta4(2e-6), **options)
    coarse, fine = (
        np.abs(ball_on(ground, integrator=legged.LinearlyImplicitEuler(h), **options).q[-1] - exact.q[-1]).max()
        for h in (4e-4, 5e-5)
    )
    assert 6.0 < coarse / fine < 12.0 and fine < 5e-4


@pytest.mark.parametrize("friction", FRICTION, ids=lambda law: type(law).__name__)
def test_a_sliding_point_stops_after_its_braking_distance(friction):
    """v^2 / (2 mu g), on a floor of 1 MN/m whose friction allows explicit steps of 10 us, at a step of 2 ms."""
    law = type(friction)(0.5, *(100.0 * x for x in tuple(vars(friction).values())[1:]))
    ground = Ground(KelvinVoigt(1e6, 2e3), law)
    depth = ground.normal.rest_penetration(2.0 * G)
    start = {"q": [1, 0, 0, 0, 0, 0, -depth], "v": [0, 0, 0, 1.0, 0, 0]}
    run = ball_on(ground, until=0.5, fall=False, integrator=legged.LinearlyImplicitEuler(2e-3), **start)
    assert run.base.position[-1, 0] == pytest.approx(1.0 / (2.0 * 0.5 * G), rel=0.02)  # a step of 2 ms at 1 m/s
    assert np.abs(run.v[-1]).max() < 1e-3 and run.v[:, 3].min() > -1e-3
    energy = run.energy.kinetic + run.energy.potential
    assert (np.diff(energy) < 1e-6).all()


@pytest.mark.parametrize("ground", [paper_ground, realistic_ground])
def test_stiff_contacts_do_not_limit_the_step(ground):
    """A quadruped on servos rests at 4 ms, eight times the stable explicit step, where its rest is at 50 us."""
    robot, stand = robots.spatial_quadruped(), controllers.Stand(hip_height=0.5)
    law = controllers.JointPD(stand, kp=500.0, kd=10.0)
    runs = [
        legged.simulate(robot, law, ground=ground(robot), until=1.0, integrator=integrator)
        for integrator in (legged.LinearlyImplicitEuler(4e-3), legged.SemiImplicitEuler(5e-5))
    ]
    assert np.abs(runs[0].q[-1] - runs[1].q[-1]).max() < 1e-3
    assert np.abs(runs[0].v[-1]).max() < 5e-3
    assert runs[0].contacts.forces[-1, :, 2].sum() == pytest.approx(robot.mass * G, rel=1e-3)
    assert runs[0].energy_drift < 0.02


def test_batches_move_as_single_runs_do():
    robot, stand = robots.spatial_quadruped(), controllers.Stand(hip_height=0.5)
    law, ground = controllers.JointPD(stand, kp=500.0, kd=10.0), realistic_ground(robot)
    push = legged.Push("trunk", (2.0, 1.0, 0.0), at=0.02)
    options = {"ground": ground, "integrator": legged.LinearlyImplicitEuler(), "until": 0.2, "pushes": [push]}
    single = legged.simulate(robot, law, **options)
    batch = legged.rollout(
        robot, law, **options, vary={"pushes.0.impulse": np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])}
    )
    np.testing.assert_allclose(batch.q[0], single.q, rtol=0.0, atol=1e-12)
    plain = legged.simulate(robot, law, **options, compiled=False)
    np.testing.assert_allclose(plain.q, single.q, rtol=0.0, atol=1e-10)  # rounding, grown by impacts
