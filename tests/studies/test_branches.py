"""The claims of Featherstone 2005 on branches beside counts."""

import numpy as np
import pytest

import legged
from examples.studies.operations import branches


def test_humanoid_and_chain_have_thirty_degrees_of_freedom_and_equal_links():
    for base in ("fixed", "floating"):
        for branched in (True, False):
            robot = branches.equal_links(base, branched)
            assert robot.nv == 30
            assert len({link.inertia.mass for link in robot.links}) == 1
            assert len(robot.modules) == (7 if branched else 2)  # base, trunk, head, arms and legs
    tree = branches.parents("floating")
    assert len(tree) == 24 and tree.count(0) == 3  # the trunk and two legs leave the pelvis


def test_counts_with_a_floating_base_are_near_the_claims():
    """1.15, 2.6 and 2.2 in the abstract; its humanoid is unknown, so that ten percent are agreement."""
    ratios = branches.ratios("floating", "articulated bodies")
    assert np.abs(np.array(ratios) / list(branches.CLAIMS.values()) - 1.0).max() < 0.1
    robot = branches.equal_links("floating", True)
    counts = legged.count(legged.forward_dynamics, robot)
    assert branches.operations("floating", True, "modular") == counts.M + counts.A


def test_the_zeros_are_those_of_the_inertia_matrix():
    robot = branches.equal_links("fixed", True)
    M = legged.inertia_matrix(robot, np.full(robot.nv, 0.3))
    assert branches.zeros("fixed") == pytest.approx(100.0 * np.mean(M == 0.0))


def test_sentences_have_the_numbers_of_the_table():
    table = branches.branches_table()
    assert table.rows[0][2] == f"{branches.ratios('floating', 'articulated bodies').humanoid:.2f}"
    text = " ".join(table.notes)
    assert "abstract: 15 % more" in text and "depends on the base" in text
