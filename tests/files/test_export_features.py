"""Robots with all features survive URDF and MJCF; other programs read the files; losses are reported."""

import re
import warnings
from dataclasses import replace
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest

import legged
import robots
from legged.app.selection import ready_made_robots
from legged.errors import DefinitionError, FileError, FileWarning
from legged.files.mjcf.reader import captured_warnings
from legged.robot.construction.random_tree import ALL_JOINTS

BODY = legged.box_inertia(1.2, (0.1, 0.2, 0.3), (0.05, -0.02, 0.1))


def one_joint(joint):
    """Return a robot on a fixed base with one joint."""
    builder = legged.RobotBuilder("one joint", legged.Link("trunk", BODY), base=legged.FixedBase())
    return builder.add(joint, legged.Link("limb", BODY), to="trunk", at=(0.1, 0.2, 0.3)).build()


def written(robot, file_format, folder):
    """Return the words of the warning while a robot is written."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (legged.save_urdf if file_format == "URDF" else legged.save_mjcf)(robot, folder / "robot.xml")
    assert all(issubclass(each.category, FileWarning) for each in caught)
    return " ".join(str(each.message) for each in caught)


FORMATS = {"URDF": legged.save_urdf, "MJCF": legged.save_mjcf}
FEATURES = {
    "random tree": lambda seed: legged.random_tree(
        seed, 12, physics=True, coupled=True, shuffled=True, joints=ALL_JOINTS, gravity=(0.1, 0.2, -seed)
    ),
    "with shapes and feet": lambda seed: featured(seed),
    "spatial quadruped": lambda seed: robots.spatial_quadruped(),
    "planar biped": lambda seed: robots.planar_biped(),
}


RANDOM = ("random tree", "with shapes and feet")


def featured(seed):
    """Return a random robot with soles, round feet, shapes, impossible inertias, limits, and modules given by hand."""
    rng = np.random.default_rng(seed)
    editor = legged.random_tree(seed, links=8, physics=True, shuffled=True).edit()
    for i, link in enumerate(editor.build().links):
        feet = {f"{link.name} heel": rng.normal(size=3), f"{link.name} toe & <ball>": rng.normal(size=3)}
        if i % 2:
            feet[f"{link.name} ball \u00e9"] = legged.Sphere(rng.uniform(0.01, 0.1), rng.normal(size=3))
        shapes = [
            legged.Box(rng.uniform(0.1, 1.0, 3), rng.normal(size=3), legged.rpy(*rng.normal(size=3))),
            legged.Sphere(rng.uniform(0.1, 1.0), rng.normal(size=3)),
        ]
        editor.change_link(link.name, contacts=feet, shapes=shapes[: i % 3])
    strange = legged.Inertia(0.1, (0.0, 0.1, 0.0), (1e-3, 1e-3, 5e-3), checked=False)
    editor.add(legged.Fixed("mount"), legged.Link("camera", strange), to=editor.build().links[0].name)
    robot = editor.change_robot(name="odd & <strange>", gravity=rng.normal(size=3)).build()
    return robot.edit().build(modules=[[name] for module in robot.modules for name in heads(robot, module)])


def heads(robot, module):
    """Return the links of a module that are not fixed to others."""
    fixed = {c.child for c in robot.connections if isinstance(c.joint, legged.Fixed)}
    return [name for name in module.links if name not in fixed]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *((kind, seed) for kind in FEATURES for seed in range(2 if kind in RANDOM else 1)),
        *(pytest.param(kind, seed, marks=pytest.mark.slow) for kind in RANDOM for seed in range(2, 8)),
    ],
)
def test_robots_with_all_features_survive_both_formats_to_the_last_digit(seed, kind, file_format, tmp_path):
    robot = FEATURES[kind](seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)  # of joints that MuJoCo would simulate differently
        path = FORMATS[file_format](robot, tmp_path / "robot.xml")
    again = legged.load(path)
    assert again.describe() == robot.describe()
    assert again.audit is not None and again.audit.source == str(path)
    assert [foot.link for foot in again.audit.feet] == [robot.links[c.link].name for c in robot.contacts]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_changed_file_counts_as_it_is(file_format, tmp_path):
    """An edited mass, or an edited description, makes the elements count."""
    pytest.importorskip("mujoco")
    robot = one_joint(legged.Revolute("j")).edit().change_robot(gravity=(0.0, 0.0, -3.0)).build()
    path = FORMATS[file_format](robot, tmp_path / "robot.xml")
    text = path.read_text()
    quote = "&quot;" if file_format == "MJCF" else '"'
    edits = {'"1.2"': ('"1.5"', 1.5), f"{quote}mass{quote}: 1.2": (f"{quote}mass{quote}: 9", 1.2)}
    for before, (after, mass) in edits.items():
        assert before in text
        path.write_text(text.replace(before, after))
        again = legged.load(path)
        assert again.gravity.tolist() == [0.0, 0.0, -3.0]
        assert again.base.kind == "fixed"
        assert again.link("limb").inertia.mass == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize("file_format", FORMATS)
def test_arguments_that_change_the_robot_read_the_elements(file_format, tmp_path):
    pytest.importorskip("mujoco")
    robot = robots.spatial_quadruped()
    path = FORMATS[file_format](robot, tmp_path / "robot.xml")
    assert legged.load(path, "floating").describe() == robot.describe()
    assert legged.load(path, "fixed").base.kind == "fixed"
    assert legged.load(path, gravity=(0, 0, -1)).gravity[2] == -1
    assert legged.load(path, feet=()).contacts == ()
    assert legged.audit(path, feet=()).feet == ()


def test_other_programs_find_shapes_and_round_feet(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    ball, box = (
        legged.Sphere(0.1, (0.0, 0.0, -0.2)),
        legged.Box((0.1, 0.2, 0.3), (0.1, 0.0, 0.0), legged.rpy(0.1, 0, 0)),
    )
    limb = {"contacts": {"tip": ball, "heel": (0.1, 0.0, 0.0)}, "shapes": [box]}
    robot = one_joint(legged.Revolute("j")).edit().change_link("limb", **limb)
    robot = robot.change_robot(base=legged.FloatingBase()).build()
    for save in FORMATS.values():
        other = legged.load(save(robot, tmp_path / "robot.xml"), feet={"tip": "sphere"})
        (foot,) = other.contacts
        assert foot.radius == 0.1 and other.links[foot.link].name == "tip"
    model = mujoco.MjModel.from_xml_path(str(legged.save_mjcf(robot, tmp_path / "robot.xml")))
    assert sorted(model.geom_size.tolist()) == [[0.05, 0.1, 0.15], [0.1, 0.0, 0.0]]
    assert model.body_mass.sum() == pytest.approx(robot.mass, rel=1e-12)


class OwnRevolute(legged.Revolute):
    """A joint of a user's own class, which plain data cannot contain."""


