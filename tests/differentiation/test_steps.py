"""Derivatives of time steps: central differences in each mode, closed forms, adjoints, batches and refused calls."""

import numpy as np
import pytest

import legged
from legged.contact import Sphere
from legged.differentiation import MODES, DifferentiableSimulation
from legged.differentiation.equations import deviation, moved
from legged.errors import ArgumentError, DefinitionError, LeggedError, ShapeError, UnknownNameError
from legged.rotations import quaternion_exp, quaternion_matrix

G, HALF, H = 9.81, 0.05, 1e-3
EXACT = {"tolerance": 1e-13, "sweeps": 100}
"""A solver that leaves rounding: its residual divided by the step of a difference is the error of the difference."""
NUMBERS = ["robot.block.mass", "ground.friction", "ground.terrain.elevation"]


CORNERS = [(a, b, -HALF) for a in (-HALF, HALF) for b in (-HALF, HALF)]


def block(corners=CORNERS):
    """A cube of 1 kg that touches the ground with its lower corners."""
    points = {f"corner{i}": corner for i, corner in enumerate(corners)}
    return legged.RobotBuilder("block", legged.Link("block", legged.box_inertia(1.0, (2 * HALF,) * 3), points)).build()


def leg(restitution=0.0):
    """A leg on a floating base in a plane, whose knee has dry friction and whose hip a stop."""
    hip = legged.Revolute("hip", "y", physics=legged.JointPhysics(lower=-0.3, upper=2.0, restitution=restitution))
    knee = legged.Revolute("knee", "y", physics=legged.JointPhysics(friction=0.4, damping=0.1))
    builder = legged.RobotBuilder(
        "leg", legged.Link("trunk", legged.box_inertia(5.0, (0.3, 0.2, 0.1))), base=legged.PlanarBase()
    )
    builder.add(hip, legged.Link("thigh", legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -0.3))), to="trunk")
    shank = legged.Link("shank", legged.rod_inertia(0.5, (0, 0, 0), (0, 0, -0.3)), {"foot": (0.0, 0.0, -0.3)})
    return builder.add(knee, shank, to="thigh", at=(0.0, 0.0, -0.3)).build()


@pytest.fixture(scope="module")
def plastic():
    return DifferentiableSimulation(block(), ground=legged.Rigid(friction=0.5, **EXACT), parameters=NUMBERS)


@pytest.fixture(scope="module")
def elastic():
    ground = legged.Rigid(friction=0.5, restitution=0.5, **EXACT)
    robot = block(CORNERS[1:3])  # two corners, one of them the lowest of `tilted`
    return DifferentiableSimulation(robot, ground=ground, parameters=[*NUMBERS, "ground.restitution"])


@pytest.fixture(scope="module")
def leg_steps():
    ground = legged.Rigid(friction=0.5, **EXACT)
    return DifferentiableSimulation(leg(), ground=ground, parameters=["robot.thigh.mass", "ground.friction"])


def flat(depth=1e-4):
    """A block on the ground: inside it by a depth, so that no corner is at the edge between two modes."""
    return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, HALF - depth])


def tilted(gap):
    """A block whose lowest corner is at a height over the ground."""
    p = quaternion_exp(np.array([0.3, 0.2, 0.1]))
    lowest = min((quaternion_matrix(p) @ np.array(corner))[2] for corner in CORNERS)
    return np.concatenate([p, [0.0, 0.0, gap - lowest]])


def map_at(sim, state, values, command, reference):
    """Return the step as a function of x = [deviation; command; parameters], in coordinates around a reference."""

    def step(x):
        ends = sim.nx, sim.nx + sim.nu
        after = sim.step(
            sim.clocks(H)[0],
            values + x[ends[1] :],
            command + x[ends[0] : ends[1]],
            moved(sim.loop, state, x[: ends[0]]),
        )
        return deviation(sim.loop, reference, after.state)

    return step


def differences(step, n, d):
    return np.stack([(step(d * e) - step(-d * e)) / (2.0 * d) for e in np.eye(n)], axis=1)


def check_against_differences(sim, run, d=1e-6, rounding=5e-13):
    """The Jacobian of the first step is that of central differences, up to their truncation and rounding.

    The truncation is the difference of differences with d and 2 d, three times that of d. Rounding: the velocity
    -gap / h of a contact has 1e-16 m / h = 1e-13 m/s, and that of four contacts enters motions of the order of one.
    """
    n, motion = sim.nx + sim.nu + sim.np, sim.nx - 3 * len(sim.loop.scene.candidates)
    exact = np.hstack([x[0] for x in run.jacobians()])
    step = map_at(sim, run.states[0], run.parameters, run.commands[0], run.states[1])
    near, far = (differences(step, n, x)[:motion] for x in (d, 2.0 * d))
    allowed = np.abs(near - far) + rounding / d * np.maximum(1.0, np.abs(near))
    assert (np.abs(exact[:motion] - near) <= allowed).all(), np.abs(exact[:motion] - near).max()
    return exact


