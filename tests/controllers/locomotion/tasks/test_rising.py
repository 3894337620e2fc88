"""Postures in which a robot with two legs and two arms rises from its front, and the search for a motion of them."""

from contextlib import nullcontext
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import controllers
import legged
import robots
from controllers.locomotion.falls import rising, trials
from controllers.locomotion.falls.rising import LASTS, _Search, rising_motions
from controllers.locomotion.falls.trials import Servos
from legged.algorithms.legs.posture_search import joint_limits
from legged.algorithms.legs.rising import NOMINAL, RisingPostures, limb_ends
from legged.compiler import cache_contents
from legged.dynamics.kinematics import center_of_mass, link_poses, point_positions
from legged.environments.tasks.standing_up import with_body_contacts
from legged.errors import DefinitionError, SimulationWarning
from legged.rotations import axis_quaternion

G1 = all_urdfs().get("g1/g1_29dof_rev_1_0")
needs_g1 = pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")


@pytest.fixture(scope="module")
def postures():
    """Return the postures of G1, with contact points on its body."""
    robot = with_body_contacts(legged.load(G1))
    return RisingPostures(robot, controllers.home_of(robot))


@needs_g1
def test_nominal_postures_are_symmetric_and_within_the_limits(postures):
    robot = postures.robot
    lower, upper = joint_limits(robot)
    hands = [(arm.hand, arm.end) for arm in postures.arms]
    assert len(postures.nominal) == len(NOMINAL)
    for angles, (place, _) in zip(postures.nominal, NOMINAL, strict=True):
        assert (angles >= lower).all() and (angles <= upper).all()
        q = np.concatenate([robot.base.neutral(), angles])
        left, right = point_positions(robot, q, hands)
        np.testing.assert_allclose(left * [1.0, -1.0, 1.0], right, atol=0.02)  # [m], of arms of 0.55 m
        shoulder = link_poses(robot, q)[1][postures.arms[0].shoulder]
        np.testing.assert_allclose((left - shoulder) / postures.arms[0].length, place, atol=0.2)  # within the ranges


@needs_g1
@pytest.mark.parametrize(("pitch", "hands"), [(1.3, (0.05, 0.4)), (1.2, None), (0.4, None)])
def test_postures_over_the_soles_have_level_soles_hands_and_center_of_mass_at_their_places(postures, pitch, hands):
    robot, home = postures.robot, postures.home
    lower, upper = joint_limits(robot)
    angles = postures.over_soles(postures.nominal[6], 0.7, pitch, hands)
    assert (angles >= lower).all() and (angles <= upper).all()
    q = np.concatenate([robot.base.neutral(), angles])
    rotations, _ = link_poses(robot, q)
    up = np.mean([rotations[leg.link][:, 2] for leg in home.legs], axis=0)  # normals of the soles of G1
    toes, heels = point_positions(robot, q, postures.toes), point_positions(robot, q, postures.heels)
    heights = np.concatenate([toes, heels]) @ up
    assert np.ptp(heights) < 0.03  # [m], of legs of 0.7 m; the residual of weighted least squares
    ahead = (toes - heels).mean(axis=0)
    share = (center_of_mass(robot, q) - heels.mean(axis=0)) @ ahead / (ahead @ ahead)
    assert share == pytest.approx(0.7, abs=0.02)
    if hands is None:
        assert np.arctan2(-up[0], up[2]) == pytest.approx(pitch, abs=0.02)
    else:
        ends = point_positions(robot, q, [(arm.hand, arm.end) for arm in postures.arms])
        np.testing.assert_allclose(ends @ up - heights.mean(), hands[0] * postures.length, atol=0.03)
        beyond = (ends - toes.mean(axis=0)) @ ahead / np.linalg.norm(ahead)
        np.testing.assert_allclose(beyond, hands[1] * postures.length, atol=0.06)


@needs_g1
def test_a_standing_robot_has_risen_and_has_a_higher_score_than_others(postures):
    """One that leans beyond its toes, moves forward or lies has not risen; a wide stance has a lower score."""
    robot, home = postures.robot, postures.home
    search = _Search(postures, _OfUnit(robot, 0.25))
    q = np.concatenate([robot.base.neutral(), home.angles])
    q[6] = home.base_height
    state = np.concatenate([q, np.zeros(robot.nv)])
    best, risen = search._result(state, False, 3)
    assert risen == 1.0
    assert search._result(state, True, 3) == (-9.0, 0.0)
    leans, moves, lies, wide = (state.copy() for _ in range(4))
    leans[:4] = axis_quaternion("y", 0.4)
    moves[robot.nq + 3] = 1.0  # [m/s]
    lies[:4], lies[6] = axis_quaternion("y", 1.5), 0.1
    for other in (leans, moves, lies):
        score, risen = search._result(other, False, 3)
        assert risen == 0.0 and score < best
    assert search._result(moves, False, 2)[1] == 0.0 and search._result(moves, False, 1)[1] == 1.0  # with its hands
    for name, sign in (("left_hip_roll", 1.0), ("right_hip_roll", -1.0)):
        wide[robot.joint(f"{name}_joint").q.start] += 0.3 * sign  # [rad]
    score, _ = search._result(wide, False, 3)
    assert score < best - 0.1


