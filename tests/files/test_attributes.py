"""Each attribute of URDF and MJCF files with wrong values: a FileError that names file and object, or a robot."""

import re
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import legged
from legged.errors import FileError
from tests.oracles.mjcf_models import COUPLED, FLOATING, MOTORS, PENDULUM
from tests.oracles.urdf_texts import BIPED, GRIPPER

WRONG = ("", "abc", "nan", "inf", "1e400", "1 2", "1 2 3 4 5 6 7", "-1", "0x10", "&#x9b;31m", "&#x202e;x", "1 nan 0")
FILES = {"biped.urdf": BIPED, "gripper.urdf": GRIPPER}
if find_spec("mujoco"):
    FILES |= {"pendulum.xml": PENDULUM, "floating.xml": FLOATING, "motors.xml": MOTORS, "coupled.xml": COUPLED}
NUMBER = re.compile(r"[-+\d.e]+(\s+[-+\d.e]+)*$")


def attributes(text):
    """Yield (element, attribute, place of its value) of the first occurrence of each kind."""
    seen = set()
    for match in re.finditer(r'([\w:]+)="([^"]*)"', text):
        element = (re.findall(r"<(\w+)", text[: match.start()]) or ["xml"])[-1]
        if (element, match[1]) not in seen and element != "xml":
            seen.add((element, match[1]))
            yield element, match[1], match.span(2)


@pytest.mark.parametrize("name", FILES)
def test_wrong_values_of_each_attribute_are_named(name, tmp_path):
    pytest.importorskip("yourdfpy")
    path, text, refused = tmp_path / name, FILES[name], 0
    for k, (element, attribute, (start, end)) in enumerate(attributes(text)):
        for value in WRONG[k % 2 :: 2]:  # half of them, for the time that it takes
            path.write_text(text[:start] + value + text[end:], encoding="utf-8")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    robot = legged.load(path)
            except FileError as error:
                refused, words = refused + 1, str(error)
                assert str(path) in words and words.replace("\n", "").isprintable(), words
                if "nan" in value.split() and NUMBER.match(text[start:end]):
                    assert re.search(rf"\b{element}\b|\b{attribute}\b|joint|link", words), (element, attribute, words)
                    assert "MuJoCo's" not in words, words
            else:
                assert robot.nv == 0 or np.isfinite(legged.inertia_matrix(robot, robot.neutral())).all()
    assert refused > 20
