"""Loops on simulated robots: the regular end, and every way in which they end in a safe stop."""

import threading
import time
from dataclasses import fields

import numpy as np
import pytest

import controllers
import robots
from legged import deployment, estimation
from legged.deployment.interface import measurement_values
from legged.deployment.packets import Receiver, Sender, channel, decoded, encoded
from legged.errors import ArgumentError, FileError, ShapeError

FEET = ("leg1_foot", "leg4_foot")
SENSORS = estimation.Instruments(feet=FEET)


@pytest.fixture(scope="module")
def robot():
    return robots.spatial_quadruped()


@pytest.fixture(scope="module")
def loop(robot):
    """Return (law of a runner, its memory, initial configuration): servos of the standing posture on the estimate."""
    law = controllers.JointPD(controllers.suited(controllers.Stand, robot), kp=300.0, kd=10.0)
    estimated = controllers.Estimated(law, estimation.InvariantFilter(feet=FEET), SENSORS)
    q, _ = estimated.initial_state(robot)
    kernel, memory = estimated.kernel(robot)
    servo = deployment.JointCommand(np.zeros(12), q[7:], np.zeros(12), np.full(12, 300.0), np.full(12, 10.0))

    def evaluate(t, memory, reading, command):
        after, _, estimate, _ = kernel(t, memory, *reading)
        return after, servo, estimate

    return evaluate, memory, q


def runner(robot, loop, law=None, **given):
    evaluate, memory, q = loop
    interface = deployment.SimulatedRobot(robot, q, instruments=SENSORS)
    return deployment.Runner(interface, law or evaluate, memory, **given)


def test_loop_stands_and_its_log_replays(robot, loop, tmp_path):
    operation = runner(robot, loop, limits=deployment.SafetyLimits.of(robot)).run(0.2)
    log = operation.log
    assert not operation.stopped and "99 evaluations" in str(operation)
    assert np.abs(log.estimate - log.truth[:, : robot.nq])[:, 4:7].max() < 3e-3
    again = deployment.LoopLog.load(log.save(tmp_path / "log"))
    assert np.array_equal(again.estimate, log.estimate)
    assert again.estimated_run(robot).duration == again.true_run(robot).duration


def test_damaged_logs_are_refused(tmp_path):
    columns = np.zeros((2, 4000))
    names = [field.name for field in fields(deployment.LoopLog)]
    whole = {**dict.fromkeys(names, columns), "times": np.zeros(2), "forces": np.zeros((2, 1, 3))}
    path = tmp_path / "log.npz"
    np.savez(path, **whole)
    assert len(deployment.LoopLog.load(path).times) == 2
    for change in ({"times": np.zeros(3)}, {"forces": columns}, {"joints": np.array([["a"], ["b"]])}):
        np.savez(path, **{**whole, **change})
        with pytest.raises(FileError, match="is no log of a loop"):
            deployment.LoopLog.load(path)
    with pytest.raises(FileError, match="larger than"):
        np.savez(path, **whole)
        deployment.LoopLog.load(path, most=100)
    for content in (path.read_bytes()[:-30], path.read_bytes().replace(b"NUMPY", b"LUMPY"), b"no archive"):
        path.write_bytes(content)
        with pytest.raises(FileError, match="log of a loop"):
            deployment.LoopLog.load(path)


def broken(loop, kind):
    """Return a law that goes wrong after 0.02 s."""
    evaluate = loop[0]

    def law(t, memory, reading, command):
        after, servo, q = evaluate(t, memory, reading, command)
        if t > 0.02:
            if kind == "raises":
                raise ValueError("no solution")
            if kind == "nan":
                servo = deployment.JointCommand.of_torques(np.full(12, np.nan))
            if kind == "leans":
                q = np.array([0.0, 1.0, *q[2:]])
        return after, servo, q

    return law


def last_command(started: deployment.Runner) -> deployment.JointCommand:
    """Return the last command that a simulated robot was given."""
    assert isinstance(started.interface, deployment.SimulatedRobot)
    assert started.interface._command is not None
    return started.interface._command