class _OfUnit:
    """What the scores need of `Trials`."""

    def __init__(self, robot, unit):
        self.robot, self.unit = robot, unit


class _Instant(_OfUnit):
    """Trials whose robots reach each posture at once and do not move otherwise."""

    def __init__(self, robot):
        super().__init__(robot, 0.25)
        self.random, self.balances = np.random.default_rng(0), []
        self.lying = np.tile(np.concatenate([robot.neutral(), np.zeros(robot.nv)]), (trials.ROBOTS, 1))

    def at_rest(self, *_):
        return self.lying, np.zeros(trials.ROBOTS, bool)

    def varied(self, states):
        return states

    def moved(self, states, target, moves, lasts, begins, balances=False):
        assert (np.asarray(moves) <= lasts).all()
        self.balances.append(balances)
        after = states.copy()
        after[:, self.robot.nq - self.robot.nj : self.robot.nq] = target
        return after, np.zeros(trials.ROBOTS, bool)

    def verticals(self, states):
        return np.tile([-1.0, 0.0, 0.0], (len(states), 1))


class _Parameters:
    """Postures whose first joint position is the first parameter, without inverse kinematics."""

    knee = 2.0

    def __init__(self, postures):
        self.robot, self.home, self.toes, self.heels = postures.robot, postures.home, postures.toes, postures.heels
        self.length, self.nominal = postures.length, np.zeros_like(postures.nominal)

    def limbs(self, hand, bends, near):
        return np.append(hand[0], np.zeros(self.robot.nj - 1))

    def over_soles(self, start, share, pitch, hands=None):
        return np.append(share, np.zeros(self.robot.nj - 1))


@needs_g1
def test_the_best_sequence_is_repeated_and_is_the_result(postures, monkeypatch):
    """The score is the first joint position, of which the largest one of each stage is to be found."""
    joint = postures.robot.nq - postures.robot.nj

    def result(self, state, is_lost, goal):
        return state[joint], float(state[joint] > 0.6)

    monkeypatch.setattr(_Search, "_result", result)
    instant = _Instant(postures.robot)
    motions = _Search(_Parameters(postures), instant).motions()
    assert motions is not None
    assert motions.postures.shape == (2, len(LASTS), postures.robot.nj) and motions.moves.shape == (2, len(LASTS))
    assert (motions.verticals == [-1.0, 0.0, 0.0]).all()
    thirds = [0.9 - 0.4 / 3, 0.85 - 0.34 / 3, *[0.74 - 0.34 / 3] * 3]  # upper ones, with one of 16 almost certainly
    assert (motions.postures[:, 4:, 0] > thirds).all()
    assert instant.balances[-len(LASTS) :] == [False] * rising.BALANCES + [True] * (len(LASTS) - rising.BALANCES)


@needs_g1
def test_the_rate_of_a_motion_is_that_of_its_repetitions(postures, monkeypatch):
    """Half of the motions succeed in trials alone; a robot whose motions fail has none after the last round."""
    joint = postures.robot.nq - postures.robot.nj
    monkeypatch.setattr(
        _Search, "_result", lambda self, state, *_: (state[joint], float(abs(state[joint] - 0.5) < 0.1))
    )
    search = _Search(_Parameters(postures), _Instant(postures.robot))
    lying, (start, *_) = search._start()

    def ending(place):
        step = np.append(place, np.zeros(postures.robot.nj - 1)), 3.0, np.zeros(3)
        return start._replace(stages=(step,) * len(LASTS), rate=1.0)

    rates = [node.rate for node in search._repeated(lying, [ending(0.5), ending(2.0)])]
    assert rates == [1.0, 0.0]
    monkeypatch.setattr(rising, "_ROUNDS", 2)
    monkeypatch.setattr(rising, "_MOST_ROUNDS", 3)
    monkeypatch.setattr(_Search, "_result", lambda *_: (0.0, 1.0))
    for rate, rounds in ((0.4, 6), (0.6, 2), (0.9, 1)):
        repeated = []

        def of_rate(self, lying, nodes, rate=rate, repeated=repeated):
            repeated.append(rate)
            return [node._replace(rate=rate) for node in nodes]

        monkeypatch.setattr(_Search, "_repeated", of_rate)
        assert (search.motions() is None) == (rate < 0.5) and len(repeated) == rounds


