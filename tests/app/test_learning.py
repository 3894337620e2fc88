"""The commands `legged train` and `legged play`, in small."""

import importlib
import re
from functools import partial

import pytest

pytest.importorskip("torch", reason="torch, of the extra train, is not installed")
pytest.importorskip("onnx", reason="onnx, of the extra rl, is not installed")
QUICK = "test_wrong_command_lines_of_learning_are_refused"


def test_a_trained_policy_is_reported_resumed_and_played(cli, tmp_path, monkeypatch):
    report = importlib.import_module("legged.learning.report")
    monkeypatch.setattr(report, "TOUR", ((0.3, 0.0, 0.0),))
    monkeypatch.setattr(report, "tracking", partial(report.tracking, robots=2, duration=2.4))
    monkeypatch.setattr(report, "survival", partial(report.survival, robots=4))
    folder = tmp_path / "out"
    status, out, err = cli(
        f"train velocity spatial_quadruped --steps 1000 --num-envs 16 --threads 1 --seed 4 --hidden 16 -o {folder}"
    )
    assert status == 0, err
    for name in ("checkpoint.pt", "policy.onnx", "report.md", "figures/curves.png"):
        assert (folder / name).is_file(), name
    page = (folder / "report.md").read_text()
    assert "largest errors" in page and "pushes of 0.5 m/s survived" in page and "Wall time" in page
    assert list(folder.glob("events.*")) or "tensorboard" not in out
    line = f"train velocity spatial_quadruped --steps 1500 -o {folder} --threads 1 --resume {folder}/checkpoint.pt"
    status, out, err = cli(line)
    assert status == 0, err
    status, out, err = cli(f"play {folder}/policy.onnx spatial_quadruped --duration 0.1")
    assert status == 0 and re.search(r"Run of", out), err


def test_wrong_command_lines_of_learning_are_refused(cli, tmp_path):
    for line, words in (
        ("train walking spatial_quadruped", "no task named"),
        (f"train velocity spatial_quadruped -o {tmp_path} --resume {tmp_path}/missing.pt", "cannot be read"),
        (f"play {tmp_path}/missing.onnx spatial_quadruped", "missing.onnx"),
    ):
        status, _, err = cli(line)
        assert status == 1 and words in err
    (tmp_path / "text.onnx").write_text("no model")
    status, _, err = cli(f"play {tmp_path}/text.onnx spatial_quadruped")
    assert status == 1 and "not an ONNX file" in err
    status, _, err = cli(f"play {tmp_path}/text.onnx spatial_quadruped --html page.html")
    assert status in (1, 2)
