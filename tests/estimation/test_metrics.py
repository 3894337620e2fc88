"""Errors of trajectories in the benchmark of estimation are those of `evo`, which reads its files."""

import numpy as np
import pytest

from benchmarks.estimation.metrics import absolute_pose_error, relative_pose_error, tum, yaw_aligned
from legged.rotations import quaternion_exp, quaternion_matrix, quaternion_product


def trajectories(seed):
    """Return times and poses, (T,) and (T, 7), of a curved path, and of one that drifts away from it."""
    rng = np.random.default_rng(seed)
    times = 0.01 * np.arange(2000)
    rates = np.cumsum(rng.normal(size=(2, len(times), 3)), axis=1) * np.array([2e-2, 2e-3])[:, None, None]
    turns = np.array([np.array([1.0, 0.0, 0.0, 0.0])] * 2)
    true, estimate = [], []
    for k, t in enumerate(times):
        for poses, turn, own in zip((true, estimate), turns, (rates[0, k], rates.sum(axis=0)[k]), strict=True):
            place = np.array([3.0 * np.sin(0.3 * t), t, 0.2 * np.cos(t)]) + (own if poses is estimate else 0.0)
            poses.append(np.concatenate([quaternion_product(quaternion_exp(own), turn), place]))
    return times, np.array(true), np.array(estimate)


@pytest.mark.parametrize("seed", range(3))
def test_errors_of_poses_are_those_of_evo(seed, tmp_path):
    metrics, files = pytest.importorskip("evo.core.metrics"), pytest.importorskip("evo.tools.file_interface")
    times, true, estimate = trajectories(seed)
    pair = []
    for name, poses in (("truth", true), ("estimate", estimate)):
        (tmp_path / name).write_text(tum(times, poses))
        pair.append(files.read_tum_trajectory_file(str(tmp_path / name)))
    kinds = metrics.PoseRelation.translation_part, metrics.PoseRelation.rotation_angle_deg
    for ours, theirs in (
        (absolute_pose_error(true, estimate), [metrics.APE(kind) for kind in kinds]),
        (
            relative_pose_error(true, estimate),
            [metrics.RPE(kind, delta=1.0, delta_unit=metrics.Unit.meters) for kind in kinds],
        ),
    ):
        for metric in theirs:
            metric.process_data(tuple(pair))
        expected = [metric.get_statistic(metrics.StatisticsType.rmse) for metric in theirs]
        # The files hold nine digits after the point.
        np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_a_constant_drift_is_the_relative_error_of_a_meter():
    times = np.linspace(0.0, 10.0, 4001)
    true = np.zeros((len(times), 7))
    true[:, 0] = 1.0
    estimate = true.copy()
    true[:, 4], estimate[:, 4] = times, 1.01 * times
    assert relative_pose_error(true, estimate).position == pytest.approx(0.01 / 1.01, rel=5e-3)
    assert absolute_pose_error(true, estimate).position == pytest.approx(0.1 / np.sqrt(3.0), rel=1e-3)


def test_alignment_of_position_and_yaw_takes_back_a_motion_about_the_vertical_and_no_tilt():
    _, true, _ = trajectories(0)
    turn = quaternion_exp(np.array([0.0, 0.0, 2.5]))
    R = quaternion_matrix(turn)
    moved = np.array([[*quaternion_product(turn, pose[:4]), *(R @ pose[4:7] + [1.0, -2.0, 3.0])] for pose in true])
    aligned = yaw_aligned(true, moved)
    assert np.allclose(aligned[:, 4:], true[:, 4:], atol=1e-12)
    assert np.allclose(np.abs(np.sum(aligned[:, :4] * true[:, :4], axis=1)), 1.0, atol=1e-14)
    tilt = quaternion_matrix(quaternion_exp(np.array([0.1, 0.0, 0.0])))
    tilted = np.concatenate([true[:, :4], true[:, 4:] @ tilt.T], axis=1)
    assert absolute_pose_error(true, yaw_aligned(true, tilted)).position > 0.1