@pytest.mark.parametrize(("kind", "words"), [("raises", "no solution"), ("nan", "not finite"), ("leans", "leans over")])
def test_broken_laws_end_in_damping(robot, loop, kind, words):
    started = runner(robot, loop, broken(loop, kind))
    operation = started.run(0.2)
    assert operation.stopped and words in operation.reason
    assert np.array_equal(last_command(started).kd, np.full(12, 2.0))
    assert not last_command(started).torques.any()


def test_silence_and_requests_end_in_damping(robot, loop):
    started = runner(robot, loop, watchdog=0.02)
    started.interface.read = lambda: None
    assert "no measurement for" in started.run(0.2).reason
    other = runner(robot, loop)
    other.change(command=lambda t: other.stop("enough") or np.zeros(0))
    assert other.run(0.2).reason == "enough"


def test_a_measurement_that_is_not_finite_ends_in_damping(robot, loop):
    started = runner(robot, loop, lambda t, memory, reading, command: (memory, np.ones(12), np.zeros(0)))
    read = started.interface.read

    def damaged():
        measured = read()
        return measured and measured._replace(reading=measured.reading._replace(joint_rates=np.full(12, np.nan)))

    started.interface.read = damaged
    assert "'joint_rates' is not finite" in started.run(0.1).reason
    assert not last_command(started).torques.any()


def test_limits_bound_torques_and_their_rates(robot, loop):
    limits = deployment.SafetyLimits(torque=20.0, torque_rate=500.0, lower=-1.0, upper=1.0)
    reading = estimation.Reading(np.zeros(3), np.zeros(3), np.zeros(12), np.zeros(12), np.zeros(12), 0, 0)
    command = deployment.JointCommand.of_torques(np.full(12, 100.0))
    limited, torques = limits.limited(command, reading, np.zeros(12), 0.002)
    assert np.allclose(torques, 1.0) and np.allclose(limited.actuation(reading.joints, reading.joint_rates), 1.0)
    _, torques = limits.limited(command, reading, np.full(12, 19.9), 0.002)
    assert np.allclose(torques, 20.0)
    assert "beyond its limits" in limits.violation(reading._replace(joints=np.full(12, 1.2)), np.zeros(0))
    with pytest.raises(ShapeError, match="lower of SafetyLimits must be below upper"):
        deployment.SafetyLimits(lower=1.0, upper=0.0)


def test_packets_from_outside_are_checked():
    values = np.arange(5.0)
    data = encoded(1, 7, 3, 0.5, values)
    assert np.array_equal(decoded(data, 1, 5).values, values)
    damaged = bytes([*data[:30], data[30] ^ 1, *data[31:]])
    for wrong in (
        b"",
        data[:-1],
        data + b"0",
        damaged,
        encoded(2, 7, 3, 0.5, values),
        encoded(1, 7, 3, np.nan, values),
    ):
        assert decoded(wrong, 1, 5) is None
    for wrong in (np.inf, np.nan, -1e13):  # products of larger numbers overflow
        assert decoded(encoded(1, 7, 3, 0.5, np.array([wrong])), 1, 1) is None
    assert decoded(encoded(1, 7, 3, 1e13, values), 1, 5) is None
    rng = np.random.default_rng(1)
    for _ in range(2000):
        noise = bytearray(data)
        for k in rng.integers(len(data), size=4):
            noise[k] = rng.integers(256)
        assert decoded(bytes(noise), 1, 5) is None or noise == data


def test_receiver_drops_old_packets_and_accepts_a_restarted_sender_after_a_silence():
    near, far = channel(), channel()
    receiver = Receiver(near, 1, 1, silence=0.5)
    at = near.getsockname()

    def heard(session, sequence, t):
        far.sendto(encoded(1, session, sequence, t, np.zeros(1)), at)
        time.sleep(0.01)
        return receiver.newest(t) is not None

    assert heard(1, 5, 0.0) and not heard(1, 4, 0.1) and not heard(1, 5, 0.1) and heard(1, 6, 0.2)
    assert not heard(2, 1, 0.3) and heard(2, 2, 0.8)
    assert receiver.refused == 3
    near.close()
    far.close()


