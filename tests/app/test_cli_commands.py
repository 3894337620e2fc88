"""The command line: printed output, written files and error messages."""

import re
import subprocess
import sys

import numpy as np
import pytest

import legged
import robots
from legged.app.selection import ready_made_robots, select_robot
from legged.compiler.cache import disk
from legged.counting import module_counts
from legged.errors import DefinitionError
from legged.table import Table
from legged.verification import speeds


def test_info_shows_modules_masses_and_conditioning(cli):
    status, out, _ = cli("info spatial_quadruped")
    assert status == 0
    assert "9 links, 18 degrees of freedom, 12 kg" in out
    assert "M4      M0      leg4_thigh, leg4_shank  universal, revolute" in out
    assert "Conditioning of the articulated modules, all joints at zero" in out


def test_robots_with_closed_loops_are_shown_and_counted_and_elsewhere_refused(cli):
    status, out, _ = cli("info four_bar")
    assert status == 0
    assert "closing pin  revolute  coupler  rocker  coupler, crank, ground, rocker            5" in out
    assert "5 constraints of rank 2, 1 degree of freedom" in out
    status, out, _ = cli("count four_bar")
    assert status == 0 and "forward dynamics with closed loops, 5 constraints" in out
    status, _, err = cli("verify four_bar")
    assert status == 1 and "which this command does not support; use `legged info`, `legged count` or" in err


@pytest.mark.parametrize("robot", ["humanoid", "four_bar"])
def test_info_draws_the_modules(cli, tmp_path, robot):
    status, out, _ = cli(f"info {robot} --output {tmp_path}")
    assert status == 0 and str(tmp_path / "modules.svg") in out
    assert "<svg" in (tmp_path / "modules.svg").read_text()


def test_info_takes_arguments_a_base_and_a_random_configuration(cli):
    status, out, _ = cli("info 'chain(3, twist=0.5)' --base fixed --seed 3")
    assert status == 0
    assert "3-link chain: 4 links, 3 degrees of freedom" in out
    assert "random configuration 3" in out


def test_info_reads_a_robot_from_a_file(cli, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from legged import *\n"
        "def pendulum(mass=2.0):\n"
        "    arm = Limb().add(Revolute('pivot', '-y'), Link('arm', rod_inertia(mass, (0, 0, 0), (0, 0, -1))))\n"
        "    return RobotBuilder('pendulum', Link('base'), base=FixedBase()).attach(arm, to='base').build()\n"
    )
    assert "1 degrees of freedom, 2 kg" in cli(f"info {file}:pendulum")[1]
    assert "1 degrees of freedom, 3 kg" in cli(f"info '{file}:pendulum(mass=3.0)'")[1]
    file.write_text(file.read_text() + "robot = pendulum(4.0)\n")
    assert "1 degrees of freedom, 4 kg" in cli(f"info {file}:robot")[1]


def test_count_of_a_robot_is_beside_the_paper_and_split_by_stage_and_module(cli):
    status, out, _ = cli("count planar_biped")
    counts = legged.count(legged.forward_dynamics, _biped())
    assert status == 0
    assert f"{counts.M}     1314  {counts.A}     1272" in out
    assert "planar biped: forward dynamics by stage" in out
    assert "planar biped: inverse dynamics by module" in out


def _biped():
    import robots

    return robots.planar_biped()


def test_count_of_all_has_every_ready_made_robot_and_is_written(cli, tmp_path):
    status, out, _ = cli(f"count --output {tmp_path}")
    assert status == 0 and str(tmp_path / "counts.md") in out
    assert "planar_biped" in ready_made_robots() and "chain" not in ready_made_robots()
    for name in ready_made_robots():
        words = f"{select_robot(name).name}, n = "
        assert words in out and f"| {words}" in (tmp_path / "counts.md").read_text()


def test_count_of_modules_has_tables_over_modules_and_legs_and_a_figure(cli, tmp_path, monkeypatch):
    for name, value in (("JOINTS", 4), ("MODULES", (1, 2)), ("LEGS", (2, 3)), ("MANY_LEGS", (2, 4))):
        monkeypatch.setattr(module_counts, name, value)
    for function in (module_counts.module_table, module_counts.leg_table, module_counts.depth_table):
        sizes = {"module_table": (4, (1, 2)), "leg_table": (1, (2, 3)), "depth_table": (1, (2, 4))}
        monkeypatch.setattr(function, "__defaults__", sizes[function.__name__])
    status, out, _ = cli(f"count modules --output {tmp_path}")
    assert status == 0 and "paper, any partition" in out and "per further leg" in out
    assert (tmp_path / "figures" / "operations-modules.png").stat().st_size > 10_000
    star = legged.count(legged.forward_dynamics, module_counts.star(2, 2))
    assert "2 x 2" in out and str(star.M) in out


