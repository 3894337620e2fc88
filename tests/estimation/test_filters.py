"""Laws of the filters: exactness, convergence, drift, symmetry, consistency, slips and false contacts."""

from dataclasses import replace

import numpy as np
import pytest
from estimation.motions import guess, tilts, walk
from scipy.stats import chi2

import legged
import robots
from legged import estimation
from legged.rotations import axis_quaternion, quaternion_matrix, quaternion_product

EXACT = estimation.Deviations(gyro=0.0, accelerometer=0.0, encoder=0.0, joint_rate=0.0)


@pytest.fixture(scope="module")
def robot():
    return robots.spatial_quadruped()


@pytest.fixture(scope="module")
def motion(robot):
    return walk(robot, 6.0, speed=0.5, yaw_rate=0.2)


@pytest.fixture(scope="module")
def readings(robot, motion):
    return read(robot, motion, estimation.Instruments(seed=1))


def read(robot, motion, instruments, seeds=None):
    return estimation.instrument_readings(
        robot, instruments, motion.times, motion.q, motion.v, motion.forces, seeds=seeds
    )


def run(robot, motion, readings, estimator=None, q=None, v=None):
    start = motion.q[0] if q is None else q, motion.v[0] if v is None else v
    return estimation.run_estimator(robot, estimator or estimation.InvariantFilter(), motion.times, readings, *start)


def test_exact_sensors_give_the_exact_state(robot, motion):
    estimate = run(robot, motion, read(robot, motion, estimation.Instruments(EXACT, force=0.0)))
    # The velocities of the walk are central differences, whose error is 1/6 of the jerk, 80 m/s^3, times 4e-6 s^2.
    assert np.abs(estimate.v - motion.v)[:, 3:6].max() < 2e-3
    assert np.abs(estimate.q - motion.q)[:, 4:7].max() < 1e-3 * motion.distance


@pytest.mark.parametrize("name", ["spatial_quadruped", "hexapod", "spatial_biped"])
def test_noise_of_forces_gives_no_contact_in_the_air(name):
    """A robot in flight, with four, six, or, of two soles, eight contact points; 1000 readings of each."""
    robot, times = getattr(robots, name)(), 2e-3 * np.arange(1000)
    q, v = np.tile(robot.neutral(), (len(times), 1)), np.zeros((len(times), robot.nv))
    forces = np.zeros((len(times), len(robot.contacts), 3))
    measured = estimation.instrument_readings(robot, estimation.Instruments(), times, q, v, forces)
    assert np.std(np.asarray(measured.forces)) > 0.03 * robot.mass * 9.81 / len(robot.contacts)
    assert np.max(measured.contacts) < 0.5


def test_invariant_filter_converges_from_30_degrees_and_1_meter_per_second(robot, motion, readings):
    starts = [guess(robot, motion, axis, np.radians(30.0), 1.0) for axis in np.linspace(0.0, 6.0, 8)]
    q, v = (np.array(x) for x in zip(*starts, strict=True))
    many = estimation.Reading(*(np.repeat(np.asarray(part)[:, None], 8, axis=1) for part in readings))
    estimate = run(robot, motion, many, estimation.InvariantFilter(tilt=0.5, velocity=1.0), q, v)
    tilt = tilts(estimate.q, motion.q[:, None])
    assert np.allclose(np.degrees(tilt[0]), np.degrees(np.sin(np.radians(30.0))), atol=4.0)
    assert np.degrees(tilt[500:]).max() < 1.0  # the accelerometer's noise and unknown bias allow about 0.6
    assert np.abs(estimate.v - motion.v[:, None])[500:, :, 3:6].max() < 0.03


@pytest.mark.parametrize("kind", [estimation.InvariantFilter, estimation.QuaternionFilter])
def test_drift_is_below_half_a_percent_of_the_distance(robot, motion, readings, kind):
    estimate = run(robot, motion, readings, kind())
    assert np.linalg.norm(estimate.q[-1, 4:6] - motion.q[-1, 4:6]) < 0.005 * motion.distance
    assert np.sqrt(np.mean((estimate.v - motion.v)[100:, 3:6] ** 2)) < 0.01


