"""Terms on states with values by hand, and their traced form against plain NumPy."""

from inspect import isfunction
from itertools import combinations

import numpy as np
import pytest

import legged
import robots
from legged import environments
from legged.algorithms.legs.standing import home_of
from legged.dynamics.kinematics import point_motion
from legged.environments import Draws, Feet, State, terms
from legged.environments.tasks.common import Stance
from legged.errors import ArgumentError
from legged.ground import HeightMap

ROBOT = robots.spatial_quadruped()
TASK = environments.velocity(ROBOT)
NJ, NV = ROBOT.nj, ROBOT.nv


def state(task=TASK, feet=None, **fields):
    """Return a state in the standing posture at rest, with other fields."""
    robot = task.robot
    known = {
        "q": np.concatenate([[1.0, 0, 0, 0, 0, 0, task.height], task.posture]),
        "v": np.zeros(robot.nv),
        "v_before": np.zeros(robot.nv),
        "rest": np.zeros(0),
        "action": np.zeros(robot.nj),
        "last_action": np.zeros(robot.nj),
        "command": np.zeros(task.command_size),
        "memory": {},
        "parameters": {},
        "steps": 0.0,
        "random": Draws(0.0, 0.0, 0.0),
    }
    s = State(task, None, **{**known, **fields})
    if feet is not None:
        s.__dict__["feet"] = feet
    return s


def feet(touching, velocities=None, positions=None):
    m = len(touching)
    still = np.zeros((m, 3))
    return Feet(
        still if positions is None else np.asarray(positions, float),
        still if velocities is None else np.asarray(velocities, float),
        still,
        np.asarray(touching, float),
    )


def base(v=(0, 0, 0), omega=(0, 0, 0), yaw=0.0, pitch=0.0, joints=None):
    """Return (q, v) with the base turned by yaw, then by pitch, and body velocities."""
    half_yaw, half_pitch = 0.5 * yaw, 0.5 * pitch
    p = [
        np.cos(half_yaw) * np.cos(half_pitch),
        -np.sin(half_yaw) * np.sin(half_pitch),
        np.cos(half_yaw) * np.sin(half_pitch),
        np.sin(half_yaw) * np.cos(half_pitch),
    ]
    q = np.concatenate([p, [0.0, 0.0, TASK.height], TASK.posture if joints is None else joints])
    return q, np.concatenate([omega, v, np.zeros(NJ)])


def test_tracking_compares_velocities_along_the_heading():
    q, v = base(v=(0.4, 0.1, 0.0), omega=(0, 0, 0.3), yaw=1.1)
    s = state(q=q, v=v, command=np.array([0.7, -0.1, 0.5]))
    # Errors 0.3 and -0.2 m/s, and 0.2 rad/s, of which the heading changes nothing.
    assert terms.track_linear_velocity(0.5)(s) == pytest.approx(np.exp(-(0.09 + 0.04) / 0.25))
    assert terms.track_yaw_rate(0.5)(s) == pytest.approx(np.exp(-0.04 / 0.25))
    assert terms.linear_velocity_error(s) == pytest.approx(np.hypot(0.3, 0.2))
    assert terms.yaw_rate_error(s) == pytest.approx(0.2)
    q, v = base(v=(1.0, 0.0, 0.0), pitch=0.5)  # a pitched base moves along its own axis x, forward by cos
    np.testing.assert_allclose(terms.heading_velocity(state(q=q, v=v)), [np.cos(0.5), 0.0], atol=1e-12)


def test_mean_errors_of_velocities_leave_out_oscillations():
    """After five durations the mean of an error that oscillates is that of its constant part."""
    update, memory = terms.mean_velocity_error(1.0), np.zeros(3)
    for k in range(250):
        x = np.sin(10.0 * np.pi * 0.02 * k)
        q, v = base(v=(0.4 + 0.3 * x, 0.1, 0.0), omega=(0, 0, 0.3 - x), yaw=1.1)
        memory = update(state(q=q, v=v, command=np.array([0.7, -0.1, 0.5]), memory={"mean_velocity_error": memory}))
    decayed = 1.0 - np.exp(-5.0)
    np.testing.assert_allclose(memory, decayed * np.array([0.3, -0.2, 0.2]), rtol=0.0, atol=0.035)  # 1 / (10 pi)
    s = state(memory={"mean_velocity_error": np.array([0.3, -0.2, 0.2])})
    np.testing.assert_array_equal(terms.last_mean_velocity_error(s), [0.3, -0.2, 0.2])
    assert terms.track_mean_velocity(0.5)(s) == pytest.approx(np.exp(-(0.09 + 0.04) / 0.25))
    assert terms.track_mean_yaw_rate(0.5)(s) == pytest.approx(np.exp(-0.04 / 0.25))
    with pytest.raises(ArgumentError, match="duration"):
        terms.mean_velocity_error(0.0)


