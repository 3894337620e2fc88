"""Pages in a browser: the picture, the timeline, the curves, and that nothing is asked for from a network."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from oracles.programs.browser import Browser

import legged
import robots
from legged.viewer.page import save_page

READY = "window.replay && window.replay.frames > 2"
COLORS = """(() => {
  const source = document.getElementById('canvas');
  const copy = Object.assign(document.createElement('canvas'), { width: 200, height: 120 });
  const context = copy.getContext('2d');
  context.drawImage(source, 0, 0, 200, 120);
  const data = context.getImageData(0, 0, 200, 120).data, seen = new Set();
  const level = (i) => data[i] >> 3;
  for (let i = 0; i < data.length; i += 4) seen.add((level(i) * 32 + level(i + 1)) * 32 + level(i + 2));
  return seen.size;
})()"""


@pytest.fixture(scope="module")
def browser():
    opened = Browser(640, 420)  # small pictures: they are drawn without a graphics card
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def page(browser, trot, tmp_path_factory):
    path = trot.save_html(tmp_path_factory.mktemp("page") / "trot.html")
    browser.open(path.as_uri(), READY)
    return browser


@pytest.fixture
def replay(page):
    page.evaluate("replay.play(false); replay.seek(0)")
    return page


def place(browser):
    return browser.evaluate("replay.actors[0].parts.map(part => part.position.toArray())")


def cursor(browser):
    style = browser.evaluate("document.querySelector('.u-cursor-x').style.transform")
    return float(re.search(r"translate\(([-\d.]+)px", style)[1])


def test_page_draws_the_scene_and_asks_for_nothing(replay):
    assert replay.evaluate(COLORS) > 60  # a blank canvas has one color, the empty scene about ten
    replay.evaluate("replay.actors[0].root.visible = false; replay.stage.dirty = true; replay.stage.render()")
    bare = replay.evaluate(COLORS)
    replay.evaluate("replay.actors[0].root.visible = true; replay.stage.dirty = true; replay.stage.render()")
    assert replay.evaluate(COLORS) > bare + 20
    assert replay.problems == []
    assert all(request.startswith(("file:", "data:", "blob:")) for request in replay.requests)


STORED = """
URL.revokeObjectURL = () => {};
window.stored = null;
HTMLAnchorElement.prototype.click = function () { window.stored = { name: this.download, address: this.href } };"""
VIDEO = """new Promise((done, fail) => {
  const video = document.createElement("video");
  video.onloadeddata = () => done([video.videoWidth, video.videoHeight]);
  video.onerror = () => fail(new Error("the video cannot be played"));
  video.src = window.stored.address;
})"""


def test_a_video_is_stored_from_start_to_end(replay):
    """The stored file can be played, and its frames have the size of the canvas."""
    replay.evaluate(STORED)
    replay.evaluate("replay.seek(0.2); replay.speed = 0.25")
    replay.click("#record")
    assert replay.evaluate("replay.time < 0.2 && replay.playing && document.getElementById('record').className") == "on"
    replay.wait("window.stored !== null && !replay.video")
    assert replay.evaluate("replay.time === replay.end && !replay.playing")
    assert re.fullmatch(r".+\.(mp4|webm)", replay.evaluate("stored.name"))
    canvas = replay.evaluate("[replay.stage.canvas.width, replay.stage.canvas.height]")
    assert replay.evaluate(VIDEO) == canvas
    replay.evaluate("replay.speed = 1")
    assert replay.problems == []


def test_a_browser_that_records_no_video_says_so(replay):
    replay.evaluate("window.recorder = MediaRecorder; window.MediaRecorder = undefined")
    replay.click("#record")
    note = replay.evaluate("document.getElementById('note-video').textContent")
    assert note.startswith("this browser records no video; legged view run.npz --video run.mp4")
    assert replay.evaluate("!replay.playing && !replay.video")
    replay.evaluate("window.MediaRecorder = window.recorder; replay.note('video', '')")


def test_play_moves_robot_and_cursors(replay):
    start, left = place(replay), cursor(replay)
    replay.click("#play")
    replay.wait("replay.time > 0.25")
    assert place(replay) != start
    assert cursor(replay) > left + 20.0  # [pixel]
    replay.click("#play")
    stopped = replay.evaluate("replay.time")
    replay.evaluate("new Promise(done => setTimeout(done, 150))")
    assert replay.evaluate("replay.time") == stopped


def test_timeline_steps_and_loops(replay, trot):
    replay.click("#next")
    assert replay.evaluate("replay.time") == pytest.approx(trot.times[1], abs=1e-6)
    replay.click("#back")
    assert replay.evaluate("replay.time") == 0.0
    replay.click("#timeline", x=0.5)
    assert replay.evaluate("replay.time") == pytest.approx(0.3, abs=0.02)
    replay.evaluate("replay.seek(0.55); replay.play(true)")
    replay.wait("replay.time < 0.3")  # it starts again at the end
    replay.click("#loop")
    replay.evaluate("replay.seek(0.55)")
    replay.wait("!replay.playing")
    assert replay.evaluate("replay.time") == pytest.approx(0.6)


def test_click_on_a_curve_moves_the_timeline(replay):
    replay.click(".u-over", x=0.5, y=0.5)
    assert 0.2 < replay.evaluate("replay.time") < 0.45


def unfold(browser):
    """Show the check boxes, which pages as narrow as these fold."""
    browser.evaluate("document.querySelector('#overlays').open = true")


def test_check_boxes_show_overlays(replay):
    assert not replay.evaluate("document.querySelector('#overlays').open")
    unfold(replay)
    replay.evaluate("replay.seek(0.2)")
    for name in ("cones", "center", "capture", "feet"):
        assert not replay.evaluate(f"replay.actors[0].overlays.{name}.visible")
        replay.click(f"#overlay-{name}")
        replay.wait(f"replay.actors[0].overlays.{name}.visible", 30.0)
    center = replay.evaluate("replay.actors[0].overlays.center.children[0].position.toArray()")
    assert center == pytest.approx(replay.evaluate("replay.actors[0].basePosition.toArray()"), abs=0.3)


def test_planned_footsteps_are_shown_where_feet_swing(browser, planned, tmp_path):
    browser.open(planned.save_html(tmp_path / "planned.html").as_uri(), f"{READY} && document.title.includes('chain')")
    browser.evaluate("replay.seek(0.055)")  # between two samples
    unfold(browser)
    browser.click("#overlay-footsteps")
    discs = "replay.actors[0].overlays.footsteps.children"
    assert browser.evaluate(f"{discs}.map(disc => disc.visible)") == [True, False]
    assert browser.evaluate(f"{discs}[0].position.x") == pytest.approx(0.55, abs=1e-4)
    assert browser.problems == []


def test_several_runs_free_bodies_and_planar_robots_are_shown(browser, trot, walk, drop, tmp_path):
    for name, runs in (("pair", [walk, walk]), ("drop", [drop])):
        path = legged.save_html(runs, tmp_path / f"{name}.html", beside=1.0)
        browser.open(path.as_uri(), f"{READY} && document.title.includes({runs[0].robot!r})")
        assert browser.evaluate("replay.actors.length") == len(runs)
        assert browser.evaluate(COLORS) > 40
    parts = browser.evaluate("replay.actors[0].run.parts.map(part => part.name)")
    assert parts == ["plate", "ball"]
    assert browser.problems == []


def test_a_page_of_two_runs_names_them_and_keeps_notes_in_one_line(browser, trot, tmp_path):
    page = save_page(tmp_path / "two.html", [trot, trot], names=["first", "second"], beside=1.0)
    text = page.read_text(encoding="utf-8")
    notes = [
        f"a visual shape of link 'link{k}' is not shown: its mesh is missing, " + 20 * "long words " for k in range(9)
    ]
    assert text.count('"notes":[]') == 1
    page.write_text(text.replace('"notes":[]', f'"notes":{json.dumps(notes)}'), encoding="utf-8")
    browser.open(page.as_uri(), READY)
    assert browser.evaluate("replay.actors.map(actor => actor.run.label)") == ["first", "second"]
    assert browser.evaluate("replay.actors.every(actor => actor.label.position.z > actor.basePosition.z)")
    height = "document.getElementById('notes').getBoundingClientRect().height"
    assert browser.evaluate(height) < 40  # pixels: one line
    assert browser.evaluate("document.querySelector('#notes summary').textContent").startswith("9 notes: a visual")
    browser.evaluate("document.querySelector('#notes details').open = true")
    assert browser.evaluate(height) > 100


def test_a_key_states_colors_and_the_force_of_an_arrow(replay):
    label = replay.evaluate("document.getElementById('overlay-forces').parentElement.textContent")
    length, unit, force = re.fullmatch(r"contact forces, ([\d.]+) (c?m) = ([\d.]+) N", label).groups()
    meters = float(length) * (0.01 if unit == "cm" else 1.0)
    assert float(force) == pytest.approx(meters / replay.evaluate("replay.actors[0].forceScale"), rel=0.06)  # 2 digits
    assert replay.evaluate("document.querySelectorAll('#overlays .swatch').length") == 7


def test_curves_have_two_ticks_or_more_and_rounding_errors_are_straight(browser, tmp_path):
    robot = robots.chain(2, base=legged.FixedBase())
    still = legged.simulate(robot, until=0.1, q=robot.neutral(), compiled=False)
    noise = 1e-14 * np.sin(np.arange(len(still)))[:, None]
    curves = replace(still, q=still.q + 0.3 + noise)
    browser.open(curves.save_html(tmp_path / "still.html").as_uri(), READY)
    for chart in range(browser.evaluate("replay.plots.charts.length")):
        scale = f"replay.plots.charts[{chart}].scales.y"
        assert browser.evaluate(f"{scale}.max - {scale}.min") > 1e-3
        ticks = browser.evaluate(f"replay.plots.charts[{chart}].axes[1]._values")
        assert len(set(ticks)) == len(ticks) >= 2


def test_check_boxes_are_folded_on_a_phone_and_names_are_as_large_for_near_and_far_robots(browser, trot, tmp_path):
    page = legged.save_html([trot, trot], tmp_path / "two.html", names=["near", "far"], beside=1.0).as_uri()
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    try:
        browser.call("Emulation.setDeviceMetricsOverride", **size)
        browser.open(page, READY)
        assert not browser.evaluate("document.getElementById('overlays').open")
        assert browser.evaluate("document.documentElement.scrollWidth") == 390
    finally:
        browser.call("Emulation.setDeviceMetricsOverride", **size | {"width": 1200, "height": 760, "mobile": False})
    browser.open(page, READY)
    assert browser.evaluate("document.getElementById('overlays').open")
    assert not browser.evaluate("replay.actors.some(actor => actor.label.material.sizeAttenuation)")