def test_linear_filter_keeps_level_and_drifts_more(robot, motion, readings):
    """The baseline has no biases and no slip: it is worse than the others, but its errors stay bounded."""
    baseline, invariant = (
        run(robot, motion, readings, kind()) for kind in (estimation.LinearFilter, estimation.InvariantFilter)
    )
    errors = [np.linalg.norm(estimate.q[-1, 4:6] - motion.q[-1, 4:6]) for estimate in (baseline, invariant)]
    assert errors[1] < errors[0] < 0.05 * motion.distance
    assert np.degrees(tilts(baseline.q, motion.q)).max() < 2.0
    assert np.sqrt(np.mean((baseline.v - motion.v)[250:, 3:6] ** 2)) < 0.1
    assert np.abs(baseline.q[250:, 6] - motion.q[250:, 6]).max() < 5e-3  # of the known level ground


def test_linear_filter_converges_from_a_wrong_velocity(robot, motion, readings):
    q, v = guess(robot, motion, 0.7, 0.0, 1.0)
    estimate = run(robot, motion, readings, estimation.LinearFilter(), q, v)
    assert np.abs(estimate.v - motion.v)[50:, 3:6].max() < 0.2 and np.abs(estimate.v - motion.v)[0, 3:6].max() > 0.5


def test_turning_and_moving_the_world_turns_and_moves_the_estimate(robot, motion, readings):
    turn, shift = axis_quaternion("z", 1.1), np.array([3.0, -2.0, 0.5])
    q = motion.q[0].copy()
    q[:4], q[4:7] = quaternion_product(turn, q[:4]), quaternion_matrix(turn) @ q[4:7] + shift
    estimator = estimation.InvariantFilter(heading=0.0, position=0.0)
    one, other = run(robot, motion, readings, estimator), run(robot, motion, readings, estimator, q)
    # Positions of meters beside variances of 1e-6 m^2 lose six digits.
    assert np.abs(other.v - one.v).max() < 1e-6
    assert np.abs(other.q[:, 4:7] - (one.q[:, 4:7] @ quaternion_matrix(turn).T + shift)).max() < 1e-5


@pytest.mark.parametrize("slip", [0.08, 0.3])
def test_slipping_feet_are_rejected(robot, slip):
    """The velocity of 0.08 m/s is 2.7 standard deviations of one reading; its mean over 10 ms is 7 of them."""
    motion = walk(robot, 4.0, speed=0.3, slip=slip)
    estimate = run(robot, motion, read(robot, motion, estimation.Instruments(seed=2)))
    # A filter with `slip=1e6` drifts by a sixth of the way that the foot slips, 0.2 m at 0.3 m/s.
    assert np.linalg.norm(estimate.q[-1, 4:6] - motion.q[-1, 4:6]) < 0.008 * motion.distance


def test_a_skid_of_all_feet_is_measured_by_the_accelerometer(robot, motion, readings):
    """The robot skids forward by 75 mm within 0.3 s, at up to 0.5 m/s, with the same motion of its legs."""
    duration, speed, q, v = 0.3, 0.5, motion.q.copy(), motion.v.copy()
    s = np.clip((motion.times - 2.0) / duration, 0.0, 1.0)
    q[:, 4] += 0.5 * speed * duration * (s - np.sin(2.0 * np.pi * s) / (2.0 * np.pi))
    skid = np.outer(speed * np.sin(np.pi * s) ** 2, [1.0, 0.0, 0.0])
    v[:, 3:6] += [quaternion_matrix(p).T @ x for p, x in zip(q[:, :4], skid, strict=True)]
    skids = motion._replace(q=q, v=v)
    errors = [
        estimate.q[-1, 4:6] - path.q[-1, 4:6]
        for path, estimate in (
            (motion, run(robot, motion, readings)),
            (skids, run(robot, skids, read(robot, skids, estimation.Instruments(seed=1)))),
        )
    ]
    # Velocity and tilt are known within 5 mm/s and 2 mrad when it begins: 2 mm and, in 0.3 s, 1 mm of the skid.
    assert np.linalg.norm(errors[1] - errors[0]) < 6e-3


def test_a_wrong_velocity_that_the_filter_takes_as_certain_is_corrected(robot, motion, readings):
    q, v = guess(robot, motion, 0.7, 0.0, 1.0)
    estimate = run(robot, motion, readings, estimation.InvariantFilter(velocity=0.01), q, v)
    errors = np.linalg.norm((estimate.v - motion.v)[:, 3:6], axis=1)
    assert errors[0] > 0.9 and errors[1000:].max() < 0.05