def test_penalties_of_the_base_and_joints():
    q, v = base(v=(0.0, 0.0, 0.3), omega=(0.1, -0.2, 5.0), pitch=0.4)
    v[6:] = 2.0
    before = v.copy()
    before[6:] = 1.5
    s = state(q=q, v=v, v_before=before, action=np.full(NJ, 0.3), last_action=np.full(NJ, -0.1))
    assert terms.vertical_velocity(s) == pytest.approx(0.09)
    assert terms.roll_and_pitch_rates(s) == pytest.approx(0.05)
    assert terms.tilt(s) == pytest.approx(np.sin(0.4) ** 2)
    assert terms.upright(s) == pytest.approx((0.5 + 0.5 * np.cos(0.4)) ** 2)
    assert terms.action_rate(s) == pytest.approx(NJ * 0.16)
    assert terms.actions(s) == pytest.approx(NJ * 0.09)
    assert terms.joint_rates(s) == pytest.approx(NJ * 4.0)
    assert terms.joint_accelerations(s) == pytest.approx(NJ * (0.5 / 0.02) ** 2)
    assert terms.height_error(TASK.height - 0.1)(s) == pytest.approx(0.01)
    assert terms.height_reached(2.0 * TASK.height)(s) == pytest.approx(0.5)
    assert terms.height_reached(0.5 * TASK.height)(s) == 1.0


def test_penalties_of_joint_positions():
    away = TASK.posture.copy()
    away[2] += 0.3
    away[5] -= 0.1
    q, v = base(joints=away)
    s = state(q=q, v=v)
    assert terms.posture_error(s) == pytest.approx(0.1)
    assert terms.joint_deviation(ROBOT, [2, 5, 7])(s) == pytest.approx(0.4)
    assert terms.standing_posture(0.5)(s) == pytest.approx(np.exp(-0.1 / (NJ * 0.25)))
    with pytest.raises(ArgumentError, match="joint coordinates 0 to"):
        terms.joint_deviation(ROBOT, [NJ])


def test_fallen_and_alive_are_opposites():
    fallen = terms.fallen(0.5, 0.3)
    for pitch, height, expected in ((0.4, 0.4, 0.0), (0.6, 0.4, 1.0), (0.4, 0.2, 1.0)):
        q, v = base(pitch=pitch)
        q[6] = height
        s = state(q=q, v=v)
        assert fallen(s) == expected and terms.alive(fallen)(s) == 1.0 - expected


def test_feet_are_links_and_time_in_the_air_pays_at_touchdown():
    assert terms.feet_of(ROBOT) == [[0], [1], [2], [3]]
    air = np.array([0.0, 0.12, 0.3, 0.9])
    memory = {"air_time": air, "contact_time": np.array([0.5, 0.0, 0.0, 0.0])}
    s = state(feet=feet([1, 1, 0, 1]), memory=memory, command=np.array([0.5, 0, 0]))
    # Feet 0, 1 and 3 touch; they were in the air for 0, 0.12 and 0.9 s; of the last only 0.4 s count.
    assert terms.feet_air_time(0.1, 0.4)(s) == pytest.approx((0.02 + 0.3) / 0.02)
    np.testing.assert_allclose(terms.air_time(s), [0, 0, 0.32, 0])
    np.testing.assert_allclose(terms.contact_time(s), [0.52, 0.02, 0, 0.02])
    assert terms.feet_air_time(0.1, 0.4)(state(feet=feet([1, 1, 0, 1]), memory=memory)) == 0.0
    assert terms.touching(s) == 0.75 and terms.flight(s) == 0.0
    assert terms.flight(state(feet=feet([0, 0, 0, 0]))) == 1.0


GAIT = terms.Gait(period=0.5, touchdowns=[0.0, 0.5, 0.5, 0.0], contacts=[[0], [1], [2], [3]], duty=0.6)