CASES = {
    "free": (tilted(1.0), [0.1, 0.2, 0.3, 1.0, 2.0, 3.0], "free"),
    "flat, sticking": (flat(), [0.0] * 6, "sticking"),
    "flat, sliding": (flat(), [0.0, 0.0, 0.0, 0.5, 0.2, 0.0], "sliding"),
    "flat, impact with sliding": (flat(-1e-4), [0.0, 0.0, 0.0, 0.5, 0.2, -1.0], "sliding"),
    "corner, impact with sticking": (tilted(1e-3), [0.1, 0.0, 0.0, 0.5, 0.2, -5.0], "sticking"),
    "corner, impact with sliding": (tilted(1e-3), [0.1, 0.0, 0.0, -2.0, 0.2, -2.0], "sliding"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_step_has_the_derivatives_of_central_differences_in_every_mode(plastic, name):
    q, v, mode = CASES[name]
    run = plastic.rollout(until=H, q=q, v=v)
    assert MODES[int(run.modes[0].max())] == mode
    check_against_differences(plastic, run)


@pytest.mark.parametrize("v", [[0.1, 0.0, 0.0, 0.5, 0.2, -5.0], [0.1, 0.0, 0.0, -2.0, 0.2, -2.0]])
def test_impacts_with_restitution_have_the_derivatives_of_central_differences(elastic, v):
    run = elastic.rollout(until=H, q=tilted(1e-3), v=v)
    assert run.bounces[0].sum() == 1.0
    jacobian = check_against_differences(elastic, run)
    assert np.abs(jacobian[:, -1]).max() > 1.0  # with respect to the coefficient of restitution


def test_an_impact_whose_restitution_is_limited_by_its_work():
    """Newton's restitution with friction would add energy here (Kane's paradox), so that its fraction is smaller."""
    ground = legged.Rigid(friction=0.8, restitution=0.9, **EXACT)
    sim = DifferentiableSimulation(block(CORNERS[2:3]), ground=ground, parameters=["ground.restitution"])
    p = np.array([0.8991, -0.1381, 0.4026, 0.1019])
    p = p / np.linalg.norm(p)
    height = 1e-4 - (quaternion_matrix(p) @ np.array(CORNERS[2]))[2]
    run = sim.rollout(until=H, q=[*p, 0.0, 0.0, height], v=[32.662, -2.459, 21.95, 0.548, 0.758, -1.907])
    assert 0.8 < run.unknowns[0, -1] < 0.9
    check_against_differences(sim, run, d=1e-6, rounding=3e-12)  # speeds of 30 instead of 1


LEG_CASES = {  # height of the trunk or None for a foot on the ground, hip and knee, rates, torques, modes, d
    "hip at its stop": (1.0, (-0.2999, 0.6), [0.0, 0.0, 0.0, -3.0, 0.5], [0.0, 0.0], [0, 1, 2], 1e-4),
    "knee that sticks": (1.0, (0.5, 0.6), [0.0, 0.0, -1.0, 0.0, 0.0], [0.0, 0.0], [0, 2, 1], 1e-4),
    "foot that slides": (None, (0.4, 0.6), [0.1, 0.3, -1.0, 0.2, 0.5], [1.0, 0.1], [2, 2, 2], 1e-6),
    "foot that sticks": (None, (0.3, -0.6), [0.0, 0.0, -0.5, 0.01, 0.02], [0.0, 0.0], [1, 2, 2], 1e-6),
}


@pytest.mark.parametrize("name", LEG_CASES)
def test_stops_dry_friction_and_contacts_of_a_leg(leg_steps, name):
    """The impulse of a joint that a stop or friction holds has a rounding of 1e8 times that of velocities, 1e-8."""
    height, joints, rates, torques, modes, d = LEG_CASES[name]
    robot, q = leg_steps.robot, np.array([0.1, 0.0, height or 0.0, *joints])
    if height is None:
        foot = legged.point_positions(robot, q, [(robot.contacts[0].link, robot.contacts[0].position)])
        q[2] -= foot[0, 2] - 1e-4
    run = leg_steps.rollout(np.array([torques]), q=q, v=rates)
    assert run.modes[0].tolist() == modes
    check_against_differences(leg_steps, run, d, 5e-13 if 1 not in modes[1:] else 1e-7)


def test_a_ball_that_bounces_has_the_derivatives_of_its_steps_which_are_not_those_of_continuous_time():
    """v+ = -e v and q+ = q + h/2 (1 - e) v in the step of the impact, whose time does not change within the step.

    In continuous time the height after the impact changes by -e times that before it.
    """
    ball = legged.RobotBuilder(
        "ball", legged.Link("ball", legged.sphere_inertia(1.0, 0.1), {"skin": Sphere(0.1)})
    ).build()
    e, v = 0.6, 2.0
    sim = DifferentiableSimulation(ball, ground=legged.Rigid(restitution=e, **EXACT), parameters=["ground.restitution"])
    run = sim.rollout(until=H, q=[1.0, 0, 0, 0, 0, 0, 0.1 + 1e-3], v=[0, 0, 0, 0, 0, -v])
    A, _, P = (x[0] for x in run.jacobians())
    at = np.ix_([5, 11], [5, 11])
    np.testing.assert_allclose(A[at], [[1.0, (1.0 - e) * H / 2], [0.0, -e]], atol=1e-9)
    np.testing.assert_allclose(P[[5, 11], 0], [v * H / 2, v], rtol=1e-9)


def test_a_sliding_block_stops_where_coulomb_has_it(plastic):
    """x = v^2 / (2 mu g): its derivatives by v and mu are v / (mu g) and -x / mu, up to the first order in the step."""
    v, mu, T = 0.5, 0.5, 150
    run = plastic.rollout(until=T * H, q=flat(0.0), v=[0, 0, 0, v, 0, 0])
    assert np.abs(run.v[-1]).max() < 1e-9
    x, derivatives = run.gradient(final=lambda q, v: q[4])
    assert x == pytest.approx(v**2 / (2 * mu * G), abs=2 * v * H)
    assert derivatives.state[9] == pytest.approx(v / (mu * G), abs=2 * H)  # a step more or less
    assert derivatives.parameters[1] == pytest.approx(-(v**2) / (2 * mu**2 * G), abs=4 * v * H)
    assert abs(derivatives.parameters[0]) < 1e-9  # the mass cancels


def test_adjoint_and_sensitivities_agree_to_rounding(elastic, leg_steps):
    rng = np.random.default_rng(0)
    tossed = elastic.rollout(until=30 * H, q=tilted(5e-3), v=[1.0, 2.0, 0.5, 0.7, 0.3, -1.0])
    assert tossed.bounces.any() and {0.0, 2.0} <= set(tossed.modes.ravel())
    torques = rng.normal(size=(30, leg_steps.nu))
    standing = leg_steps.rollout(torques, q=[0.1, 0.0, 0.56, 0.3, -0.6], v=np.zeros(5))
    # One step of the leg, whose foot sticks, agrees to 6e-10: its contact equations magnify rounding.
    for run, tolerance in ((tossed, 1e-12), (standing, 1e-8)):
        sim = run.simulation
        directions = [rng.normal(size=shape) for shape in ((sim.nx, 2), (30, sim.nu, 2), (sim.np, 2))]
        weights = rng.normal(size=(31, sim.nx))
        forward = np.einsum("ti,tik->k", weights, run.sensitivities(*directions))
        derivatives = run.adjoint(weights)
        backward = derivatives.state @ directions[0] + derivatives.parameters @ directions[2]
        backward = backward + np.einsum("tu,tuk->k", derivatives.commands, directions[1])
        np.testing.assert_allclose(backward, forward, rtol=tolerance, atol=tolerance * np.abs(forward).max())


def test_members_of_a_batch_have_the_derivatives_of_single_motions(plastic):
    q = np.stack([CASES[name][0] for name in CASES])
    v = np.array([CASES[name][1] for name in CASES])
    values = plastic.values * (1.0 + 0.1 * np.arange(len(q))[:, None])
    together = plastic.rollout(until=3 * H, q=q, v=v, parameters=values)
    weights = np.random.default_rng(1).normal(size=(4, len(q), plastic.nx))
    both = together.jacobians(), together.adjoint(weights)
    for i in range(len(q)):
        alone = plastic.rollout(until=3 * H, q=q[i], v=v[i], parameters=values[i])
        single = alone.adjoint(weights[:, i])
        pairs = [(x[:, i], y) for x, y in zip(both[0], alone.jacobians(), strict=True)]
        pairs += [(both[1].state[i], single.state), (both[1].parameters[i], single.parameters)]
        for x, y in pairs:
            # Codes for one and for many blocks round differently. The impulses on four corners are indeterminate, and
            # their derivatives are sums of numbers of 1e13; numbers of another block differ by tenths.
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-3 * np.abs(y).max(initial=1.0))


def test_a_law_with_gains_in_the_loop():
    """The derivatives of a closed loop include those of its law, and the gradient of a cost those of its commands."""

    def law(t, q, v, wrenches, command):
        return 20.0 * (command - q[3:]) - 1.0 * v[3:]

    sim = DifferentiableSimulation(leg(), law, ground=legged.Rigid(friction=0.6, **EXACT), command=2)
    q, commands = np.array([0.1, 0.0, 0.6, 0.3, -0.6]), np.array([[0.5, -0.4]] * 20)
    v = np.array([0.1, 0.2, -0.1, 0.3, 0.4])  # at rest the knee is at the edge between two modes
    run = sim.rollout(commands, q=q, v=v)
    check_against_differences(sim, run)
    cost = {"final": lambda q, v: q[2] ** 2 + v @ v, "stage": lambda q, v, u: 1e-2 * (u @ u) + q[1] * q[3]}
    value, derivatives = run.gradient(**cost)
    rng = np.random.default_rng(2)
    change, d = rng.normal(size=commands.shape), 1e-5
    ends = [sim.rollout(commands + x * change, q=q, v=v).gradient(**cost)[0] for x in (d, -d)]
    # Truncation d^2 times third derivatives of the order of the cost times ten; rounding 1e-12 / d.
    assert (ends[0] - ends[1]) / (2 * d) == pytest.approx(
        (derivatives.commands * change).sum(), rel=1e-6, abs=1e-6 * value
    )


def test_refused_calls(plastic):
    ground = legged.Rigid()
    with pytest.raises(UnknownNameError, match="masss"):
        DifferentiableSimulation(block(), ground=ground, parameters=["robot.block.masss"])
    with pytest.raises(DefinitionError, match="needs a contact"):
        DifferentiableSimulation(
            legged.RobotBuilder("arm", legged.Link("wall"), base=legged.FixedBase())
            .add(
                legged.Revolute("a", "y", physics=legged.JointPhysics(friction=1.0)),
                legged.Link("b", legged.sphere_inertia(1.0, 0.1)),
                to="wall",
            )
            .build(),
            ground=ground,
        )
    with pytest.raises(ShapeError, match="commands must be"):
        plastic.rollout(np.zeros((2, 3)))
    run = plastic.rollout(until=2 * H, q=flat())
    with pytest.raises(ShapeError, match="weights must be"):
        run.adjoint(np.zeros(3))
    with pytest.raises(ArgumentError, match="needs a cost"):
        run.gradient()
    with pytest.raises(ArgumentError, match="need a change"):
        run.sensitivities()
    with pytest.raises(ShapeError, match="changes must be"):
        run.sensitivities(state=np.zeros((3, 1)))
    with pytest.raises(ArgumentError, match="until"):
        plastic.rollout()
    with pytest.raises(LeggedError, match="two contacts begin in the step at t = 0"):
        plastic.rollout(until=5 * H, q=flat(-2e-3), v=[0, 0, 0, 0, 0, -1.0], impact_times=True).jacobians()
    with pytest.raises(ShapeError, match="2 time steps until"):
        plastic.rollout(np.zeros((3, 0)), until=2 * H)


def test_derivatives_with_the_times_of_impacts_are_those_of_continuous_time():
    """A ball falls from z at the speed v, rebounds with e, and rises; the error falls with the step."""
    link = legged.Link("ball", legged.sphere_inertia(1.0, 0.1), {"skin": Sphere(0.1)})
    ball = legged.RobotBuilder("ball", link).build()
    e, z, v, T = 0.6, 0.3, 0.5, 0.5

    def continuous(z, v):
        speed = np.sqrt(v * v + 2 * G * z)
        late = T - (speed - v) / G
        return np.array([e * speed * late - G / 2 * late**2, e * speed - G * late])

    d = 1e-6
    exact = np.stack([continuous(z + d, v) - continuous(z - d, v), continuous(z, v - d) - continuous(z, v + d)], 1) / (
        2 * d
    )
    errors = []
    for h in (2e-3, 5e-4):
        ground, at = legged.Rigid(restitution=e, **EXACT), np.ix_([5, 11], [5, 11])
        sim = DifferentiableSimulation(
            ball, ground=ground, integrator=legged.TimeStepping(h), parameters=["ground.terrain.elevation"]
        )
        run = sim.rollout(until=T, q=[1.0, 0, 0, 0, 0, 0, z + 0.1], v=[0, 0, 0, 0, 0, -v], impact_times=True)
        derivative = run.sensitivities(state=np.eye(12 + 3))[-1]
        errors.append(np.abs(derivative[at] - exact).max())
        # A higher ground is a lower ball, and the whole frame moves up.
        moved = run.sensitivities(parameters=np.eye(1))[-1][[5, 11], 0]
        np.testing.assert_allclose(moved, [1.0 - derivative[5, 5], -derivative[11, 5]], atol=1e-6)
    print(exact, derivative[at])
    assert errors[0] < 0.02 * np.abs(exact).max() and errors[1] < 0.4 * errors[0], errors  # first order: 0.25
