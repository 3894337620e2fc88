"""Broken files: each is rejected with a LeggedError or loads as a robot with finite dynamics; none hangs.

2000 URDFs daily; URDF, MJCF and run files, also those that `legged` writes, in a small sample daily and by the
thousand in a slow test, which prints the worst time and memory.
"""

import re
import signal
import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import legged
import robots
from legged.errors import FileError, LeggedError
from legged.robot.modules import find_modules

pytest.importorskip("lxml")
from oracles.mjcf_models import COUPLED, FLOATING, GEOMETRIES, MOTORS, PENDULUM
from oracles.mutations import (
    BOMB,
    MUTATIONS,
    cut,
    duplicated,
    flipped,
    moved,
    removed,
    renamed,
    renumbered,
    repeated,
    stuffed,
    truncated,
)
from oracles.urdf_texts import BIPED, GRIPPER

BATCH = 40
LONGEST = 20.0  # [s] of computation for one file, which takes some milliseconds: a hang, not slowness
WAITING = 300.0  # [s] for one file: it waits for something


@pytest.fixture(autouse=True)
def _no_hang():
    """End a test that hangs, where the system can."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def refuse(number, frame):
        raise TimeoutError(f"one file took more than {LONGEST:g} s")

    before = [(sign, signal.signal(sign, refuse)) for sign in (signal.SIGPROF, signal.SIGALRM)]
    yield
    _limit(0.0, 0.0)
    for sign, handler in before:
        signal.signal(sign, handler)


def _begin_file():
    if hasattr(signal, "SIGALRM"):
        _limit(LONGEST, WAITING)


def _limit(computing, waiting):
    signal.setitimer(signal.ITIMER_PROF, computing)
    signal.setitimer(signal.ITIMER_REAL, waiting)


@pytest.mark.parametrize(
    "first", [x if x < 600 else pytest.param(x, marks=pytest.mark.slow) for x in range(0, 2000, BATCH)]
)
def test_broken_files_are_rejected_or_load(first, tmp_path):
    path = tmp_path / "robot.urdf"
    for seed in range(first, first + BATCH):
        rng = np.random.default_rng(seed)
        mutation = MUTATIONS[seed // 2 % len(MUTATIONS)]
        path.write_bytes(mutation(rng, (BIPED, GRIPPER)[seed % 2].encode()))
        _begin_file()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an overflow on the way would be a warning
            _try(path, rng, f"seed {seed}, {mutation.__name__}")


def _try(path, rng, label):
    try:
        robot = legged.load(path)
    except LeggedError as error:
        assert str(path) in str(error) or "mimic" in str(error), label
        return
    q = legged.random_configuration(robot, rng)
    v, tau = rng.normal(size=(2, robot.nv))
    for result in (legged.forward_dynamics(robot, q, v, tau), legged.inverse_dynamics(robot, q, v, tau)):
        assert np.isfinite(result).all(), label


def test_both_files_are_fine_unbroken(tmp_path):
    for text in (BIPED, GRIPPER):
        path = tmp_path / "robot.urdf"
        path.write_text(text)
        assert legged.load(path).nv > 9


@pytest.mark.parametrize("shape", ["chain", "comb", "star"])
def test_trees_of_hundreds_of_links_load(shape, tmp_path):
    above = {"chain": lambda k: k - 1, "comb": lambda k: k - 1 if k % 2 else max(k - 2, 0), "star": lambda k: 0}[shape]
    robot = legged.load(_tree(tmp_path, 200, above))
    assert robot.nv == 6 + 199


def test_modules_of_any_depth_are_found():
    comb = {f"l{k}": [f"l{k + 1}", f"l{k + 2}"] if k % 2 == 0 and k < 9998 else [] for k in range(10000)}
    modules = find_modules("l0", comb)
    assert len(modules) == 9999


def test_too_many_links_are_rejected(tmp_path):
    with pytest.raises(FileError, match="at most 2000 links"):
        legged.load(_tree(tmp_path, 2001, lambda k: k - 1))


def _tree(folder, count, above):
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    lines = [f'<link name="l{k}">{inertial}</link>' for k in range(count)]
    lines += [
        f'<joint name="j{k}" type="revolute"><parent link="l{above(k)}"/><child link="l{k}"/>'
        f'<origin xyz="0 0 0.1"/><axis xyz="0 1 0"/></joint>'
        for k in range(1, count)
    ]
    path = folder / "tree.urdf"
    path.write_text("\n".join(['<robot name="tree">', *lines, "</robot>"]))
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (BIPED[:900].encode(), "is not well-formed XML"),
        (BOMB + b"<robot name='&e;'><link name='a'/></robot>", "declares a document type|well-formed"),
        (b"<a>" * 100000 + b"</a>" * 100000, "depth|well-formed"),
        (b"<sdf version='1.6'/>", "is an SDF; convert it to URDF"),
        (b"<robot name='a'/>", "has no links"),
        (BIPED.replace('value="8.5"', 'value="heavy"').encode(), "'value' of <mass> of <inertial> of link 'trunk'"),
        (BIPED.replace('ixx="0.11"', 'ixx="nan"').encode(), "must be one finite number, got 'nan'"),
        (BIPED.replace('xyz="0 1 0"', 'xyz="0 0 0"', 1).encode(), "joint 'left_hip' has the axis"),
        (BIPED.replace('"continuous"', '"universal"').encode(), "joint 'left_knee' has the type 'universal'"),
        (BIPED.replace('child link="left_foot"', 'child link="trunk"').encode(), "is the child of two joints"),
        (BIPED.replace('child link="trunk"', 'child link="base_footprint"').encode(), "remove one"),
        (BIPED.replace('lower="-1.5"', 'lower="1.5"', 1).encode(), "joint 'left_hip' has the range 1.5 to 1.2; swap"),
        (BIPED.replace('damping="0.2"', 'damping="-0.2"').encode(), "must not be negative"),
        (BIPED.replace('link name="left_foot"', 'link name="trunk"').encode(), "two links are named 'trunk'"),
        (GRIPPER.replace('mimic joint="open"', 'mimic joint="close"').encode(), "no joint named 'close'"),
        (GRIPPER.replace('mimic joint="open"', 'mimic joint="follow"').encode(), "circle"),
    ],
)  # fmt: skip
def test_error_names_the_element_and_the_correction(content, words, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_bytes(content)
    _begin_file()
    with pytest.raises(FileError, match=words) as caught:
        legged.load(path)
    assert caught.value.source == str(path)


def test_unreadable_files_are_rejected(tmp_path):
    for path in (tmp_path / "nothing.urdf", tmp_path, "no\0name"):
        with pytest.raises(FileError, match="cannot be read"):
            legged.load(path)


def test_meshes_are_never_opened(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(BIPED.replace('<box size="0.2 0.3 0.4"/>', '<mesh filename="nowhere/at/all.stl"/>'))
    assert legged.load(path).mass == pytest.approx(13.6, rel=1e-12)


TEXT_MUTATIONS = (truncated, flipped, cut, repeated, stuffed, renumbered, renamed, duplicated, removed, moved)
BYTE_MUTATIONS = TEXT_MUTATIONS[:5]


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Return sound files of all formats, as (suffix, content, function that reads, mutations)."""
    folder, robot = tmp_path_factory.mktemp("sound"), robots.planar_biped()
    run = legged.simulate(robot, until=0.02, integrator=legged.simulation.RungeKutta4(1e-3))
    files = [(".urdf", BIPED.encode(), legged.load, TEXT_MUTATIONS)]
    files.append((".urdf", legged.save_urdf(robot, folder / "a.urdf").read_bytes(), legged.load, TEXT_MUTATIONS))
    if find_spec("mujoco"):
        files.append((".xml", legged.save_mjcf(robot, folder / "a.xml").read_bytes(), legged.load, TEXT_MUTATIONS))
        files.append((".xml", GEOMETRIES.encode(), legged.load, TEXT_MUTATIONS))
    files.append((".npz", run.save(folder / "run").read_bytes(), legged.Run.load, BYTE_MUTATIONS))
    return files


