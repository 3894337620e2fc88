"""Pictures of modules: everything is in them, inside the figure, and no two texts overlap."""

from importlib.metadata import PackageNotFoundError, files
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyBboxPatch

import legged
import robots
from legged import Link, Revolute, RobotBuilder
from legged.robot.construction.random_tree import ALL_JOINTS
from legged.robot.diagram.layout import shortened
from legged.robot.modules import COLORS

KNOWN = ("go2.urdf", "g1_29dof_rev_1_0.urdf", "talos_full_v2.urdf")
BODY = legged.box_inertia(1.0, (0.1, 0.2, 0.3))


def drawn(robot):
    """Return (figure, texts, extents of the texts in pixels) of the picture of a robot."""
    figure = robot.draw_modules()
    FigureCanvasAgg(figure).draw()
    texts = figure.axes[0].texts
    return figure, texts, [text.get_window_extent() for text in texts]


def assert_legible(robot):
    """Check that the texts are inside the figure and apart from each other, and that modules do not overlap."""
    figure, texts, extents = drawn(robot)
    for text, box in zip(texts, extents, strict=True):
        assert box.x0 >= 0 <= box.y0, text.get_text()
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text.get_text()
    for (a, first), (b, second) in combinations(zip(texts, extents, strict=True), 2):
        # One-letter marks overlap nothing else; 1 pixel is the rounding of extents of characters.
        apart = first.x1 <= second.x0 + 1 or second.x1 <= first.x0 + 1
        assert apart or first.y1 <= second.y0 + 1 or second.y1 <= first.y0 + 1, (a.get_text(), b.get_text())
    boxes = [patch.get_window_extent() for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]
    for first, second in combinations(boxes, 2):
        inside = any(
            a.x0 <= b.x0 and b.x1 <= a.x1 and a.y0 <= b.y0 and b.y1 <= a.y1
            for a, b in ((first, second), (second, first))
        )
        assert inside or not first.overlaps(second)
    for text, box in zip(texts, extents, strict=True):  # texts of a module are inside its boundary
        start = [b for b in boxes if b.x0 <= box.x0 <= b.x1 and b.y0 <= (box.y0 + box.y1) / 2 <= b.y1]
        assert all(box.x1 <= b.x1 for b in start), text.get_text()


@pytest.mark.parametrize("name", robots.__all__)
def test_pictures_of_ready_made_robots_are_legible(name):
    assert_legible(getattr(robots, name)(*([8] if name in ("chain", "star", "tree") else [])))


@pytest.mark.parametrize("seed", range(8))
def test_pictures_of_random_robots_are_legible(seed):
    assert_legible(legged.random_tree(seed, (1, 2, 5, 12, 25, 40, 40, 40)[seed], joints=ALL_JOINTS, coupled=True))


@pytest.mark.parametrize("name", KNOWN)
def test_pictures_of_known_robots_are_legible(name):
    try:
        entries = files("example-robot-data") or ()
    except PackageNotFoundError:
        pytest.skip("needs example-robot-data")
    path = next(entry.locate() for entry in entries if entry.name == name)
    assert_legible(legged.load(str(path)))


@pytest.mark.parametrize("robot", [robots.spatial_quadruped(), robots.humanoid(), legged.random_tree(3, 20)])
def test_a_picture_has_every_module_link_joint_and_foot(robot):
    figure, texts, _ = drawn(robot)
    words = [text.get_text() for text in texts]
    assert words[0] == robot.name
    assert words[1].startswith(f"{len(robot.modules)} modules, {len(robot.links)} links")
    for joint in robot.joints:
        assert joint.name in words and joint.child in words
    for point in robot.contacts:
        own = [other for other in robot.contacts if other.link == point.link]
        assert (point.name if len(own) <= 3 else f"{len(own)} contact points") in words
    numbers = [word for word in words if word.startswith("M") and word[1:].isdigit()]
    assert sorted(numbers) == sorted(f"M{''.join(chr(0x2080 + int(d)) for d in str(m.index))}" for m in robot.modules)
    assert len({patch.get_edgecolor() for patch in figure.axes[0].patches}) > min(len(robot.modules), len(COLORS))


def test_labels_count_the_bodies_of_a_module_as_the_paper():
    """The universal joint at the hip of the quadruped is two bodies, the first without mass: #2^1 is the thigh."""
    _, texts, extents = drawn(robots.spatial_quadruped())
    heights = {text.get_text(): (box.y0 + box.y1) / 2 for text, box in zip(texts, extents, strict=True)}
    assert heights["#2\u00b9"] == pytest.approx(heights["leg1_thigh"], abs=3.0)  # [pixel], of fonts of unequal size
    assert heights["#3\u2074"] == pytest.approx(heights["leg4_shank"], abs=3.0)


def test_closing_joints_are_drawn_at_both_links():
    words = [text.get_text() for text in drawn(robots.four_bar())[1]]
    assert "closing pin, to rocker" in words
    assert "closing pin, from coupler" in words
    assert "closes a loop" in words
    pinned = legged.loops.pin_contacts(robots.planar_biped(), robots.planar_biped().neutral(), ["left_foot"][:0])
    assert "closes a loop" not in [text.get_text() for text in drawn(pinned)[1]]


def test_names_are_text_and_never_formulas_or_lines():
    """Names from files may contain anything: formulas, line breaks, markup, or hundreds of letters."""
    names = ("$x^2$", "two\nlines", "<script>alert(1)</script>", "a" * 300, r"\frac{", "-->")
    builder = RobotBuilder("$\\alpha$ & <b>", Link("trunk", BODY))
    for k, name in enumerate(names):
        builder.add(Revolute(f"{name} {k}"), Link(name, BODY), to="trunk", at=(0.1 * k, 0, 0))
    robot = builder.build()
    assert_legible(robot)
    words = [text.get_text() for text in drawn(robot)[1]]
    assert "$x^2$" in words
    assert "two lines" in words
    assert max(map(len, words)) < 120
    assert len(shortened("a" * 300)) == 34


def test_drawing_does_not_depend_on_settings_of_fonts():
    import matplotlib as mpl

    size = robots.humanoid().draw_modules().get_size_inches()
    with mpl.rc_context({"font.size": 30.0, "font.family": "serif", "axes.grid": True, "figure.dpi": 300}):
        assert_legible(robots.humanoid())
        assert np.array_equal(robots.humanoid().draw_modules().get_size_inches(), size)