def test_a_gait_pays_for_feet_that_stand_and_swing_at_their_times():
    walking = {"command": np.array([0.5, 0.0, 0.0]), "steps": 0.35 / TASK.period}  # 0.7 of the period
    reward = terms.gait_contacts(GAIT)
    np.testing.assert_allclose(GAIT.phases(state(**walking)), [0.7, 0.2, 0.2, 0.7])
    for touching, expected in (([0, 1, 1, 0], 1.0), ([1, 1, 1, 1], 0.5), ([1, 1, 1, 0], 0.75), ([1, 0, 0, 1], 0.0)):
        assert reward(state(feet=feet(touching), **walking)) == expected
    assert reward(state(feet=feet([0, 1, 1, 0]), steps=walking["steps"])) == 0.0  # a command of rest
    # Feet 0 and 3 are a quarter into their swing, where the arc has 0.75 of its height: 75 mm.
    height, radius = terms.swing_height(GAIT, 0.1), ROBOT.contacts[0].radius
    positions = [[0, 0, 0.05 + radius], [0, 0, radius], [0, 0, radius], [0, 0, 0.2 + radius]]
    assert height(state(feet=feet([0, 1, 1, 0], positions=positions), **walking)) == pytest.approx(0.025**2)
    assert height(state(feet=feet([0, 1, 1, 0], positions=positions), steps=walking["steps"])) == 0.0


def test_neighboring_legs_alternate_in_the_gait_of_a_task():
    for name, expected in (("spatial_quadruped", (2, 2)), ("hexapod", (3, 3)), ("humanoid", (1, 1))):
        robot = getattr(robots, name)()
        gait, home = Stance.of(robot).gait(), home_of(robot)
        assert sorted(contact for foot in gait.contacts for contact in foot) == list(range(len(robot.contacts)))
        assert (gait.touchdowns.count(0.0), gait.touchdowns.count(0.5)) == expected
        for a, b in combinations(range(len(home.legs)), 2):  # legs beside each other and behind each other alternate
            gap = np.abs(home.legs[a].hip - home.legs[b].hip)
            nearest = min(np.linalg.norm(home.legs[a].hip - other.hip) for k, other in enumerate(home.legs) if k != a)
            if np.linalg.norm(gap) < 1.01 * nearest:
                assert gait.touchdowns[a] != gait.touchdowns[b]
    with pytest.raises(ArgumentError, match="period"):
        terms.Gait(0.0, [0.0], [[0]])
    with pytest.raises(ArgumentError, match="duty"):
        terms.Gait(0.5, [0.0], [[0]], duty=1.0)


def test_slip_and_clearance_of_feet():
    velocities = [[0.3, 0.4, 1.0], [1.0, 0.0, 0.0], [0, 0, 0], [0, 0, 0]]
    positions = [[0, 0, 0.02], [0, 0, 0.05], [0, 0, 0.0], [0, 0, 0.0]]
    s = state(feet=feet([1, 0, 1, 1], velocities, positions))
    assert terms.feet_slip(s) == pytest.approx(0.25)
    assert terms.feet_clearance(0.1)(s) == pytest.approx(0.5 * 0.08**2 + 1.0 * 0.05**2, rel=1e-5)


def test_two_feet_earn_the_time_of_single_stance():
    robot = robots.spatial_biped()
    task = environments.velocity(robot, gait_period=None)
    groups = terms.feet_of(robot)
    assert len(groups) == 2
    command = np.array([0.5, 0, 0])
    memory = {"air_time": np.array([0.0, 0.18]), "contact_time": np.array([0.28, 0.0])}

    def touching(left, right):
        on = np.zeros(len(robot.contacts))
        on[groups[0][-1]], on[groups[1][-1]] = left, right  # one contact point of a foot is enough
        return feet(on)

    reward = terms.single_stance_time(0.4)
    single = state(task, touching(1, 0), command=command, memory=memory)
    assert reward(single) == pytest.approx(0.2)  # stance for 0.3 s, swing for 0.2 s
    assert terms.single_stance_time(0.15)(single) == pytest.approx(0.15)
    for both in (touching(1, 1), touching(0, 0)):
        assert reward(state(task, both, command=command, memory=memory)) == 0.0
    assert reward(state(task, touching(1, 0), memory=memory)) == 0.0  # a command of rest
    assert {"single_stance_time", "flight", "feet_slip", "alive", "hip_deviation"} <= set(task.rewards)


