"""Errors of the algorithms for arguments that do not fit the robot."""

import numpy as np
import pytest

import legged
from legged.errors import NotFiniteError, ShapeError, SingularError, UnknownNameError

ROBOT = legged.random_tree(3, 4, joints=("revolute", "ball"), bases=("floating",))
Q = legged.random_configuration(ROBOT, np.random.default_rng(0))
V = np.zeros(ROBOT.nv)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: legged.inertia_matrix(ROBOT, Q[:-1]),
            ShapeError,
            f"q must be ({ROBOT.nq},), one entry per configuration",
        ),
        (lambda: legged.bias_forces(ROBOT, Q, V[:-1]), ShapeError, f"v must be ({ROBOT.nv},), one entry per degree of"),
        (lambda: legged.inverse_dynamics(ROBOT, Q, V, Q), ShapeError, f"vdot must be ({ROBOT.nv},)"),
        (lambda: legged.forward_dynamics(ROBOT, Q, V, [V]), ShapeError, f"tau must be ({ROBOT.nv},)"),
        (
            lambda: legged.floating_inverse_dynamics(ROBOT, Q, V, V),
            ShapeError,
            f"joint_accelerations must be ({ROBOT.nj},), one entry per joint degree of freedom, base not counted",
        ),
        (lambda: legged.bias_forces(ROBOT, Q, V + np.nan), NotFiniteError, "v must be finite, got nan at entry 0"),
        (lambda: legged.integrate(ROBOT, Q, V + np.inf), NotFiniteError, "dq must be finite, got inf"),
        (
            lambda: legged.link_poses(ROBOT, 2 * Q),
            ShapeError,
            "must have norm 1 (w first), got 2; divide it by its norm",
        ),
        (
            lambda: legged.bias_forces(ROBOT, Q, V, np.zeros((2, 6))),
            ShapeError,
            f"wrenches must be ({len(ROBOT.links)}, 6)",
        ),
        (
            lambda: legged.bias_forces(ROBOT, Q, V, {"base": np.zeros(3)}),
            ShapeError,
            "the wrench on link 'base' must be (6,)",
        ),
        (
            lambda: legged.bias_forces(ROBOT, Q, V, {"base": np.full(6, np.nan)}),
            NotFiniteError,
            "wrenches['base'] must be finite",
        ),
        (
            lambda: legged.bias_forces(ROBOT, Q, V, {"bass": np.zeros(6)}),
            UnknownNameError,
            "there is no link named 'bass'; did you mean 'base'?",
        ),
        (lambda: legged.point_jacobian(ROBOT, Q, "bose"), UnknownNameError, "did you mean 'base'?"),
        (
            lambda: legged.point_positions(ROBOT, Q, [("base", np.zeros(2))]),
            ShapeError,
            "a point on link 'base' must be (3,)",
        ),
        (lambda: legged.conditioning(ROBOT, Q[1:]), ShapeError, f"q must be ({ROBOT.nq},)"),
    ],
)
def test_invalid_arguments_raise_errors_that_name_them(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_forward_dynamics_at_gimbal_lock_raises_singular_error():
    body = legged.box_inertia(1.0, (0.1, 0.2, 0.3))
    robot = legged.RobotBuilder("brick", legged.Link("brick", body), base=legged.EulerBase("zxz")).build()
    still = np.zeros(6)
    with np.errstate(all="ignore"), pytest.raises(SingularError) as caught:
        legged.forward_dynamics(robot, still, still, np.ones(6))
    assert "the inertia of some motion is zero (a gimbal-locked" in str(caught.value)
    assert "legged.conditioning" in str(caught.value)


def test_lists_of_integers_are_accepted():
    robot = legged.RobotBuilder("brick", legged.Link("brick", legged.box_inertia(1.0, (1, 1, 1)))).build()
    fall = legged.forward_dynamics(robot, [1, 0, 0, 0, 0, 0, 0], [0] * 6, [0] * 6)
    assert fall == pytest.approx([0, 0, 0, 0, 0, -9.81], abs=1e-15)


def test_repr_of_a_robot_gives_links_degrees_of_freedom_and_base():
    assert repr(ROBOT) == f"<Robot 'random tree 3': 5 links, {ROBOT.nv} DoF, floating base>"