def test_receiver_refuses_packets_from_other_addresses():
    near, far, other = channel(), channel(), channel()
    at = near.getsockname()
    any_sender, one_sender = Receiver(near, 1, 1), Receiver(near, 1, 1, only=far.getsockname())

    def accepted(receiver, source, sequence, session=1):
        source.sendto(encoded(1, session, sequence, 0.0, np.zeros(1)), at)
        time.sleep(0.01)
        return receiver.newest(0.1) is not None

    assert not accepted(one_sender, other, 1) and accepted(one_sender, far, 1)
    assert accepted(any_sender, far, 2) and any_sender.address == far.getsockname()
    assert not accepted(any_sender, other, 3)  # the same session from elsewhere
    assert any_sender.address == far.getsockname()
    assert accepted(any_sender, far, 2**31 + 1) and accepted(any_sender, far, 0)  # the number wraps around to zero
    for opened in (near, far, other):
        opened.close()


def test_receiver_refuses_packets_that_were_on_the_way_for_long():
    near, far = channel(), channel()
    receiver = Receiver(near, 1, 1, oldest=0.1)

    def arrives(sequence, sent, t):
        far.sendto(encoded(1, 7, sequence, sent, np.zeros(1)), near.getsockname())
        time.sleep(0.01)
        return receiver.newest(t) is not None

    assert arrives(1, 100.0, 3.0) and arrives(2, 100.1, 3.15) and arrives(3, 100.2, 3.19)  # least delay: -97.01 s
    assert not arrives(4, 100.3, 3.5) and arrives(5, 100.4, 3.45)
    near.close()
    far.close()


def test_a_clock_that_goes_back_during_a_wait_does_not_prolong_it():
    interface = deployment.UdpRobot(("127.0.0.1", 9), 1, 0)
    clock, begin = interface.clock, time.monotonic()
    setback = threading.Timer(0.02, lambda: setattr(interface, "clock", lambda: clock() - 3600.0))
    setback.start()
    interface.sleep_until(clock() + 0.1)
    setback.join()
    interface.close()
    assert 0.1 <= time.monotonic() - begin < 30.0


def test_address_of_a_robot_must_exist():
    for address in (("127.0.0.1", 70000), ("no such host", 1), ("127.0.0.1",), 3):
        with pytest.raises(ArgumentError, match="address must be a host and a port"):
            deployment.UdpRobot(address, 12, 4)


def test_network_loses_and_delays_packets():
    near, far = channel(), channel()
    sender = Sender(far, 1, deployment.Network(loss=0.2, delay=0.01, seed=3))
    count, arrived = 500, 0
    for k in range(count):
        sender.send(0.001 * k, np.zeros(1), near.getsockname())
        assert len(sender._queue) <= 11
        arrived += sum(1 for _ in iter(lambda: _received(near), None))
    lost = count - len(sender._queue) - arrived
    assert 0.14 < lost / count < 0.26  # 0.2 within 3.4 standard deviations of a binomial distribution
    near.close()
    far.close()


def _received(opened):
    try:
        return opened.recv(1000)
    except BlockingIOError:
        return None


class Still:
    """A robot that does not move, for a server without physics."""

    nj, step = 12, 1e-3

    def __init__(self):
        self.commands = []

    def measured(self):
        reading = estimation.Reading(
            np.zeros(3), np.array([0.0, 0.0, 9.81]), *np.zeros((3, 12)), np.zeros((4, 3)), np.ones(4)
        )
        return deployment.Measurement(0.0, reading, np.zeros(0))

    def advance(self, command):
        self.commands.append(command)


def served(plant, **options):
    """Return (the thread of a server of a plant, the interface to it)."""
    ports = []
    arguments = {"started": ports.append, **options}
    server = threading.Thread(target=deployment.serve, args=(plant, 0), kwargs=arguments)
    server.start()
    while not ports:
        time.sleep(0.001)
    return server, deployment.UdpRobot(("127.0.0.1", ports[0]), 12, 4)


def ones(t, memory, reading, command):
    """A law of constant torques."""
    return memory, np.ones(12), np.zeros(0)


