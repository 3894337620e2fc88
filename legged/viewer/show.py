"""Show runs, robots and simulations: in the browser while they move, and as pages that contain everything.

`view` starts a server (viser, of the extra `view`); `Run.save_html` and the display of a run in a notebook need nothing
besides the toolkit. Libraries are imported when they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.arguments import Numbers, shown, whole
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.errors import ArgumentError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.simulation.results.run import Run
from legged.simulation.rollouts.result import Rollouts
from legged.simulation.stepping.simulation import Simulation
from legged.viewer.driving.drive import Drive

if TYPE_CHECKING:
    from legged.viewer.server import Viewer

__all__ = ["RobotView", "save_html", "view"]
_GROUND = 6.0  # half of the extent of the ground of a `RobotView`, in sizes of the robot


@checked
def view(
    what: Any,
    *,
    port: int = 8080,
    host: str = "127.0.0.1",
    token: str | None = None,
    wait: bool | None = None,
    names: Sequence[str] | None = None,
    beside: float = 0.0,
    q: Numbers | None = None,
    commands: Mapping[str, tuple[float, float, float]] | None = None,
    parameters: Mapping[str, tuple[float, float]] | None = None,
    controllers: Mapping[str, Any] | None = None,
    drive: Drive | None = None,
) -> Viewer:
    """Show a run, a robot or a simulation in the browser and return the viewer; needs the extra `view`.

    A run, several runs or the members of a `Rollouts` are played with a timeline and curves. A robot has sliders for
    its joints and handles that drag its feet by inverse kinematics. A `Simulation` continues in real time or slower,
    with sliders for commands and for numbers of the controller, pushes, pause, single steps and reset.

    Args:
        what: A `Run`, a list of runs, `Rollouts`, a `Robot`, a `Simulation`, or the path of a robot file (URDF, MJCF)
            or of a saved run (.npz).
        port: Port of the server; the next free one if it is taken.
        host: Address at which the server listens; "0.0.0.0" accepts connections from other machines, with a warning.
        token: Part of the address that a browser must know, letters and digits; by default a random one, "" for none.
            Pages of other sites are refused in any case.
        wait: Whether to return only after Ctrl-C; by default unless Python is interactive (a prompt or a notebook).
        names: A name for each of several runs.
        beside: Distance along -y from each run to the next, [m]; 0 draws those
            after the first as ghosts in one place.
        q: Configuration of a robot at the start, (nq,), mixed units; by default every joint as near to zero as its
            limits allow.
        commands: For a simulation whose controller takes a command: for each entry of the command, in order, its name
            -> smallest, largest and initial value, in the units of the controller.
        parameters: For a simulation: name of a number as in `Simulation.parameters` -> smallest and largest value of
            its slider, in its unit; by default the first twelve numbers of the controller and its gait.
        controllers: For a simulation: name -> controller, one of which the user can choose while the simulation runs.
        drive: For a simulation whose controller takes a command with a velocity forward and to the left and a yaw rate
            first, such as `controllers.Locomotion` with the command None: the page reads keys and a gamepad, a click on
            the ground is a waypoint, motions can be recorded, and robots that have fallen start again.

    Raises:
        MissingError: viser is not installed.
        ArgumentError: `what` is none of these, the number of names is not that of the runs, or there is no such host.
        FileError: A file that cannot be read.
    """
    what = _loaded(what)
    from legged.viewer.server import Viewer, is_interactive

    if token is not None and not re.fullmatch(r"[\w.~-]*", token, re.ASCII):
        raise ArgumentError(f"token must consist of letters, digits and - . _ ~, got {shown(token)}")
    viewer = Viewer(whole("port", port, 0, 65535), host, token)
    try:
        viewer.content = _shown(viewer, what, names, beside, q, (commands, parameters, controllers, drive))
    except BaseException:
        viewer.stop()
        raise
    driven = getattr(viewer.content, "driver", None)
    address = viewer.address if driven is None else driven.address
    print(f"{address} shows the viewer" + ("; Ctrl-C ends it" if wait or wait is None else ""))
    if wait if wait is not None else not is_interactive():
        viewer.wait()
    return viewer


def _loaded(what: Any) -> Any:
    """Return the object to view, loaded if it is given as a path; raise ArgumentError for an object of another kind."""
    if isinstance(what, str | Path):
        from legged.files.load import load

        what = Run.load(what) if Path(what).suffix.lower() == ".npz" else load(what)
    kinds = Run | Robot | Rollouts | Simulation | Sequence
    if not isinstance(what, kinds) or (isinstance(what, Sequence) and not what):
        raise ArgumentError(f"view shows a Run, runs, Rollouts, a Robot, a Simulation or a file, got {shown(what)}")
    return what


def _shown(viewer: Viewer, what: Any, names: Any, beside: float, q: Any, controls: tuple[Any, ...]) -> Any:
    """Add an object to a viewer and return its controller: a `Timeline`, a `Poser` or a `Live` simulation."""
    if isinstance(what, Robot):
        from legged.dynamics.arguments import read
        from legged.viewer.poser import Poser

        return Poser(viewer, what, None if q is None else read(what, q=q)[0])
    if isinstance(what, Simulation):
        from legged.viewer.driving.live import Live

        return Live(viewer, what, *controls)
    from legged.viewer.player import view_rollouts, view_runs

    if isinstance(what, Rollouts):
        return view_rollouts(viewer, what)
    runs = [what] if isinstance(what, Run) else list(what)
    if not runs or not all(isinstance(run, Run) and len(run) for run in runs):
        raise ArgumentError("view shows lists of runs with samples")
    return view_runs(viewer, runs, names, beside)


@checked
def save_html(
    runs: Run | Sequence[Run],
    path: str | Path,
    names: Sequence[str] | None = None,
    beside: float = 0.0,
    samples: int = 20_000,
) -> Path:
    """Write runs to one HTML file that plays them in any browser, without a network, and return its path.

    The page has the robots with their visual meshes, the ground, contact forces and other overlays, curves, the figures
    of the run and a timeline.

    Args:
        runs: A run, or several; those after the first are drawn as ghosts, or beside it.
        path: The file; the suffix .html is appended where it is missing. A missing folder is created.
        names: A name for each run, for its curves and figures; by default the name of its robot and a number.
        beside: Distance along -y from each run to the next, [m]; 0 draws them in one place.
        samples: Largest number of samples of a run; a longer run is sampled at even spacing.

    Raises:
        FileError: The path is no name of a page, or the file cannot be written.
        ArgumentError: There is no run, one without samples, or a wrong number of names.
    """
    from legged.viewer.page import save_page

    chosen = [runs] if isinstance(runs, Run) else list(runs)
    if samples < 2:
        raise ArgumentError(f"samples must be 2 or more, got {samples}")
    return save_page(path, chosen, names=names, beside=beside, most=samples)


def frame(run: Run) -> str:
    """Return the element that shows a run in a notebook.

    Args:
        run: The run.
    """
    from legged.viewer.page import framed, page_of

    return framed(page_of([run], most=5_000))


class RobotView:
    """A robot on its ground in the viewer, whose configuration a program sets.

    Args:
        robot: The robot. ground: The ground. port: As in `view`.

    Attributes:
        actor: The robot in the viewer.
    """

    def __init__(self, robot: Robot, ground: Ground | Rigid, port: int = 8080):
        from legged.simulation.results.records import ModelRecord
        from legged.simulation.results.stick_figure import ground_lines, ground_surface
        from legged.viewer.actor import Actor
        from legged.viewer.scene import scene_of
        from legged.viewer.server import Viewer

        self._robot, self._viewer = robot, Viewer(port, "127.0.0.1")
        scene = scene_of(ModelRecord.of(robot, ground))
        around = np.array([[[-_GROUND, -_GROUND, 0.0], [_GROUND, _GROUND, 0.0]]]) * scene.size
        lines, normal = ground_lines(ground, around)
        self.actor = Actor(self._viewer, "robot", scene, normal=normal)
        self._viewer.ground(ground_surface(ground, around), lines)
        self._viewer.overlay_boxes([self.actor])
        self._viewer.camera(np.array([0.0, 0.0, 0.5 * scene.size]), scene.size)
        print(f"{self._viewer.address} shows the viewer")

    def show(self, q: np.ndarray) -> None:
        """Show a configuration.

        Args:
            q: Configuration, (nq,), mixed units.
        """
        from legged.viewer.motion import motion_of_states

        motion = motion_of_states(self.actor.scene, self._robot, np.zeros(1), np.asarray(q, float)[None])
        self.actor.show(motion)
        self._viewer.follow(motion.base[0])

    def stop(self) -> None:
        """End the viewer."""
        self._viewer.stop()
