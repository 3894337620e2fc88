"""The controller moves the exported model of a robot in MuJoCo."""

import numpy as np
import pytest

from benchmarks.locomotion.walkers import walkers

pytest.importorskip("mujoco")


def walk_in_mujoco(name, speed, degrees, until):
    """Return times and poses of a walk; see `benchmarks.locomotion.tables.in_mujoco.walk`."""
    from benchmarks.locomotion.tables.in_mujoco import walk

    chosen = walkers([name])
    if not chosen:
        pytest.skip("example_robot_data, of the extra test, is not installed")
    return walk(chosen[0], (speed, 0.0, 0.0), float(np.radians(degrees)), until)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")
@pytest.mark.parametrize("degrees", [0.0, 12.0])
def test_go2_trots_in_mujoco_for_twenty_seconds(degrees):
    times, rows = walk_in_mujoco("Go2", 0.5, degrees, 20.0)
    assert times[-1] > 19.9  # it has not fallen
    late = times > 5.0
    assert np.ptp(rows[late, 0]) / np.ptp(times[late]) == pytest.approx(0.5, rel=0.05)  # [m/s]
    assert abs(rows[-1, 3]) < 0.1 and abs(rows[-1, 1]) < 0.3  # [rad], [m] after 10 m
    tilt = np.degrees(np.arccos(rows[late, 4]))
    assert tilt.mean() == pytest.approx(degrees, abs=4.0)  # the trunk follows the slope


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")
def test_talos_walks_in_mujoco_with_grippers_whose_dry_friction_is_their_effort_limit():
    times, rows = walk_in_mujoco("Talos", 0.5, 0.0, 5.0)
    assert times[-1] > 4.9  # it has not fallen
    late = times > 2.0  # over several cycles of 1 s
    assert np.ptp(rows[late, 0]) / np.ptp(times[late]) == pytest.approx(0.5, rel=0.1)  # [m/s]
