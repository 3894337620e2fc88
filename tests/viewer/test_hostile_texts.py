"""Texts of robot files and run files are shown as text: in pages, the viewer, notebooks, plots, tables and files."""

import csv
import json
import re
from dataclasses import replace

import pytest
from oracles.programs.browser import Browser

import legged
from legged.errors import DefinitionError
from legged.output import as_cell, as_html, as_label, as_markdown, as_script, visible
from legged.simulation import plots
from legged.simulation.results.run_table import run_table

ATTACKS = (
    '<iframe srcdoc="<script>parent.hacked = 1</script>"></iframe>',
    '<img src="x" onerror="globalThis.hacked = 1">',
    "</script><script>globalThis.hacked = 1</script>",
    "<!--<script>",
    "{globalThis.hacked = 1}",
    "[link](javascript:globalThis.hacked=1)",
    '" onmouseover="globalThis.hacked = 1',
    "$\\bad{$",
    "=HYPERLINK(1)",
    "@SUM(1)",
    "+1|cmd",
    "\u202etxt.exe",
    "_hidden",
    "5" * 5000,
)
UNSAFE = re.compile("[\0-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
REASON = "fell: <iframe srcdoc='<script>parent.hacked = 1</script>'></iframe> \ud800 \x1b[31m {globalThis.hacked = 1}"
HARMLESS = "!globalThis.hacked && !document.querySelector('iframe, img[src=\"x\"], a[href^=javascript]')"


@pytest.fixture(scope="module")
def robot():
    """A chain whose links, joints and contact points have hostile names."""
    rod = legged.sphere_inertia(1.0, 0.1)
    base = legged.Link(f"{ATTACKS[0]} 0", legged.box_inertia(2.0, (0.2, 0.1, 0.1)))
    builder = legged.RobotBuilder(ATTACKS[0], base)
    for k, name in enumerate(ATTACKS):
        foot = {f"{name} foot": (0.0, 0.0, -0.2)}
        link = legged.Link(f"{name} link", rod, contacts=foot)
        builder.add(legged.Revolute(name, "y"), link, to=base.name, at=(0.02 * k, 0.0, 0.0))
    return builder.build()


@pytest.fixture(scope="module")
def run(robot):
    plain = legged.simulate(robot, until=0.02)
    return replace(plain, ended=REASON, warnings=(REASON,), backend=f"{ATTACKS[1]} \x1b[31m")


@pytest.fixture(scope="module")
def browser():
    opened = Browser(640, 420)
    yield opened
    opened.close()


@pytest.fixture
def show():
    pytest.importorskip("viser", reason="viser, of the extra view, is not installed")
    opened = []

    def show(what, **options):
        opened.append(legged.view(what, port=0, wait=False, **options))
        return opened[-1]

    yield show
    for viewer in opened:
        viewer.stop()


def test_pages_show_hostile_texts_as_text(browser, run, tmp_path):
    browser.open(run.save_html(tmp_path / "page").as_uri(), "window.replay && window.replay.frames > 2")
    assert browser.evaluate(HARMLESS)
    assert "<iframe srcdoc=" in browser.evaluate("document.querySelector('#title').textContent")
    assert "<iframe srcdoc=" in browser.evaluate("document.querySelector('#tables').textContent")
    assert browser.problems == []
    page = plots.animate(run, tmp_path / "figure.html")
    browser.open(page.as_uri(), "document.getElementById('clock').textContent.includes('t = ')")
    assert browser.evaluate("!globalThis.hacked && !document.querySelector('iframe')")


@pytest.mark.timeout(1200)  # drawing without a graphics processor is slow on a busy machine
def test_the_viewer_shows_hostile_texts_as_text(browser, show, robot, run, monkeypatch):
    simulation = legged.Simulation(robot)
    monkeypatch.setattr(legged.Simulation, "reasons", (REASON,))
    controllers = dict.fromkeys(ATTACKS[:3])
    for what, words, options in (
        (run, "simulated time", {}),
        (simulation, "single step", {"controllers": controllers}),
    ):
        viewer = show(what, **options)
        if what is run:
            viewer.note(REASON)
        if what is simulation:
            viewer.content.pause.value = True
            viewer.content._report()
        browser.open(viewer.address, f"document.body.innerText.includes({words!r})", timeout=300.0)
        browser.evaluate("new Promise(done => setTimeout(done, 300))")
        assert browser.evaluate(HARMLESS), what
        assert "<iframe srcdoc=" in browser.evaluate("document.body.innerText")
        viewer.stop()


def test_missing_meshes_are_named_as_text(browser, show, tmp_path):
    name = as_html(ATTACKS[0])
    path = tmp_path / "robot.urdf"
    mesh = f'<visual><geometry><mesh filename="{name}"/></geometry></visual>'
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = f'<link name="{name}">{inertial}{mesh}</link><link name="tip">{inertial}</link>'
    joint = f'<joint name="{name}" type="continuous"><parent link="{name}"/><child link="tip"/></joint>'
    path.write_text(f'<robot name="{name}">{links}{joint}</robot>', encoding="utf-8")
    robot = legged.load(path)
    assert robot.links[0].name == robot.joints[0].name == ATTACKS[0]
    viewer = show(robot)
    words = "document.body.innerText"
    browser.open(viewer.address, f"{words}.includes('is not shown') && {words}.includes('reset')")
    assert browser.evaluate(HARMLESS)
    assert "<iframe srcdoc=" in browser.evaluate("document.body.innerText")


def test_notebooks_show_hostile_texts_as_text(browser, robot, run, tmp_path):
    shown = [robot._repr_html_(), run_table(run)._repr_html_(), replace(run, times=run.times[:0])._repr_html_()]
    path = tmp_path / "cells.html"
    path.write_text(f"<!DOCTYPE html><body>{''.join(shown)}<p id=end>", encoding="utf-8")
    browser.open(path.as_uri(), "document.querySelector('#end')")
    assert browser.evaluate(HARMLESS)
    path.write_text(f"<!DOCTYPE html><body>{run._repr_html_()}<p id=end>", encoding="utf-8")
    browser.open(path.as_uri(), "document.querySelector('#end') && frames[0].replay && frames[0].replay.frames > 2")
    assert browser.evaluate("document.querySelectorAll('iframe').length === 1")  # the page itself
    assert browser.evaluate("!globalThis.hacked && !frames[0].hacked && !frames[0].document.querySelector('iframe')")
    assert not UNSAFE.search(repr(run)) and not UNSAFE.search(run_table(run).text().replace("\n", ""))
    markdown = run_table(run).markdown()
    assert "<iframe" not in markdown and all(line.count("|") == 3 for line in markdown.splitlines() if "[N" in line)


def test_plots_and_animations_draw_hostile_names(run, tmp_path):
    paths = plots.save_figures(run, tmp_path)
    assert len(paths) == 4
    joints = run.plot()["joints"]
    labels = {text.get_text() for ax in joints.axes for text in ax.get_legend().get_texts()}
    assert {as_label("$\\bad{$", 40), as_label("_hidden", 40)} <= labels
    assert plots.animate(run, tmp_path / "run.gif", fps=100.0).stat().st_size


def test_tables_and_files_keep_hostile_names(robot, run, tmp_path):
    with run.to_csv(tmp_path / "table").open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    assert len(set(header)) == len(header)
    assert not any(name.startswith(("=", "+", "-", "@")) or UNSAFE.search(name) for name in header)
    assert "'=HYPERLINK(1)_q" in header
    again = legged.Run.load(run.save(tmp_path / "run"))
    assert again.joints.names == run.joints.names and again.ended == REASON
    for save in (legged.save_urdf, legged.save_mjcf):
        for path in (save(robot, tmp_path / "robot"),):
            loaded = legged.load(path)
            assert [joint.name for joint in loaded.joints] == [joint.name for joint in robot.joints]
    written = legged.compile(legged.inertia_matrix, robot).to_c(tmp_path / "code", name="x */ int main(){}")
    assert "*/ int main" not in written.source.read_text()


@pytest.mark.parametrize("character", ["\0", "\x01", "\x1b", "\ud800", "\ufffe"])
def test_names_that_files_cannot_contain_are_refused(character):
    for kind in ("robot", "link", "joint", "contact point"):
        bad = {each: f"a{character}" if each == kind else "a" for each in ("robot", "link", "joint", "contact point")}
        base = legged.Link("base", legged.sphere_inertia(1.0, 0.1))
        tip = legged.Link(bad["link"], legged.sphere_inertia(1.0, 0.1), contacts={bad["contact point"]: (0, 0, 0)})
        builder = legged.RobotBuilder(bad["robot"], base).add(legged.Revolute(bad["joint"], "y"), tip, to="base")
        with pytest.raises(DefinitionError, match=f"of a {kind} has control characters"):
            builder.build()


@pytest.mark.parametrize("text", [*ATTACKS, REASON, "\0\x1b[2J\u2028\u2066"])
def test_texts_are_escaped_for_each_medium(text):
    assert not UNSAFE.search(visible(text)) and len(visible(text)) <= 400
    assert not re.search("[<>\"']", as_html(text))
    assert not re.search(r"[^\w &#;]", as_markdown(text))
    assert "<" not in as_script({"x": [text]})
    assert json.loads(as_script({"x": [text]}))["x"] == [visible(text)]
    assert not as_cell(text).startswith(("=", "+", "-", "@"))
    assert as_label(text).count("$") == as_label(text).count(r"\$") and not as_label(text).startswith("_")
