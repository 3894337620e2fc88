"""Thought experiments of impacts: restitution, momentum, and energy that is never gained."""

import numpy as np
import pytest

import legged
from legged.contact import Box, FreeBody, Rigid, Sphere
from legged.contact.impulses.impulse_solver import SOLVER

G = 9.81
WEIGHTLESS = (0.0, 0.0, 0.0)


def ball(radius=0.1, gravity=(0.0, 0.0, -G), mass=1.0):
    """A ball as a robot that touches the ground and other bodies."""
    shape = Sphere(radius)
    link = legged.Link("ball", legged.sphere_inertia(mass, radius), {"skin": shape}, shapes=[shape])
    return legged.RobotBuilder("ball", link, gravity=gravity).build()


def at(robot, *position):
    q = robot.neutral()
    q[4:] = position
    return q


def simulated(robot, ground, step=1e-3, **options):
    options = {"fall": False, **options}
    return legged.simulate(robot, ground=ground, integrator=legged.TimeStepping(step), **options)


@pytest.mark.parametrize("restitution", [0.5, 0.8, 1.0])
def test_bounce_heights_of_a_ball_follow_the_square_of_the_restitution(restitution):
    robot, drop, radius = ball(), 0.5, 0.1
    for step in (2e-3, 5e-4):
        run = simulated(
            robot, Rigid(restitution=restitution), step, q=at(robot, 0.0, 0.0, radius + drop), until=2.0, sample=step
        )
        rises = run.v[:, 5]
        tops = np.flatnonzero((rises[:-1] > 0.0) & (rises[1:] <= 0.0))[:3]
        heights = run.q[tops, 6] - radius
        wanted = drop * restitution ** (2 * np.arange(1, 4))
        # A ball meets the ground up to a step's way early, and leaves it from as far: (1 + e^2) u h at each bounce.
        errors = (1.0 + restitution**2) * np.sqrt(2.0 * G * np.append(drop, wanted[:2])) * step
        bounds = np.array([sum(restitution ** (2 * (k - j)) * errors[j] for j in range(k + 1)) for k in range(3)])
        assert (np.abs(heights - wanted[: len(heights)]) < bounds[: len(heights)]).all() and len(heights) == 3
        assert run.energy_drift < 1e-12


def test_a_ball_without_restitution_ends_on_the_surface_at_once():
    robot = ball()
    run = simulated(robot, Rigid(), q=at(robot, 0.0, 0.0, 0.6), until=0.6, sample=1e-3)
    landed = run.times > np.sqrt(2.0 * 0.5 / G) + 2e-3
    assert np.abs(run.q[landed, 6] - 0.1).max() < 1e-12 and np.abs(run.v[landed]).max() < 1e-12


def thing(name, shape, mass, position, velocity, spin):
    inertia = (
        legged.sphere_inertia(mass, shape.radius) if isinstance(shape, Sphere) else legged.box_inertia(mass, shape.size)
    )
    return FreeBody(name, inertia, [shape], position=position, velocity=velocity, spin=spin)


def momenta(run, inertias):
    """Linear momentum and angular momentum about the world's origin of all bodies, (T, 3) each."""
    linear, angular = np.zeros((2, len(run), 3))
    for name, inertia in inertias.items():
        body = run.body(name)
        p = inertia.mass * body.velocity
        spin = np.einsum("tij,jk,tlk,tl->ti", body.rotation, inertia.tensor, body.rotation, body.spin)
        linear, angular = linear + p, angular + spin + np.cross(body.position, p)
    return linear, angular


def stage():
    """A robot without effect: far away and without weight."""
    robot = ball(gravity=WEIGHTLESS)
    return robot, {"q": at(robot, 100.0, 100.0, 100.0)}


