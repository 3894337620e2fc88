"""Robots from files stand, crawl and trot with gaits and gains that are scaled to them; messages for other robots."""

from functools import cache

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import controllers
import legged
import robots
from controllers import Balanced, ComputedTorque, Crawl, JointPD, Stand, Trot, home_of, suited, suited_law
from legged.errors import DefinitionError, ReachError
from legged.ground import realistic_ground
from legged.sensors import sliding_per_stance

QUICK = "test_proportions_scale_with_size_and_gravity"

FILES = all_urdfs()
QUADRUPEDS = ("solo/solo12", "go2/", "anymal_b_simple/anymal", "hyq/", "a1/")


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


pytestmark = pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")


@cache
def loaded(word: str) -> legged.Robot:
    """Return the first robot whose file name contains a word."""
    return legged.load(next(path for name, path in FILES.items() if word in name))


def pushed(robot, kind, law, until, velocity):
    """Return a run with a push at half time that changes the velocity of the whole robot by `velocity`."""
    push = legged.Push(robot.links[0].name, tuple(robot.mass * np.array(velocity)), at=until / 2)
    gait = suited(kind, robot)
    ground = realistic_ground(robot)
    return gait, legged.simulate(robot, suited_law(law, gait), ground=ground, until=until, pushes=[push], sample=0.005)


def check_trot(name: str, until: float) -> None:
    robot = loaded(name)
    gait, run = pushed(robot, Trot, Balanced, until, (0.0, 0.3, 0.0))
    assert run.mean_velocity[0] == pytest.approx(gait.gait.stride / gait.period, rel=0.15)
    assert np.degrees(np.abs(run.base.angles()[:, :2]).max()) < 10
    assert sliding_per_stance(run, 0.02 * robot.mass * 9.81).max() < 5e-3  # [m]
    assert np.linalg.norm(run.v[-1, :2]) < 0.2  # [rad/s], steady again: roll and pitch rates of a trot
    assert abs(run.base.position[-1, 1] - run.base.position[-200, 1]) < 0.03  # [m] in the last second


@pytest.mark.parametrize("name", ["go2/"])
def test_quadrupeds_trot_at_their_speed_level_without_sliding_and_survive_a_push(name):
    check_trot(name, 6.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUADRUPEDS)
def test_quadrupeds_trot_for_twenty_seconds(name):
    check_trot(name, 20.0)


@pytest.mark.parametrize("name", QUADRUPEDS)
def test_homes_are_inside_limits_level_and_under_the_mass(name):
    robot = loaded(name)
    home = home_of(robot)
    lower, upper = controllers.joint_limits(robot)
    assert (home.angles >= lower).all() and (home.angles <= upper).all()
    q = np.concatenate([robot.base.neutral(), home.angles])
    feet = legged.point_positions(robot, q, [(c.link, c.position) for c in robot.contacts])
    assert feet[:, 2] == pytest.approx(-home.base_height, abs=1e-8)
    assert feet[:, 0].mean() == pytest.approx(legged.center_of_mass(robot, q)[0], abs=1e-3)
    assert home.hip_height == pytest.approx(0.75 * np.mean([leg.length for leg in home.legs]), rel=0.01)


def test_a_posture_outside_the_limits_is_refused():
    with pytest.raises(ReachError, match="within the limits of its joints"):
        home_of(loaded("go2/"), hip_height=0.6)  # longer than the legs


def test_a_robot_without_feet_has_no_home():
    with pytest.raises(DefinitionError, match="has no legs"):
        home_of(robots.chain(3))
    with pytest.raises(DefinitionError, match="its base is fixed: load its file with base='floating'"):
        home_of(robots.chain(3, base=legged.FixedBase()))


@pytest.mark.parametrize(("name", "velocity"), [("g1/g1_29dof_rev", 0.15), slow("talos/talos_reduced_box", -0.15)])
def test_humanoids_stand_under_a_small_push(name, velocity):
    robot = loaded(name)
    _, run = pushed(robot, Stand, Balanced, 4.0, (velocity, 0.0, 0.0))
    assert np.abs(run.base.position[-1] - run.base.position[0]).max() < 5e-3  # [m], back where it was
    assert np.abs(run.v[-1]).max() < 1e-2  # [rad/s], two seconds later
    assert np.abs(run.base.position[:, 0]).max() > 0.01  # [m], and the push was felt


@pytest.mark.slow
def test_a_crawl_keeps_the_robot_level():
    robot = loaded("hyq/")
    gait, run = pushed(robot, Crawl, ComputedTorque, 4.0, (0.0, 0.1, 0.0))
    assert np.degrees(np.abs(run.base.angles()[:, :2]).max()) < 1
    assert run.mean_velocity[0] > 0.9 * gait.gait.stride / gait.period


def test_servos_hold_a_standing_robot_and_go_on_doing_so():
    """The reference of a stand is constant for all times: its fit is not a polynomial that diverges."""
    robot = loaded("go2/")
    gait = suited(Stand, robot)
    assert np.array_equal(gait.reference(1e3, 0)[0], gait.reference(0.0, 0)[0])
    run = legged.simulate(robot, suited_law(JointPD, gait), ground=realistic_ground(robot), until=2.0)
    assert np.abs(run.base.position[-1] - run.base.position[0]).max() < 0.03  # [m], sagged a little
    assert np.abs(run.v[-1]).max() < 1e-2


def test_proportions_scale_with_size_and_gravity():
    """A robot of twice the size takes sqrt(2) times as long for a step of twice the length, on any planet."""
    small, large = robots.spatial_quadruped(), scaled_quadruped(2.0)
    a, b = suited(Trot, small), suited(Trot, large)
    assert b.gait.stride == pytest.approx(2 * a.gait.stride) and b.period == pytest.approx(np.sqrt(2) * a.period)
    assert suited(Trot, small, stride=0.1).gait.stride == 0.1


def scaled_quadruped(scale: float) -> legged.Robot:
    leg = legged.Limb()
    down = (0.0, 0.0, -0.3 * scale)
    leg.add(legged.Universal("hip", "x", "-y"), legged.Link("thigh", legged.rod_inertia(1.0, (0, 0, 0), down)))
    leg.add(
        legged.Revolute("knee", "-y"),
        legged.Link("shank", legged.rod_inertia(1.0, (0, 0, 0), down), {"foot": down}),
        at=down,
    )
    trunk = legged.Link("trunk", legged.box_inertia(4.0, (scale, 0.5 * scale, 0.0)))
    builder = legged.RobotBuilder("quadruped", trunk)
    for k, (x, y) in enumerate(((-0.5, -0.25), (-0.5, 0.25), (0.5, -0.25), (0.5, 0.25))):
        builder.attach(leg, to="trunk", at=(x * scale, y * scale, 0.0), prefix=f"leg{k + 1}_")
    return builder.build()


def test_a_gait_in_closed_form_for_other_legs_names_the_gait_that_fits():
    robot = legged.load(FILES["go2/go2"])
    with pytest.raises(
        DefinitionError, match=r"no closed-form inverse .* controllers.suited\(Stand, robot\) makes a Stand"
    ):
        controllers.Stand(hip_height=0.3).initial_state(robot)
