"""Joint stops and dry friction in time steps: closed forms, laws on random robots, all integrators and engines."""

from dataclasses import replace

import numpy as np
import pytest

import legged
import robots
from legged import loops
from legged.contact import Box, FreeBody
from legged.dynamics.kinematics import momentum
from legged.errors import DefinitionError, SimulationWarning
from legged.simulation import BDF, LinearlyImplicitEuler
from legged.simulation.forces import stops_of

G, MASS, ARM, INERTIA = 9.81, 1.0, 0.5, 0.3
LOAD = MASS * G * ARM  # [N m], of the horizontal pendulum
DEGREE = np.radians(1.0)
IMPLICIT = [(None, legged.SemiImplicitEuler(1e-4)), (None, legged.SemiImplicitEuler(2e-3))]
IMPLICIT += [(None, LinearlyImplicitEuler(1e-3)), (legged.Rigid(), legged.TimeStepping(1e-3))]


def pendulum(gravity=G, **physics):
    """A link of 1 kg, 0.5 m out along x from a hinge about -y, so that it falls to negative angles; 0.3 kg m^2."""
    rod = legged.Inertia(MASS, (ARM, 0.0, 0.0), np.diag([0.01, 0.05, 0.05]))
    hinge = legged.Revolute("hinge", "-y", physics=legged.JointPhysics(**physics))
    base = legged.RobotBuilder("pendulum", legged.Link("wall"), base=legged.FixedBase(), gravity=(0, 0, -gravity))
    return base.add(hinge, legged.Link("rod", rod), to="wall").build()


def slide(**physics):
    joint = legged.Prismatic("rail", "x", physics=legged.JointPhysics(**physics))
    base = legged.RobotBuilder("slide", legged.Link("wall"), base=legged.FixedBase())
    return base.add(joint, legged.Link("cart", legged.box_inertia(2.0, (0.1, 0.1, 0.1))), to="wall").build()


def positions(door, robot, until, **options):
    """Return the positions of the only joint at the end, of one robot or of a batch, from every door."""
    if door == "simulate":
        return legged.simulate(robot, until=until, **options).q[-1]
    if door == "rollout":
        return legged.rollout(robot, until=until, q=np.zeros((3, robot.nq)), **options).q[:, -1].ravel()
    sim = legged.Simulation(robot, num=2, **options)
    for _ in range(round(until / sim.time_step / 10)):
        sim.step(n=10)
    return sim.q.ravel()


# Dry friction.


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("door", ["simulate", "rollout", "Simulation"])
@pytest.mark.parametrize(("ground", "integrator"), IMPLICIT, ids=lambda x: str(x)[:24])
def test_friction_holds_a_pendulum_for_ten_seconds(door, ground, integrator, compiled):
    """A held joint creeps by 1e-8 of the speed h M^-1 load that it would gain in a step."""
    until = 10.0 if compiled else 0.2
    angles = positions(
        door, pendulum(friction=1.05 * LOAD), until, ground=ground, integrator=integrator, compiled=compiled
    )
    assert np.abs(angles).max() < 1e-8 * integrator.step * LOAD / INERTIA * until * 1.01


def test_the_default_integrator_holds_it_too_and_says_why():
    run = legged.simulate(pendulum(friction=1.05 * LOAD), until=10.0)
    assert run.integrator == "SemiImplicitEuler(step=0.0001) (chosen for dry friction of joints)"
    assert abs(run.q[-1, 0]) < 1e-9 and run.energy_drift < 1e-9


@pytest.mark.parametrize("door", ["simulate", "rollout", "Simulation"])
@pytest.mark.parametrize("integrator", [legged.RungeKutta4(1e-3), legged.RungeKutta4(5e-3), BDF()], ids=str)
def test_integrators_that_cannot_hold_it_say_so(door, integrator):
    words = (
        "too long for the friction of the joints" if integrator == legged.RungeKutta4(5e-3) else "creeps at up to 0.01"
    )
    if door == "rollout" and isinstance(integrator, BDF):
        pytest.skip("rollout takes fixed steps only")
    with pytest.warns(SimulationWarning, match=words):
        positions(door, pendulum(friction=1.05 * LOAD), 0.02, integrator=integrator)