@pytest.mark.parametrize("restitution, friction", [(0.0, 0.5), (0.7, 0.4), (1.0, 0.0)])
def test_balls_that_collide_in_free_flight_keep_momentum_and_gain_no_energy(restitution, friction):
    robot, start = stage()
    bodies = [
        thing("one", Sphere(0.05), 1.0, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (3.0, 2.0, 1.0)),
        thing("two", Sphere(0.08), 2.0, (0.5, 0.04, 1.02), (-1.0, 0.1, 0.0), (5.0, 3.0, -9.0)),
    ]
    ground = Rigid(restitution=restitution, friction=friction, pairs=(("one", "two"),))
    run = simulated(robot, ground, bodies=bodies, until=0.5, **start)
    linear, angular = momenta(run, {body.name: body.inertia for body in bodies})
    np.testing.assert_allclose(linear, np.broadcast_to(linear[0], linear.shape), atol=1e-12)
    np.testing.assert_allclose(angular, np.broadcast_to(angular[0], angular.shape), atol=1e-12)
    lost = run.energy.kinetic[0] - run.energy.kinetic[-1]
    if restitution < 1.0:
        assert lost > 0.1  # [J]
    else:
        assert abs(lost) < 1e-12
    assert (run.energy_drift < 1e-12) and abs(run.energy.contact_work[-1] + lost) < 1e-12


def test_bricks_that_collide_keep_momentum():
    robot, start = stage()
    for step in (2e-3, 1e-3):
        bodies = [
            thing("one", Box((0.1, 0.2, 0.3)), 1.0, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (2.0, 1.0, 1.0)),
            thing("two", Box((0.2, 0.2, 0.1)), 2.0, (0.6, 0.04, 1.05), (-1.0, 0.1, 0.0), (1.0, 3.0, -2.0)),
        ]
        ground = Rigid(restitution=0.3, friction=0.4, pairs=(("one", "two"),))
        run = simulated(robot, ground, step, bodies=bodies, until=0.6, sample=0.02, **start)
        linear, angular = momenta(run, {body.name: body.inertia for body in bodies})
        assert run.energy.kinetic[-1] < 0.8 * run.energy.kinetic[0]  # they did meet
        assert np.abs(linear - linear[0]).max() < 1e-12
        assert np.abs(angular - angular[0]).max() < 1e-12


def cradle(gap):
    """Velocities of five equal balls in a row after an impact of the first at 1 m/s."""
    robot, radius = ball(0.05, WEIGHTLESS), 0.05
    pitch = 2.0 * radius + gap
    bodies = [
        thing(f"ball{i}", Sphere(radius), 1.0, ((i + 1) * pitch - gap + 0.05, 0.0, 1.0), WEIGHTLESS, WEIGHTLESS)
        for i in range(4)
    ]
    ground = Rigid(restitution=1.0, friction=0.0, sweeps=40)
    run = simulated(
        robot, ground, q=at(robot, 0.0, 0.0, 1.0), v=np.array([0, 0, 0, 1.0, 0, 0]), bodies=bodies, until=0.5
    )
    return np.array([run.v[-1, 3], *(run.body(body.name).velocity[-1, 0] for body in bodies)])


@pytest.mark.slow
def test_a_cradle_with_gaps_passes_the_blow_on_to_its_last_ball():
    np.testing.assert_allclose(cradle(2e-3), [0.0, 0.0, 0.0, 0.0, 1.0], atol=1e-9)


def test_an_elastic_impact_at_the_end_of_a_step_keeps_its_restitution_in_spite_of_rounding():
    """Equal balls that approach at 1 m/s and just touch: without restitution there is no impulse, and the one
    with restitution gains energy by rounding alone."""
    p, before, u, dp = np.zeros((1, 3)), np.array([[-1.0, 0, 0]]), np.array([[-1.0, 0, 0]]), np.array([[1.0, 0, 0]])
    for rounding in (0.0, 1e-15, -1e-15):
        du = np.array([[2.0 + rounding, 0.0, 0.0]])
        assert abs(SOLVER.restitution_fraction(p, before + u, dp, du, (dp * u).sum()) - 1.0) < 1e-12


def test_a_cradle_that_touches_meets_the_blow_as_one():
    """Newton's restitution treats the impacts as simultaneous: four balls leave, and the first recoils.

    Momentum and energy are kept either way; the law alone does not say which of the two it is.
    """
    after = cradle(0.0)
    np.testing.assert_allclose(after, [-0.6, 0.4, 0.4, 0.4, 0.4], atol=1e-6)
    assert abs(after.sum() - 1.0) < 1e-12 and abs((after**2).sum() - 1.0) < 1e-6


