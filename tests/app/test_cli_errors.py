"""Commands with wrong robots and options end with a message and an exit status, never with a traceback."""

import inspect
import re
from typing import Any

import pytest

import legged
import robots
from legged.app.cli import app
from legged.app.options import positive
from legged.version import __version__

COMMANDS = {
    command.name or command.callback.__name__.replace("_", "-"): command
    for command in app.registered_commands
    if not command.hidden
}
OPTIONS: dict[str, dict[str, Any]] = {}
"""Command -> name of an option, such as "--duration" -> its annotation: (type, what typer knows of it)."""
for _name, _command in COMMANDS.items():
    for _parameter in inspect.signature(_command.callback, eval_str=True).parameters.values():
        _kind, _option = _parameter.annotation.__origin__, _parameter.annotation.__metadata__[0]
        _names = getattr(_option, "param_decls", None) or (f"--{_parameter.name.replace('_', '-')}",)
        OPTIONS.setdefault(_name, {})["robot" if _parameter.name == "robot" else _names[0]] = _kind, _option
SHORT = {
    "verify": "--states 1",
    "report": "--duration 0.01",
    "demo": "--duration 0.01",
} | dict.fromkeys(("walk", "trot", "crawl", "tripod", "stand"), "--duration 0.02")
BEFORE = {"train": "velocity ", "play": "policy.onnx "}
"""Arguments of a command before the robot."""
WITH_ROBOT = [name for name in COMMANDS if "robot" in OPTIONS[name]]
WRONG_ROBOTS = {
    "planar_bipd": "UnknownNameError: there is no robot named",
    "chain": "DefinitionError: robot 'chain' cannot be created: missing a required argument",
    "'chain(2.5)'": "ArgumentError: n must be a whole number, got 2.5",
    "'chain(-3)'": "ArgumentError: n must be at least 1 and at most 10000, got -3",
    "'chain(2'": "DefinitionError: 'chain(2' names no robot",
    "\"tree(3, branching='a')\"": "ArgumentError: branching must be a number, got 'a'",
    "mine.py": "add a function or a variable of the file: mine.py:NAME",
    "missing.py:robot": "DefinitionError: file 'missing.py' does not exist",
    "mine.py:robt": "did you mean 'robot'?",
    "mine.py:number": "there is no function or robot in mine.py named 'number'",
    "mine.py:three": "DefinitionError: 'mine.py:three' returns int, not a Robot",
    "mine.py:fails": "cannot be created: ZeroDivisionError: division by zero",
    "'mine.py:robot(2)'": "is a robot, which takes no arguments",
    "wrong.py:robot": "DefinitionError: 'wrong.py' cannot be executed: NameError",
    "missing.urdf": "FileError: missing.urdf: cannot be read",
    "cut.urdf": "is the file complete?",
    "text.urdf": "FileError: text.urdf: is no XML",
    "folder.urdf": "FileError: folder.urdf: cannot be read",
    "empty.xml": "FileError: empty.xml",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with right and wrong robot files the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import robots\nnumber = 3\nrobot = robots.spatial_quadruped()\n"
        "def make():\n    return robots.spatial_quadruped()\n"
        "def three():\n    return 3\ndef fails():\n    return 1 / 0\n"
    )
    (tmp_path / "wrong.py").write_text("robot = unknown\n")
    legged.save_urdf(robots.spatial_quadruped(), tmp_path / "right.urdf")
    (tmp_path / "cut.urdf").write_text((tmp_path / "right.urdf").read_text()[:900])
    (tmp_path / "text.urdf").write_text("no robot>")
    (tmp_path / "empty.xml").write_text("")
    (tmp_path / "folder.urdf").mkdir()
    return tmp_path


@pytest.mark.parametrize("command", WITH_ROBOT)
def test_wrong_robots_are_one_line_and_status_1(cli, folder, command):
    pytest.importorskip("lxml", reason="lxml, of the extra urdf, is not installed")
    chosen = WRONG_ROBOTS if command == "info" else ("planar_bipd", "'chain(2.5)'", "mine.py:fails", "cut.urdf")
    for robot in chosen:
        words = WRONG_ROBOTS[robot]
        status, _, err = cli(f"{command} {BEFORE.get(command, '')}{robot} {SHORT.get(command, '')}")
        assert (status, err.count("\n")) == (1, 1) and words in err and "<string>" not in err, (robot, err)


@pytest.mark.parametrize("robot", ["missing.urdf", "cut.urdf", "text.urdf", "folder.urdf", "empty.xml", "mine.py"])
def test_audit_of_a_wrong_file_is_one_line_and_status_1(cli, folder, robot):
    status, _, err = cli(f"audit {robot}")
    assert (status, err.count("\n")) == (1, 1) and robot in err