@pytest.mark.parametrize("sinking", [0.0, 0.02])
def test_a_spherical_foot_rolls_with_the_base(robot, motion, sinking):
    """The base pitches with locked joints: the foot does not move relative to it, but rolls on the ground."""
    radius, rate, dt = 0.05, 0.8, 0.002
    foot = robot.edit().change_contact("leg1_foot", legged.Sphere(radius)).build()
    q, v = motion.q[0].copy(), np.zeros(foot.nv)
    q[:4] = 1.0, 0.0, 0.0, 0.0
    estimator, memory = estimation.InvariantFilter(EXACT, feet=["leg1_foot"]).start(foot, q, v)
    center = estimator.parts(memory).feet[0] - q[4:7]
    v[1], rolling = rate, radius - 0.5 * sinking
    v[3:6] = rolling * rate * np.array([1.0, 0.0, 0.0]) - np.cross(v[:3], center)  # the point of contact is at rest
    estimator = estimation.InvariantFilter(EXACT, feet=["leg1_foot"], velocity=1e-4, sinking=sinking)
    estimator, memory = estimator.start(foot, q, v)
    before = estimator.parts(memory).feet[0]
    reading = estimation.Reading(
        v[:3], np.array([0.0, 0.0, 9.81]), q[7:], np.zeros(foot.nj), np.zeros(foot.nj), np.zeros((1, 3)), np.ones(1)
    )
    moved = estimator.parts(estimator.update(memory, reading, dt)).feet[0] - before
    assert moved[0] == pytest.approx(rolling * rate * dt, rel=0.05) and abs(moved[1]) < 1e-6
    # The foot corrects a wrong velocity to that of a rolling foot; without rolling the error is 0.03 to 0.04 m/s.
    wrong = v + 0.05 * np.eye(foot.nv)[3]
    estimator, memory = replace(estimator, velocity=1.0, tilt=1e-4).start(foot, q, wrong)
    for _ in range(10):
        memory = estimator.update(memory, reading, dt)
    error = estimator.parts(memory).velocity - v[3:6]
    assert np.abs(error[:2]).max() < 3e-3, error


def test_feet_that_sink_in_are_below_the_known_terrain(robot, motion):
    depth = 0.005
    q = motion.q - np.eye(robot.nq)[6] * depth
    level = estimation.InvariantFilter(terrain=legged.ground.Flat(), sinking=depth)
    estimate = run(
        robot, motion._replace(q=q), read(robot, motion._replace(q=q), estimation.Instruments(seed=4)), level
    )
    assert np.abs(estimate.q[1000:, 6] - q[1000:, 6]).max() < 2e-3


def test_feet_correct_the_velocity_after_a_lost_reading(robot, motion, readings):
    """The lost reading has a specific force less by 10 m/s^2 than the next one, as when a foot lands."""
    started, first = estimation.InvariantFilter().start(robot, motion.q[0], motion.v[0])

    def step(memory, dt, unread, **given):
        reading = estimation.Reading(**given)
        after = started.update(memory, reading, dt, unread)
        return after, *started.state(after, reading)

    kernel = legged.compile(step, memory=first.shape, dt=(), unread=(), **started.sensed.shapes._asdict())
    lost, dt = 250, 1.0 / 500.0
    force = np.array(readings.specific_force)
    force[lost + 1, 2] += 5.0  # and 5 m/s^2 less in the lost reading: the velocity after both is the same

    def errors(unread):
        """Return the errors of the velocity after the loss, (100,), [m/s]."""
        memory, norms = first, []
        for k in [*range(1, lost), *range(lost + 1, lost + 101)]:
            is_next = k == lost + 1
            rows = (np.asarray(part)[k] for part in readings._replace(specific_force=force))
            memory, _, v = kernel(memory, 2.0 * dt if is_next else dt, unread * is_next, *rows)
            norms.append(np.linalg.norm((v - motion.v[k])[3:6]))
        return np.array(norms[-100:])

    held, corrected = errors(0.0), errors(dt)
    assert held[0] == pytest.approx(0.02, rel=0.2)  # 4 ms times 5 m/s^2, and the error before
    assert corrected[0] == pytest.approx(held[0], rel=0.05)
    assert corrected[30:50].mean() < 0.6 * held[30:50].mean()


def test_false_contacts_change_the_estimate_little(robot, motion):
    readings = read(robot, motion, estimation.Instruments(seed=3, false_contacts=0.05))
    wrong = (np.asarray(readings.contacts) > 0.5) != (motion.forces[..., 2] > 0.0)
    assert 0.03 < wrong.mean() < 0.07
    estimate = run(robot, motion, readings)
    assert np.linalg.norm(estimate.q[-1, 4:6] - motion.q[-1, 4:6]) < 0.01 * motion.distance


