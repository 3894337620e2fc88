"""Driving in the viewer: commands from the page, waypoints, recordings, and robots that start again after a fall."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from oracles.programs.browser import Browser

import legged
import robots
from legged.errors import ArgumentError
from legged.ground import Slope, Stairs
from legged.viewer.driving import drive
from legged.viewer.driving.drive import Drive, Driver, Recorder, place_on_ground, towards


class Clock:
    now = 10.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def driver(clock):
    return Driver(Drive(forward=0.8, left=0.4, turn=1.5), clock)


def test_axes_are_shares_of_the_largest_velocities_until_the_page_is_silent(driver, clock):
    status, kind, content = driver.receive("forward=1&left=-0.5&turn=0.02")
    assert (status, kind) == (200, "application/json") and json.loads(content) == {"velocity": [0, 0, 0], "notice": ""}
    np.testing.assert_allclose(driver.velocity(np.zeros(2), 0.0), [0.8, -0.2, 0.0])  # 0.02 is in the dead zone
    clock.now += 0.9 * drive.SILENCE
    assert driver.velocity(np.zeros(2), 0.0)[0] == 0.8
    clock.now += 0.2 * drive.SILENCE
    assert not driver.velocity(np.zeros(2), 0.0).any()


@pytest.mark.parametrize(
    "query",
    [
        "",
        "forward=1",
        "forward=1&left=0&turn=2",
        "forward=nan&left=0&turn=0",
        "forward=inf&left=0&turn=0",
        "forward=x&left=0&turn=0",
        "forward=1&left=0&turn=0&turn=1",
        "forward=1&forward=1&left=0",
        "forward=1&left=0&speed=0",
        "forward=1e400&left=0&turn=0",
        "%00=1&left=0&turn=0",
    ],
)
def test_other_requests_are_refused_and_change_nothing(query, driver):
    driver.receive("forward=0.5&left=0&turn=0")
    status, kind, words = driver.receive(query)
    assert status == 400 and kind == "text/plain" and words.strip() and "\x00" not in words
    assert driver.velocity(np.zeros(2), 0.0)[0] == 0.4


def test_a_waypoint_is_reached_from_every_heading(driver):
    """A robot that moves exactly as commanded arrives, and stops there."""
    for yaw in np.linspace(-np.pi, np.pi, 7):
        driver.go_to(np.array([1.5, -1.0]))
        place, angle = np.array([0.0, 0.0]), yaw
        for _ in range(1000):
            forward, left, turn = driver.velocity(place, angle)
            place = place + 0.02 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ (
                forward,
                left,
            )
            angle += 0.02 * turn
        assert driver.goal is None and np.hypot(*(place - (1.5, -1.0))) < 0.16
        assert not driver.velocity(place, angle).any()


def test_keys_end_the_way_to_a_waypoint(driver):
    driver.go_to(np.array([1.0, 0.0]))
    driver.receive("forward=0&left=0&turn=0")
    assert driver.goal is not None
    driver.receive("forward=-1&left=0&turn=0")
    assert driver.goal is None and driver.velocity(np.zeros(2), 0.0)[0] == -0.8


def test_a_robot_turns_before_it_walks_to_a_place_behind_it():
    most = np.array([1.0, 0.5, 2.0])
    assert towards(np.array([-1.0, 0.01]), np.zeros(2), 0.0, most)[[0, 2]].tolist() == [0.0, 2.0]
    assert towards(np.array([-1.0, -0.01]), np.zeros(2), 0.0, most)[2] == -2.0


def test_a_ray_meets_the_ground():
    down = np.array([0.3, 0.0, -1.0])
    np.testing.assert_allclose(place_on_ground(None, np.array([0, 1, 2.0]), down), [0.6, 1.0], atol=0.01)  # half a step
    slope = Slope(0.2)  # z = x tan(0.2): 2 - s = 0.3 s tan(0.2)
    s = 2.0 / (1.0 + 0.3 * np.tan(0.2))
    np.testing.assert_allclose(place_on_ground(slope, np.array([0, 0, 2.0]), down), [0.3 * s, 0.0], atol=0.01)
    stairs = Stairs(edges=(0.5,), rises=(0.3,))
    assert abs(place_on_ground(stairs, np.array([0, 0, 0.1]), np.array([1.0, 0, 0]))[0] - 0.5) < 0.021  # its riser
    assert place_on_ground(None, np.array([0, 0, 1.0]), np.array([0, 0, 1.0])) is None
    assert place_on_ground(None, np.array([0, 0, 1.0]), np.zeros(3)) is None
    assert place_on_ground(None, np.array([np.nan, 0, 1.0]), down) is None


def test_recordings_become_runs_and_replace_none(tmp_path):
    robot = robots.planar_hopper()
    recorder = Recorder(robot, None, tmp_path)
    q, v = robot.neutral(), np.zeros(robot.nv)
    recorder.add(0.0, q, v, np.zeros(3))
    assert recorder.write() is None  # recording is off
    for name in ("drive-1.npz", "drive-2.npz"):
        recorder.is_on = True
        for t in (0.0, 0.1, 0.1, 0.2):
            recorder.add(t, q, v, np.array([0.5, 0.0, t]))
        assert recorder.write() == tmp_path / name
    run = legged.Run.load(tmp_path / "drive-2.npz")
    assert run.times.tolist() == [0.0, 0.1, 0.2]
    assert (tmp_path / "drive-1.csv").read_text().splitlines()[:2] == ["t,vx,vy,yaw_rate", "0.0,0.5,0.0,0.0"]


def test_limits_that_make_no_sense_are_refused():
    with pytest.raises(ArgumentError, match="forward must be at least 0"):
        Drive(forward=-1.0)


def test_a_driven_simulation_serves_its_page_and_starts_again_after_a_fall(tmp_path):
    pytest.importorskip("viser", reason="viser, of the extra view, is not installed")
    robot = robots.spatial_quadruped()
    q = robot.state(base_position=(0.0, 0.0, 0.6)).q
    simulation = legged.Simulation(
        robot, Limp(), ground=legged.Rigid(), q=q, integrator=legged.TimeStepping(4e-3), fall=legged.Fall(0.6)
    )
    viewer = legged.view(simulation, port=0, wait=False, drive=Drive(folder=tmp_path))
    try:
        live, driven = viewer.content, viewer.content.driver
        root = driven.address.rsplit("/", 1)[0]
        driven.set_recording(True)
        with urllib.request.urlopen(driven.address, timeout=20.0) as page:
            assert page.headers["Content-Type"].startswith("text/html") and b"getGamepads" in page.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(driven.address.replace(root.rsplit("/", 1)[1], "x"), timeout=20.0)
        foreign = urllib.request.Request(f"{root}/command?forward=1&left=0&turn=0")
        foreign.add_header("Sec-Fetch-Site", "cross-site")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=20.0)
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(f"{root}/command?forward=7&left=0&turn=0", timeout=20.0)
        deadline, written = time.monotonic() + 60.0, tmp_path / "drive-1.npz"
        notices = set()
        while not written.exists() and time.monotonic() < deadline:
            with urllib.request.urlopen(f"{root}/command?forward=1&left=0&turn=0", timeout=20.0) as answer:
                notices.add(json.load(answer)["notice"])
            time.sleep(0.02)
        assert any("starts again" in notice for notice in notices)
        assert written.exists() and legged.Run.load(written).duration > 0.05
        with live._lock:
            assert not simulation.ended or simulation.t < legged.Run.load(written).duration
    finally:
        viewer.stop()


def test_keys_drive_after_a_check_box_and_not_in_a_field_of_text():
    """A click on the check box "record" leaves it in focus."""
    browser = Browser(320, 240)
    try:
        browser.open((Path(drive.__file__).parents[1] / "web" / "drive.html").as_uri(), "typeof held == 'object'")
        for kind, code, moves in (
            ("checkbox", "KeyW", True), ("range", "KeyQ", True), ("range", "ArrowUp", False), ("text", "KeyW", False),
            ("number", "ArrowUp", False),
        ):  # fmt: skip
            browser.evaluate(f"""held.clear(); {{
                const field = document.body.appendChild(document.createElement("input"));
                field.type = "{kind}";
                field.focus();
                field.dispatchEvent(new KeyboardEvent("keydown", {{code: "{code}", bubbles: true, cancelable: true}}));
            }}""")
            assert browser.evaluate(f"held.has('{code}')") is moves, (kind, code)
    finally:
        browser.close()


class Limp:
    """A law with the command of a walk, which has no torques, so that the robot falls."""

    def start(self, robot, ground, q, v):
        return self, np.zeros(0)

    def torque(self, t, phase, q, v, wrenches, memory, command):
        return 0.0 * v + 0.0 * command.sum()

    def rate(self, t, phase, q, v, wrenches, memory, command):
        return memory
