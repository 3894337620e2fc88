"""Results of robots without joints."""

import numpy as np
import pytest

import legged


@pytest.mark.parametrize("base", [legged.FloatingBase(), legged.FixedBase()])
def test_robots_without_joints_have_plots_and_pages(base, tmp_path):
    link = legged.Link("box", legged.box_inertia(1.0, (0.1, 0.1, 0.1)))
    robot = legged.RobotBuilder("box", link, base=base).build()
    run = legged.simulate(robot, until=0.02, fall=False)
    assert run.backend == "compiled closed loop"
    assert legged.rollout(robot, until=0.02, fall=False, q=np.tile(robot.neutral(), (3, 1))).q.shape[::2] == (
        3,
        robot.nq,
    )
    assert {figure.axes[0].get_title() for figure in run.plot().values()} >= {"no joints"}
    assert run.save_html(tmp_path / "box.html").stat().st_size > 0