def wrong_options(command: str) -> list[str]:
    """Return options of a command with values of which each is outside of its range or of another kind."""
    arguments = ["--nonsense", "one two"]
    for name, (kind, option) in OPTIONS[command].items():
        if kind in (float, int, float | None, int | None):
            arguments += [f"{name} x", name]
        if option.callback is positive:
            arguments += [f"{name} {value}" for value in ("nan", "inf", "-1", "0")]
        if name == "--output":
            arguments += ["--output mine.py", "--output mine.py/inside"]
    return arguments


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_wrong_command_lines_have_status_2(cli, folder, command):
    robot = "right.urdf " if command in ("audit", "info", "verify") else BEFORE.get(command, "")
    for line in wrong_options(command):
        status, _, err = cli(f"{command} {robot}{line}")
        assert status == 2 and "Error" in err and "Traceback" not in err, (line, err)


NAMES = ("--controller pid", "--ground ice", "--terrain hills", "--terrain slope:nan", "--base wheels", "--against abc")


@pytest.mark.parametrize("robot", ["spatial_quadruped", "mine.py:robot", "mine.py:make", "right.urdf"])
@pytest.mark.parametrize("command", WITH_ROBOT)
def test_wrong_names_and_numbers_are_one_line_and_status_1(cli, folder, command, robot):
    for line in NAMES:
        if line.split()[0] in OPTIONS[command]:
            status, _, err = cli(f"{command} {robot} {SHORT.get(command, '')} {line}")
            assert (status, err.count("\n")) == (1, 1) and "Error: " in err, (line, err)


@pytest.mark.parametrize("line", ["hop", "hop --hops 2 -o pictures", "velocity-gains go2.urdf --number 5"])
def test_commands_that_are_studies_now_say_where_they_are(cli, line):
    name = line.split()[0]
    words = f"`legged {name}` is now `python -m examples.studies {name}`, in a clone of the repository\n"
    assert cli(line) == (1, "", words)
    assert f" {name} " not in cli("-h")[1]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_shown(cli, command):
    status, out, _ = cli(f"{command} -h")
    assert status == 0 and "Usage:" in out and cli(f"{command} --help")[:2] == (0, out)


def test_every_command_has_an_example_and_units_of_its_numbers():
    for name, command in COMMANDS.items():
        assert command.epilog.startswith(f"Example: legged {name}")
        for option, (kind, known) in OPTIONS[name].items():
            if kind in (float, float | None):
                units = r"in (N s|seconds|minutes|meters|kilograms)|per second|dimensionless"
                assert re.search(units, known.help), option


def test_version_and_completion(cli, monkeypatch):
    assert cli("--version") == (0, f"legged {__version__}\n", "")
    assert OPTIONS["info"]["robot"][1].autocompletion("ch") == ["chain"]


def test_an_unexpected_error_is_one_line_that_says_where(cli, monkeypatch):
    monkeypatch.setattr("legged.app.robot_tables.headline", lambda robot: 1 / 0)
    status, _, err = cli("info planar_biped")
    assert status == 1 and err.count("\n") == 1
    assert "ZeroDivisionError: division by zero, raised in " in err and "test_cli_errors.py, line" in err


def test_output_is_checked_before_the_run(cli, folder, monkeypatch):
    monkeypatch.setattr("legged.app.scenario.simulate", lambda *args, **options: pytest.fail("the run has begun"))
    monkeypatch.setattr("legged.simulate", lambda *args, **options: pytest.fail("the run has begun"))
    for line in ("walk --output mine.py", "demo --html mine.py/page.html"):
        status, _, err = cli(line)
        assert status == 2 and "mine.py" in err


def test_names_and_messages_of_files_are_no_instructions_to_the_terminal(cli, tmp_path):
    """XML allows the control characters from 0x80 on, among them the one that begins terminal sequences."""
    pytest.importorskip("lxml", reason="lxml, of the extra urdf, is not installed")
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    path = tmp_path / "robot.urdf"
    name = "\x9b2J\u202eexe"
    path.write_text(f'<robot name="{name}"><link name="{name}">{inertial}</link></robot>', encoding="utf-8")
    status, out, _ = cli(f"info {path}")
    assert status == 0 and r"\x9b2J\u202eexe" in out
    path.write_text(f'<robot name="{name}"><link name="{name}"/><joint name="{name}"/></robot>', encoding="utf-8")
    status, more, err = cli(f"audit {path}")
    assert status and err and not any(mark in out + more + err for mark in ("\x9b", "\u202e", "\x1b"))
