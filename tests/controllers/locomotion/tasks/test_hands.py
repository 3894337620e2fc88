"""Hands of walking robots: held at rest, carried along, with loads and dry friction in the joints of the arm."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from oracles.standing import shared_quadruped

import controllers
import legged
from controllers import Command, Locomotion, PointTask, PoseTask
from controllers.locomotion.torques import hands
from controllers.locomotion.torques.tasks import WholeBodyModel
from legged.dynamics.frames import frame_pose
from legged.errors import DefinitionError, ShapeError, UnknownNameError

QUICK = "test_what_is_no_hand_is_refused"

STEPS, GROUND = legged.TimeStepping(2e-3), legged.Rigid(friction=0.6)
POSTURE = (0.0, -1.0, 1.8)  # [rad], of an arm with a bent elbow over the trunk


@dataclass(frozen=True, eq=False)
class Still:
    """A path at rest, whose place can vary between members of a rollout."""

    place: np.ndarray

    def __call__(self, t):
        return self.place + 0.0 * t


def arm(friction=0.0, load=0.0):
    """Return an arm with three joints, whose hand is at the end of its last link."""
    rod = legged.rod_inertia(0.8, (0.0, 0.0, 0.0), (0.35, 0.0, 0.0))
    free = legged.JointPhysics(friction=friction, damping=0.1)
    limb = legged.Limb().add(
        legged.Revolute("yaw", "z", physics=free), legged.Link("turret", legged.box_inertia(0.5, (0.1, 0.1, 0.1)))
    )
    limb.add(legged.Revolute("shoulder", "y", physics=free), legged.Link("upper_arm", rod), at=(0.0, 0.0, 0.05))
    limb.add(legged.Revolute("elbow", "y", physics=free), legged.Link("forearm", rod), at=(0.35, 0.0, 0.0))
    hand = legged.Link("hand", legged.box_inertia(0.1 + load, (0.05, 0.05, 0.05)))
    return limb.add(legged.Fixed("wrist"), hand, at=(0.35, 0.0, 0.0))


def with_arm(**given):
    return shared_quadruped().edit().attach(arm(**given), to="trunk", at=(0.1, 0.0, 0.1)).build()


def posture_of(robot):
    home = controllers.home_of(robot)
    angles = home.angles.copy()
    angles[-3:] = POSTURE
    return replace(home, angles=angles)


def at_rest(robot, command=None, **given):
    """Return a law whose hand stays where it is at the start, the initial state, and the place of the hand."""
    law = Locomotion("trot", Command() if command is None else command, home=posture_of(robot))
    q, v = law.initial_state(robot)
    place = tuple(float(x) for x in frame_pose(robot, q, "hand").position)
    return replace(law, hands=(PointTask("hand", lambda t: np.array(place), **given),)), q, v, np.array(place)


def errors(robot, run, place):
    return np.array([np.linalg.norm(frame_pose(robot, q, "hand").position - place) for q in run.q])


def test_a_hand_stays_in_the_world_while_the_base_trots_to_the_side_and_back():
    """The base moves by more than 0.1 m."""
    robot = with_arm()
    law, q, v, place = at_rest(robot, Command(vy=lambda t: legged.where(t < 0.3, 0.0, 0.3 * np.cos(4.0 * (t - 0.3)))))
    run = legged.simulate(robot, law, ground=GROUND, until=2.5, q=q, v=v, integrator=STEPS)
    assert np.ptp(run.q[:, 5]) > 0.1
    assert errors(robot, run, place).max() < 0.005  # [m], after touchdowns, whose impacts the plan does not know


def test_the_observer_carries_a_load_that_the_law_does_not_know(monkeypatch):
    """A standing robot with 0.5 kg more in its hand: the error decays; without the observer it stays."""
    robot, heavy = with_arm(), with_arm(load=0.5)
    law, q, v, place = at_rest(robot)
    options = {"ground": GROUND, "until": 1.2, "q": q, "v": v, "integrator": STEPS}
    left = {}
    for rate in (hands._OBSERVER, 0.0):
        monkeypatch.setattr(hands, "_OBSERVER", rate)
        run = legged.simulate(heavy, controllers.NominalModel(law, robot), **options)
        left[rate] = errors(robot, run, place)[-1]
    assert left[0.0] > 0.005 and left[6.0] < 0.1 * left[0.0]


def test_a_path_in_axes_of_the_heading_moves_with_them():
    """Position, velocity and acceleration in the world are those of a point on a turning body, by differences."""
    rate, velocity = 0.7, np.array([0.3, -0.2, 0.1])
    task = PoseTask(
        "hand", lambda t: (0.4 + 0.1 * np.sin(3.0 * t), 0.2, 0.5 * t), lambda t: (0.1, 0.2, t * t), axes="heading"
    )

    def desired(t):
        axes = hands.HeadingAxes(velocity * t, velocity, 0.3 + rate * t, rate)
        moved = axes.carried(task)
        parts = legged.taylor.derivatives(moved.path(legged.taylor.time(t)))
        assert isinstance(moved, PoseTask) and moved.orientation is not None
        return parts, legged.taylor.derivatives(np.array(moved.orientation(legged.taylor.time(t)), dtype=object))

    step = 1e-4
    (before, _), (now, angles), (after, _) = desired(0.5 - step), desired(0.5), desired(0.5 + step)
    np.testing.assert_allclose((after[0] - before[0]) / (2 * step), now[1], atol=1e-6)  # step^2 times third derivatives
    np.testing.assert_allclose((after[1] - before[1]) / (2 * step), now[2], atol=1e-6)
    np.testing.assert_allclose(angles[0], [0.1, 0.2, 0.25 + 0.3 + 0.35])
    np.testing.assert_allclose(angles[1], [0.0, 0.0, 1.0 + rate])


def test_a_target_out_of_reach_neither_moves_the_hand_fast_nor_the_robot_over():
    """The feedback acts on 0.15 h of the distance: the hand moves at up to about K_p / K_d times this."""
    robot = with_arm()
    law, q, v, place = at_rest(robot)
    far = [(place + np.array([0.6, 0.0, 0.0]),), (np.array([3.0, 1.0, 0.5]),)]
    law = replace(law, hands=(PointTask("hand", Still(*far[0])),))
    vary = {"controller.hands.0.path.place": np.array([target for (target,) in far])}
    runs = legged.rollout(robot, law, ground=GROUND, until=1.5, q=q, v=v, vary=vary, integrator=STEPS, sample=0.02)
    for k, (target,) in enumerate(far):
        places = np.array([frame_pose(robot, row, "hand").position for row in runs.q[k]])
        speeds = np.linalg.norm(np.diff(places, axis=0), axis=1) / 0.02
        assert speeds.max() < 1.5 * 10.0 * 0.15 * law.start(robot, None, q, v)[0].height
        assert (places[-1] - place) @ (target - place) > 0.05 * np.linalg.norm(target - place)  # [m], towards it
        assert np.abs(runs.q[k, -1, 4:6]).max() < 0.15 and runs.q[k, -1, 0] > 0.99  # [m]; a cosine of half an angle


def test_compensation_of_dry_friction_stays_below_it_and_drives_towards_the_path():
    robot = with_arm(friction=0.5)
    law, q, v, place = at_rest(robot)
    start = q.copy()
    start[-1] += 0.1
    axes = hands.HeadingAxes(np.zeros(3), np.zeros(3), 0.0, 0.0)
    model = WholeBodyModel(robot, start, v)
    control = hands.hand_control(model, 0.0, law.hands, axes, np.zeros((1, 6)), 0.5, 9.81, 2e-3)
    sizes = np.abs(control.friction[-3:])
    assert sizes.max() <= 0.5 and sizes[1:].max() > 0.45 and not control.friction[:-3].any()
    error = place - frame_pose(robot, start, "hand").position
    assert control.friction @ (model.point("hand").J[3:].T @ error) > 0.0
    none = hands.hand_control(
        WholeBodyModel(with_arm(), start, v), 0.0, law.hands, axes, np.zeros((1, 6)), 0.5, 9.81, 2e-3
    )
    assert not none.friction.any()


def test_what_is_no_hand_is_refused():
    robot = with_arm()

    def refused(task):
        Locomotion("trot", hands=(task,)).initial_state(robot)

    with pytest.raises(DefinitionError, match=r"'trunk' .* is no hand"):
        refused(PointTask("trunk", lambda t: np.zeros(3)))
    with pytest.raises(DefinitionError, match=r"'leg1_shank' .* is no hand"):
        refused(PointTask("leg1_shank", lambda t: np.zeros(3)))
    with pytest.raises(UnknownNameError, match="hnd"):
        refused(PointTask("hnd", lambda t: np.zeros(3)))
    with pytest.raises(ShapeError, match=r"path of 'hand' must return \(3,\)"):
        refused(PointTask("hand", lambda t: np.zeros(2)))
    law = controllers.OperationalSpaceControl(
        controllers.Stand(hip_height=0.45),
        tasks=(PointTask("hand", lambda t: np.zeros(3), axes="heading"),),
        standing=("leg1_foot", "leg2_foot", "leg3_foot", "leg4_foot"),
    )
    q, v = controllers.Stand(hip_height=0.45).on(robot).initial_state(robot)
    with pytest.raises(DefinitionError, match="use world axes"):
        law.start(robot, None, q, v)


def test_a_robot_as_a_limb_keeps_its_dynamics():
    """On a massless link at rest in the world, an arm has the torques of the arm alone."""
    base = (
        legged.RobotBuilder("arm", legged.Link("foundation"), base=legged.FixedBase())
        .attach(arm(), to="foundation")
        .build()
    )
    stand = legged.RobotBuilder("stand", legged.Link("floor"), base=legged.FixedBase())
    again = stand.attach(legged.Limb.of(base), to="floor", prefix="left_").build()
    assert [joint.name for joint in again.joints] == ["left_yaw", "left_shoulder", "left_elbow"]
    assert again.link("left_hand").inertia.mass == base.link("hand").inertia.mass
    random = np.random.default_rng(0)
    q, v, vdot = random.normal(size=(3, 3))
    one, other = (legged.inverse_dynamics(robot, q, v, vdot) for robot in (base, again))
    np.testing.assert_allclose(one, other, atol=1e-12)