def fuzz(originals, seeds, path):
    """Read a mutated file for each seed; return (how many were read, the longest time [s], memory gained [MB])."""
    resource = pytest.importorskip("resource")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    before, longest, sound = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0, 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        suffix, content, read, mutations = originals[seed % len(originals)]
        mutation = mutations[int(rng.integers(len(mutations)))]
        file = path.with_suffix(suffix)
        file.write_bytes(mutation(rng, content))
        _begin_file()
        start = time.process_time()
        try:
            read(file)
            sound += 1
        except LeggedError as error:
            assert str(error), seed
        except Exception as error:
            raise AssertionError(f"seed {seed}, {mutation.__name__}, {suffix}: {error!r}") from error
        longest = max(longest, time.process_time() - start)
    return sound, longest, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit


def test_a_sample_of_broken_files_of_all_formats(originals, tmp_path):
    sound, longest, memory = fuzz(originals, range(50), tmp_path / "file")
    assert sound < 50 and longest < 5.0 and memory < 300.0  # some 0.1 s and 50 MB; more is a bomb


@pytest.mark.slow
def test_thousands_of_broken_files_of_all_formats(originals, tmp_path):
    sound, longest, memory = fuzz(originals, range(100, 6100), tmp_path / "file")
    print(f"6000 files, {sound} of them read, longest {longest:.2f} s, memory gained {memory:.0f} MB")
    assert longest < 5.0 and memory < 300.0


