"""Read logs: CSV, npz, MCAP and ROS 2 bags. Files are untrusted: nothing in them is executed or unpickled."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import known_name
from legged.checked import checked
from legged.errors import ArgumentError, FileError, LeggedError, MissingError
from legged.identification.log import MOST_SAMPLES, OTHERS, PER_JOINT, Log, unit_poses
from legged.output import visible
from legged.spatial import Array

_COLUMNS = {"position": "positions", "rate": "rates", "desired": "desired", "torque": "torques"}
_AXES = {
    "gyro": ("x", "y", "z"),
    "accelerometer": ("x", "y", "z"),
    "base": ("qw", "qx", "qy", "qz", "x", "y", "z"),
    "twist": ("wx", "wy", "wz", "vx", "vy", "vz"),
}
_FIELDS = {"position": "positions", "velocity": "rates", "effort": "torques"}  # of sensor_msgs/JointState
_ARGUMENTS = {"joints": (".npz",), "channels": (".npz",), "topics": (".mcap", ".db3", "")}
"""Argument of `read` -> suffixes of the files that it concerns; "" is that of a folder."""


@checked
def read(
    path: str | Path,
    *,
    joints: tuple[str, ...] | None = None,
    channels: Mapping[str, str] | None = None,
    topics: Mapping[str, str] | None = None,
) -> Log:
    """Return the log in a file: .csv, .npz, .mcap, or a ROS 2 bag (.db3, .mcap or its folder).

    - npz: arrays named as the attributes of `Log`; `joints` is an array of names.
    - CSV: a header with the columns `time`, `<joint>.position`, `<joint>.rate`, `<joint>.desired`, `<joint>.torque`,
      `gyro.x`, ..., `base.qw`, ..., `base.x`, ..., `twist.wx`, ..., `twist.vz`, `contacts.<foot>`.
    - MCAP and bags: messages with the fields of ROS 2's JointState, Imu and Odometry, in CDR or JSON. Times are those
      of the messages' headers, or of their recording if headers have none. Other topics are interpolated at the times
      of the joints; the log has the times at which all topics have begun and none has ended.

    Args:
        path: The file or folder.
        joints: Names of the joints in the order of the columns of an npz file, in place of its array `joints`.
        channels: Attribute of `Log` -> name of the array in an npz file, {"times": "time", "positions": "q"}.
        topics: "joints", "desired", "imu", "base" -> name of the topic in MCAP files and bags. By default, "joints" is
            the only topic of type JointState, "imu" of type Imu, and "base" of type Odometry; "desired", a second topic
            of type JointState, must be named.

    Raises:
        FileError: The file cannot be read, or lacks something; the message names the file.
        ShapeError, NotFiniteError: Its numbers are refused by `Log`.
        ArgumentError: They are refused by `Log`, or an argument is for files of another kind.
        MissingError: mcap or rosbags is not installed.
    """
    path, source = Path(path), visible(path)
    if not path.exists():
        raise FileError(source, "there is no such file or folder")
    readers: dict[str, Callable[[], Log]] = {
        ".csv": lambda: _read_csv(path),
        ".npz": lambda: _read_npz(path, joints, dict(channels or {})),
        ".mcap": lambda: _of_messages(_mcap_messages(path), topics or {}, source),
        ".db3": lambda: _of_messages(_bag_messages(path.parent), topics or {}, source),
        "": lambda: _of_messages(_bag_messages(path), topics or {}, source),
    }
    suffix = "" if path.is_dir() else path.suffix.lower()
    if suffix not in readers or (suffix == "" and not path.is_dir()):
        raise FileError(
            source, f"{visible(path)} is no log: its name must end in .csv, .npz, .mcap or .db3, or be a bag's folder"
        )
    for name, given in (("joints", joints), ("channels", channels), ("topics", topics)):
        if given is not None and suffix not in _ARGUMENTS[name]:
            raise ArgumentError(f"{name}=... is for files of another kind than {source}; leave it out")
    try:
        return readers[suffix]()
    except MissingError:
        raise
    except LeggedError as error:
        error.add_note(f"This is for the log {source}.")
        raise
    except MemoryError:
        raise FileError(source, "does not fit into memory") from None
    except Exception as error:  # libraries raise errors of many kinds for broken files
        raise FileError(source, f"cannot be read: {visible(error) or type(error).__name__}") from None


def _read_npz(path: Path, joints: tuple[str, ...] | None, channels: dict[str, str]) -> Log:
    wanted, source = ("times", *PER_JOINT, *OTHERS), visible(path)
    for name in channels:
        known_name("channel", name, wanted)
    if not zipfile.is_zipfile(path):
        raise FileError(source, "the file is no npz file, or it is damaged")
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
        given = {name: channels.get(name, name) for name in wanted}
        arrays = {name: np.asarray(file[key]) for name, key in given.items() if key in file}
        names = joints or (tuple(map(str, file["joints"].ravel())) if "joints" in file else None)
        missing = [given[name] for name in ("times", "positions", *channels) if name not in arrays]
        if missing:
            raise FileError(
                source, f"the file has no array {missing[0]!r}; it has {', '.join(map(repr, map(visible, file.files)))}"
            )
    for name, value in arrays.items():
        if value.dtype.kind not in ("fiub" if name == "contacts" else "fiu"):
            raise FileError(source, f"the array {given[name]!r} holds no numbers")
    if names is None:
        raise FileError(source, "the file has no array 'joints' with their names; give them: joints=(...)")
    return Log(arrays.pop("times"), names, **{name: value.astype(float) for name, value in arrays.items()})


def _read_csv(path: Path) -> Log:
    source = visible(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, skipinitialspace=True)
            header = [name.strip() for name in next(reader, [])]
            lines = [(reader.line_num, row) for row in reader if any(x.strip() for x in row)]
    except UnicodeDecodeError:
        raise FileError(source, "the file is not encoded as UTF-8") from None
    if len(lines) > MOST_SAMPLES:
        raise FileError(source, f"the file has {len(lines)} rows, more than {MOST_SAMPLES}")
    if "time" not in header:
        words = visible(", ".join(map(repr, header)), 80) or "none"
        raise FileError(source, f"the first line has no column 'time', separated by commas; its columns are {words}")
    if len(set(header)) < len(header):
        repeated = next(name for name in header if header.count(name) > 1)
        raise FileError(source, f"the column {visible(repeated)!r} occurs twice")
    rows = np.empty((len(lines), len(header)))
    for k, (line, row) in enumerate(lines):
        try:
            rows[k] = np.array([float(x) for x in row]).reshape(len(header))
        except ValueError:
            words = visible(",".join(row), 60)
            raise FileError(source, f"line {line} must hold {len(header)} numbers, got {words}") from None
    at = {name: i for i, name in enumerate(header)}
    joints = tuple(name.removesuffix(".position") for name in header if name[1:].endswith(".position"))
    if not joints:
        raise FileError(source, "the header has no column '<joint>.position'")
    channels: dict[str, Array] = {}
    used = {"time"}
    columns = {channel: [f"{joint}.{column}" for joint in joints] for column, channel in _COLUMNS.items()}
    columns |= {channel: [f"{channel}.{axis}" for axis in axes] for channel, axes in _AXES.items()}
    for channel, names in columns.items():
        if any(name in at for name in names):
            channels[channel] = rows[:, [at[known_name("column", name, at)] for name in names]]
            used.update(names)
    contacts = [name for name in header if name.startswith("contacts.")]
    if contacts:
        channels["contacts"] = rows[:, [at[name] for name in contacts]]
    unknown = [name for name in header if name not in used and name not in contacts]
    if unknown:
        raise FileError(source, f"the column {visible(unknown[0])!r} has no meaning for a log; rename or delete it")
    return Log(rows[:, at["time"]], joints, **channels)


class Message(NamedTuple):
    """A message: its topic, type without package ("JointState"), time of recording [s], and fields by name."""

    topic: str
    kind: str
    time: float
    fields: Callable[..., Any]


def _mcap_messages(path: Path) -> Iterator[Message]:
    """Yield the messages of an MCAP file."""
    try:
        from mcap.reader import make_reader
    except ImportError as error:
        raise MissingError("reading MCAP files needs mcap: pip install 'legged[logs]'") from error
    store: Any = None
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            kind = "" if schema is None else schema.name
            if channel.message_encoding == "json":
                data = json.loads(message.data)
            elif channel.message_encoding == "cdr" and _short(kind) in ("JointState", "Imu", "Odometry"):
                store = _typestore() if store is None else store
                data = store.deserialize_cdr(message.data, f"{kind.split('/')[0]}/msg/{_short(kind)}")
            else:
                continue
            yield Message(channel.topic, _short(kind), message.log_time * 1e-9, _getter(data))


def _bag_messages(path: Path) -> Iterator[Message]:
    """Yield the messages of a ROS 2 bag."""
    try:
        from rosbags.highlevel import AnyReader
    except ImportError as error:
        raise MissingError("reading ROS 2 bags needs rosbags: pip install 'legged[logs]'") from error
    with AnyReader([path], default_typestore=_typestore()) as reader:
        wanted = [c for c in reader.connections if _short(c.msgtype) in ("JointState", "Imu", "Odometry")]
        for connection, time, raw in reader.messages(connections=wanted) if wanted else ():
            data = reader.deserialize(raw, connection.msgtype)
            yield Message(connection.topic, _short(connection.msgtype), time * 1e-9, _getter(data))


def _typestore() -> Any:
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise MissingError("reading messages of ROS 2 needs rosbags: pip install 'legged[logs]'") from error
    return get_typestore(Stores.ROS2_HUMBLE)


def _short(kind: str) -> str:
    """Return the name of a message type without its package."""
    return kind.replace(".", "/").rpartition("/")[2]


def _getter(data: Any) -> Callable[..., Any]:
    """Return a function of names of nested fields; None for a field that is missing."""

    def get(*names: str) -> Any:
        at = data
        for name in names:
            at = at.get(name) if isinstance(at, Mapping) else getattr(at, name, None)
        return at

    return get


def _of_messages(messages: Iterator[Message], topics: Mapping[str, str], source: str) -> Log:
    """Return the log of messages with the fields of JointState, Imu and Odometry."""
    sources = _by_part(messages, topics, source)
    names, times, joints = _joint_states(sources["joints"], source)
    others: dict[str, _Channel] = {}

    def add(channel: str, part: str, entries: list[tuple[str, ...]]) -> None:
        messages = sources[part]
        others[channel] = _Channel(messages[0].topic, _times(messages), _vectors(messages, entries, source))

    if "desired" in sources:
        own_names, own_times, commands = _joint_states(sources["desired"], source)
        order = [own_names.index(known_name("joint of the commands", name, own_names)) for name in names]
        others["desired"] = _Channel(sources["desired"][0].topic, own_times, commands["position"][:, order])
    if "imu" in sources:
        for channel, field in (("gyro", "angular_velocity"), ("accelerometer", "linear_acceleration")):
            add(channel, "imu", [(field, axis) for axis in "xyz"])
    if "base" in sources:
        pose, twist = ("pose", "pose"), ("twist", "twist")
        add("base", "base", [(*pose, "orientation", a) for a in "wxyz"] + [(*pose, "position", a) for a in "xyz"])
        add("twist", "base", [(*twist, field, axis) for field in ("angular", "linear") for axis in "xyz"])
        poses = others["base"]
        others["base"] = poses._replace(values=unit_poses(poses.times, poses.values))
    inside = np.ones(len(times), dtype=bool)
    for channel in others.values():
        inside &= channel.covers(times, source)
    if np.count_nonzero(inside) < 2:
        spans = {"joints": times} | {visible(channel.topic): channel.times for channel in others.values()}
        words = ", ".join(f"{name} {own[0]:.6f} to {own[-1]:.6f} s" for name, own in spans.items())
        raise FileError(source, f"the topics have fewer than two samples of the joints in common: {words}")
    times = times[inside]
    channels = {_FIELDS[field]: values[inside] for field, values in joints.items()}
    channels |= {name: channel.at(times) for name, channel in others.items()}
    if "base" in channels:
        channels["base"][:, :4] /= np.linalg.norm(channels["base"][:, :4], axis=1, keepdims=True)
    return Log(times - times[0], names, **channels)


class _Channel(NamedTuple):
    """A channel with its own times: topic, increasing times (S,), [s], and values (S, k)."""

    topic: str
    times: Array
    values: Array

    def covers(self, times: Array, source: str) -> Array:
        """Return whether each of the times, (T,), [s], lies between the first and the last one of the channel."""
        late = np.flatnonzero(np.diff(self.times) <= 0.0)
        if len(late):
            words = f"message {late[0] + 1} on {visible(self.topic)} is not later than the one before"
            raise FileError(source, f"{words}, at {self.times[late[0]]:.6f} s")
        return (times >= self.times[0]) & (times <= self.times[-1])

    def at(self, times: Array) -> Array:
        """Return the values interpolated linearly at times, (T, k)."""
        return np.stack([np.interp(times, self.times, column) for column in self.values.T], axis=1)


def _by_part(messages: Iterator[Message], topics: Mapping[str, str], source: str) -> dict[str, list[Message]]:
    """Return the messages of each part of a log: "joints", "desired", "imu" and "base"."""
    kinds = {"joints": "JointState", "desired": "JointState", "imu": "Imu", "base": "Odometry"}
    for part in topics:
        known_name("part of a log", part, kinds)
    kept: dict[str, list[Message]] = {}
    for message in messages:
        if message.kind in kinds.values() or message.topic in topics.values():
            kept.setdefault(message.topic, []).append(message)
    sources: dict[str, list[Message]] = {}
    for part, kind in kinds.items():
        if part in topics:
            sources[part] = kept[known_name("topic", topics[part], kept)]
            continue
        if part == "desired":  # of the same type as "joints"
            continue
        of_kind = [topic for topic, entries in kept.items() if entries[0].kind == kind and topic not in topics.values()]
        if len(of_kind) > 1:
            raise ArgumentError(f"several topics may be {part!r}: {', '.join(map(visible, of_kind))}; give topics=...")
        if of_kind:
            sources[part] = kept[of_kind[0]]
    if "joints" not in sources:
        raise FileError(
            source, f"no topic holds JointState messages; the topics are {', '.join(map(visible, kept)) or 'none'}"
        )
    return sources


def _times(messages: list[Message]) -> Array:
    """Return the times of messages, (T,), [s]: of their headers, or of their recording where a header has none."""
    stamps = [(m.fields("header", "stamp", "sec"), m.fields("header", "stamp", "nanosec"), m.time) for m in messages]
    if all(sec is not None and (sec or nano) for sec, nano, _ in stamps):
        return np.array([float(sec) + 1e-9 * float(nano or 0) for sec, nano, _ in stamps])
    return np.array([time for *_, time in stamps])


def _vectors(messages: list[Message], entries: list[tuple[str, ...]], source: str) -> Array:
    """Return nested fields of messages, (T, entries)."""
    vectors = np.empty((len(messages), len(entries)))
    for k, message in enumerate(messages):
        for i, names in enumerate(entries):
            vectors[k, i] = _numbers(message, k, names, source)
    return vectors


def _numbers(message: Message, k: int, names: tuple[str, ...], source: str) -> Array:
    """Return a field of message k as an array of numbers."""
    try:
        return np.asarray(message.fields(*names), dtype=float)
    except (TypeError, ValueError):
        where = f"message {k} on {visible(message.topic)}"
        raise FileError(source, f"{where} has no number in its field {'.'.join(names)!r}") from None


def _joint_states(messages: list[Message], source: str) -> tuple[tuple[str, ...], Array, dict[str, Array]]:
    """Return (names, times (T,) [s], "position", "velocity", "effort" -> (T, n)) of JointState messages."""
    names = tuple(map(str, messages[0].fields("name") or ()))
    if not names:
        raise FileError(source, f"message 0 on {visible(messages[0].topic)} has no names of joints")
    fields: dict[str, Array] = {}
    for field in _FIELDS:
        rows = [m.fields(field) for m in messages]
        counts = [0 if row is None else len(row) for row in rows]
        if field == "position" or any(counts):
            wrong = next((k for k, count in enumerate(counts) if count != len(names)), None)
            if wrong is not None:
                topic = visible(messages[wrong].topic)
                words = f"message {wrong} on {topic} has {counts[wrong]} entries of {field!r} for {len(names)} joints"
                raise FileError(source, words)
            fields[field] = np.array([_numbers(m, k, (field,), source) for k, m in enumerate(messages)])
    for k, message in enumerate(messages):
        if tuple(map(str, message.fields("name") or ())) != names:
            words = f"message {k} on {visible(message.topic)} lists other joints than the first, or in another order"
            raise FileError(source, words)
    return names, _times(messages), fields
