"""Sensors: readings at rest, in free fall, on a rotating body, and during a trot."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged import Frame, sensors
from legged.errors import ArgumentError, DefinitionError, ShapeError, UnknownNameError
from legged.ground import realistic_ground
from legged.ground.ground import contact_wrenches

G = 9.81
TURN = legged.rpy(0.4, -1.1, 2.0)


def ball(radius=0.1):
    return legged.RobotBuilder("ball", legged.Link("ball", legged.sphere_inertia(3.0, radius))).build()


def test_at_rest_the_accelerometer_reads_g_upward_whatever_its_axes():
    robot = robots.spatial_quadruped()
    q, v = robot.state(base_position=(1.0, 2.0, 3.0), base_orientation=(0.3, 0.2, 0.1))
    for frame in ("trunk", Frame("trunk", (0.1, 0.2, 0.3), TURN), robot.contacts[2].name):
        up = legged.frame_pose(robot, q, frame).rotation.T @ np.array([0.0, 0.0, G])
        np.testing.assert_allclose(sensors.specific_force(robot, q, v, 0 * v, frame), up, atol=1e-12)
        np.testing.assert_array_equal(sensors.gyro(robot, q, v, frame), np.zeros(3))


def test_in_free_fall_it_reads_nothing_and_off_the_center_of_a_spin_the_centripetal_force():
    body = ball()
    omega, arm = np.array([0.0, 0.0, 2.0]), np.array([0.3, 0.0, 0.1])
    q, v = body.state(base_position=(0, 0, 5.0), base_linear_velocity=(1.0, 2.0, 3.0), base_angular_velocity=omega)
    vdot = legged.forward_dynamics(body, q, v, np.zeros(6))
    np.testing.assert_allclose(sensors.specific_force(body, q, v, vdot, "ball"), 0.0, atol=1e-14)
    reading = sensors.specific_force(body, q, v, vdot, Frame("ball", arm, TURN))
    np.testing.assert_allclose(TURN @ reading, (-4.0 * 0.3, 0.0, 0.0), atol=1e-13)
    np.testing.assert_allclose(TURN @ sensors.gyro(body, q, v, Frame("ball", arm, TURN)), omega, atol=1e-14)


def test_a_force_sensor_reads_the_ground_on_a_foot_by_the_name_of_link_or_point():
    robot = robots.spatial_quadruped()
    q, _ = robot.state(base_orientation=(0.1, 0.2, 0.3), joints={"leg1_knee": 0.4})
    forces = np.random.default_rng(0).normal(size=(4, 3)) * 50.0
    wrenches = contact_wrenches(robot, q, forces)
    for point, force in zip(robot.contacts, forces, strict=True):
        for name in (point.name, robot.links[point.link].name):
            np.testing.assert_allclose(sensors.contact_force(robot, q, wrenches, name), force, atol=1e-13)
    with pytest.raises(UnknownNameError, match="did you mean 'leg1_foot'"):
        sensors.contact_force(robot, q, wrenches, "leg1_fot")


def test_switches_close_at_one_load_and_open_at_another():
    load = np.array([0.0, 4.0, 6.0, 9.0, 11.0, 9.0, 6.0, 4.0, 6.0, 9.0, 10.0])
    expected = np.array([0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1], bool)
    np.testing.assert_array_equal(sensors.contact_switches(load, on=10.0), expected)
    np.testing.assert_array_equal(
        sensors.contact_switches(np.stack([load, -load], axis=1), on=10.0, off=5.0).T, [expected, 0 * expected]
    )
    np.testing.assert_array_equal(sensors.contact_switches(load, on=5.0, off=5.0), load >= 5.0)
    with pytest.raises(ShapeError, match=r"0 <= off <= on, got on 1\.0 N, off 2\.0 N"):
        sensors.contact_switches(load, on=1.0, off=2.0)


def test_noise_has_the_densities_it_was_given():
    times = np.arange(0.0, 40.0, 0.005)  # 8000 samples at 200 Hz: variances known to 3 %, their roots to 1.5 %
    white = sensors.Noise(density=0.02).on(times, np.zeros((8000, 3)))
    assert white.std() == pytest.approx(0.02 * np.sqrt(200.0), rel=0.05)
    walked = sensors.Noise(walk=0.1).on(times, np.zeros((8000, 3)))
    assert np.diff(walked, axis=0).std() == pytest.approx(0.1 * np.sqrt(0.005), rel=0.05)
    early = sensors.Noise(walk=0.1).on(times[:5], np.zeros((5, 20_000))).std(axis=1)
    np.testing.assert_allclose(early, 0.1 * np.sqrt(times[:5]), rtol=0.03)  # six standard errors
    offset = sensors.Noise(bias=0.3, seed=1).on(times, np.ones((8000, 400)))
    assert np.ptp(offset, axis=0).max() == 0.0
    assert (offset[0] - 1.0).std() == pytest.approx(0.3, rel=0.15)
    again = sensors.Noise(density=0.02).on(times, np.zeros((8000, 3)))
    np.testing.assert_array_equal(white, again)
    assert not np.array_equal(white, sensors.Noise(density=0.02, seed=1).on(times, np.zeros((8000, 3))))
    with pytest.raises(DefinitionError, match="finite and not negative"):
        sensors.Noise(density=-1.0)
    with pytest.raises(ArgumentError, match="seed must be at least 0"):
        sensors.Noise(seed=-1)
    with pytest.raises(ShapeError, match="as many increasing times"):
        sensors.Noise().on(times[:5], np.zeros((6, 3)))


@pytest.fixture(scope="module")
def trot():
    robot = robots.spatial_quadruped()
    law = controllers.Balanced(controllers.Trot(period=0.4, stride=0.1, clearance=0.05))
    return robot, legged.simulate(robot, law, ground=realistic_ground(robot), until=1.2, sample=0.002)


def settled(run):
    return run.times >= 0.4  # [s]: two steps, after the first


def test_trot_is_read_as_it_was_simulated(trot):
    robot, run = trot
    mount = Frame("trunk", (0.1, 0.0, 0.05), TURN)
    seen = sensors.measure(robot, run, imu=mount)
    k = 300
    q, v, vdot = run.q[k], run.v[k], run.vdot[k]
    np.testing.assert_allclose(seen.gyro[k], sensors.gyro(robot, q, v, mount), atol=1e-12)
    np.testing.assert_allclose(seen.specific_force[k], sensors.specific_force(robot, q, v, vdot, mount), atol=1e-9)
    np.testing.assert_allclose(seen.center_of_mass[k], legged.center_of_mass(robot, q), atol=1e-13)
    origin = seen.center_of_pressure[k]
    point = sensors.zero_moment_point(robot, q, v, vdot, origin=origin)
    np.testing.assert_allclose(seen.zero_moment_point[k], point, atol=1e-10)
    np.testing.assert_allclose(seen.capture_point[k], sensors.capture_point(robot, q, v, origin=origin), atol=1e-12)
    wrenches = contact_wrenches(robot, q, run.contacts.forces[k])
    np.testing.assert_allclose(
        seen.foot("leg1_foot").force[k], sensors.contact_force(robot, q, wrenches, "leg1_foot"), atol=1e-10
    )
    with pytest.raises(UnknownNameError, match="did you mean 'leg1_foot'"):
        seen.foot("leg1_foo")


def test_trot_presses_inside_its_feet_and_where_its_motion_says(trot):
    robot, run = trot
    seen = sensors.measure(robot, run, threshold=1e-6)  # [N]: every foot with any load counts
    loaded = seen.touching.any(axis=1)
    assert loaded.sum() > 0.9 * len(run)
    margin = seen.margin(seen.center_of_pressure)
    assert margin[loaded].min() > -1e-9  # on the line of two feet, within rounding
    both = np.isfinite(seen.zero_moment_point[:, 0]) & loaded
    apart = np.linalg.norm(seen.zero_moment_point - seen.center_of_pressure, axis=1)[both]
    assert apart.max() < 3e-4  # [m]: feet sink by tenths of a millimetre more or less, and are pulled sideways
    assert (
        np.nanmin(seen.margin(seen.capture_point)[settled(run)]) < -0.01
    )  # a trot always falls to one side or the other
    weight = robot.mass * G
    assert seen.contacts.forces[settled(run), :, 2].sum(axis=1).mean() == pytest.approx(weight, rel=0.05)
    assert seen.specific_force[settled(run), 2].mean() == pytest.approx(G, rel=0.05)


def test_trot_switches_diagonals(trot):
    robot, run = trot
    seen = sensors.measure(robot, run)
    feet = {name: seen.foot(name).touching for name in seen.contacts.names}
    middle = [run.at(t) for t in (0.2, 0.6, 1.0)]  # [s], amid three steps
    patterns = [tuple(bool(on[k]) for on in feet.values()) for k in middle]
    assert patterns[0] == patterns[2] != patterns[1]
    assert all(sum(pattern) == 2 for pattern in patterns)


def test_controllers_can_use_sensors_inside_the_compiled_loop():
    robot = robots.spatial_quadruped()
    knees = [joint.v.start for joint in robot.joints if "knee" in joint.name]

    def law(t, q, v, wrenches):
        """Stiff joints that lean on what the gyroscope, a foot and the capture point tell."""
        tau = -60.0 * (q[7:] - stand[7:]) - 3.0 * v[6:]
        turning = sensors.gyro(robot, q, v, "trunk")
        load = sensors.contact_force(robot, q, wrenches, "leg1_foot")[2]
        ahead = sensors.capture_point(robot, q, v)[0] - legged.center_of_mass(robot, q)[0]
        for column in knees:
            tau[column - 6] = tau[column - 6] - 1.0 * turning[1] - 0.5 * ahead + 1e-3 * load
        return tau

    stand, _ = robot.state(base_position=(0.0, 0.0, 0.6))
    run = legged.simulate(robot, law, until=0.1, q=stand, ground=realistic_ground(robot))
    assert run.backend == "compiled closed loop"


def test_flight_has_no_pressure_and_no_margin():
    robot = robots.spatial_quadruped()
    q, _ = robot.state(base_position=(0.0, 0.0, 2.0))
    q[7:] = 0.1 * np.arange(robot.nj)  # feet at different heights
    run = legged.simulate(robot, until=0.05, q=q, ground=realistic_ground(robot))
    seen = sensors.measure(robot, run)
    np.testing.assert_allclose(seen.capture_point[:, 2], run.contacts.points[0, :, 2].min(), atol=1e-12)
    assert np.isnan(seen.zero_moment_point).all()
    assert np.isnan(seen.margin(seen.center_of_mass)).all()
    assert np.isfinite(seen.capture_point).all()
    np.testing.assert_allclose(seen.specific_force, 0.0, atol=1e-9)
    assert not seen.touching.any()
    with pytest.raises(DefinitionError, match="one of 'spatial quadruped', not of 'ball'"):
        sensors.measure(ball(), run)


def test_a_center_of_mass_below_the_ground_has_no_capture_point():
    robot = robots.spatial_quadruped()
    q, _ = robot.state(base_position=(0.0, 0.0, 1.0))
    seen = sensors.measure(robot, legged.simulate(robot, until=1.0, q=q, sample=0.5))
    assert np.isfinite(seen.capture_point[0]).all()
    assert np.isnan(seen.capture_point[-1]).all()


def test_switches_of_a_robot_without_weight_need_a_threshold():
    robot = robots.spatial_quadruped().edit().change_robot(gravity=(0.0, 0.0, 0.0)).build()
    run = legged.simulate(robot, until=0.01)
    with pytest.raises(DefinitionError, match="has no weight; give the threshold"):
        sensors.measure(robot, run)
    seen = sensors.measure(robot, run, threshold=1.0)
    assert not seen.touching.any()
    assert np.isnan(seen.capture_point).all()