WRONG = (
    "",
    "abc",
    "nan",
    "inf",
    "1e400",
    "1 2",
    "1 2 3 4 5 6 7",
    "-1",
    "0x10",
    "&#x9b;31m",
    "&#x202e;x",
    "1 nan 0",
)
ORIGINAL = {"biped.urdf": BIPED, "gripper.urdf": GRIPPER}
if find_spec("mujoco"):
    ORIGINAL |= {
        "pendulum.xml": PENDULUM,
        "floating.xml": FLOATING,
        "motors.xml": MOTORS,
        "coupled.xml": COUPLED,
    }
NUMBER = re.compile(r"[-+\d.e]+(\s+[-+\d.e]+)*$")


def attributes(text):
    """Yield (element, attribute, place of its value) of the first occurrence of each kind."""
    seen = set()
    for match in re.finditer(r'([\w:]+)="([^"]*)"', text):
        element = (re.findall(r"<(\w+)", text[: match.start()]) or ["xml"])[-1]
        if (element, match[1]) not in seen and element != "xml":
            seen.add((element, match[1]))
            yield element, match[1], match.span(2)


@pytest.mark.parametrize("name", ORIGINAL)
def test_wrong_values_of_each_attribute_are_named(name, tmp_path):
    path, text, refused = tmp_path / name, ORIGINAL[name], 0
    for k, (element, attribute, (start, end)) in enumerate(attributes(text)):
        for value in WRONG[k % 2 :: 2]:  # half of them, for the time that it takes
            path.write_text(text[:start] + value + text[end:], encoding="utf-8")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    robot = legged.load(path)
            except FileError as error:
                refused, words = refused + 1, str(error)
                assert str(path) in words and words.replace("\n", "").isprintable(), words
                if "nan" in value.split() and NUMBER.match(text[start:end]):
                    assert re.search(rf"\b{element}\b|\b{attribute}\b|joint|link", words), (element, attribute, words)
                    assert "MuJoCo's" not in words, words
            else:
                assert robot.nv == 0 or np.isfinite(legged.inertia_matrix(robot, robot.neutral())).all()
    assert refused > 20