def energies(robot, runs):
    """Kinetic and potential energy of members, (B, T), [J]."""
    kinetic = legged.compile(legged.kinetic_energy, robot)
    return kinetic(runs.q, runs.v) + legged.compile(legged.potential_energy, robot)(runs.q)


def rolled_out(robot, ground, q, v=None, step=1e-3, until=3.0):
    steps = legged.TimeStepping(step)
    options = {"until": until, "sample": 5e-3, "integrator": steps, "fall": False, "compiled": True}
    return legged.rollout(robot, ground=ground, q=q, v=v, **options)


def tilted(robot, angles, height):
    q = np.tile(robot.neutral(), (len(angles), 1))
    q[:, 0], q[:, 2], q[:, 6] = np.cos(angles / 2), np.sin(angles / 2), height
    return q


@pytest.mark.parametrize("restitution, friction", [(0.0, 0.8), (0.5, 0.5), (1.0, 0.5)])
def test_a_rocking_block_never_gains_energy(restitution, friction):
    half = np.array([0.1, 0.1, 0.3])
    corners = {f"corner{k}": (x * 0.1, y * 0.1, -0.3) for k, (x, y) in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)])}
    robot = legged.RobotBuilder("block", legged.Link("block", legged.box_inertia(2.0, 2 * half), corners)).build()
    angles = np.linspace(0.02, 0.3, 8)
    height = 0.1 * np.sin(angles) + 0.3 * np.cos(angles)  # the lower edge on the ground
    runs = rolled_out(robot, Rigid(restitution=restitution, friction=friction), tilted(robot, angles, height))
    energy = energies(robot, runs)
    rocked = energy[:, 0] - energy[:, -1]
    if restitution < 1.0:
        assert (rocked[:-1] > 0.0).all()
    # An edge that the ground holds turns by omega h in a step, and works h omega^2 r / 2 of the weight meanwhile.
    assert (np.maximum.accumulate(energy[:, ::-1], axis=1)[:, ::-1] - energy).max() < 5e-5  # [J], of 6 J


@pytest.mark.parametrize("restitution, friction", [(0.0, 0.8), (0.5, 0.5), (0.9, 0.3), (1.0, 0.5)])
def test_a_bouncing_dimer_never_gains_energy(restitution, friction):
    ends = {name: Sphere(0.02, (x, 0.0, 0.0)) for name, x in (("left", -0.2), ("right", 0.2))}
    weights = [legged.sphere_inertia(0.1, 0.02, end.center) for end in ends.values()]
    inertia = legged.rod_inertia(0.1, (-0.2, 0.0, 0.0), (0.2, 0.0, 0.0)) + weights[0] + weights[1]
    robot = legged.RobotBuilder("dimer", legged.Link("dimer", inertia, ends)).build()
    rng = np.random.default_rng(1)
    q = tilted(robot, rng.uniform(-0.5, 0.5, 16), 0.4)
    v = np.zeros((16, 6))
    v[:, [1, 3, 5]] = rng.normal(size=(16, 3)) * [3.0, 1.0, 1.0]  # in a plane: nothing but impacts changes the spin
    runs = rolled_out(robot, Rigid(restitution=restitution, friction=friction), q, v)
    energy = energies(robot, runs)
    later = np.maximum.accumulate(energy[:, ::-1], axis=1)[:, ::-1]
    assert (later - energy).max() < 1e-3 * energy[:, 0].max()
    assert (energy.max(axis=1) < energy[:, 0] + 1e-5).all()


@pytest.mark.parametrize("seed", [1, 5])
def test_a_jointed_robot_that_strikes_the_ground_with_friction_gains_no_energy(seed):
    """Kane's paradox: with Newton's restitution and friction a pendulum could gain energy in an impact."""
    robot = legged.random_tree(seed=seed, links=4, bases=("floating",), joints=("revolute",))
    rng = np.random.default_rng(seed)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(8)])
    q[:, 4:7] = 0.0, 0.0, 3.0
    runs = rolled_out(robot, Rigid(restitution=0.8, friction=0.8), q, rng.normal(size=(8, robot.nv)), until=2.0)
    energy = energies(robot, runs)
    assert len(robot.contacts) and (energy[:, -1] < energy[:, 0]).all()
    assert (energy.max(axis=1) - energy[:, 0]).max() < 5e-3 * energy[:, 0].max()
