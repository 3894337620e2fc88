"""Figures for a journal."""

import warnings

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import ArgumentError
from legged.ground import paper_ground
from legged.simulation import plots


@pytest.fixture(scope="module")
def run():
    robot = robots.spatial_quadruped()
    law = controllers.ComputedTorque(controllers.Trot())
    return legged.simulate(robot, law, ground=paper_ground(robot), until=0.1)


@pytest.mark.parametrize("width", [60.0, 88.0, 181.0])
def test_figures_get_the_width_and_one_size_of_text_and_stay_inside_it(run, width, tmp_path):
    figures = run.plot()
    figures["modules"] = run.model.robot.draw_modules()
    plots.for_journal(figures, width, font_size=7.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Matplotlib warns of axes without room
        paths = plots.save_for_journal(figures, tmp_path)
    for name, figure in figures.items():
        assert figure.get_figwidth() == pytest.approx(width / 25.4)
        if name == "modules":
            continue
        for ax in figure.axes:
            assert {label.get_fontsize() for label in (ax.yaxis.label, *ax.get_xticklabels())} == {7.0}
            assert ax.get_position().width > 0.5
            legend = ax.get_legend()
            if legend is not None:
                box = legend.get_window_extent()
                padding = 0.02 * figure.bbox.width  # of the invisible frame around the texts
                assert box.x0 > -padding and box.x1 < figure.bbox.width + padding
    for path in paths:
        content = path.read_bytes()
        assert content.startswith(b"%PDF") and b"/Type3" not in content


def test_widths_and_formats_that_make_no_sense_are_refused(run, tmp_path):
    figures = run.plot()
    before = {name: np.array(figure.get_size_inches()) for name, figure in figures.items()}
    with pytest.raises(ArgumentError, match="width must be positive"):
        plots.for_journal(figures, -3.0)
    for name, figure in figures.items():
        np.testing.assert_array_equal(figure.get_size_inches(), before[name])
    with pytest.raises(ArgumentError, match="suffix"):
        plots.save_for_journal(figures, tmp_path, ".txt")
    assert not list(tmp_path.iterdir())