@pytest.mark.parametrize(
    "gait, robot",
    [("walk", "planar biped"), ("trot", "spatial quadruped"), ("crawl", "spatial"), ("tripod", "hexapod")],
)
def test_gait_commands_simulate_their_robot(cli, gait, robot):
    status, out, _ = cli(f"{gait} --duration 0.3")
    assert status == 0
    assert robot in out and "0.30 s" in out and "largest joint error" in out


def test_walk_writes_data_figures_and_an_animation(cli, tmp_path):
    status, out, _ = cli(f"walk --controller feed-forward --duration 0.5 --output {tmp_path / 'out'}")
    assert status == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"run.npz", "run.csv", "trunk.png", "joints.png", "animation.gif", "replay.html"} <= names
    assert str(tmp_path / "out" / "run.npz") in out
    run = legged.Run.load(tmp_path / "out" / "run.npz")
    assert run.robot == "planar biped" and run.duration == pytest.approx(0.5)
    status, out, _ = cli(f"view {tmp_path / 'out' / 'run.npz'} --html {tmp_path / 'again.html'}")
    assert status == 0 and (tmp_path / "again.html").is_file() and "again.html" in out
    status, _, err = cli(f"view planar_biped --html {tmp_path / 'robot.html'}")
    assert status == 2 and "a page or a video needs a saved run" in err


