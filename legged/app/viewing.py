"""The commands `legged view` and `legged demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from legged.app.options import ROBOT, BaseName, Duration, output_file, print_path, robot_names

Html = Annotated[
    Path | None,
    typer.Option(help="Write this page instead, which plays in any browser.", callback=output_file, dir_okay=False),
]
Video = Annotated[
    Path | None,
    typer.Option(
        help="Write this stick-figure video instead, .mp4 (with ffmpeg) or .gif.", callback=output_file, dir_okay=False
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the page.")]


def view_command(
    what: Annotated[str, typer.Argument(help=f"A saved run (.npz), or: {ROBOT}", autocompletion=robot_names)],
    base: BaseName = None,
    port: Port = 8080,
    html: Html = None,
    video: Video = None,
) -> None:
    """Show a robot with sliders for its joints, or play a saved run, in the browser until Ctrl-C."""
    import legged
    from legged.app.selection import select_robot

    files = {"--html": html, "--video": video}
    wanted = [name for name, path in files.items() if path is not None]
    if not what.lower().endswith(".npz"):
        if wanted:
            raise typer.BadParameter("a page or a video needs a saved run (.npz)", param_hint=wanted[0])
        legged.view(select_robot(what, base), port=port, wait=True)
        return
    run = legged.Run.load(what)
    if html is not None:
        print_path(run.save_html(html))
    if video is not None:
        from legged.simulation import plots

        print_path(plots.animate(run, video, fps=25.0))
    if not wanted:
        legged.view(run, port=port, wait=True)


def demo_command(
    duration: Duration = 4.0,
    port: Port = 8080,
    html: Html = None,
) -> None:
    """Simulate a trotting quadruped and show it in the browser until Ctrl-C."""
    import webbrowser

    import controllers
    import legged
    import robots

    robot = robots.spatial_quadruped()
    law = controllers.ComputedTorque(controllers.Trot())
    run = legged.simulate(robot, law, ground=legged.ground.paper_ground(robot), until=duration)
    print(run)
    if html is not None:
        print_path(run.save_html(html))
        return
    viewer = legged.view(run, port=port, wait=False)
    webbrowser.open(viewer.address)
    viewer.wait()
