"""Logs and the files they are read from, which are untrusted."""

import io
import json

import numpy as np
import pytest
from identification.pendulums import double_pendulum, sweep

from legged.errors import ArgumentError, FileError, LeggedError, NotFiniteError, ShapeError, UnknownNameError
from legged.identification import Log, read

T = 20
TIMES = 0.01 * np.arange(T)


def small_log() -> Log:
    """Return a log with all channels."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(T, 7))
    base[:, :4] = [1.0, 0.0, 0.0, 0.0]
    return Log(
        TIMES,
        ("a", "b"),
        *rng.normal(size=(4, T, 2)),
        gyro=rng.normal(size=(T, 3)),
        accelerometer=rng.normal(size=(T, 3)),
        base=base,
        twist=rng.normal(size=(T, 6)),
        contacts=rng.normal(size=(T, 4)),
    )


def _csv(log: Log) -> str:
    head, columns = ["time"], [log.times]
    for name, channel in (("position", "positions"), ("rate", "rates"), ("desired", "desired"), ("torque", "torques")):
        head += [f"{joint}.{name}" for joint in log.joints]
        columns += list(getattr(log, channel).T)
    head += ["gyro.x", "gyro.y", "gyro.z", "contacts.left"]
    columns += [*log.gyro.T, log.contacts[:, 0]]
    rows = [",".join(map(repr, row)) for row in np.array(columns).T.tolist()]
    return "\n".join([",".join(head), *rows])


def _json_mcap(log: Log, path, late: float = 0.0) -> None:
    """Write a log, with poses that come late [s] and whose quaternions change their signs from one to the next."""
    writer_module = pytest.importorskip("mcap.writer")
    file = io.BytesIO()
    writer = writer_module.Writer(file, compression=writer_module.CompressionType.NONE)
    writer.start()
    schemas = {
        kind: writer.register_schema(f"foxglove.{kind}", "jsonschema", b"{}")
        for kind in ("JointState", "Imu", "Odometry")
    }
    channels = {
        topic: writer.register_channel(topic, "json", schemas[kind])
        for topic, kind in (
            ("/joints", "JointState"),
            ("/command", "JointState"),
            ("/imu", "Imu"),
            ("/odom", "Odometry"),
        )
    }
    xyz = lambda x: dict(zip("xyz", x.tolist(), strict=True))  # noqa: E731
    for k, time in enumerate(log.times):
        messages = {
            "/joints": {"position": log.positions[k], "velocity": log.rates[k], "effort": log.torques[k]},
            "/command": {"position": log.desired[k]},
        }
        data = {topic: {"name": log.joints, **{n: x.tolist() for n, x in m.items()}} for topic, m in messages.items()}
        data["/imu"] = {"angular_velocity": xyz(log.gyro[k]), "linear_acceleration": xyz(log.accelerometer[k])}
        pose, twist = log.base[k], log.twist[k]
        orientation = dict(zip("wxyz", (pose[:4] * (-1.0) ** k).tolist(), strict=True))
        data["/odom"] = {
            "pose": {"pose": {"orientation": orientation, "position": xyz(pose[4:])}},
            "twist": {"twist": {"angular": xyz(twist[:3]), "linear": xyz(twist[3:])}},
        }
        for topic, content in data.items():
            stamp = round(1e9 * (time + 1.0 + late * (topic == "/odom")))
            writer.add_message(channels[topic], stamp, json.dumps(content).encode(), stamp)
    writer.finish()
    path.write_bytes(file.getvalue())


def _ros_bag(log: Log, path) -> None:
    pytest.importorskip("lz4", reason="rosbags needs it")
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    Header, Time, State = (
        types[n] for n in ("std_msgs/msg/Header", "builtin_interfaces/msg/Time", "sensor_msgs/msg/JointState")
    )
    with rosbag2.Writer(path, version=9) as writer:
        topics = {t: writer.add_connection(t, State.__msgtype__, typestore=store) for t in ("/joints", "/command")}
        for k, time in enumerate(log.times):
            header = Header(Time(5, round(1e9 * time)), "")
            both = (("/joints", (log.positions, log.rates, log.torques)), ("/command", (log.desired,)))
            for topic, arrays in both:
                rows = [np.ascontiguousarray(x[k]) for x in arrays] + [np.zeros(0)] * (3 - len(arrays))
                data = store.serialize_cdr(State(header, list(log.joints), *rows), State.__msgtype__)
                writer.write(topics[topic], round(1e9 * time), data)


def test_a_log_survives_its_npz_file(tmp_path):
    log = small_log()
    back = read(log.save(tmp_path / "log"))
    assert back.joints == log.joints and back.channels == log.channels
    for name in log.channels:
        np.testing.assert_array_equal(getattr(back, name), getattr(log, name))


def test_arrays_of_other_names_are_mapped(tmp_path):
    np.savez(tmp_path / "other.npz", time=TIMES, q=np.zeros((T, 2), np.float32), q_desired=np.ones((T, 2)))
    names = {"times": "time", "positions": "q", "desired": "q_desired"}
    log = read(tmp_path / "other.npz", joints=("a", "b"), channels=names)
    assert log.channels == ("positions", "desired") and log.desired[0, 0] == 1.0
    with pytest.raises(FileError, match="names"):
        read(tmp_path / "other.npz", channels=names)
    with pytest.raises(FileError, match=r"'times'.*'time'"):
        read(tmp_path / "other.npz", joints=("a", "b"))


def test_csv_files_are_read(tmp_path):
    log = small_log()
    (tmp_path / "log.csv").write_text(_csv(log))
    back = read(tmp_path / "log.csv")
    assert back.joints == ("a", "b") and back.contacts.shape == (T, 1)
    for name in ("positions", "rates", "desired", "torques", "gyro"):
        np.testing.assert_array_equal(getattr(back, name), getattr(log, name))


def test_orientations_between_messages_are_interpolated_whatever_their_signs(tmp_path):
    _json_mcap(small_log(), tmp_path / "log.mcap", late=0.005)
    log = read(tmp_path / "log.mcap", topics={"joints": "/joints", "desired": "/command"})
    assert log.base[:, :4] == pytest.approx(small_log().base[1:, :4], abs=1e-12)


def test_mcap_files_with_json_are_read(tmp_path):
    log = small_log()
    _json_mcap(log, tmp_path / "log.mcap")
    back = read(tmp_path / "log.mcap", topics={"joints": "/joints", "desired": "/command"})
    np.testing.assert_allclose(back.times, log.times, atol=1e-9)  # times of nanoseconds
    for name in log.channels[:-1]:
        np.testing.assert_allclose(getattr(back, name), getattr(log, name), atol=1e-6, err_msg=name)  # interpolated
    with pytest.raises(ArgumentError, match="topics"):
        read(tmp_path / "log.mcap")
    with pytest.raises(UnknownNameError, match="/joint"):
        read(tmp_path / "log.mcap", topics={"joints": "/joint"})


def test_ros_bags_are_read(tmp_path):
    log = small_log()
    _ros_bag(log, tmp_path / "bag")
    back = read(tmp_path / "bag", topics={"joints": "/joints", "desired": "/command"})
    for name in ("times", "positions", "rates", "desired", "torques"):
        np.testing.assert_allclose(getattr(back, name), getattr(log, name), atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["csv", "npz", "mcap"])
def test_broken_files_give_errors_that_name_them(tmp_path, kind):
    log, path = small_log(), tmp_path / f"log.{kind}"
    if kind == "csv":
        path.write_text(_csv(log))
    elif kind == "npz":
        log.save(path)
    else:
        _json_mcap(log, path)
    whole = path.read_bytes()
    topics = {"joints": "/joints", "desired": "/command"} if kind == "mcap" else None
    rng = np.random.default_rng(1)
    refused = 0
    for trial in range(60):
        data = bytearray(whole)
        if trial % 3 == 0:
            data = data[: rng.integers(len(data))]
        else:
            for place in rng.integers(len(data), size=rng.integers(1, 20)):
                data[place] = rng.integers(256)
        path.write_bytes(bytes(data))
        try:
            loaded = read(path, topics=topics)
        except LeggedError as error:
            refused += 1
            assert f"log.{kind}" in str(error) + "".join(getattr(error, "__notes__", ()))
        else:
            assert all(np.isfinite(getattr(loaded, name)).all() for name in loaded.channels)
    assert refused > 15


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "time"),
        ("time\n0\n1", "position"),
        ("time,a.position\n0,1\n1", "line 3"),
        ("time,a.position\n0,1\n1,x", "line 3"),
        ("time,a.position,a.position\n0,1,1\n1,1,1", "twice"),
        ("time,a.position,a.speed\n0,1,1\n1,1,1", "a.speed"),
        ("time,a.position,b.position,a.rate\n0,1,1,1\n1,1,1,1", "b.rate"),
        ("time,a.position,gyro.x\n0,1,1\n1,1,1", "gyro.y"),
        ("time,a.position\n0,nan\n1,1", "nan"),
        ("time,a.position\n0,1\n0,1", "increase"),
        ("time,a.position\n\n\n0,1\n1,x", "line 5"),
        ("time;a.position\n0;1\n1;1", "separated by commas"),
        ("time,.position\n0,1\n1,1", "<joint>.position"),
        ("time,<script>.position\n0,nan\n1,1", "script"),
    ],
)
def test_csv_files_that_are_no_logs_are_refused(tmp_path, content, words):
    (tmp_path / "log.csv").write_text(content)
    with pytest.raises(LeggedError, match=words):
        read(tmp_path / "log.csv")


def test_objects_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "log.npz", times=np.array([print, 1], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match=r"log\.npz"):
        read(tmp_path / "log.npz")
    for path in ("missing.npz", "log.txt"):
        (tmp_path / "log.txt").touch()
        with pytest.raises(FileError, match=path):
            read(tmp_path / path)


def test_wrong_channels_are_refused():
    positions = np.zeros((T, 2))
    with pytest.raises(ShapeError, match="increase"):
        Log(np.zeros(T), ("a", "b"), positions)
    with pytest.raises(ShapeError, match="rates"):
        Log(TIMES, ("a", "b"), positions, rates=np.zeros((T, 3)))
    with pytest.raises(ArgumentError, match="twice"):
        Log(TIMES, ("a", "a"), positions)
    with pytest.raises(ShapeError, match="norm"):
        Log(TIMES, ("a", "b"), positions, base=np.zeros((T, 7)))
    positions[3, 1] = np.nan
    with pytest.raises(NotFiniteError, match=r"0\.03.*'b'"):
        Log(TIMES, ("a", "b"), positions)


def test_parts_and_resampling_keep_linear_signals():
    line = np.linspace(0.0, 1.0, T)[:, None] * [1.0, -2.0]
    log = Log(TIMES, ("a", "b"), line, desired=line)
    assert log.part(0.05, 0.1).times[[0, -1]].tolist() == pytest.approx([0.05, 0.1])
    finer = log.resampled(0.003)
    assert finer.is_uniform and finer.duration == pytest.approx(0.189)
    np.testing.assert_allclose(finer.desired[:, 1], -2.0 * finer.times / 0.19, atol=1e-12)
    with pytest.raises(ArgumentError, match="period"):
        log.resampled(0.0)
    with pytest.raises(ShapeError):
        log.part(5.0)


def test_the_turns_of_a_quaternion_keep_their_sign():
    angle = np.linspace(0.0, 4.0, T)
    base = np.zeros((T, 7))
    base[:, 0], base[:, 3] = np.cos(angle), np.sin(angle)
    flipped = np.where(np.arange(T)[:, None] % 2, -1.0, 1.0) * base
    log = Log(TIMES, ("a",), np.zeros((T, 1)), base=flipped)
    np.testing.assert_allclose(log.base, base, atol=1e-12)


def test_joints_are_mapped_by_name():
    robot = double_pendulum()
    log = sweep(robot, 0.1)
    turned = Log(log.times, log.joints[::-1], log.positions[:, ::-1], desired=log.desired[:, ::-1])
    np.testing.assert_array_equal(turned.ordered(robot).desired, log.desired)
    other = Log(log.times, ("x", "y"), log.positions)
    assert other.ordered(robot, names=["x", "y"]).joints == log.joints
    with pytest.raises(UnknownNameError, match="upper_joint"):
        other.ordered(robot)


def test_csv_files_of_spreadsheets_are_read_and_other_encodings_refused(tmp_path):
    (tmp_path / "log.csv").write_bytes(b'\xef\xbb\xbf"time", "a.position"\r\n"0", "1"\r\n"1", "2"\r\n')
    assert read(tmp_path / "log.csv").positions.tolist() == [[1.0], [2.0]]
    (tmp_path / "log.csv").write_bytes("time,hüfte.position\n0,1\n1,2\n".encode("latin-1"))
    with pytest.raises(FileError, match="UTF-8"):
        read(tmp_path / "log.csv")


def test_logs_end_with_the_shortest_topic(tmp_path):
    """Values beyond the messages of a topic are not invented."""
    log = small_log()
    shown = {"joints": "/joints", "desired": "/command"}
    _json_mcap(log, tmp_path / "log.mcap", late=0.045)
    back = read(tmp_path / "log.mcap", topics=shown)
    assert back.duration == pytest.approx(TIMES[-1] - 0.05)
    np.testing.assert_allclose(back.positions, log.positions[5:], atol=1e-12)
    np.testing.assert_allclose(back.base[:, 4:], 0.5 * (log.base[:-5, 4:] + log.base[1:-4, 4:]), atol=1e-6)
    _json_mcap(log, tmp_path / "log.mcap", late=10.0)
    with pytest.raises(FileError, match=r"in common: .*/odom 11\.0"):
        read(tmp_path / "log.mcap", topics=shown)


def test_orientations_of_messages_have_norm_1(tmp_path):
    log = small_log()
    object.__setattr__(log, "base", 2.0 * log.base)
    _json_mcap(log, tmp_path / "log.mcap")
    with pytest.raises(ShapeError, match="norm 2 at"):
        read(tmp_path / "log.mcap", topics={"joints": "/joints", "desired": "/command"})


def test_contacts_of_an_npz_file_may_be_truth_values(tmp_path):
    np.savez(tmp_path / "log.npz", times=TIMES, positions=np.zeros((T, 1)), joints=["a"], contacts=np.eye(T) > 0.5)
    np.testing.assert_array_equal(read(tmp_path / "log.npz").contacts, np.eye(T))


def test_arguments_for_files_of_another_kind_are_refused(tmp_path):
    path = small_log().save(tmp_path / "log")
    (tmp_path / "log.csv").write_text(_csv(small_log()))
    with pytest.raises(ArgumentError, match="topics"):
        read(path, topics={"joints": "/joints"})
    with pytest.raises(ArgumentError, match="joints"):
        read(tmp_path / "log.csv", joints=("a", "b"))
    with pytest.raises(ArgumentError, match="channels"):
        read(tmp_path / "log.csv", channels={"times": "time"})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"position": [1.0]}, "message 1 on /joints has 1 entries of 'position' for 2 joints"),
        ({"position": None}, "message 1 on /joints has 0 entries of 'position' for 2 joints"),
        ({"velocity": []}, "message 1 on /joints has 0 entries of 'velocity' for 2 joints"),
        ({"name": ["b", "a"]}, "message 1 on /joints lists other joints"),
        ({"name": None}, "message 1 on /joints lists other joints"),
        ({"position": [1.0, "x"]}, "message 1 on /joints has no number in its field 'position'"),
    ],
)
def test_messages_with_missing_entries_are_named(tmp_path, fields, words):
    writers = pytest.importorskip("mcap.writer")
    with (tmp_path / "log.mcap").open("wb") as file:
        writer = writers.Writer(file)
        writer.start()
        schema = writer.register_schema("sensor_msgs/msg/JointState", "jsonschema", b"{}")
        channel = writer.register_channel("/joints", "json", schema)
        for k, change in enumerate(({}, fields)):
            message = {"name": ["a", "b"], "position": [0.0, 1.0], "velocity": [0.0, 1.0], **change}
            writer.add_message(channel, 10**9 * k, json.dumps(message).encode(), 10**9 * k)
        writer.finish()
    with pytest.raises(FileError, match=words):
        read(tmp_path / "log.mcap")