def test_view_writes_a_video_without_a_browser(cli, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    assert cli(f"walk --controller feed-forward --duration 0.5 --output {tmp_path}")[0] == 0
    status, out, _ = cli(f"view {tmp_path / 'run.npz'} --video {tmp_path / 'run.mp4'}")
    assert status == 0 and "run.mp4" in out
    program, size = ffmpeg.get_ffmpeg_exe(), 256
    raw = ["-vf", f"scale={size}:{size}", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run([program, "-i", str(tmp_path / "run.mp4"), *raw], capture_output=True, check=True)
    pictures = np.frombuffer(done.stdout, np.uint8).reshape(-1, size, size, 3)
    assert len(pictures) == 13  # 0.5 s at 25 frames per second
    assert (pictures[0] < 200).any() and (pictures[0] != pictures[-1]).any()  # a figure that moves
    status, _, err = cli(f"view {tmp_path / 'run.npz'} --video {tmp_path / 'run.avi'}")
    assert status == 1 and ".gif, an .mp4" in err
    status, _, err = cli(f"view planar_biped --video {tmp_path / 'robot.mp4'}")
    assert status == 2 and "--video" in err


def test_view_shows_robots_and_runs_in_the_browser(cli, monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr("legged.view", lambda what, **options: shown.append((repr(what), options)))
    assert cli("view planar_biped --port 8123")[0] == 0
    monkeypatch.setattr("legged.viewer.view", lambda what, **options: shown.append((repr(what), options)))
    assert cli("walk --duration 0.1 --view")[0] == 0
    (robot, first), (run, second) = shown
    assert robot.startswith("<Robot 'planar biped'") and first == {"port": 8123, "wait": True}
    assert run.startswith("<Run of 'planar biped': 0.1 s") and second == {"wait": True}


def test_a_fall_ends_with_status_1_after_the_results(cli, tmp_path):
    status, out, err = cli(f"walk --controller none --duration 3 --output {tmp_path}")
    assert status == 1
    assert "SimulationError: the trunk leaned over" in err
    assert "largest lean of the base" in out and (tmp_path / "run.npz").exists()


@pytest.mark.slow
def test_terrain_and_ground_are_chosen_by_words(cli):
    _, out, _ = cli("trot --duration 0.2 --terrain slope:-0.2 --ground realistic")
    assert "slope of -0.2 degrees" in out and "bristle" in out
    _, out, _ = cli("walk --duration 0.2 --terrain steps:0.02,0.5")
    assert "+0.02 m at 0.5 m, +0.02 m at 1 m" in out


@pytest.mark.parametrize(
    "line, words",
    [
        ("info planar_bipd", "there is no robot named 'planar_bipd'; did you mean 'planar_biped'?"),
        (
            "info chain",
            "robot 'chain' cannot be created: missing a required argument: 'n'; its signature is chain(n: int",
        ),
        ("info 'chain(3'", "'chain(3' names no robot; write planar_biped, 'chain(12)' or file.py:function"),
        ("info 'chain(open)'", "names no robot"),
        (
            "info planar_biped --base fixed",
            "robot 'planar_biped' cannot be created: got an unexpected keyword argument",
        ),
        ("info 'chain(2)' --base wheels", "there is no base named 'wheels'; there are: floating, fixed, planar"),
        ("info nowhere.py:f", "file 'nowhere.py' does not exist"),
        ("walk --controller pid", "there is no controller named 'pid'"),
        ("walk --ground ice", "there is no ground named 'ice'"),
        ("walk --terrain hills", "steps:RISE[,RUN] in meters or a height map such as map.png, got 'hills'"),
        ("walk --terrain slope:x", "got 'slope:x'"),
        ("walk planar_hopper", "leg"),
        *(
            (line, "planned for level ground, and the terrain under the feet")
            for line in ("trot --terrain slope:-5", "walk --terrain slope:3", "stand --terrain slope:9")
        ),
        ("trot --controller balanced --terrain steps:0.05,0.1", "walk on terrain with --velocity"),
    ],
)
def test_mistakes_are_one_line_and_status_1(cli, line, words):
    status, _, err = cli(line)
    assert status == 1
    assert words in err
    assert "Traceback" not in err and "Error: " in err


def test_a_robot_file_that_fails_says_why(cli, tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("1 / 0\n")
    assert f"'{file}' cannot be executed: ZeroDivisionError: division by zero" in cli(f"info {file}:f")[2]
    file.write_text("def f():\n    return 3\n")
    assert "returns int, not a Robot; build it with RobotBuilder" in cli(f"info {file}:f")[2]
    assert f"there is no function or robot in {file} named 'g'" in cli(f"info {file}:g")[2]


@pytest.mark.parametrize("command", ["info", "audit", "count", "verify --states 1", "bench"])
def test_names_cannot_control_the_terminal_or_add_lines(cli, tmp_path, command, monkeypatch):
    """Control characters, line breaks and marks for the direction of writing in every name of a file."""
    for function in ("dynamics", "flights"):
        monkeypatch.setattr(speeds, function, lambda *_: {})
    for function in ("speed_table", "start_table"):
        monkeypatch.setattr(speeds, function, lambda *_: Table("", ("",), ()))
    pytest.importorskip("lxml")
    mark = "\x9b31m\u202e&#10;FORGED&#13;&#9;&#x85;&#x2028;"
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    links = [f'<link name="{k}{mark}"><inertial><mass value="1"/>{inertia}</inertial></link>' for k in "ab"]
    ends = f'<parent link="a{mark}"/><child link="b{mark}"/><axis xyz="0 0 1"/>'
    joint = f'<joint name="j{mark}" type="continuous">{ends}</joint>'
    file = tmp_path / "names.urdf"
    file.write_text(f'<robot name="r{mark}">{"".join(links)}{joint}</robot>', encoding="utf-8")
    status, out, err = cli(f"{command} {file}")
    assert status == 0 and out
    assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]|^FORGED", out + err, flags=re.MULTILINE)


def test_paths_cannot_control_the_terminal_or_add_lines(cli, tmp_path, monkeypatch):
    folder = tmp_path / "\x9b31m\u202e\nFORGED"
    folder.mkdir()
    run = legged.simulate(robots.planar_hopper(), until=0.01)
    path = run.save(folder / "run.npz")
    monkeypatch.setenv("LEGGED_CACHE", str(folder))
    for line in ("cache", f"view '{path}' --html '{folder}/page.html'", f"view '{path}' --video '{folder}/run.gif'"):
        status, out, err = cli(line)
        assert status == 0 and out.count("\n") == 1 and r"\x9b31m\u202e\x0aFORGED" in out
        assert not err


def test_cache_shows_and_clears_compiled_code(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    assert cli("cache") == (0, f"{tmp_path / 'legged'}: no compiled code\n", "")
    disk.write(f"{'0' * 8}-{'1' * 40}.o", bytes(200_000))
    status, out, _ = cli("cache --clear")
    assert status == 0
    assert "1 pieces of compiled code (0 of 1 files current), 0.2 MB\ndeleted: 1\n" in out
    assert [path.name for path in (tmp_path / "legged").iterdir()] == [disk.MARKER]


def test_verify_prints_the_laws_and_fails_with_the_table(cli, monkeypatch):
    status, out, _ = cli("verify planar_biped --states 1")
    assert status == 0
    assert "inverse dynamics of forward dynamics: forces" in out
    monkeypatch.setattr("legged.verification.checks.ROUNDING_TOLERANCE", 1e-30)
    status, out, err = cli("verify planar_biped --states 1")
    assert status == 1
    assert "VerificationError: the dynamics of robot 'planar biped' violate the laws of mechanics" in err
    assert "FAILED" in err


def test_verify_fails_after_its_table_when_a_program_asked_for_cannot_compare(cli, monkeypatch):
    pytest.importorskip("mujoco")

    def refuse(*arguments):
        raise DefinitionError("inertia must be positive")

    monkeypatch.setattr("legged.verification.external.conversions.mujoco_model", refuse)
    status, out, err = cli("verify planar_hopper --states 1 --against mujoco")
    assert status == 1
    assert "compiled inertia matrix" in out and "not compared" in out
    assert err.count("\n") == 1 and "inertia must be positive" in err


def test_demo_shows_the_trot_in_the_browser_or_writes_a_page(cli, monkeypatch, tmp_path):
    status, out, _ = cli(f"demo --duration 0.05 --html {tmp_path / 'demo.html'}")
    assert status == 0 and "Run of 'spatial quadruped': 0.05 s" in out and (tmp_path / "demo.html").exists()
    seen = []

    class Shown:
        address = "http://localhost:8123"

        def wait(self) -> None:
            seen.append("waited")

    monkeypatch.setattr("legged.view", lambda run, port, wait: seen.append((run.duration, port, wait)) or Shown())
    monkeypatch.setattr("webbrowser.open", seen.append)
    assert cli("demo --duration 0.05 --port 8123")[0] == 0
    assert seen == [(0.05, 8123, False), "http://localhost:8123", "waited"]


def test_the_viewer_without_its_extra_is_one_line_and_status_1(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    for line in ("demo --duration 0.05", "view planar_hopper"):
        status, _, err = cli(line)
        assert status == 1 and err.count("\n") == 1 and "pip install 'legged[view]'" in err


def test_audit_draws_the_feet(cli, tmp_path):
    """The picture names each leg and both views; a robot file that `save_urdf` wrote has four of them."""
    path = tmp_path / "robot.urdf"
    legged.save_urdf(robots.spatial_quadruped(), path)
    status, out, _ = cli(f"audit {path} --output {tmp_path / 'out'}")
    assert status == 0
    assert "feet.svg" in out
    assert (tmp_path / "out" / "feet.svg").read_text().count('<g id="axes_') == 8  # four legs, two views


def test_audit_of_a_robot_without_feet_writes_its_tables_alone(cli, tmp_path):
    stone = legged.RobotBuilder("stone", legged.Link("stone", legged.sphere_inertia(1.0, 0.1))).build()
    path, out = legged.save_urdf(stone, tmp_path / "stone.urdf"), tmp_path / "out"
    status, _, err = cli(f"audit {path} --output {out}")
    assert status == 0 and not err and [each.name for each in out.iterdir()] == ["tables"]


def test_values_of_a_number_are_compared_side_by_side(cli, tmp_path):
    status, out, _ = cli(f"walk --duration 0.02 --compare controller.kp=50,200 --output {tmp_path}")
    assert status == 0 and "controller.kp = 50 " in out and "controller.kp = 200" in out
    rows = (tmp_path / "table.csv").read_text().splitlines()
    assert rows[1].startswith("simulated time,0.02 s,0.02 s")
    assert "controller.kp = 200" in (tmp_path / "replay.html").read_text()
    assert "controller.kp = 200" in (tmp_path / "table.tex").read_text()
    for wrong, words in (("controller.kp", "NAME=|a name and numbers"), ("controller.k=1,2", "did you mean")):
        status, _, err = cli(f"walk --duration 0.02 --compare {wrong}")
        assert status and re.search(words, err)


def test_the_heights_of_a_terrain_from_a_file_are_stated_and_other_files_are_refused(cli, tmp_path):
    np.savetxt(tmp_path / "map.csv", np.full((3, 5), 0.25), delimiter=",")
    walk = "trot --velocity 0.3 0 0 --duration 0.02 --terrain"
    status, out, _ = cli(f"{walk} {tmp_path / 'map.csv'} --size 10 0.5")
    assert status == 0 and "5 x 3 heights, 10 m x 5 m, 0.25 to 0.25 m high" in out
    status, _, err = cli(f"{walk} map.npy --size 10 0.5")
    assert status and "map.npy: is no height map; give a file .png" in err
