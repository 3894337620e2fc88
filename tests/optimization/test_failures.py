"""Problems that are ill posed end with a message that names the node and the cause, and without NaN."""

import numpy as np
import pytest

import legged
import robots
from legged import optimization as oc
from legged.errors import ArgumentError

H = 0.02


@pytest.fixture(scope="module")
def arm() -> legged.Robot:
    """Two links of 0.5 m on a fixed base in the plane of x and z, with two points at the tip."""
    rod = legged.box_inertia(1.0, (0.05, 0.05, 0.5))
    builder = legged.RobotBuilder("arm", legged.Link("base"), base=legged.FixedBase())
    builder.add(legged.Revolute("shoulder", "y"), legged.Link("upper", rod), to="base")
    tips = {"tip": (0.0, 0.0, -0.5), "copy": (0.0, 0.0, -0.5)}
    return builder.add(
        legged.Revolute("elbow", "y"), legged.Link("lower", rod, tips), to="upper", at=(0, 0, -0.5)
    ).build()


def finite(solution: oc.Solution) -> bool:
    return all(np.isfinite(x).all() for x in (solution.q, solution.v, solution.u, *solution.forces.values()))


def test_a_ground_that_pulls_is_named_unless_a_term_limits_it():
    robot = robots.planar_hopper()
    q = np.array([0.0, 0.0, 0.6, 0.0, 0.0])
    rest = oc.Cost(oc.terms.state, 1.0, q=q, v=np.zeros(5))
    costs = [rest, oc.Cost(oc.terms.control, 1e-5)]
    start = {"q": q, "v": [0.0, 0.0, 3.0, 0.0, 3.0]}  # [m/s]: upward, so that only a pull holds the toe

    def solved(*terms):
        return oc.solve(oc.Problem(robot, [oc.Stage(H, ["toe"], [*costs, *terms])] * 10, [rest], **start))

    free = solved()
    assert finite(free) and "the ground pulls at contact 'toe'" in free.message and "friction_cone" in free.message
    cone = oc.Cost(oc.terms.friction_cone, 0.0, barrier=True, contact="toe", friction=0.5)
    assert "pulls" not in solved(cone).message


def test_redundant_contacts_and_singular_legs_are_named(arm):
    def solved(angles, contacts, **options):
        costs = [oc.Cost(oc.terms.control, 1e-2), oc.Cost(oc.terms.velocity, 1.0)]
        return oc.solve(oc.Problem(arm, [oc.Stage(H, contacts, costs)] * 5, q=angles, **options))

    frames = [
        oc.Contact(f, name=name) for f, name in ((legged.Frame("lower", (0, 0, -0.5)), n) for n in ("tip", "copy"))
    ]
    redundant = solved([0.4, 0.8], frames)
    assert finite(redundant) and redundant.converged
    assert "contact 'copy'" in redundant.message and "damping" in redundant.message
    stretched = solved([0.0, 0.0], frames[:1])
    assert finite(stretched) and "contact 'tip'" in stretched.message and "singular" in stretched.message


def test_a_start_that_contradicts_a_constraint_is_named_with_its_node(arm):
    off = oc.Constraint(oc.terms.joint_positions, joints=np.array([0.3, 0.0]))
    nodes = [oc.Stage(H, [], [oc.Cost(oc.terms.control, 1e-2), off])] * 3
    solution = oc.solve(oc.Problem(arm, nodes, q=[0.4, 0.8]), iterations=60)
    assert finite(solution) and not solution.converged
    assert "joint_positions" in solution.message and "node 0" in solution.message


def test_a_term_keeps_the_numbers_that_it_was_given():
    place, weight = np.zeros(3), np.ones(3)
    cost = oc.Cost(oc.terms.base_position, weight, position=place)
    place[0], weight[0] = 1.0, 2.0
    assert cost.parameters["position"][0] == 0.0 and cost.weight[0] == 1.0


@pytest.mark.parametrize("name", ["tolerance", "gap_tolerance", "constraint_tolerance"])
def test_tolerances_are_not_negative(arm, name):
    problem = oc.Problem(arm, [oc.Stage(H, [], [oc.Cost(oc.terms.control, 1.0)])], q=arm.neutral(), v=np.zeros(2))
    solver = oc.Solver(problem)
    with pytest.raises(ArgumentError, match=f"{name} must be at least 0"):
        solver.solve(**{name: -1.0})
    assert solver.solve(**{name: 0.0}, iterations=3)
