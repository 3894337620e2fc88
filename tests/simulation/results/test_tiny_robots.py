"""Results of robots without joints."""

import pytest

import legged


@pytest.mark.parametrize("base", [legged.FloatingBase(), legged.FixedBase()])
@pytest.mark.filterwarnings("ignore")
def test_robots_without_joints_have_plots_and_pages(base, tmp_path):
    link = legged.Link("box", legged.box_inertia(1.0, (0.1, 0.1, 0.1)))
    run = legged.simulate(legged.RobotBuilder("box", link, base=base).build(), until=0.02, fall=False)
    assert {figure.axes[0].get_title() for figure in run.plot().values()} >= {"no joints"}
    assert run.save_html(tmp_path / "box.html").stat().st_size > 0
