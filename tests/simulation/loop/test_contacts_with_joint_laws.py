"""Contacts, stops and dry friction in one step: impacts that drive joints against stops, and loads that they share."""

import numpy as np
import pytest

import legged
import robots
from legged.compiler import Members

G, H = 9.81, 1e-3


def leg(stop, friction=0.0, restitution=0.0):
    """A trunk on a vertical rail above a thigh and a shank, whose knee may bend up to `stop`."""
    knee = legged.JointPhysics(lower=-2.0, upper=stop, friction=friction, restitution=restitution)
    link = legged.box_inertia(1.0, (0.05, 0.05, 0.3), (0, 0, -0.15))
    shank = legged.Link("shank", link, {"foot": (0.0, 0.0, -0.3)})
    trunk = legged.Link("trunk", legged.box_inertia(8.0, (0.3, 0.2, 0.2)))
    return (
        legged.RobotBuilder("leg", legged.Link("rail"), base=legged.FixedBase())
        .add(legged.Prismatic("lift", "z"), trunk, to="rail")
        .add(legged.Revolute("hip", "y"), legged.Link("thigh", link), to="trunk")
        .add(legged.Revolute("knee", "y", physics=knee), shank, to="thigh", at=(0, 0, -0.3))
        .build()
    )


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_knee_that_an_impact_drives_against_its_stop_does_not_pass_it(restitution, compiled):
    """The knee is 1e-4 rad before its stop when the foot lands at 2 m/s; the impact alone would take it beyond."""
    robot = leg(0.2, restitution=restitution)
    hip, knee = -0.3, 0.1999
    height = 0.3 * np.cos(hip) + 0.3 * np.cos(hip + knee)
    q, v = np.array([height + 1e-4, hip, knee]), np.array([-2.0, 0.0, 0.0])
    runs = []
    for stops in (robot, leg(2.0)):
        options = {"q": q, "v": v, "ground": legged.Rigid(), "integrator": legged.TimeStepping(H), "sample": H}
        runs.append(legged.simulate(stops, until=0.02, compiled=compiled, fall=False, **options))
    assert runs[1].q[1:4, 2].max() > 0.2 + 1e-3  # without the stop the knee passes its place at once
    assert runs[0].q[:, 2].max() < 0.2 + 1e-7  # [rad], the solver's tolerance times some steps
    assert runs[0].contacts.forces[:, :, 2].max() > 100.0


@pytest.mark.parametrize("seed", range(3))
def test_a_dropped_quadruped_with_joints_at_stops_obeys_all_laws(seed):
    """Joints start at stops and rub: none passes a stop, friction and stops only take energy, as contacts do."""
    rng, robot = np.random.default_rng(seed), robots.spatial_quadruped()
    numbers, q = {}, robot.neutral()
    q[7:] = 0.2 * rng.normal(size=robot.nq - 7)
    for joint in robot.joints:
        x = q[joint.q]
        numbers |= {f"{joint.name}.lower": x.min(), f"{joint.name}.upper": x.max() + 0.1}
        numbers |= {f"{joint.name}.friction": 0.3}
    known = robot.parameters()
    robot = robot.with_parameters({name: value for name, value in numbers.items() if name in known})
    scene = legged.contact.Scene.of(robot, legged.Rigid())
    q[6] -= scene.contact_geometry([q]).gap.min() - 0.01
    options = {"ground": legged.Rigid(), "integrator": legged.TimeStepping(2e-3), "fall": False}
    v = np.concatenate([rng.normal(size=6), np.zeros(robot.nv - 6)])  # no joint drives against its stop at the start
    sim = legged.Simulation(robot, q=q, v=v, **options)
    lower, upper = (
        np.concatenate(
            [np.full(joint.q.stop - joint.q.start, numbers[f"{joint.name}.{end}"]) for joint in robot.joints]
        )
        for end in ("lower", "upper")
    )
    before = np.zeros(4)
    for _ in range(100):
        sim.step()
        works = sim.loop.split(sim._robots.members.state[0, robot.nq :]).works
        assert works[3] <= before[3] + 1e-9
        assert works[1] <= before[1] + 5e-3  # [J], corrections of penetrations at up to 0.05 m/s
        before = works.copy()
        assert np.all((sim.q[7:] > lower - 1e-6) & (sim.q[7:] < upper + 1e-6))
    assert before[3] < 0.0 and before[1] < 0.0


