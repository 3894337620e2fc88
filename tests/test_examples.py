"""Every example runs and prints what it says."""

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
WORDS = {  # the example -> what it must print
    "biped_in_code": ("M1: left_pelvis, left_thigh, left_shank", "modules alike: ((1, 2),)", "176.58 N for 18 kg"),
    "disturbance_map": ("compiled rollout", "1104 trots of 4 s", "wrote disturbance_map.png"),
    "operation_counts": ("the paper: 2568 M, 2478 A", "2 inward", "power of the joints: 12 M", "compiled: 24 W"),
    "own_controller": ("compiled closed loop: stood for 2 s",),
    "own_gait": ("squatted for 2 s, trunk between 0.40 m and 0.50 m",),
    "own_ground": ("Waves", "over the waves"),
    "sensors": ("leg4_foot is down for 50% of the time", "reads 9.8 m/s^2 upward", "wrote sensors.png"),
    "trot": ("trotted to x = 0.42 m", "trunk.png", "trot.gif"),
    "walk": ("<Run of 'planar biped': 3 s, 301 samples, compiled closed loop>", "advanced 0.86 m at 0.29 m/s"),
}


def test_every_example_is_tested():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(WORDS)


@pytest.mark.parametrize("name", sorted(WORDS))
def test_example_prints_what_it_says(name, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for words in WORDS[name]:
        assert words in printed
