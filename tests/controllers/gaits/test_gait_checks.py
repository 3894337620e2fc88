"""Gaits check their robot: the number of legs, bent knees, a ground; subclasses have the proportions of their base."""

import gc
import warnings
import weakref
from dataclasses import dataclass, replace

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import Balanced, ComputedTorque, Crawl, NumericalGait, Stand, Tripod, Trot, Walk, suited, suited_law
from controllers.gaits.gait import KNEE_MARGIN
from controllers.suited_laws import servo_gains
from legged.app import selection
from legged.errors import ArgumentError, DefinitionError, ReachError, ShapeError
from legged.ground import realistic_ground


def many_legs(n, length=0.6):
    """Return a robot with n legs on both sides of its trunk, from the rear to the front."""
    down, leg = (0.0, 0.0, -length / 2), legged.Limb()
    leg.add(legged.Universal("hip", "x", "-y"), legged.Link("thigh", legged.rod_inertia(1.0, (0.0, 0.0, 0.0), down)))
    shank = legged.Link("shank", legged.rod_inertia(1.0, (0.0, 0.0, 0.0), down), {"foot": down})
    leg.add(legged.Revolute("knee", "-y"), shank, at=down)
    builder = legged.RobotBuilder(f"{n} legs", legged.Link("trunk", legged.box_inertia(4.0, (1.0, 0.5, 0.0))))
    for k in range(n):
        x, y = float(np.linspace(-0.5, 0.5, (n + 1) // 2)[k // 2]), (-0.25, 0.25)[k % 2]
        builder.attach(leg, to="trunk", at=(x, y, 0.0), prefix=f"leg{k + 1}_")
    return builder.build()


@pytest.mark.parametrize("kind", [Walk, Trot, Tripod])
@pytest.mark.parametrize("legs", [3, 5])
def test_alternating_gaits_refuse_an_odd_number_of_legs(kind, legs):
    robot = many_legs(legs)
    for make in (lambda: kind(hip_height=0.45, clearance=0.05).on(robot), lambda: suited(kind, robot)):
        with pytest.raises(DefinitionError, match=f"two groups of equally many legs.*of {legs} legs differ; use Crawl"):
            make()


def test_a_named_group_must_be_half_of_the_legs():
    with pytest.raises(DefinitionError, match="groups of equally many legs"):
        Trot(first=("leg1",)).on(many_legs(4))
    assert Trot(first=("leg1", "leg2")).on(many_legs(4)).groups == (("leg1", "leg2"), ("leg3", "leg4"))


@pytest.mark.parametrize("legs", [4, 6])
def test_even_numbers_of_legs_alternate(legs):
    gait = suited(Trot, many_legs(legs)).gait
    assert isinstance(gait, Trot)
    first, second = gait.groups
    assert len(first) == len(second) == legs // 2


@pytest.mark.parametrize("make", [lambda: many_legs(3), robots.planar_biped])
def test_a_crawl_needs_feet_to_stand_on_while_one_leg_swings(make):
    with pytest.raises(DefinitionError, match=r"Crawl needs \d legs or more"):
        suited(Crawl, make())
    assert suited(Crawl, many_legs(5)).gait.cycle == 5


def test_hips_too_high_for_the_legs_are_reported_with_a_height_that_fits():
    robot = many_legs(4, length=0.48)
    with pytest.raises(ReachError, match=r"nearly straight: use Trot\(hip_height=0.36, ...\), or controllers.suited"):
        Trot(hip_height=0.5).on(robot)
    Trot(hip_height=0.36).on(robot)


GAITS = {
    "trot": (Trot(stride=0.15, clearance=0.04), 4),
    "tripod": (Tripod(stride=0.2, clearance=0.04), 6),
    "crawl": (Crawl(), 4),
    "stand": (Stand(), 4),
    "walk": (Walk(stride=0.2, clearance=0.04), 2),
}


@pytest.mark.parametrize("length", [0.31, 0.48, 1.3])
@pytest.mark.parametrize("name", GAITS)
def test_default_hip_heights_bend_every_knee_by_the_margin(name, length):
    gait, legs = GAITS[name]
    gait = gait.on(many_legs(legs, length))
    angles = gait.reference(np.linspace(0.0, gait.cycle * gait.period, 1001))[0]
    knees = np.abs(angles[:, [leg.columns[-1] for leg in gait.geometry]])
    assert knees.min() > KNEE_MARGIN - 1e-3  # [rad]: the height is derived from 101 times of a phase, to 1e-6 m
    assert gait.height <= gait.height_fraction * length


def test_a_stride_that_is_too_long_for_any_hip_height_is_refused():
    with pytest.raises(ReachError, match=r"a stride of 0.9 m .* too long for legs of 0.6 m at any hip height"):
        Trot(stride=0.9).on(many_legs(4))


def test_servos_for_a_standing_robot_are_critically_damped():
    """kp = J omega^2 and kd = 2 J omega with omega = 3 sqrt(g / h)."""
    robot, height = robots.spatial_quadruped(), 0.45
    kp, kd = servo_gains(robot, controllers.home_of(robot, height).angles, height)
    np.testing.assert_allclose(kp / kd, 1.5 * np.sqrt(9.81 / height), rtol=1e-9)


def test_knees_of_a_standing_quadruped_point_to_its_middle():
    robot = robots.spatial_quadruped()
    angles = controllers.home_of(robot).angles
    _, origins = legged.link_poses(robot, np.concatenate([robot.base.neutral(), angles]))
    for i in range(1, 5):
        hip, knee = (origins[robot.link(f"leg{i}_{part}").index] for part in ("thigh", "shank"))
        assert abs(knee[0]) < abs(hip[0]) - 0.1  # [m]


@pytest.mark.parametrize("make", [robots.planar_biped, robots.humanoid, lambda: many_legs(4)])
def test_default_standing_postures_bend_the_knees(make):
    robot = make()
    home = controllers.home_of(robot)
    knees = [abs(home.angles[leg.pitch_columns[1]]) for leg in home.legs]
    assert min(knees) > 0.5  # [rad]


def test_a_standing_posture_is_computed_once_for_each_robot_and_hip_height():
    robot = robots.planar_biped()
    home = controllers.home_of(robot)
    assert controllers.home_of(robot) is home is not controllers.home_of(robots.planar_biped())
    assert controllers.home_of(robot, 0.7).hip_height == pytest.approx(0.7)
    with pytest.raises(ValueError, match="read-only"):
        home.angles[0] = 0.0


def test_a_foot_that_is_missed_is_reported_with_the_distance_allowed():
    feet = controllers.FootKinematics(robot := many_legs(4), [c.name for c in many_legs(4).contacts])
    far = feet.positions(np.zeros(robot.nj)) - [0.0, 0.0, 1.0]
    with pytest.raises(ReachError, match="m away, more than the 1e-11 m that are allowed"):
        feet.solve(far, np.full(robot.nj, 0.1))


def test_a_fit_with_rough_accelerations_is_not_reported_as_a_deviation(monkeypatch):
    monkeypatch.setattr("controllers.gaits.numerical_gait._CURVATURE", 0.0)
    with pytest.raises(ReachError, match=r"within the 0.1 m that are allowed, but their accelerations err by"):
        NumericalGait(Trot(hip_height=0.45), many_legs(4), tolerance=0.1)


@dataclass(frozen=True, kw_only=True)
class SlowTrot(Trot):
    """A trot with a name of its own."""


class OwnLaw(ComputedTorque):
    """A law with a name of its own."""


class OwnBalance(Balanced):
    """A law with a name of its own."""


def test_subclasses_have_the_proportions_and_gains_of_their_base():
    robot = many_legs(4)
    own, base = suited(SlowTrot, robot), suited(Trot, robot)
    assert isinstance(own.gait, SlowTrot) and (own.period, own.gait.stride) == (base.period, base.gait.stride)
    for kind, parent in ((OwnLaw, ComputedTorque), (OwnBalance, Balanced)):
        law = suited_law(kind, own)
        assert type(law) is kind and vars(law).keys() == vars(suited_law(parent, base)).keys()


def test_a_gait_without_ground_warns():
    robot, options = many_legs(4), {"until": 1e-4, "integrator": legged.SemiImplicitEuler(1e-4)}
    with pytest.warns(UserWarning, match="falls freely: its gait Trot needs a ground"):
        legged.simulate(robot, ComputedTorque(Trot()), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        legged.simulate(robot, Balanced(Trot()), ground=realistic_ground(robot), compiled=False, **options)


def test_the_command_line_refuses_to_walk_a_biped_in_space():
    for name in ("humanoid", "spatial_biped"):
        with pytest.raises(DefinitionError, match="no control law here balances its walk sideways"):
            selection.select_gait("Walk", getattr(robots, name)(), "balanced")
    assert isinstance(selection.select_gait("Walk", robots.planar_biped(), "balanced"), Walk)


def telescope():
    """Return a robot on two vertical slides of 0.3 m to 0.5 m, each with a sole of two points."""
    builder = legged.RobotBuilder("telescope", legged.Link("trunk", legged.box_inertia(5.0, (0.4, 0.2, 0.1))))
    foot = legged.box_inertia(0.5, (0.1, 0.05, 0.02))
    for side, y in (("left", 0.1), ("right", -0.1)):
        slide = legged.Prismatic(f"{side}_slide", "-z", physics=legged.JointPhysics(lower=-0.1, upper=0.1))
        sole = {f"{side}_heel": (-0.05, 0, -0.4), f"{side}_toe": (0.05, 0, -0.4)}
        builder.add(slide, legged.Link(f"{side}_foot", foot, sole), to="trunk", at=(0, y, 0))
    return builder.build()


def test_a_standing_posture_has_all_points_of_a_sole_at_its_depth():
    """A leg with fewer joints than its sole has errors: the error of each contact point counts."""
    np.testing.assert_allclose(controllers.home_of(telescope(), 0.45).angles, 0.05, atol=1e-9)
    with pytest.raises(ReachError, match=r"cannot stand 0.7 m under its hip .* residual 0.2 m") as caught:
        controllers.home_of(telescope(), 0.7)
    assert caught.value.residual == pytest.approx(0.2)


@pytest.mark.parametrize("hip_height", [0.0, -0.3])
def test_a_hip_height_must_be_positive(hip_height):
    with pytest.raises(ArgumentError, match="hip_height must be positive"):
        controllers.home_of(robots.spatial_quadruped(), hip_height)


def test_a_crawl_needs_a_mass_offset_for_each_leg():
    with pytest.raises(ShapeError, match=r"mass_offset must be \(4, 2\)"):
        Crawl(mass_offset=((0.0, 0.0),)).check()


def test_messages_of_foot_kinematics_name_the_argument():
    kinematics = controllers.FootKinematics(robots.spatial_quadruped(), ["leg1_foot"])
    with pytest.raises(ShapeError, match=r"velocities must be \(1, 3\)"):
        kinematics.rates(np.full(12, 0.3), {"leg1_foot": (0.0, 0.0)}, {"leg1_foot": (0.0, 0.0, 0.0)})


def test_paths_and_commands_of_another_shape_are_refused():
    with pytest.raises(ArgumentError, match=r"must return \(advance, lift\)"):
        controllers.swing_foot(0.1, 1.0, 0.3, 0.1, lambda s: (s, s, s))
    with pytest.raises(ShapeError, match="must return an array"):
        controllers.CommandedPosture(lambda t: 3.0).initial_state(robots.spatial_quadruped())


def test_each_gait_is_fitted_to_each_robot_once_however_many_there_are(monkeypatch):
    robot, calls = robots.planar_biped(), []
    heights = np.linspace(0.85, 0.9, 700)  # [m], more members than a chunk of a study of some seconds has
    gaits = [replace(controllers.paper_walk(), hip_height=float(height)) for height in heights]
    monkeypatch.setattr(type(gaits[0]), "check", lambda gait: calls.append(gait))
    first = [gait.on(robot) for gait in gaits]
    assert [gait.on(robot) for gait in gaits] == first and len(calls) == 700
    assert gaits[0].on(robots.planar_biped()) is not first[0] and len(calls) == 701


def test_a_fitted_gait_does_not_keep_its_robot_alive():
    robot = robots.planar_biped()
    controllers.paper_walk().on(robot)
    held = weakref.ref(robot)
    del robot
    gc.collect()
    assert held() is None