def test_both_sides_of_a_lost_connection_end_in_damping():
    """The server ends while the loop runs, and the loop ends while the server runs."""
    still = Still()
    server, interface = served(still, until=0.6, silence=0.05)
    first = deployment.Runner(interface, ones, np.zeros(1), watchdog=0.3).run(0.2)
    assert not first.stopped or "no measurement" in first.reason  # a busy computer
    server.join()
    assert np.array_equal(still.commands[-1].kd, np.full(12, 2.0))  # the loop has ended, and the robot is damped
    assert "no measurement" in deployment.Runner(interface, ones, np.zeros(1), watchdog=0.1).run(1.0).reason
    interface.close()
    closed = deployment.Runner(interface, ones, np.zeros(1)).run(0.1)
    assert closed.stopped and not len(closed.log.times) and closed.reason in str(closed)


def test_a_server_that_has_fallen_behind_is_heard_again():
    """The plant pauses longer than packets may be on the way; its own time stays behind the clock from then on."""

    class Pausing(Still):
        def measured(self):
            return super().measured()._replace(time=float(len(self.commands)))

        def advance(self, command):
            super().advance(command)
            if len(self.commands) == 20:
                time.sleep(0.4)

    server, interface = served(Pausing(), until=1.5)
    operation = deployment.Runner(interface, ones, np.zeros(1), watchdog=1.0).run(1.2)
    server.join()
    interface.close()
    assert not operation.stopped and operation.log.times[-1] > 50.0  # measurements after the pause


def test_a_server_survives_foreign_packets_and_serves_one_sender():
    still, ports = Still(), []
    server = threading.Thread(target=deployment.serve, args=(still, 0), kwargs={"until": 0.5, "started": ports.append})
    server.start()
    while not ports:
        time.sleep(0.001)
    at, client, foreign = ("127.0.0.1", ports[0]), channel(), channel()
    command = deployment.JointCommand.of_torques(np.ones(12))
    rng = np.random.default_rng(2)
    for sequence in range(1, 21):
        client.sendto(encoded(2, 7, sequence, 0.0, command.flat()), at)
        for size in (0, 1, 28, 500, 60000):
            foreign.sendto(rng.bytes(size), at)
        foreign.sendto(encoded(2, 7, sequence + 100, 0.0, 9.0 * command.flat()), at)  # the session of the client
        foreign.sendto(encoded(2, 8, sequence, 0.0, 9.0 * command.flat()), at)
        foreign.sendto(encoded(2, 7, sequence + 200, 0.0, 1e300 * command.flat()), at)
        time.sleep(0.005)
    server.join()
    torques = {tuple(command.torques) for command in still.commands}
    assert (1.0,) * 12 in torques and torques <= {(1.0,) * 12, (0.0,) * 12}  # of the client, or damping
    client.close()
    foreign.close()


def test_keys_and_axes_change_the_command_within_its_limits():
    stops = []
    live = deployment.LiveVelocity(speed=0.5, turning=1.0, steps=5, stop=lambda: stops.append(1))
    for key in "wwwwwwwaqz":
        live.press(key)
    assert np.allclose(live(0.0), [0.5, 0.1, 0.2, 0.0, 0.0])
    live.move([np.nan, 2.0, 0.05])
    assert np.allclose(live(0.0), [0.0, 0.5, 0.0, 0.0, 0.0])
    live.press("x")
    live.press(" ")
    assert not live(0.0).any() and stops == [1]


def test_measurements_survive_their_way_as_numbers():
    from legged.deployment.interface import measurement_of

    values = measurement_values(Still().measured())
    assert np.array_equal(measurement_values(measurement_of(values, 12, 4)), values)


def test_dry_friction_of_a_robot_in_mujoco_opposes_the_velocity(robot):
    """A joint that torques slow down: friction must not reverse before the velocity does."""
    pytest.importorskip("mujoco")
    friction, joint = 0.3, robot.joints[0].name
    q = np.concatenate([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], controllers.home_of(robot).angles])
    plant = deployment.MujocoPlant(robot.with_parameters({f"{joint}.friction": friction}), q)
    plant.model.dof_armature[:6] = 1e6
    plant.data.qvel[6] = 2.0
    brake = np.zeros(robot.nj)
    brake[0] = -4.0
    speeds = []
    while plant.data.qvel[6] > 0.1:
        plant.advance(deployment.JointCommand.of_torques(brake))
        speeds.append(plant.data.qvel[6])
        assert plant.data.qfrc_constraint[6] == pytest.approx(-friction, rel=0.02)
    assert len(speeds) > 5