@pytest.mark.parametrize(("ground", "integrator"), IMPLICIT, ids=lambda x: str(x)[:24])
def test_sliding_decelerates_by_coulombs_law_and_ends_in_rest(ground, integrator):
    """v = v_0 - F t / I to rounding until the step in which the wheel stops; then it rests, without turning back."""
    robot, v = pendulum(0.0, friction=0.6), 3.0
    run = legged.simulate(robot, until=2.0, v=[v], ground=ground, integrator=integrator)
    expected = np.maximum(v - 0.6 / INERTIA * run.times, 0.0)
    assert run.v[:, 0] == pytest.approx(expected, abs=0.6 / INERTIA * integrator.step)
    sliding = expected > 0.6 / INERTIA * integrator.step
    assert run.v[sliding, 0] == pytest.approx(expected[sliding], abs=1e-12)
    assert run.v.min() > -1e-12 and abs(run.v[-1, 0]) < 1e-12
    assert run.energy.joint_work[-1] == pytest.approx(-0.5 * INERTIA * v**2, rel=1e-9)
    assert run.energy_drift < 1e-9


@pytest.mark.parametrize(("ground", "integrator"), IMPLICIT, ids=lambda x: str(x)[:24])
def test_a_joint_breaks_away_at_once_under_a_larger_load(ground, integrator):
    robot = pendulum(0.0, friction=1.0)

    def law(t, q, v, wrenches):
        return np.stack([2.0 * t + 0.0 * q[0]])  # exceeds the friction from 0.5 s on

    run = legged.simulate(robot, law, until=1.5, ground=ground, integrator=integrator)
    speed = np.maximum(run.times - 0.5, 0.0) ** 2 / INERTIA
    assert run.v[:, 0] == pytest.approx(speed, abs=3.0 / INERTIA * integrator.step)


def test_a_held_four_bar_does_not_move_with_the_default_integrator():
    closed = robots.four_bar()
    q = loops.assemble(closed, np.array([1.0, -0.7, 1.5]), hold=["crank joint"])
    parameters = {"crank joint.friction": 30.0}
    held = replace(closed, robot=closed.robot.with_parameters(parameters))
    run = legged.simulate(held, until=5.0, q=q)
    assert "chosen for" in run.integrator
    assert np.abs(run.q[-1] - q).max() < 1e-6  # the projection onto the loops and 1e-8 of the load
    free = legged.simulate(closed, until=0.2, q=q)
    assert np.abs(free.q[-1] - q).max() > 0.05


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("ground", "integrator"), [IMPLICIT[1], (legged.Rigid(pairs=()), legged.TimeStepping(1e-3))], ids=["none", "rigid"]
)
def test_friction_and_stops_of_random_robots_obey_their_laws(seed, ground, integrator):
    """Stops and friction only take energy, and keep all joints within their ranges."""
    robot, q, v = random_robot(seed)
    sim = legged.Simulation(robot, ground=ground, q=q, v=v, integrator=integrator, fall=False)
    loop, before = sim.loop, None
    for _ in range(60):
        state = sim.q.copy(), sim.v.copy()
        sim.step()
        works = loop.split(sim._robots.members.state[0, robot.nq :]).works
        if before is not None:
            assert works[3] <= before + 1e-12
        before = float(works[3])
        assert np.isfinite(sim.v).all() and state is not None
    assert before < 0.0
    assert beyond(robot, sim.q) < (1e-9 if ground else 10.0) + 2e-3


@pytest.mark.parametrize("seed", [0, 3, 6, 9])
def test_the_forces_of_friction_are_those_of_coulombs_law(seed):
    """By inverse dynamics of the same robot without friction: F against the motion, or less at rest."""
    robot, q, v = random_robot(seed)
    robot = robot.with_parameters({name: x for name in robot.parameters() for end, x in FAR if name.endswith(end)})
    smooth = robot.with_parameters({name: 0.0 for name in robot.parameters() if name.endswith(".friction")})
    h, limits = (
        1e-3,
        np.concatenate([np.broadcast_to(j.definition.physics.friction, j.v.stop - j.v.start) for j in robot.joints]),
    )
    sim = legged.Simulation(robot, q=q, v=v, integrator=legged.SemiImplicitEuler(h))
    stuck, slid = 0, 0
    for _ in range(200):
        q, v = sim.q, sim.v
        sim.step()
        force = legged.inverse_dynamics(smooth, q, v, (sim.v - v) / h)
        slides = np.abs(sim.v) > 1e-7
        assert force[slides] == pytest.approx(-limits[slides] * np.sign(sim.v[slides]), abs=1e-6)
        assert np.all(np.abs(force[~slides]) <= limits[~slides] + 1e-6)
        stuck, slid = stuck + (~slides).sum(), slid + slides.sum()
    assert stuck > 0 and slid > 0


