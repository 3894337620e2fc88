"""`Simulation`: steps as those of `simulate`, independent robots, resets, observations, commands, saved states."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import controllers
import legged
import robots
from legged import loops
from legged.contact.rigid import Rigid
from legged.errors import (
    ArgumentError,
    DefinitionError,
    LoopError,
    NotFiniteError,
    ShapeError,
    StateError,
    TraceError,
    UnknownNameError,
)
from legged.ground import KelvinVoigt, Slope, VectorFriction, paper_ground
from legged.ground.ground import Ground
from legged.simulation.stepping.clock import Clock

EULER = legged.SemiImplicitEuler(1e-3)
ROUNDING = 1e-9  # relative, after a few hundred steps on stiff ground: rounding, grown by an unstable motion
SPRINGS = Ground(KelvinVoigt(3e3, 60.0), VectorFriction(0.7, 50.0))


def standing(t, q, v, wrenches):
    return np.stack([-40.0 * q[3] - 2.0 * v[3], -2000.0 * q[4] - 60.0 * v[4]])


def servo(t, q, v, wrenches, command):
    return np.stack([40.0 * (command[0] - q[3]) - 2.0 * v[3], 2000.0 * (command[1] - q[4]) - 60.0 * v[4]])


class Integral:
    """A controller with a memory that has a rate, and a discrete update that counts its calls."""

    def start(self, robot, ground, q, v):
        return np.array([0.1 * q[4], 0.0])

    def torque(self, t, phase, q, v, wrenches, memory):
        return standing(t, q, v, wrenches) - np.stack([0.0, 50.0 * memory[0] + 1e-3 * memory[1]])

    def rate(self, t, phase, q, v, wrenches, memory):
        return np.stack([q[4], 0.0])

    def update(self, t, phase, q, v, wrenches, memory):
        return memory + np.array([0.0, 1.0])


class Excited(Integral):
    """The controller above with a torque that depends on time."""

    def torque(self, t, phase, q, v, wrenches, memory):
        return super().torque(t, phase, q, v, wrenches, memory) + np.stack([0.5 * np.sin(9.0 * t), 0.0 * t])


@pytest.fixture(scope="module")
def hopper():
    robot = robots.planar_hopper()
    q = np.repeat(robot.neutral()[None], 11, axis=0)
    q[:, 2] += np.linspace(0.59, 0.7, 11)
    return robot, q


def close(one, two):
    assert (np.abs(one - two) <= ROUNDING * (np.abs(two).max(axis=0) + 1.0)).all()


def recorded(sim, count, n, *command):
    """Return q and v before and after each of some calls, with the robots last."""
    q, v = [sim.q], [sim.v]
    for _ in range(count):
        sim.step(*command, n=n)
        q.append(sim.q)
        v.append(sim.v)
    return np.array(q), np.array(v)


@pytest.mark.parametrize("ground", [None, SPRINGS, legged.Rigid(friction=0.7)], ids=["flight", "compliant", "rigid"])
@pytest.mark.parametrize(
    "law", [standing, Integral(), controllers.ZeroOrderHold(standing, rate=300.0)], ids=["law", "memory", "held"]
)
def test_steps_are_those_of_simulate(hopper, ground, law):
    robot, q = hopper
    steps = legged.TimeStepping(1e-3) if isinstance(ground, legged.Rigid) else EULER
    options = {"ground": ground, "integrator": steps, "fall": False}
    run = legged.simulate(robot, law, until=0.1, sample=4e-3, q=q[3], **options)
    sim = legged.Simulation(robot, law, q=q[3], compiled=True, **options)
    q_steps, v_steps = recorded(sim, 25, 4)
    close(q_steps, run.q)
    close(v_steps, run.v)
    assert sim.t == pytest.approx(0.1, abs=1e-12) and sim.backend.startswith("compiled")
    if not isinstance(ground, legged.Rigid):
        close(sim.contacts.forces, run.contacts.forces[-1])
    elif not isinstance(law, controllers.ZeroOrderHold):  # whose updates divide the time steps
        every_step = legged.simulate(robot, law, until=0.1, sample=1e-3, q=q[3], **options)
        close(sim.contacts.forces, every_step.contacts.forces[-1])  # means over a sample interval
    np.testing.assert_array_equal(sim.contacts.touching, np.abs(sim.contacts.forces).sum(axis=1) > 0.0)
    plain = legged.Simulation(robot, law, q=q[3], compiled=False, **options)
    close(recorded(plain, 5, 4)[1], run.v[:6])


def test_phases_change_where_the_gait_switches():
    robot = robots.planar_biped()
    law, ground = controllers.ComputedTorque(controllers.Walk(period=0.11)), paper_ground(robot)
    run = legged.simulate(robot, law, ground=ground, until=0.3, sample=4e-3, integrator=EULER)
    sim = legged.Simulation(robot, law, ground=ground, integrator=EULER)
    phases = [sim.observe(phase)]
    for _ in range(75):
        sim.step(n=4)
        phases.append(sim.observe(phase))
    close(sim.q, run.q[-1])
    np.testing.assert_array_equal(phases, run.phases)
    assert run.phases[-1] > 1


def phase(phase):
    return phase


def test_random_robots_in_flight_and_one_robot_as_one_of_many():
    for seed in range(3):
        robot = legged.random_tree(seed, 6, bases=("floating",), joints=("revolute", "ball"))
        inertias = np.diag(legged.inertia_matrix(robot, robot.neutral()))[robot.base.nv :]  # tau of about 1 rad/s^2
        tau = inertias * np.random.default_rng(seed).standard_normal((3, robot.nj))
        many = legged.Simulation(robot, num=3, integrator=EULER)
        one = legged.Simulation(robot, integrator=EULER)
        for _ in range(10):
            many.step(tau, n=2)
            one.step(tau[1], n=2)
        run = legged.simulate(robot, lambda t, q, v, w, tau=tau[1]: tau, until=0.02, integrator=EULER)
        close(one.q, run.q[-1])
        close(many.v[1], run.v[-1])


def test_a_robot_does_not_depend_on_the_others_nor_on_threads(hopper):
    robot, q = hopper
    options = {"ground": SPRINGS, "integrator": EULER}
    whole = legged.Simulation(robot, standing, num=11, q=q, threads=1, **options)
    whole.step(n=300)
    for rows in (slice(2, 4), slice(3, 10)):
        part = legged.Simulation(robot, standing, num=rows.stop - rows.start, q=q[rows], threads=2, **options)
        for _ in range(100):
            part.step(n=3)
        np.testing.assert_array_equal(part.v, whole.v[rows])
    alone = legged.Simulation(robot, standing, q=q[3], **options)
    alone.step(n=300)
    close(alone.v, whole.v[3])


def test_a_reset_starts_the_robots_of_the_mask_and_leaves_the_others(hopper):
    robot, q = hopper
    options = {"ground": SPRINGS, "integrator": EULER, "num": 11}
    sim, other = (legged.Simulation(robot, Excited(), q=q, **options) for _ in range(2))
    sim.step(n=100)
    other.step(n=100)
    mask = np.arange(11) % 3 == 0
    sim.reset(q[::-1], where=mask)
    np.testing.assert_array_equal(sim.q[mask], q[::-1][mask])
    np.testing.assert_array_equal(sim.q[~mask], other.q[~mask])
    np.testing.assert_array_equal(sim.t, np.where(mask, 0.0, 0.1))
    sim.step(n=50)
    other.step(n=50)
    np.testing.assert_array_equal(sim.v[~mask], other.v[~mask])
    fresh = legged.Simulation(robot, Excited(), q=q[::-1], **options)
    fresh.step(n=50)
    np.testing.assert_array_equal(sim.state.rest[mask], fresh.state.rest[mask])
    sim.reset(where=[1, 2])
    np.testing.assert_array_equal(sim.q[[1, 2]], q[[1, 2]])


def features(t, q, v, contacts, tau):
    center = legged.center_of_mass(robots.planar_hopper(), q)
    return {"center": center, "load": contacts.forces.sum(axis=0), "tau": tau, "t": t}


def test_an_observation_is_the_function_of_the_present_state(hopper):
    robot, q = hopper
    sim = legged.Simulation(robot, standing, ground=SPRINGS, num=11, q=q, integrator=EULER)
    sim.step(n=150)
    seen, forces = sim.observe(features), sim.contacts.forces
    lone = legged.Simulation(robot, standing, ground=SPRINGS, num=1, q=sim.q[3], v=sim.v[3], integrator=EULER)
    alone = lone.observe(features)
    for name in ("center", "load", "tau"):
        np.testing.assert_allclose(alone[name], seen[name][3:4], rtol=1e-9, atol=1e-9)
    for i in (0, 7):
        np.testing.assert_allclose(seen["center"][i], legged.center_of_mass(robot, sim.q[i]), atol=1e-12)
        np.testing.assert_allclose(seen["tau"][i, 3:], standing(0.0, sim.q[i], sim.v[i], None), rtol=1e-9)
    np.testing.assert_allclose(seen["load"], forces.sum(axis=1), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(seen["t"], sim.t)
    plain = legged.Simulation(robot, standing, ground=SPRINGS, num=11, q=sim.q, integrator=EULER, compiled=False)
    np.testing.assert_allclose(plain.observe(features)["center"], seen["center"], atol=1e-12)


def test_commands_reach_controllers_and_torques_reach_motors(hopper):
    robot, q = hopper
    targets = np.stack([np.linspace(0.0, 0.1, 11), np.zeros(11)], axis=1)
    options = {"ground": SPRINGS, "integrator": EULER}
    sim = legged.Simulation(robot, servo, num=11, q=q, **options)
    plain = legged.Simulation(robot, servo, q=q[4], compiled=False, **options)
    torques = legged.Simulation(robot, num=11, q=q, **options)
    for _ in range(20):
        sim.step(targets)
        plain.step(targets[4])
        now = zip(torques.q, torques.v, targets, strict=True)
        torques.step(np.array([servo(0.0, x, y, None, z) for x, y, z in now]))
    close(plain.v, sim.v[4])
    close(torques.v, sim.v)


def test_a_saved_state_continues_as_before(hopper):
    robot, q = hopper
    sim = legged.Simulation(robot, Integral(), ground=SPRINGS, num=11, q=q, integrator=EULER)
    sim.step(n=30)
    saved = sim.state
    sim.step(n=20)
    after = sim.state
    sim.reset()
    sim.state = saved
    sim.step(n=20)
    np.testing.assert_array_equal(sim.state.rest, after.rest)
    np.testing.assert_array_equal(sim.t, after.t)
    one = legged.Simulation(robot, Integral(), ground=SPRINGS, q=q[2], integrator=EULER)
    one.step(n=30)
    sim.state = one.state
    np.testing.assert_array_equal(sim.q, np.tile(one.q, (11, 1)))
    one.state = one.state
    sim.step(n=200)  # beyond a check for divergence
    one.step(n=200)
    close(sim.q[4], one.q)


@pytest.mark.parametrize("compiled", [True, False])
def test_falls_and_divergence_are_flags(hopper, compiled):
    robot, q = hopper
    v = np.zeros((3, robot.nv))
    v[0, 0], v[1, 3] = 8.0, 1e200  # turning over, and a speed whose square is no number
    options = {"ground": SPRINGS, "num": 3, "integrator": EULER, "compiled": compiled}
    sim = legged.Simulation(robot, standing, q=q[:3], v=v, **options)
    for _ in range(100):
        sim.step(n=4)
    np.testing.assert_array_equal(sim.fallen, [True, False, False])
    np.testing.assert_array_equal(sim.diverged, [False, True, False])
    np.testing.assert_array_equal(sim.ended, [True, True, False])
    assert "leaned over" in sim.reasons[0] and "diverged" in sim.reasons[1] and sim.reasons[2] == ""
    np.testing.assert_array_equal(sim.v[1], v[1])
    assert sim.t[1] == 0.0 and 0.0 < sim.t[0] < sim.t[2] == 0.4
    before = sim.q
    sim.step()
    np.testing.assert_array_equal(sim.q[:2], before[:2])
    sim.reset(v=np.zeros(robot.nv), where=sim.ended)
    assert not sim.ended.any()
    sim.step(n=4)
    assert (sim.t[:2] == 0.004).all() and sim.t[2] > 0.4


def test_advance_reaches_a_time_with_steps_that_divide_it(hopper):
    robot, q = hopper
    sim = legged.Simulation(robot, standing, ground=SPRINGS, q=q[0], integrator=EULER)
    sim.advance(0.0105)
    run = legged.simulate(robot, standing, ground=SPRINGS, q=q[0], until=0.0105, sample=0.0105, integrator=EULER)
    close(sim.v, run.v[-1])
    assert sim.t == 0.0105


def test_what_cannot_be_traced_runs_in_python_and_says_so(hopper):
    robot, q = hopper

    def branching(t, q, v, wrenches):
        return standing(t, q, v, wrenches) if v[0] < 1.0 else np.zeros(robot.nj)

    sim = legged.Simulation(robot, branching, q=q[0], integrator=EULER)
    sim.step(n=3)
    assert "controller in Python" in sim.backend and "legged.where" in sim.backend
    with pytest.raises(TraceError, match=r"legged\.where"):
        legged.Simulation(robot, branching, q=q[0], integrator=EULER, compiled=True).step()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("num", "threads"), [(None, 1), (1, 1), (2, 1), (11, 1), (400, 3)])
def test_a_command_that_is_not_finite_changes_nothing(hopper, num, threads, dtype):
    """A step of 400 robots is long enough to be divided among threads."""
    robot, q = hopper
    options = {"ground": SPRINGS, "integrator": EULER, "num": num, "threads": threads, "dtype": dtype, "q": q[0]}
    sim, other = (legged.Simulation(robot, servo, **options) for _ in range(2))
    command = np.full((*(() if num is None else (num,)), 2), 0.01, dtype)
    command[..., 1] = 0.6
    with pytest.raises(NotFiniteError, match="command"):
        sim.step(np.full(3, np.nan))  # the first command may have any length, and this one does not count
    for each in (sim, other):
        each.step(command, n=40)
    before = sim.state
    for place, bad in (((0, 1), np.nan), ((-1, 0), np.inf), ((-1, -1), -np.inf)):
        wrong = command + 0.1
        wrong[place if num else place[1]] = bad
        entry = ", ".join(map(str, np.argwhere(~np.isfinite(wrong))[0]))
        for refused in (lambda w=wrong: sim.step(w, n=40), lambda w=wrong: sim.advance(0.1, w)):
            with pytest.raises(NotFiniteError, match=f"command must be finite, got {bad} at entry {entry}"):
                refused()
        for name in ("t", "q", "v", "rest", "outcome"):
            np.testing.assert_array_equal(getattr(sim.state, name), getattr(before, name))
        np.testing.assert_array_equal(sim.observe(given), command)
    if dtype == "float32":
        with pytest.raises(NotFiniteError, match="command must be finite, got inf"):
            sim.step(1e300 * command.astype(float))
    for each in (sim, other):
        each.step(command, n=40)
    np.testing.assert_array_equal(sim.q, other.q)
    np.testing.assert_array_equal(sim.v, other.v)


def given(command):
    return command


@pytest.mark.parametrize("num", [None, 1, 2, 9])
def test_a_command_has_any_type_and_layout(hopper, num):
    robot, q = hopper
    sim = legged.Simulation(robot, num=num, q=q[0], integrator=EULER)
    shape = (robot.nj,) if num is None else (num, robot.nj)
    torques = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    alike = (torques, torques.tolist(), torques.astype(np.float32), torques.astype(int), np.asfortranarray(torques))
    start, ends = sim.state, []
    for command in (*alike, np.repeat(torques, 2, axis=-1)[..., ::2]):
        sim.state = start
        sim.step(command, n=3)
        ends.append(sim.v)
        np.testing.assert_array_equal(sim.observe(given), torques)
    assert (np.array(ends) == ends[0]).all() and (ends[0] != 0.0).any()
    sim.state = start
    sim.advance(3e-3, torques)
    close(sim.v, ends[0])
    sim.step(torques[0] if num else torques)  # one command for all
    np.testing.assert_array_equal(sim.observe(given), np.broadcast_to(torques[0] if num else torques, shape))
    sim.step()
    np.testing.assert_array_equal(sim.observe(given), np.zeros(shape))
    torques[:] = np.nan  # the simulation has a copy
    np.testing.assert_array_equal(sim.observe(given), np.zeros(shape))


def test_errors_say_what_to_do(hopper):
    robot, q = hopper
    sim = legged.Simulation(robot, num=11, q=q, integrator=EULER)
    with pytest.raises(ShapeError, match=r"\(2,\) or \(5,\) or \(11, 2\) or \(11, 5\), got shape \(3,\)"):
        sim.step(np.zeros(3))
    with pytest.raises(NotFiniteError, match="command"):
        sim.step(np.array([0.0, np.nan]))
    with pytest.raises(ShapeError, match=r"mask \(11,\)"):
        sim.reset(where=np.ones(4, dtype=bool))
    with pytest.raises(ShapeError, match="row per robot"):
        sim.reset(q[:3])
    with pytest.raises(UnknownNameError, match="quantity to observe"):
        sim.observe(lambda velocity: velocity)
    with pytest.raises(ArgumentError, match="takes no command"):
        legged.Simulation(robot, standing, q=q[0], integrator=EULER).step(np.zeros(2))
    with pytest.raises(ShapeError, match="takes a command"):
        legged.Simulation(robot, servo, q=q[0], integrator=EULER).step()
    with pytest.raises(ArgumentError, match="n must be at least 1"):
        sim.step(n=0)
    walker = legged.Simulation(robots.spatial_quadruped(), num=2, integrator=EULER)
    with pytest.raises(ShapeError, match="must have norm 1"):
        walker.reset(2.0 * walker.q)
    hinge = legged.Revolute("hinge", "y", physics=legged.JointPhysics(lower=-0.2, upper=0.2))
    rod = legged.Link("rod", legged.Inertia(1.0, (0.5, 0.0, 0.0), np.diag([0.01, 0.05, 0.05])))
    builder = legged.RobotBuilder("pendulum", legged.Link("wall"), base=legged.FixedBase())
    pendulum = legged.Simulation(builder.add(hinge, rod, to="wall").build(), num=2, integrator=EULER)
    with pytest.raises(StateError, match="beyond its stop"):
        pendulum.reset(np.array([[0.0], [0.3]]))
    pendulum.reset(np.array([[0.0], [0.3]]), where=np.array([True, False]))


def test_motions_beyond_the_bounds_of_divergence_end_as_in_rollouts(hopper):
    """A robot too fast, one whose next state is not finite, and one with energy from an unstable step."""
    robot, q = hopper
    v = np.zeros((3, robot.nv))
    v[1, 3], v[2, 3] = 1e200, 1e6
    for compiled in (True, False):
        sim = legged.Simulation(robot, num=3, q=q[:3], v=v, integrator=EULER, compiled=compiled)
        sim.step(n=10)  # the bounds are checked after 10 ms
        np.testing.assert_array_equal(sim.diverged, [False, True, True])
        np.testing.assert_allclose(sim.t, [0.01, 0.0, 0.01], rtol=1e-12)
        reason = "the next state is not finite" if compiled else "has no finite answer"
        assert reason in sim.reasons[1] and "joint 'slide' moves at" in sim.reasons[2]
        assert "use a smaller step than 0.001 s" in sim.reasons[2] and np.isfinite(sim.v).all()
    h, wall = 0.01, legged.RobotBuilder("cart", legged.Link("wall"), base=legged.FixedBase())
    cart = wall.add(legged.Prismatic("slide", "x"), legged.Link("block", legged.point_mass(1.0)), to="wall").build()

    def too_stiff(t, q, v, wrenches):
        return -((2.001 / h) ** 2) * q

    options = {"q": [0.1], "integrator": legged.SemiImplicitEuler(h), "fall": False}
    runs = legged.rollout(cart, too_stiff, until=4.0, sample=h, **options)
    sim = legged.Simulation(cart, too_stiff, num=2, **options)
    while not sim.ended.all():
        sim.step()
    assert "J of kinetic energy come from no" in sim.reasons[1]
    assert sim.t[1] == pytest.approx(runs.when[0])  # found at the second of two intervals; rollouts give the first
    sim.reset()
    sim.step(n=3)
    assert not sim.diverged.any()


class Commanded:
    """Servos whose targets are the command, with a memory that integrates it."""

    def start(self, robot, ground, q, v):
        return np.zeros(2)

    def torque(self, t, phase, q, v, wrenches, memory, command):
        return servo(t, q, v, wrenches, command) - memory

    def rate(self, t, phase, q, v, wrenches, memory, command):
        return command


@pytest.mark.parametrize("law", [servo, Commanded()], ids=["function", "memory"])
def test_wrappers_pass_the_command_to_their_law(hopper, law):
    robot, q = hopper
    other = controllers.SwitchedLaw([standing, law], [0.0195])
    wrapped = {
        "hold": controllers.ZeroOrderHold(law, rate=250.0),
        "limits": controllers.ActuatorLimits(law, torque_limit=30.0),
        "noise": controllers.SensorNoise(law, position=1e-3),
        "lag": controllers.ActuatorLag(controllers.Delay(law, delay=2e-3), time_constant=5e-3),
        "switched": controllers.NominalModel(other, model=robot),
    }
    if law is servo:
        wrapped = {name: wrapped[name] for name in ("hold", "lag")}
    options = {"ground": SPRINGS, "integrator": EULER, "num": 2, "q": q[:2]}
    target = np.array([[0.0, 0.0], [0.3, 0.02]])
    for name, outer in wrapped.items():
        sim = legged.Simulation(robot, outer, compiled=True, **options)
        still = legged.Simulation(robot, outer, compiled=False, **options)
        for _ in range(10):
            sim.step(target, n=4)
            still.step(target[0], n=4)
        close(sim.v[0], still.v[0])
        assert np.abs(sim.v[1] - still.v[1]).max() > 0.1, name
        assert sim.observe(command)[1] == pytest.approx(target[1])
    with pytest.raises(ShapeError, match="takes a command"):
        legged.Simulation(robot, wrapped["lag"], compiled=True, **options).step()


def command(command):
    return command


# Closed kinematic loops, and the solver with variable steps.


def spinning_four_bar():
    closed = robots.four_bar()
    q = loops.assemble(closed, [1.0, -0.7, 1.5], hold=["crank joint"])
    return closed, q, loops.consistent_velocity(closed, q, [8.0, 0, 0], hold=["crank joint"])


@pytest.mark.parametrize("num", [None, 3])
def test_robots_with_closed_loops_move_as_in_simulate(num):
    closed, q, v = spinning_four_bar()
    run = legged.simulate(closed, lambda t, q, v, w: np.array([0.5, 0.0, 0.0]), until=0.1, q=q, v=v)
    sim = legged.Simulation(closed, num=num, q=q, v=v, compiled=True)
    assert sim.integrator == legged.RungeKutta4(1e-3)
    for _ in range(10):
        sim.step([0.5, 0.0, 0.0], n=10)
    np.testing.assert_allclose(np.atleast_2d(sim.q), np.tile(run.q[-1], (num or 1, 1)), rtol=0.0, atol=1e-12)
    assert np.abs(loops.residual(closed, np.atleast_2d(sim.q)[0])).max() < 1e-13
    sim.reset()
    np.testing.assert_array_equal(np.atleast_2d(sim.v)[0], v)


def test_states_that_open_the_loops_are_refused():
    closed, q, v = spinning_four_bar()
    sim = legged.Simulation(closed, q=q, v=v)
    with pytest.raises(LoopError, match="does not close the loops"):
        sim.reset(q + 0.1)
    with pytest.raises(LoopError, match="opens the loops"):
        sim.reset(q, v + 1.0)
    with pytest.raises(DefinitionError, match="closed loops, whose parameters cannot vary"):
        legged.Simulation(closed, num=2, q=q, vary={"robot.crank.mass": [1.0, 2.0]})


def test_closed_loops_stay_closed_on_rigid_ground():
    """A linkage in free motion: the state stays on the loops, and the energy drifts with the square of the step."""
    closed, q, v = spinning_four_bar()

    def energy(q, v):
        return legged.kinetic_energy(closed.robot, q, v) + legged.potential_energy(closed.robot, q)

    drifts = []
    for step in (2e-3, 1e-3):
        sim = legged.Simulation(closed, q=q, v=v, ground=Rigid(), integrator=legged.TimeStepping(step))
        drift = 0.0
        while sim.t < 0.25:
            sim.step()
            drift = max(drift, abs(energy(sim.q, sim.v) - energy(q, v)))
        drifts.append(drift)
        assert np.abs(loops.residual(closed, sim.q)).max() < 1e-12
        assert np.abs(loops.jacobian(closed, sim.q) @ sim.v).max() < 1e-12
    assert drifts[1] < 0.3 * drifts[0] < 1e-3, drifts  # [J] of 1


@pytest.mark.parametrize("num", [None, 2])
def test_variable_steps_reach_the_next_control_time(num):
    """The solver starts anew at each command; its tolerance of 1e-6 per step bounds the difference."""
    robot, stiff = robots.planar_hopper(), legged.simulation.BDF()
    q = robot.neutral()
    q[2] = 0.62
    law = lambda t, q, v, w: servo(t, q, v, w, np.zeros(2))  # noqa: E731
    run = legged.simulate(robot, law, until=0.1, q=q, ground=SPRINGS, integrator=stiff)
    sim = legged.Simulation(robot, servo, num=num, q=q, ground=SPRINGS, integrator=stiff, period=0.02)
    for _ in range(3):
        sim.step(np.zeros(2))
    sim.advance(0.1, np.zeros(2))
    np.testing.assert_allclose(sim.t, 0.1, rtol=1e-12)
    np.testing.assert_allclose(np.atleast_2d(sim.q), np.tile(run.q[-1], (num or 1, 1)), rtol=0.0, atol=1e-5)
    assert run.contacts.forces[-1, 0, 2] > 10.0  # [N]: it has landed on its springs


def test_variable_steps_divide_at_switches_and_end_robots_without_a_solution():
    robot, stiff = robots.planar_hopper(), legged.simulation.BDF()

    def bad(t, q, v, wrenches):
        return np.sqrt(0.05 - t) * np.ones(2) if t < 0.05 else np.full(2, np.nan)

    sim = legged.Simulation(robot, bad, integrator=stiff, fall=False)
    sim.step(n=4)
    assert not sim.ended
    sim.step(n=2)
    assert sim.diverged and "the time step of the solver fell to zero" in sim.reasons[0]
    with pytest.raises(DefinitionError, match=r"period of .* is its step"):
        legged.Simulation(robot, integrator=EULER, period=0.01)
    with pytest.raises(DefinitionError, match="discrete update needs an integrator with fixed steps"):
        legged.Simulation(robot, Integral(), integrator=stiff)
    with pytest.raises(TraceError, match="runs in Python; use fixed steps"):
        legged.Simulation(robot, integrator=stiff, compiled=True).step()


class UphillForce:
    """A controller that knows the terrain."""

    def __init__(self, terrain):
        self.terrain = terrain

    def torque(self, t, phase, q, v, wrenches, memory):
        return standing(t, q, v, wrenches) + 0.1 * self.terrain.height(q[0], 0.0 * q[1])


def test_a_controller_that_shares_the_terrain_of_the_ground_is_compiled(hopper):
    robot, q = hopper
    slope = Slope(0.1)
    ground = Rigid(terrain=slope)
    sim = legged.Simulation(robot, UphillForce(slope), ground=ground, q=q[0], compiled=True)
    sim.step(n=3)
    assert sim.t == pytest.approx(3e-3)


class Spring:
    """A controller with a stiffness."""

    def __init__(self, kp):
        self.kp = kp

    def torque(self, t, phase, q, v, wrenches, memory):
        return -self.kp * q[3:] - 2.0 * v[3:]


def test_numbers_change_while_robots_go_on_and_compile_once(hopper):
    robot, starts = hopper
    sim = legged.Simulation(robot, Spring(30.0), ground=SPRINGS, q=starts[0], integrator=EULER)
    sim.step(n=100)
    heavy = robot.with_parameters({"trunk.mass": 6.0})
    for k, (kp, own) in enumerate([(40.0, robot), (50.0, robot), (50.0, heavy)]):
        engine = sim._robots.engine
        sim.change({"controller.kp": kp} if own is robot else {"robot.trunk.mass": 6.0})
        state, t = sim.state, float(sim.t)
        other = legged.Simulation(own, Spring(kp), ground=SPRINGS, q=starts[0], integrator=EULER)
        other.state = replace(other.state, q=state.q, v=state.v, rest=state.rest)
        for each in (sim, other):
            each.step(n=20)
        assert np.allclose(sim.q, other.q, atol=ROUNDING) and np.allclose(sim.v, other.v, atol=ROUNDING)
        assert (sim._robots.engine is engine) == (k == 1)  # a number that has changed before needs no compilation
        assert sim.t == pytest.approx(t + 20e-3)
    assert sim.parameters["controller.kp"] == 50.0 and sim.parameters["robot.trunk.mass"] == 6.0
    sim.reset()
    assert sim.t == 0.0 and sim.parameters["controller.kp"] == 50.0


def test_a_number_in_the_memory_of_a_controller_changes_there():
    class Ramp:
        def __init__(self):
            self.rise = 2.0

        def start(self, robot, ground, q, v):
            return self, np.array([0.0, self.rise])

        def torque(self, t, phase, q, v, wrenches, memory):
            return 0.0 * v

        def rate(self, t, phase, q, v, wrenches, memory):
            return np.stack([memory[1], 0.0 * memory[1]])

    sim = legged.Simulation(robots.chain(1, base=legged.FixedBase()), Ramp(), num=2)
    sim.advance(0.5)
    sim.change({"controller.rise": [2.0, 4.0]})
    sim.advance(1.0)
    assert sim.observe(lambda memory: memory[0]) == pytest.approx([2.0, 3.0])


def test_another_controller_goes_on_from_the_present_states(hopper):
    robot, starts = hopper

    def pull(t, q, v, wrenches):
        return np.array([1.0, 0.0]) + 0.0 * v[3:]

    def push(t, q, v, wrenches, command):
        return -command + 0.0 * v[3:]

    sim = legged.Simulation(robot, pull, num=2, q=starts[:2])
    sim.advance(0.05)
    q, v = sim.q, sim.v
    sim.change_controller(push)
    assert np.array_equal(sim.q, q) and np.array_equal(sim.v, v) and sim.t.tolist() == [0.05, 0.05]
    sim.step(np.array([2.0, 0.0]))
    tau = sim.observe(lambda tau: tau[3:])
    assert tau.tolist() == [[-2.0, 0.0]] * 2
    with pytest.raises(UnknownNameError, match="named 'kp'"):
        sim.change({"controller.kp": 1.0})


def test_intervals_are_shared_by_robots_at_the_same_time_and_phase():
    @dataclass(frozen=True, eq=False)
    class Switching:
        at: float  # [s]

        def break_times(self, until):
            return (self.at,), ()

    clock, intervals = Clock(legged.SemiImplicitEuler(0.01), [Switching(0.5), Switching(0.7)]), np.zeros((2, 1, 4))
    assert clock.write(intervals, 3) == 1
    clock.advance(60)
    assert clock.write(intervals, 3) == 2
    np.testing.assert_allclose(intervals[:, 0], [[0.6, 0.01, 3, 1], [0.6, 0.01, 3, 0]], atol=1e-12)  # rounding of t
    clock.advance(20)
    assert clock.write(intervals, 3) == 1
    clock.set(np.array([1]), np.array([0.9]))
    assert clock.write(intervals, 3) == 2
