"""The paper's gaits: the inverse-kinematics table of the notes on its data, to 0.01 degree."""

from __future__ import annotations

import numpy as np
import pytest

import controllers
from controllers import Trot, Walk

INSTANTS = 2001  # samples per step, as in the table
# thigh, knee, ankle at the start, middle and end of a step [deg]; extremes of swing, largest rates [deg/s]
SUPPORT = {
    "biped": [(22.56, -27.35, 4.80), (16.26, -32.52, 16.26), (4.80, -27.35, 22.56)],
    "low biped": [(55.40, -86.95, 31.55), (44.77, -89.53, 44.77), (31.55, -86.95, 55.40)],
    "quadruped": [(46.24, -59.08), (33.56, -67.11), (12.84, -59.08)],
    "authors' quadruped": [(46.24, -59.08), (33.56, -67.11), (12.84, -59.08)],
}
SWING = {
    "biped": [(4.80, -27.35, 22.56), (30.68, -61.37, 30.68), (22.56, -27.35, 4.80)],
    "low biped": [(31.55, -86.95, 55.40), (52.41, -104.82, 52.41), (55.40, -86.95, 31.55)],
    "quadruped": [(12.84, -59.08), (45.57, -91.15), (46.24, -59.08)],
    "authors' quadruped": [(12.84, -59.08), (46.90, -93.79), (46.24, -59.08)],
}
THIGH_RANGE = {
    "biped": (3.30, 34.32),
    "low biped": (29.22, 60.64),
    "quadruped": (7.18, 56.19),
    "authors' quadruped": (7.33, 57.43),
}
LEAST_BENT = {"biped": -26.70, "quadruped": -56.24}
FASTEST = {  # support thigh, support knee, swing thigh, swing knee
    "biped": (50, 39, 80, 116),
    "low biped": (49, 18, 80, 62),
    "quadruped": (109, 76, 130, 126),
    "authors' quadruped": (109, 76, 133, 133),
}
GAITS = {
    "biped": controllers.paper_walk(),
    "low biped": Walk(hip_height=0.96 - 0.25, pendulum_height=0.96),
    "quadruped": controllers.paper_trot(),
    "authors' quadruped": controllers.authors_trot(),
}
LENGTH = 0.0051  # [deg], half a unit of the table's last digit


def pitch(gait, name, t):
    """Return the pitch angles and rates of a leg, (instants, joints), [deg], [deg/s]: abduction left out."""
    leg = next(leg for leg in gait.geometry if leg.name == name)
    angles, rates, _ = gait.reference(t, 0)
    columns = list(leg.columns[leg.abducts :])
    return np.rad2deg(angles[:, columns]), np.rad2deg(rates[:, columns])


@pytest.mark.parametrize("case", GAITS)
def test_joint_angles_are_those_of_the_table(case):
    gait = GAITS[case]
    t = np.linspace(0, 1, INSTANTS)
    support, support_rates = pitch(gait, gait.groups[0][0], t)
    swing, swing_rates = pitch(gait, gait.groups[1][0], t)
    middle = INSTANTS // 2
    np.testing.assert_allclose(support[[0, middle, -1]], SUPPORT[case], atol=LENGTH)
    np.testing.assert_allclose(swing[[0, middle, -1]], SWING[case], atol=LENGTH)
    np.testing.assert_allclose([swing[:, 0].min(), swing[:, 0].max()], THIGH_RANGE[case], atol=LENGTH)
    if case in LEAST_BENT:
        assert swing[:, 1].max() == pytest.approx(LEAST_BENT[case], abs=LENGTH)
    fastest = [np.abs(rates[:, k]).max() for rates in (support_rates, swing_rates) for k in (0, 1)]
    np.testing.assert_allclose(fastest, FASTEST[case], atol=0.51)


@pytest.mark.parametrize(
    "case, longest, shortest", [("biped", 0.973, 0.860), ("low biped", 0.728, 0.610), ("quadruped", 0.529, 0.420)]
)
def test_legs_keep_well_within_reach(case, longest, shortest):
    gait = GAITS[case]
    t = np.linspace(0, 1, INSTANTS)
    base, feet = gait.base(t, 0)[0], gait.feet(t, 0)[0]
    hips = np.array([leg.hip for leg in gait.geometry])
    distances = np.linalg.norm(base[:, None] + hips - feet, axis=2)
    assert distances.max() == pytest.approx(longest, abs=5e-4)
    assert distances.min() == pytest.approx(shortest, abs=5e-4)


def test_the_quadruped_does_not_abduct():
    angles, rates, accelerations = Trot().reference(np.linspace(0, 2, 41))
    for part in (angles, rates, accelerations):
        np.testing.assert_array_equal(part[:, ::3], 0)


def test_the_hip_is_at_z_c_and_the_printed_one_half_a_trunk_lower():
    assert controllers.paper_walk().base_height == pytest.approx(1.21)
    printed = controllers.paper_walk(printed=True)
    assert printed.hip_height == pytest.approx(0.71)
    assert printed.pendulum.speed == pytest.approx(controllers.paper_walk().pendulum.speed)
    np.testing.assert_allclose(printed.feet(1.0, 0)[0][1], [0.3, 0, 0.1], atol=1e-9)  # still in the air