LOSSES = (
    (lambda e: e.change_robot(base=legged.EulerBase()), "the euler base", ("URDF", "MJCF")),
    (lambda e: e.change_joint("j", speed=1.0, effort=1.0), "limits of speed", ("MJCF",)),
    (lambda e: e.change_link("limb", contacts={"tip": (0, 0, 0)}), "contact points", ("MJCF",)),
)  # fmt: skip


@pytest.mark.parametrize("file_format", ["URDF", "MJCF"])
@pytest.mark.parametrize(("edit", "words", "formats"), LOSSES)
def test_what_a_file_cannot_contain_is_reported(edit, words, formats, file_format, tmp_path):
    robot = one_joint(OwnRevolute("j")).edit().change_robot(base=legged.FloatingBase())
    assert written(robot.build(), file_format, tmp_path) == ""
    assert written(edit(one_joint(legged.Revolute("j")).edit()).build(), file_format, tmp_path) == ""
    assert (words in written(edit(robot).build(), file_format, tmp_path)) == (file_format in formats)


def links_by_hand(**links):
    """Return a floating robot of a base with two limbs, with an inertia for each link."""
    base, first, second = (legged.Link(name, inertia) for name, inertia in links.items())
    builder = legged.RobotBuilder("by hand", base).add(legged.Revolute("a", "x"), first, to=base.name)
    return builder.add(legged.Revolute("b", "y"), second, to=base.name, at=(0.1, 0.0, 0.0)).build()


def plate(excess):
    """Return the inertia of a plate, whose largest principal inertia exceeds the sum of the others by a fraction."""
    return legged.Inertia(1.0, (0.0, 0.0, 0.1), (1e-2, 2e-2, 3e-2 * (1.0 + excess)), checked=False)