@needs_g1
def test_ankles_move_the_center_of_pressure_to_the_capture_point(postures):
    """Toes go down if it is ahead of its place, and up if it is behind, by at most 0.25 rad."""
    robot, unit = postures.robot, 0.25
    q = np.concatenate([robot.base.neutral(), postures.rest])
    v = np.zeros(robot.nv)
    share, length = postures.capture_place(q, v, unit)
    toes, heels = (point_positions(robot, q, points).mean(axis=0) for points in (postures.toes, postures.heels))
    assert length == pytest.approx(toes[0] - heels[0], rel=1e-3)
    assert share == pytest.approx((center_of_mass(robot, q)[0] - heels[0]) / length, abs=1e-3)
    v[3] = 0.4  # [m/s]
    assert postures.capture_place(q, v, unit)[0] == pytest.approx(share + 0.4 * unit / length, abs=1e-3)
    for speed in (-0.8, -0.2, 0.2, 0.8):
        v[3] = speed
        rotations = postures.balancing_rotations(q, v, unit)
        assert set(np.flatnonzero(rotations)) == set(postures.pitch[:, 2]) and np.abs(rotations).max() <= 0.25
        turned = q + np.concatenate([np.zeros(robot.base.nq), rotations])
        rises = (point_positions(robot, turned, postures.toes) - point_positions(robot, turned, postures.heels))[:, 2]
        assert (np.sign(rises - (toes - heels)[2]) == -np.sign(speed)).all()


class Found(NamedTuple):
    """Result of a search."""

    numbers: np.ndarray
    more: np.ndarray


def test_the_result_of_a_search_is_stored_for_robot_and_key(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    found, searches = Found(np.array([[1.5, -0.25]]), np.array([3.0])), []
    robot, other = robots.planar_biped(), robots.spatial_biped()
    for result in (found, None):

        def search(result=result):
            searches.append(result)
            return result

        for searched, of, number in (
            (1, robot, 1.0),
            (1, robot, 1.0),
            (2, robot, 2.0),
            (3, other, 1.0),
            (3, robot, 2.0),
        ):
            monkeypatch.setattr(trials, "_RESULTS", WeakKeyDictionary())  # as in another process
            is_new = searched > len(searches)
            with pytest.warns(SimulationWarning, match="begins") if is_new else nullcontext():
                key = number, np.array(float(result is None))
                again = trials.stored_motion(of, Found, search, *key, notice="a search begins")
            assert len(searches) == searched
            np.testing.assert_equal(again, result)
        searches.clear()
    assert "6 motions" in str(cache_contents())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:simulations search for a motion")
@needs_g1
def test_a_robot_that_is_too_weak_to_rise_is_refused(postures, monkeypatch):
    monkeypatch.setattr(rising, "_MOST_ROUNDS", 1)
    robot = postures.robot
    servos = Servos(np.full(robot.nj, 1.0), np.full(robot.nj, 0.1))  # [N m/rad], [N m s/rad]
    with pytest.raises(DefinitionError, match="no motion was found in which robot"):
        rising_motions(postures, servos, 0.25, 4e-3)


@pytest.mark.parametrize("balances", [0.0, 1.0])
def test_servos_add_rotations_for_balance_where_a_command_says_so(balances):
    servos = Servos(np.array([2.0]), np.array([0.0]), balance=lambda q, v: np.array([0.1]))
    command = np.array([0.0, 1.0, 3.0, balances])
    torque = servos.torque(4.0, 0.0, np.array([0.3]), np.zeros(1), np.zeros((1, 6)), np.zeros(0), command)
    np.testing.assert_allclose(torque, 2.0 * (1.0 + 0.1 * balances - 0.3))


def test_the_end_of_a_uniform_rod_is_its_end():
    rod = legged.Link("rod", legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -0.4)))
    builder = legged.RobotBuilder("arm", legged.Link("base"), base=legged.FixedBase())
    robot = builder.add(legged.Revolute("joint", "y"), rod, to="base").build()
    np.testing.assert_allclose(limb_ends(robot)[robot.link("rod").index], [0.0, 0.0, -0.4], atol=1e-12)


def test_a_robot_without_arms_is_refused():
    robot = robots.spatial_biped()
    with pytest.raises(DefinitionError, match="has no"):
        RisingPostures(robot, controllers.home_of(robot))