FAR = ((".lower", -1e3), (".upper", 1e3))


def random_robot(seed):
    """Return a random robot with friction and stops on every joint of one degree of freedom, within its ranges."""
    rng = np.random.default_rng(seed)
    kinds = ("revolute", "prismatic", "screw", "universal", "cylindrical", "ball")
    bases = ("fixed", "floating", "planar")
    robot = legged.random_tree(seed, 4 + seed, joints=kinds, bases=(bases[seed % 3],))
    values, known = {}, robot.parameters()
    for joint in robot.joints:
        values[f"{joint.name}.friction"] = rng.uniform(0.1, 1.0)
        if f"{joint.name}.lower" in known:
            values |= {f"{joint.name}.lower": -0.3, f"{joint.name}.upper": 0.2}
    robot = robot.with_parameters(values)
    v = np.concatenate([np.zeros(robot.base.nv), rng.normal(size=robot.nj)])
    return robot, robot.neutral(), v


def beyond(robot, q):
    """Return by how much joints exceed their stops, [rad] or [m]."""
    depths = [0.0]
    for stop in stops_of(robot):
        x = stop.body.joint_position(q)[0]
        depths.append(max(stop.lower - x, x - stop.upper))
    return float(max(depths))


# Stops on rigid ground.


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("e", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize(("robot", "inertia"), [(pendulum, INERTIA), (slide, 2.0)], ids=["hinge", "slide"])
def test_a_rigid_stop_rebounds_by_its_restitution(e, robot, inertia, compiled):
    options = {"gravity": 0.0} if robot is pendulum else {}
    made = robot(upper=0.5, lower=-0.7, restitution=e, **options)
    run = legged.simulate(
        made, until=0.4, v=[2.0], ground=legged.Rigid(), integrator=legged.TimeStepping(1e-3), compiled=compiled
    )
    assert run.v[-1, 0] == pytest.approx(-2.0 * e, abs=1e-6)  # 1e-8 of the change of speed
    assert run.q.max() < 0.5 + 1e-6
    assert run.energy.joint_work[-1] == pytest.approx(-0.5 * inertia * 4.0 * (1.0 - e * e), abs=1e-6)
    assert run.energy_drift < 1e-7  # the impulse of a locked joint is known to 1e-8


def test_a_free_robot_keeps_its_momentum_when_joints_hit_rigid_stops():
    """To the second order of the step, as without stops: 2e-6 of 0.75 N s."""
    body = legged.box_inertia(1.0, (0.1, 0.1, 0.3), (0, 0, -0.15))
    stop = legged.JointPhysics(lower=-0.2, upper=0.2, restitution=0.5)
    builder = legged.RobotBuilder(
        "pair", legged.Link("trunk", legged.box_inertia(2.0, (0.3, 0.2, 0.2))), gravity=(0, 0, 0)
    )
    robot = builder.add(legged.Revolute("hip", "y", physics=stop), legged.Link("leg", body), to="trunk").build()
    v = np.zeros(7)
    v[6] = 5.0
    run = legged.simulate(
        robot, until=0.5, v=v, ground=legged.Rigid(), integrator=legged.TimeStepping(1e-3), fall=False
    )
    momenta = np.array([momentum(robot, q, v) for q, v in zip(run.q, run.v, strict=True)])
    assert momenta[:, 3:] == pytest.approx(momenta[:1, 3:].repeat(len(momenta), axis=0), abs=5e-6)
    assert momenta[:, :3] == pytest.approx(momenta[:1, :3].repeat(len(momenta), axis=0), abs=1e-7)
    assert np.abs(run.q[:, 7]).max() < 0.2 + 1e-6 and run.energy.joint_work[-1] < 0.0


# Stops with a stiffness.


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("start", [0.0, 0.3])
@pytest.mark.parametrize(
    ("ground", "integrator"),
    [*IMPLICIT, (None, None), (None, legged.RungeKutta4(1e-5))],
    ids=lambda x: str(x)[:24],
)
@pytest.mark.parametrize(("robot", "most"), [(pendulum, DEGREE), (slide, 2e-3)], ids=["hinge", "slide"])
def test_the_whole_effort_keeps_a_joint_at_its_stop(robot, most, ground, integrator, start, sign):
    options = {"gravity": 0.0} if robot is pendulum else {}
    made = robot(lower=-0.4, upper=0.5, effort=150.0, **options)

    def law(t, q, v, wrenches):
        return np.stack([150.0 * sign + 0.0 * q[0]])

    run = legged.simulate(made, law, until=0.3, q=[start], ground=ground, integrator=integrator, sample=1e-3)
    assert max(run.q.max() - 0.5, -0.4 - run.q.min()) < most
    assert abs(run.v[-1, 0]) < 1e-3


def test_the_stiffness_of_a_stop_can_be_given():
    robot = pendulum(0.0, upper=0.5, effort=150.0, stop_stiffness=3e4)
    assert stops_of(robot)[0].stiffness == 3e4

    def law(t, q, v, wrenches):
        return np.array([150.0]) + 0.0 * q

    for integrator in (legged.SemiImplicitEuler(1e-3), BDF()):
        run = legged.simulate(robot, law, until=1.0, q=[0.5], integrator=integrator)
        assert run.q[-1, 0] - 0.5 == pytest.approx(150.0 / 3e4, rel=1e-4)
    with pytest.raises(DefinitionError, match="restitution must lie between 0 and 1"):
        legged.JointPhysics(restitution=1.1)
    with pytest.raises(DefinitionError, match=r"hinge.restitution must lie between 0 and 1"):
        robot.with_parameters({"hinge.restitution": 2.0})


@pytest.mark.parametrize("door", ["simulate", "rollout", "Simulation"])
def test_explicit_steps_too_long_for_a_stop_that_is_reached_are_reported(door):
    law = {"controller": lambda t, q, v, wrenches: 150.0 + 0.0 * q}
    robot = pendulum(0.0, lower=-0.4, upper=0.5, stop_stiffness=4e6)
    with pytest.warns(SimulationWarning, match="too long for the stop of joint 'hinge', which is stable up"):
        positions(door, robot, 0.2, integrator=legged.RungeKutta4(1e-3), **law)
    assert legged.simulate(robot, until=0.1, integrator=legged.RungeKutta4(1e-3)).warnings == ()


def test_robots_from_files_keep_rated_effort_within_a_degree():
    from oracles.urdfs import all_urdfs

    files = all_urdfs()
    for key, name in (("go2/go2", "FL_calf_joint"), ("g1/g1_29dof_rev_1_0", "left_ankle_roll_joint")):
        path = next((path for known, path in files.items() if known.startswith(key)), None)
        if path is None:
            pytest.skip("no example-robot-data")
        robot = legged.load(path)
        joint = robot.joint(name)
        effort = float(np.ravel(joint.definition.physics.effort)[0])
        q = robot.neutral()
        for stop in stops_of(robot):
            q[stop.body.q.start] = min(max(0.0, stop.lower), stop.upper)
        for sign in (1.0, -1.0):
            tau = np.zeros(robot.nj)
            tau[joint.v.start - 6] = sign * effort

            def law(t, q, v, wrenches, tau=tau):
                return tau + 0.0 * v[6:]

            run = legged.simulate(robot, law, until=0.2, q=q, integrator=legged.SemiImplicitEuler(1e-3), sample=1e-3)
            lower, upper = (
                float(np.ravel(x)[0]) for x in (joint.definition.physics.lower, joint.definition.physics.upper)
            )
            x = run.q[:, joint.q]
            assert max(x.max() - upper, lower - x.min()) < DEGREE, (key, sign)


@pytest.mark.parametrize(("ground", "integrator"), [IMPLICIT[0], IMPLICIT[3]], ids=["none", "rigid"])
def test_a_coupled_joint_at_its_stop_stops_its_master(ground, integrator):
    builder = legged.RobotBuilder("pair", legged.Link("wall"), base=legged.FixedBase())
    body = legged.Inertia(1.0, (0.5, 0.0, 0.0), 0.05 * np.eye(3))
    builder.add(legged.Revolute("one", "-y"), legged.Link("a", body), to="wall")
    stopped = legged.Revolute("two", "-y", physics=legged.JointPhysics(lower=-0.2, upper=0.6, friction=0.1))
    builder.add(stopped, legged.Link("b", body), to="wall", at=(0, 1, 0))
    robot = builder.couple("two", "one", -0.5, 0.1).build()
    run = legged.simulate(robot, until=3.0, ground=ground, integrator=integrator)
    assert run.q[-1, 0] == pytest.approx((0.6 - 0.1) / -0.5, abs=2e-3 if ground is None else 1e-7)
    assert abs(run.v[-1, 0]) < 1e-6


def test_a_robot_stands_on_a_knee_at_its_stop_on_rigid_ground():
    """The knee carries the weight at its stop; its reaction is that of statics, and nothing creeps."""
    shank = legged.Link(
        "shank", legged.box_inertia(0.5, (0.05, 0.05, 0.3), (0, 0, -0.15)), {f"p{k}": p for k, p in enumerate(FEET)}
    )
    stop = legged.JointPhysics(lower=0.0, upper=1.0)
    trunk = legged.Link("trunk", legged.box_inertia(5.0, (0.2, 0.2, 0.3), (0.02, 0, 0.15)))
    robot = (
        legged.RobotBuilder("stander", trunk).add(legged.Revolute("knee", "y", physics=stop), shank, to="trunk").build()
    )
    q = robot.neutral()
    q[6] = 0.3
    run = legged.simulate(robot, until=1.0, q=q, ground=legged.Rigid(), fall=False)
    assert np.abs(run.q[-1] - q).max() < 1e-6
    assert run.contacts.forces[-1, :, 2].sum() == pytest.approx(5.5 * G, rel=1e-6)


FEET = [(x, y, -0.3) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]


@pytest.mark.parametrize("load", [0.5, 1.5])
def test_friction_of_a_joint_that_carries_contact_forces_holds_up_to_its_limit(load):
    """A trunk whose center of mass is beside the hinge: the foot below carries it, and friction the moment m g d."""
    foot = legged.Link(
        "foot", legged.box_inertia(0.5, (0.2, 0.2, 0.3), (0, 0, -0.15)), {f"p{k}": p for k, p in enumerate(FEET)}
    )
    trunk = legged.Link("trunk", legged.box_inertia(2.0, (0.2, 0.2, 0.2), (0.05, 0, 0.1)))
    hinge = legged.Revolute("hinge", "y", physics=legged.JointPhysics(friction=2.0 * G * 0.05 / load))
    robot = legged.RobotBuilder("stander", trunk).add(hinge, foot, to="trunk").build()
    q = robot.neutral()
    q[6] = 0.3
    run = legged.simulate(robot, until=0.3, q=q, ground=legged.Rigid(), fall=False)
    moved = abs(run.q[-1, 7])
    assert moved < 1e-7 if load < 1.0 else moved > 0.05
    assert run.energy_drift < 1e-3


def test_scenes_in_parts_have_rigid_stops_and_report_regularized_friction():
    boxes = []
    for k in range(6):
        size = (0.1, 0.1, 0.1)
        boxes.append(FreeBody(f"box{k}", legged.box_inertia(1.0, size), [Box(size)], position=(2.0 + 0.3 * k, 0, 0.05)))
    options = {"ground": legged.Rigid(), "bodies": boxes, "integrator": legged.TimeStepping(1e-3)}
    run = legged.simulate(pendulum(lower=-0.5), until=1.0, **options)
    assert "parts of the scene" in run.backend
    assert run.q[-1, 0] == pytest.approx(-0.5, abs=1e-9) and run.q.min() > -0.5 - 1e-9
    with pytest.warns(SimulationWarning, match="many contacts regularizes the dry friction"):
        run = legged.simulate(pendulum(friction=1.05 * LOAD), until=0.1, **options)
    assert len(run.warnings) == 1 and abs(run.v[-1, 0]) < 0.02