MASSLESS = legged.Inertia()
REJECTED = {
    "massless base": (lambda: links_by_hand(base=MASSLESS, first=BODY, second=BODY), "the body 'base' without mass"),
    "plate": (lambda: links_by_hand(base=BODY, first=plate(0.0), second=BODY), ""),
    "rounding of one file": (lambda: links_by_hand(base=BODY, first=plate(1e-15), second=BODY), ""),
    "rounding of digits": (lambda: links_by_hand(base=BODY, first=plate(1e-7), second=BODY), "inertia of body 'first'"),
    "impossible": (lambda: links_by_hand(base=plate(0.3), first=BODY, second=BODY), "inertia of body 'base'.* by 2"),
    "huge plate": (
        lambda: links_by_hand(base=BODY, first=legged.Inertia(1e9, (0, 0, 0), (1e8, 2e8, 3e8)), second=BODY),
        "",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_mujoco_rejects_is_written_with_the_smallest_change_and_a_warning(name, tmp_path):
    """The nearest consistent inertia has second moments without negative ones: half the trace less the tensor."""
    mujoco = pytest.importorskip("mujoco")
    make, words = REJECTED[name]
    robot = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = legged.save_mjcf(robot, tmp_path / "robot.xml")
    messages = " ".join(str(each.message) for each in caught)
    assert re.search(words, messages) if words else not messages
    model = mujoco.MjModel.from_xml_path(str(path))
    assert model.body_mass.sum() == pytest.approx(robot.mass, rel=1e-12)
    for link in robot.links:
        a, b, c = np.linalg.eigvalsh(np.asarray(link.inertia.tensor))
        moved = max(c - a - b, 0.0)  # which the negative second moment, half of it, costs each axis at most
        assert np.sort(model.body(link.name).inertia) == pytest.approx([a, b, c], abs=moved + 1e-12 * c + 1e-12)
    assert legged.load(path).describe() == robot.describe()


def test_a_negative_mass_is_refused(tmp_path):
    negative = legged.Inertia(-0.1, (0, 0, 0), (1e-3, 1e-3, 1e-3), checked=False)
    robot = links_by_hand(base=BODY, first=negative, second=BODY)
    with pytest.raises(DefinitionError, match=r"body 'first' has the negative mass -0\.1 kg"):
        legged.save_mjcf(robot, tmp_path / "robot.xml")
    assert not list(tmp_path.iterdir())


IN_SERIES = {
    "seven hinges": [legged.Revolute(f"j{k}", "xyz"[k % 3]) for k in range(7)],
    "a hinge after a ball": [legged.Spherical("j0"), legged.Revolute("j1", "x")],
    "a slide after a ball": [legged.Spherical("j0"), legged.Prismatic("j1", "x")],
    "a hinge after a free joint": [legged.Free("j0"), legged.Revolute("j1", "x")],
}


@pytest.mark.parametrize("name", IN_SERIES)
def test_joints_in_series_are_on_one_body_as_far_as_mujoco_allows(name, tmp_path):
    """Their links have no mass, and their armatures make the inertia matrix regular."""
    pytest.importorskip("mujoco")
    builder, parent = legged.RobotBuilder("series", legged.Link("root", BODY), base=legged.FixedBase()), "root"
    for k, joint in enumerate(IN_SERIES[name]):
        inertia = BODY if joint is IN_SERIES[name][-1] else MASSLESS
        joint = replace(joint, physics=legged.JointPhysics(armature=0.1))
        builder.add(joint, legged.Link(f"link{k}", inertia), to=parent, at=(0.0, 0.1, 0.2))
        parent = f"link{k}"
    robot, path = builder.build(), tmp_path / "robot.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)
        legged.save_mjcf(robot, path)
    tree = ElementTree.parse(path)
    tree.getroot().remove(tree.getroot().find("custom"))
    tree.write(path)
    read = legged.load(path)
    assert read.nv == robot.nv
    for seed in range(3):
        q = legged.random_configuration(robot, np.random.default_rng(seed))
        assert np.abs(legged.inertia_matrix(read, q) - legged.inertia_matrix(robot, q)).max() < 1e-12


def every_robot():
    """Yield (name, function that makes it) of the ready-made robots, random ones, and all public URDFs."""
    pytest.importorskip("pinocchio")
    from tests.oracles.urdfs import all_urdfs

    yield from ((name, getattr(robots, name)) for name in ready_made_robots())
    for seed in range(20):
        yield f"tree {seed}", partial(legged.random_tree, seed)
        options = {"physics": True, "coupled": True, "shuffled": True, "joints": ALL_JOINTS}
        yield f"tree with physics {seed}", partial(legged.random_tree, seed, **options)
        yield f"featured {seed}", partial(featured, seed)
    for name, path in all_urdfs().items():
        yield name, partial(legged.load, path)
        yield f"{name}, fixed", partial(legged.load, path, "fixed")


@pytest.mark.slow
def test_mujoco_compiles_the_export_of_every_robot(tmp_path):
    """The description for this toolkit, in <custom>, is left out: the elements count alone."""
    mujoco, refused, count = pytest.importorskip("mujoco"), [], 0
    for name, make in every_robot():
        try:
            robot = make()
        except FileError:  # of a URDF that `load` rejects, see tests/files/test_urdf.py
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FileWarning)
            path = legged.save_mjcf(robot, tmp_path / "robot.xml")
        root = ElementTree.parse(path).getroot()
        root.remove(root.find("custom"))
        text = ElementTree.tostring(root, encoding="unicode")
        count += 1
        with captured_warnings(mujoco):
            try:
                mujoco.MjModel.from_xml_string(text)
            except ValueError as error:
                refused.append(f"{name}: {error}")
    assert not refused and count > 60