def test_the_tilt_of_a_link_is_that_of_its_own_vertical():
    robot = robots.humanoid()
    task = environments.velocity(robot)
    penalty = task.rewards["torso_tilt"].function
    assert penalty(state(task)) == pytest.approx(0.0, abs=1e-20)
    q = state(task).q.copy()
    q[:4] = [np.cos(0.15), 0.0, np.sin(0.15), 0.0]  # the base pitches by 0.3 rad, and with it the torso
    assert penalty(state(task, q=q)) == pytest.approx(np.sin(0.3) ** 2)


def test_a_jump_is_scored_by_its_peak_and_its_landing():
    task = environments.jumping(ROBOT)
    h = task.height
    reward, place = terms.jump_height(0.1), terms.jump_distance(0.2)
    q, _ = base()
    command = np.array([0.2, 0.5])
    on, off = feet([1, 1, 1, 1]), feet([0, 0, 0, 0])
    memory = {"origin": np.array([0.1, -0.2, 0.5 * np.pi]), "flew": 0.0, "peak": 0.0, "landed": 0.0}
    before = state(task, on, q=q, command=command, memory=memory, steps=10.0)
    assert reward(before) == 0.0 and place(before) == 0.0 and terms.in_flight(before) == 0.0
    early = state(task, off, q=q, command=command, memory=memory, steps=3.0)
    assert terms.flew(early) == 0.0  # settling in the first 0.1 s is no jump
    high = q.copy()
    high[6] = h + 0.15
    up = state(task, off, q=high, command=command, memory=memory, steps=10.0)
    assert reward(up) == pytest.approx(np.exp(-((0.05 / 0.1) ** 2))) and terms.in_flight(up) == 1.0
    memory = {**memory, "flew": 1.0, "peak": h + 0.15}
    down = q.copy()
    down[4:6] = [0.1, 0.2]  # the target is 0.5 m along y from the origin, at (0.1, 0.3)
    landing = state(task, on, q=down, command=command, memory=memory, steps=30.0)
    assert terms.peak(landing) == h + 0.15 and terms.landed(landing) == 1.0 and terms.in_flight(landing) == 0.0
    assert place(landing) == pytest.approx(np.exp(-((0.1 / 0.2) ** 2)))


def test_a_scan_reads_the_nearest_heights_of_a_map():
    random = np.random.default_rng(0)
    terrain = HeightMap(random.uniform(0.0, 0.3, (40, 30)), 0.1, (-1.0, -1.5))
    task = TASK.changed(ground=legged.contact.Rigid(terrain=terrain))
    scan = terms.heights_around(1.0, 0.6, 0.2)
    for x, y, yaw in ((0.53, -0.31, 0.7), (0.0, 0.0, 0.0), (2.4, 1.0, -2.0)):
        q, _ = base(yaw=yaw)
        q[4:6] = x, y
        rows, columns = np.linspace(-0.5, 0.5, 6), np.linspace(-0.3, 0.3, 4)
        points = [
            (x + np.cos(yaw) * a - np.sin(yaw) * b, y + np.sin(yaw) * a + np.cos(yaw) * b)
            for a in rows
            for b in columns
        ]
        expected = [TASK.height - terrain.nearest(*point) for point in points]
        np.testing.assert_allclose(scan(state(task, q=q)), expected, atol=1e-12)
    q[4:6] = 50.0, -70.0  # far outside, where the map continues with its edge
    near = q.copy()
    near[4:6] = 2.9, -1.5
    np.testing.assert_array_equal(scan(state(task, q=q)), scan(state(task, q=near)))


