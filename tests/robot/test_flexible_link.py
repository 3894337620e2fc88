"""A flexible link by assumed modes, made of joints that follow others (examples/extending/flexible_link.py)."""

import runpy
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import quad

import legged
from legged import Joint
from legged.robot.stages.stage import Stage

EXAMPLE = runpy.run_module("examples.extending.flexible_link")
cantilever, clamped_beam, swinging_arm = (EXAMPLE[name] for name in ("cantilever", "clamped_beam", "swinging_arm"))
flexible_link, frequencies = EXAMPLE["flexible_link"], EXAMPLE["frequencies"]


def test_frequencies_of_a_cantilever_converge_to_the_closed_form_from_above():
    """(beta L)^2 sqrt(EI / (m L^3)), beta L = 1.8751 and 4.6941; Ritz from above, errors with the segments' square."""
    exact = np.array([1.8751040687, 4.6940911330]) ** 2 * np.sqrt(10.0)
    eight, sixteen, finest = (frequencies(cantilever(n)) / exact - 1.0 for n in (8, 16, 32))
    assert (finest > 0).all() and finest[0] < 3e-4 and finest[1] < 1e-3
    assert eight / sixteen == pytest.approx(4.0, rel=0.05)
    assert sixteen / finest == pytest.approx(4.0, rel=0.05)


def test_a_second_mode_leaves_the_first_frequency_within_the_error_of_the_segments():
    one, two = (frequencies(cantilever(32, modes=m)) for m in (1, 2))
    assert one[0] == pytest.approx(two[0], rel=1e-4)
    assert two[0] <= one[0]


def test_static_deflection_under_gravity_is_that_of_the_closed_form():
    """m g L^3 / (8 EI) at the tip, small; one mode alone gives 97 % of the static deflection, two 99.7 %."""
    g, stiffness = 0.1, 10.0
    robot = cantilever(32, modes=2, gravity=(0.0, 0.0, -g))
    q = np.zeros(2)
    h = 1e-6
    K = np.array([legged.bias_forces(robot, x, 0 * q) - legged.bias_forces(robot, 0 * q, 0 * q) for x in h * np.eye(2)])
    q = -np.linalg.solve(K / h, legged.bias_forces(robot, q, 0 * q))
    end = robot.links[-1].name
    tip = legged.frame_pose(robot, q, legged.Frame(end, (1.0 / 64, 0.0, 0.0))).position
    assert tip[2] == pytest.approx(-g / (8 * stiffness), rel=0.01)


def spinning_beam(modes):
    """Return a beam that flaps out of the plane in which its hub turns about z."""
    wall = legged.Link("wall", legged.point_mass(1.0))
    builder = legged.RobotBuilder("rotor", wall, base=legged.FixedBase(), gravity=(0.0, 0.0, 0.0))
    hub = legged.Link("hub", legged.box_inertia(1.0, (0.01, 0.01, 0.01)))
    builder.add(legged.Revolute("spin", "z"), hub, to="wall")
    return builder.attach(flexible_link("beam", 1.0, 1.0, 10.0, modes=modes, segments=32), to="hub").build()


def test_a_rotating_beam_is_stiffened_by_centrifugal_forces():
    """Southwell: omega^2 = omega_0^2 + s Omega^2, s the ratio of the integrals of (1 - x^2) phi'^2 / 2 and phi^2."""
    beta, ratio = clamped_beam(0)
    phi = lambda x: np.cosh(beta * x) - np.cos(beta * x) - ratio * (np.sinh(beta * x) - np.sin(beta * x))  # noqa: E731
    slope = lambda x: beta * (np.sinh(beta * x) + np.sin(beta * x) - ratio * (np.cosh(beta * x) - np.cos(beta * x)))  # noqa: E731
    s = quad(lambda x: 0.5 * (1 - x * x) * slope(x) ** 2, 0, 1)[0] / quad(lambda x: phi(x) ** 2, 0, 1)[0]
    robot, speed, h = spinning_beam(1), 5.0, 1e-6
    v = np.array([speed, 0.0])
    force = [legged.bias_forces(robot, np.array([0.0, x]), v)[1] for x in (h, -h)]
    stiffness, inertia = (force[0] - force[1]) / (2 * h), legged.inertia_matrix(robot, np.zeros(2))[1, 1]
    rest = frequencies(cantilever(32, modes=1))[0]
    assert s == pytest.approx(1.193, abs=1e-3)
    assert (stiffness / inertia - rest**2) / speed**2 == pytest.approx(s, rel=2e-3)  # 32 segments


def test_an_arm_with_a_flexible_link_keeps_its_energy_in_large_motions():
    """Runge-Kutta: the drift falls with the fourth power of the step or faster, while the arm swings by a radian."""
    robot, q = swinging_arm(), np.array([0.0, 0.02, 0.0])
    coarse, fine = (
        legged.simulate(robot, until=0.5, q=q, integrator=legged.RungeKutta4(step)) for step in (4e-4, 2e-4)
    )
    assert np.ptp(fine.q[:, 0]) > 1.0
    assert np.ptp(fine.q[:, 1]) > 0.02
    assert abs(fine.energy_drift) < 1e-4
    assert abs(coarse.energy_drift) > 12 * abs(fine.energy_drift)


def test_algorithms_agree_on_a_flexible_arm():
    robot, rng = swinging_arm(), np.random.default_rng(0)
    q, v, tau = np.array([0.4, 0.02, -0.01]), rng.normal(size=3), rng.normal(size=3)
    vdot = legged.forward_dynamics(robot, q, v, tau)
    assert legged.inverse_dynamics(robot, q, v, vdot) == pytest.approx(tau, abs=1e-9)
    kernel = legged.compile(legged.forward_dynamics, robot)
    assert kernel(q, v, tau) == pytest.approx(vdot, rel=1e-9)
    h = 1e-6
    ahead, behind = (legged.kinetic_energy(robot, q + x * v, v + x * vdot) for x in (h, -h))
    potential = legged.potential_energy(robot, q + h * v) - legged.potential_energy(robot, q - h * v)
    assert (ahead - behind + potential) / (2 * h) == pytest.approx(tau @ v, rel=1e-6)  # h^2 and rounding / h


def test_a_joint_of_a_users_own_is_a_chain_of_stages():
    """A pin in a slot, as a subclass of `Joint`, moves as a slide and a hinge with a massless link between."""

    @dataclass(frozen=True, eq=False)
    class PinInSlot(Joint):
        @property
        def stages(self):
            return Stage("prismatic", np.array([1.0, 0.0, 0.0])), Stage("revolute", np.array([0.0, 1.0, 0.0]))

    def robot(*parts):
        builder = legged.RobotBuilder("slot", legged.Link("trunk", legged.box_inertia(3.0, (0.3, 0.2, 0.1))))
        to = "trunk"
        for joint, link in parts:
            builder.add(joint, link, to=to, at=(0.1, 0.0, 0.0) if to == "trunk" else (0.0, 0.0, 0.0))
            to = link.name
        return builder.build()

    arm = legged.Link("arm", legged.box_inertia(1.0, (0.1, 0.1, 0.4), (0.0, 0.0, 0.2)))
    one = robot((PinInSlot("pin"), arm))
    two = robot((legged.Prismatic("slide", "x"), legged.Link("pin")), (legged.Revolute("hinge", "y"), arm))
    rng = np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(one, rng), rng.normal(size=(2, one.nv))
    assert one.joints[0].kind == "pininslot"
    expected = legged.forward_dynamics(two, q, v, tau)
    assert legged.forward_dynamics(one, q, v, tau) == pytest.approx(expected, rel=1e-12)
