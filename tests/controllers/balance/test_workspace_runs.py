"""Runs of robots under workspace control, on compliant and on rigid ground."""

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import WorkspaceBalance
from legged.contact import Rigid
from legged.ground import realistic_ground
from legged.simulation import Push, Stiff
from robots.bipeds import crouch

STIFF = Stiff(rtol=1e-5, atol=1e-7)
SET_POINT = {"position": (0.01, 0.0, 1.14), "orientation": (0.0, np.radians(15.0), 0.0)}
TURNED = (np.cos(np.radians(7.5)), 0.0, np.sin(np.radians(7.5)), 0.0)


@pytest.mark.parametrize("ground", ["gives", "rigid"])
def test_the_biped_rises_from_its_crouch_to_the_set_point(ground):
    robot = robots.spatial_biped()
    q, v = crouch(robot)
    on = {"gives": (realistic_ground(robot), STIFF), "rigid": (Rigid(friction=0.3), legged.TimeStepping(step=2e-3))}
    under, integrator = on[ground]
    run = legged.simulate(
        robot, WorkspaceBalance(**SET_POINT), ground=under, until=3.0, q=q, v=v, integrator=integrator
    )
    assert run.backend.startswith("compiled closed loop")
    assert run.q[-1, 4:7] == pytest.approx([0.01, 0.0, 1.14], abs=1e-4)
    assert run.q[-1, :4] == pytest.approx(TURNED, abs=1e-4)
    late = run.times > 2.0
    assert run.contacts.forces[late, :, 2].sum(axis=1) == pytest.approx(9.81 * robot.mass, rel=1e-3)
    # The first millimetre of the fall apart, it rises as it does with its feet held: 1.8 cm too far at 0.23 s.
    assert run.q[:, 6].max() == pytest.approx(1.155, abs=0.01)


def test_the_trunk_of_a_quadruped_comes_back_after_a_push():
    robot = robots.spatial_quadruped()
    q, v = controllers.Stand(hip_height=0.45).initial_state(robot)
    push = Push("trunk", (0.0, 5.0, 0.0), at=0.2)
    law = WorkspaceBalance()
    run = legged.simulate(
        robot, law, ground=realistic_ground(robot), until=2.0, q=q, v=v, integrator=STIFF, pushes=[push]
    )
    assert np.abs(run.q[:, 5]).max() > 0.04
    assert run.q[-1, 4:7] == pytest.approx(q[4:7], abs=1e-3)
    assert run.q[-1, :4] == pytest.approx(q[:4], abs=1e-3)


def test_a_set_point_may_move():
    """The trunk circles and rotates on rigid ground; the set point includes its rates, so the trunk does not lag."""

    def place(t):
        grown = 0.03 * (1 - np.exp(-4 * t)) ** 2
        return np.array([grown * np.cos(3 * t), grown * np.sin(3 * t), 0.45 + 0.0 * t])

    robot = robots.spatial_quadruped()
    q, v = controllers.Stand(hip_height=0.45).initial_state(robot)
    law = WorkspaceBalance(position=place, orientation=lambda t: np.array([0.0, 0.0, 0.1 * np.sin(2 * t) ** 2]))
    run = legged.simulate(robot, law, ground=Rigid(), until=2.0, q=q, v=v, integrator=legged.TimeStepping(step=1e-3))
    wanted = np.array([place(t) for t in run.times])
    assert np.ptp(wanted, axis=0)[:2].min() > 0.04
    assert np.abs(run.q[:, 4:7] - wanted).max() < 1e-3
    assert 2 * run.q[-1, 3] == pytest.approx(0.1 * np.sin(4.0) ** 2, abs=2e-3)