def test_noise_is_uniform_and_each_two_numbers_are_uncorrelated():
    samples = np.array([Draws(3.0, float(i), 5.0).noise(12) for i in range(4000)])
    assert samples.min() >= -1.0 and samples.max() < 1.0
    # Standard errors of 4000 samples: 0.009 of the mean, 0.016 of correlations; five of them.
    np.testing.assert_allclose(samples.mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(samples.var(axis=0), 1.0 / 3.0, atol=0.03)
    np.testing.assert_allclose(np.corrcoef(samples.T), np.eye(12), atol=0.08)


def test_traced_terms_are_those_of_plain_numpy():
    reference = environments.Reference(ROBOT, walk())
    tracking = environments.tracking(ROBOT, reference)
    jumping = environments.jumping(ROBOT)
    random = np.random.default_rng(1)
    memory = {
        "air_time": random.uniform(0.0, 0.5, 4),
        "contact_time": random.uniform(0.0, 0.5, 4),
        "origin": np.array([0.1, 0.2, 0.3]),
        "start": 3.0,
        **dict.fromkeys(("flew", "peak", "landed"), 1.0),
    }
    for task in (TASK, jumping, tracking, environments.velocity(ROBOT).changed(rewards={"x": None})):
        functions = {name: r.function for name, r in task.rewards.items() if name != "torques"}
        functions |= {name: term.function for name, term in task.observations["actor"].items()}
        functions |= dict(task.terminations)

        def evaluated(q, v, action, command, on, task=task, functions=functions):
            points = [(contact.link, contact.position) for contact in ROBOT.contacts]
            positions, velocities = point_motion(ROBOT, q, v, points)
            contact = Feet(positions, velocities, 0.0 * positions, on)
            s = state(task, contact, q=q, v=v, action=action, command=command, memory=memory, steps=12.0)
            return {name: np.asanyarray(function(s)) for name, function in functions.items()}

        sizes = {"q": (ROBOT.nq,), "v": (NV,), "action": (NJ,), "command": (task.command_size,), "on": (4,)}
        kernel = legged.compile(evaluated, **sizes)
        q, _ = base(yaw=0.4, pitch=0.2)
        q[7:] += random.normal(size=NJ)
        arguments = (q, random.normal(size=NV), random.normal(size=NJ), random.normal(size=task.command_size))
        on = np.array([1.0, 0.0, 1.0, 1.0])
        plain, traced = evaluated(*arguments, on), kernel(*arguments, on)
        for name in functions:
            # Rounding: sums of up to 30 numbers of order 1 to 1e4 in another order.
            np.testing.assert_allclose(traced[name], plain[name], rtol=1e-11, atol=1e-13, err_msg=name)


def walk(count=60, period=0.02):
    """Return (t, q, v): a base that moves forward, rises and turns, and joints that swing."""
    t = np.arange(count) * period
    q = np.tile(state().q, (count, 1))
    q[:, 0], q[:, 3] = np.cos(0.1 * t), np.sin(0.1 * t)
    q[:, 4] = 0.4 * t
    q[:, 6] += 0.01 * np.sin(2.0 * np.pi * t)
    q[:, 7:] += 0.2 * np.sin(2.0 * np.pi * t)[:, None]
    v = np.zeros((count, NV))
    v[:, 2] = 0.2
    return t, q, v


def test_motion_terms_vanish_from_one_with_their_errors():
    t, q, v = walk()
    reference = environments.Reference(ROBOT, (t, q, v))
    task = environments.tracking(ROBOT, reference)
    memory = {"start": 5.0}
    there = {"q": q[12], "v": v[12], "memory": memory, "steps": 7.0}
    motion = {name: r.function for name, r in task.rewards.items() if name.startswith("motion")}
    for name, function in motion.items():
        assert function(state(task, **there)) == pytest.approx(1.0), name
    lost = task.terminations["motion_lost"]
    assert lost(state(task, **there)) == 0.0
    moved = q[12].copy()
    moved[4] += 0.1
    moved[7:] += 0.1
    s = state(task, **{**there, "q": moved, "v": v[12] + 0.1})
    assert motion["motion_position"](s) == pytest.approx(np.exp(-20.0 * 0.01))
    assert motion["motion_joint_positions"](s) == pytest.approx(np.exp(-2.0 * NJ * 0.01))
    assert motion["motion_joint_velocities"](s) == pytest.approx(np.exp(-0.1 * NJ * 0.01))
    assert motion["motion_base_velocity"](s) == pytest.approx(np.exp(-1.0 * (0.03 + 0.1 * 0.03)))
    turned = q[12].copy()
    turned[:4] = legged.rotations.quaternion_product(turned[:4], np.array([np.cos(0.3), np.sin(0.3), 0, 0]))
    s = state(task, **{**there, "q": turned})
    assert motion["motion_orientation"](s) == pytest.approx(np.exp(-40.0 * np.sin(0.3) ** 2))
    assert lost(s) == 0.0  # 0.6 rad
    low = q[12].copy()
    low[6] -= 0.6 * task.height
    assert lost(state(task, **{**there, "q": low})) == 1.0


def test_the_page_of_terms_has_all_of_them():
    from benchmarks.pages.terms import MODULES, counted, documented

    rows, numbers = documented(), counted()
    known = {name: getattr(terms, name) for name in terms.__all__}
    functions = {name for name, f in known.items() if isfunction(f) and f.__module__.rpartition(".")[2] in MODULES}
    assert set(rows) == functions and functions <= set(numbers)
    assert numbers["vertical_velocity"] == 1 and numbers["roll_and_pitch_rates"] == 3