def test_known_terrain_stops_the_vertical_drift(robot):
    rising = legged.ground.Slope(0.15)
    motion = walk(robot, 6.0, speed=0.5, ground=rising.height)
    readings = read(robot, motion, estimation.Instruments(seed=4, accelerometer_bias=np.array([0.0, 0.0, 0.1])))
    errors = [
        np.abs(run(robot, motion, readings, estimation.InvariantFilter(terrain=terrain)).q[-1, 6] - motion.q[-1, 6])
        for terrain in (None, rising)
    ]
    assert errors[1] < 2e-3 < 5e-3 * motion.distance
    assert errors[0] < 0.005 * motion.distance


def test_mean_normalized_error_of_many_runs_is_that_of_its_distribution(robot, motion):
    """The mean over n runs is that of a chi-square distribution with 9 n degrees of freedom, divided by n.

    The limits are those that a consistent filter violates for one of 10 000 seeds. The mean of 72 000 runs is
    9.039 +- 0.016: linearization makes the filter 0.4 % too confident at these errors of the first guess.
    """
    n, noisy, rng, count = 3000, 1000, np.random.default_rng(5), 250
    short = type(motion)(*(part[:count] for part in motion))
    deviations = estimation.Deviations(
        foot_model=1e-6, foot_walk=1e-5, foot_sinking=1e-5, gyro_walk=0.0, accelerometer_walk=0.0
    )
    estimator = estimation.InvariantFilter(deviations, tilt=0.01, velocity=0.02, heading=0.01, position=0.01, slip=1e3)
    readings = read(robot, short, estimation.Instruments(deviations), seeds=5000 + np.arange(n + noisy))
    deviation = np.array([estimator.gyro_bias, estimator.accelerometer_bias])[:, None, None]
    gyro_bias, accelerometer_bias = deviation * rng.normal(size=(2, n + noisy, 3))
    gyro, specific_force = readings.gyro + gyro_bias, readings.specific_force + accelerometer_bias
    # The last runs have twice the gyroscope noise that the filter assumes: sqrt(1 + 3) = 2.
    gyro[:, n:] += np.sqrt(3.0) * deviations.gyro * rng.normal(size=(count, noisy, 3))
    q, v = drawn_guesses(short, estimator, rng, n + noisy)
    estimate = run(robot, short, readings._replace(gyro=gyro, specific_force=specific_force), estimator, q, v)
    started, _ = estimator.start(robot, short.q[0], short.v[0])
    kernel = legged.compile(started.normalized_error, memory=estimate.memory.shape[1:], q=(robot.nq,), v=(robot.nv,))
    errors = kernel(estimate.memory, short.q[-1], short.v[-1])
    low, high = limits_of_mean_chi_square(9, n)
    assert low < errors[:n].mean() < high
    assert errors[n:].mean() > limits_of_mean_chi_square(9, noisy)[1]


def limits_of_mean_chi_square(degrees, n):
    """Return the limits outside of which the mean of n chi-square numbers lies with a probability of 1e-4."""
    return chi2.ppf([0.5e-4, 1.0 - 0.5e-4], degrees * n) / n


def drawn_guesses(motion, estimator, rng, n):
    """Return first guesses (q, v) that differ from the truth as the filter assumes, (n, nq) and (n, nv)."""
    q, v = np.tile(motion.q[0], (n, 1)), np.tile(motion.v[0], (n, 1))
    for k in range(n):
        phi = rng.normal(size=3) * [estimator.tilt, estimator.tilt, estimator.heading]
        turn = legged.rotations.quaternion_exp(phi)
        velocity = quaternion_matrix(q[k, :4]) @ v[k, 3:6] + estimator.velocity * rng.normal(size=3)
        q[k, :4] = quaternion_product(turn, q[k, :4])
        q[k, 4:7] += estimator.position * rng.normal(size=3)
        v[k, 3:6] = quaternion_matrix(q[k, :4]).T @ velocity
    return q, v


def test_the_place_of_the_sensor_does_not_change_the_estimate(robot, motion):
    frame = legged.Frame("trunk", at=(0.1, -0.05, 0.08), rotation=quaternion_matrix(axis_quaternion("x", 0.7)))
    exact = estimation.Instruments(EXACT, force=0.0)
    near = run(robot, motion, read(robot, motion, exact))
    far = run(robot, motion, read(robot, motion, replace(exact, imu=frame)), estimation.InvariantFilter(imu=frame))
    # Readings are means over 2 ms, of which each sensor has its own.
    assert np.abs(near.v - far.v)[:, 3:6].max() < 5e-3
    assert np.abs(near.q - far.q)[:, :7].max() < 5e-3