@pytest.mark.parametrize("load", [0.9, 1.1, 2.0])
def test_friction_and_the_ground_share_the_load_of_an_arm(load):
    """The tip of a horizontal arm touches the ground: friction F of the hinge and the force f at the tip hold it, with
    m g d = F + f l, and f = 0 where friction alone can."""
    moment = 1.0 * G * 0.25
    rod = legged.Inertia(1.0, (0.25, 0.0, 0.0), np.diag([0.001, 0.02, 0.02]))
    hinge = legged.Revolute("hinge", "-y", physics=legged.JointPhysics(friction=moment / load))
    arm = legged.Link("arm", rod, {"tip": (0.5, 0.0, 0.0)})
    robot = legged.RobotBuilder("arm", legged.Link("wall"), base=legged.FixedBase()).add(hinge, arm, to="wall").build()
    run = legged.simulate(robot, until=0.3, ground=legged.Rigid(), integrator=legged.TimeStepping(H), fall=False)
    assert abs(run.q[-1, 0]) < 1e-9
    expected = max(moment - moment / load, 0.0) / 0.5
    assert run.contacts.forces[-1, 0, 2] == pytest.approx(expected, abs=1e-6)


def test_joints_of_a_robot_that_lands_break_away_in_the_step_of_the_impact():
    """Friction that holds a leg in flight yields to the impulse of the ground in the same step, up to h F."""
    robot = leg(2.0, friction=0.5)
    q, v = np.array([0.0, -0.3, 0.6]), np.array([-2.0, 0.0, 0.0])
    q[0] = 0.3 * np.cos(q[1]) + 0.3 * np.cos(q[1] + q[2]) + 1e-4
    sim = legged.Simulation(robot, q=q, v=v, ground=legged.Rigid(), integrator=legged.TimeStepping(H), fall=False)
    sim.step()
    assert sim.v[2] > 1.0  # [rad/s], after an impulse of some N s, beside h F of 5e-4 N m s


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_motors_of_light_feet_do_not_throw_them_against_their_stops(dtype, monkeypatch):
    """Torques that a foot on the ground resists would take it alone 60 rad/s in a step, beyond the stops of its ankle.

    A start with these stops needs some twenty iterations. In single precision rounding then keeps a residual that
    the light foot magnifies. Memory for samples that are not yet computed has any contents, without warnings.
    """
    at = Members.at

    def filled(state, samples, dtype):
        members = at(state, samples, dtype)
        members.stored[:] = np.finfo(dtype).max
        return members

    monkeypatch.setattr(Members, "at", filled)
    foot = legged.box_inertia(0.4, (0.1, 0.05, 0.02))
    points = {f"{x}{y}": (0.08 * x - 0.02, 0.03 * y, -0.03) for x in (-1, 1) for y in (-1, 1)}
    robot = (
        legged.RobotBuilder("stand", legged.Link("trunk", legged.box_inertia(20.0, (0.2, 0.2, 0.4), (0, 0, 0.3))))
        .add(
            legged.Revolute("ankle", "x", physics=legged.JointPhysics(lower=-0.2, upper=0.2)),
            legged.Link("foot", foot, points),
            to="trunk",
        )
        .build()
    )

    class Swaying:
        def torque(self, t, phase, q, v, wrenches, memory):
            return np.stack([2.0 * np.sin(40.0 * t)])

    q = robot.neutral()
    q[6] = 0.03
    ground = legged.Rigid(iterations=10)
    options = {"ground": ground, "integrator": legged.TimeStepping(5e-3), "until": 0.2, "fall": False}
    run = legged.rollout(robot, Swaying(), q=q, v=np.zeros((2, robot.nv)), dtype=dtype, **options).run(0)
    assert abs(run.q[:, 7]).max() < 0.1
    assert run.contacts.worst_residual[-1] < (1e-5 if dtype == "float64" else 1e-3)
