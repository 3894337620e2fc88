"""Laws with a Lyapunov function: skew symmetry of Idot - 2 C, the rate of V at any state, and its decrease in runs."""

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import LyapunovTracking, Posture
from legged.algorithms import derivatives
from legged.errors import ArgumentError
from legged.ground import paper_ground

BASES = [legged.FloatingBase(), legged.FixedBase(), legged.PlanarBase(), legged.EulerBase("zyx")]
GYROSCOPE = legged.JointPhysics(
    damping=0.3, friction=0.2, armature=0.01, rotor=legged.Rotor(inertia=1e-4, gear=50.0, gyroscopic=True)
)


@pytest.mark.parametrize("options", [{}, {"physics": True}, {"coupled": True}], ids=["plain", "physics", "coupled"])
@pytest.mark.parametrize("seed", range(6))
def test_convective_forces_are_linear_and_idot_minus_two_c_is_skew(seed, options):
    """Christoffel's C: s^T (Idot - 2 C) s = 0 for every s, by central differences of I: h^2 and rounding / h."""
    robot, rng, h = legged.random_tree(seed, 8, **options), np.random.default_rng(seed), 1e-6
    q = legged.random_configuration(robot, rng)
    v, w = rng.normal(size=(2, robot.nv))
    C = np.array([derivatives.convective_forces(robot, q, v, unit) for unit in np.eye(robot.nv)]).T
    ahead, behind = (legged.inertia_matrix(robot, legged.integrate(robot, q, x * v)) for x in (h, -h))
    rate = (ahead - behind) / (2 * h)
    assert np.abs(rate - C - C.T).max() < 1e-7 * np.abs(rate).max()
    assert derivatives.convective_forces(robot, q, v, w) == pytest.approx(C @ w, abs=1e-11 * np.abs(C).max())
    frictionless = legged.inverse_dynamics(robot, q, v, w) - legged.inverse_dynamics(robot, q, 0 * v, w)
    even = frictionless + legged.inverse_dynamics(robot, q, -v, w) - legged.inverse_dynamics(robot, q, 0 * v, w)
    assert C @ v == pytest.approx(0.5 * even, abs=1e-11 * np.abs(even).max() + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_convective_forces_have_the_christoffel_symbols(seed):
    """Gamma_ijk = (I_ij,k + I_ik,j - I_jk,i) / 2 for joint rates, by central differences: h^2 and rounding / h."""
    robot, rng, h = arm(legged.FixedBase()), np.random.default_rng(seed), 1e-6
    q, n = legged.random_configuration(robot, rng), robot.nv
    v, w = rng.normal(size=(2, n))
    slope = np.array([legged.inertia_matrix(robot, q + x) - legged.inertia_matrix(robot, q - x) for x in h * np.eye(n)])
    slope = np.moveaxis(slope / (2 * h), 0, 2)
    symbols = 0.5 * (slope + np.swapaxes(slope, 1, 2) - np.moveaxis(slope, 2, 0))
    expected = np.einsum("ijk,j,k", symbols, v, w)
    forces = derivatives.convective_forces(robot, q, v, w)
    assert forces == pytest.approx(expected, abs=1e-7 * np.abs(slope).max())


@pytest.mark.parametrize("seed", range(6))
def test_the_reference_velocity_of_the_robot_itself_is_inverse_dynamics(seed):
    robot, rng = legged.random_tree(seed, 8, physics=True), np.random.default_rng(seed)
    q, (v, vdot) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    wrenches = rng.normal(size=(len(robot.links), 6))
    expected = legged.inverse_dynamics(robot, q, v, vdot, wrenches)
    forces = derivatives.reference_inverse_dynamics(robot, q, v, v, vdot, wrenches)
    assert forces == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())


def arm(base):
    """Return an arm of four joints with friction, armature and gyroscopic rotors."""
    builder = legged.RobotBuilder("arm", legged.Link("base", legged.box_inertia(4.0, (0.3, 0.2, 0.1))), base=base)
    for k, axis in enumerate("yzyx" if base.kind != "planar" else "yyyy"):
        joint = legged.Revolute(f"joint{k}", axis, physics=GYROSCOPE)
        link = legged.Link(f"link{k}", legged.box_inertia(1.0, (0.1, 0.08, 0.3), (0, 0, 0.15)))
        builder.add(joint, link, to="base" if k == 0 else f"link{k - 1}", at=(0, 0, 0.3 * (k > 0)))
    return builder.build()


class Waves:
    """A reference of sines of different frequencies."""

    def __init__(self, n):
        self.rates = 2.0 + np.arange(n)

    def reference(self, t, phase):
        x = self.rates * t
        return 0.5 * np.sin(x), 0.5 * self.rates * np.cos(x), -0.5 * self.rates**2 * np.sin(x)

    def switches(self, until):
        return np.zeros(0)

    def initial_state(self, robot):
        q, v = robot.neutral(), np.zeros(robot.nv)
        q[robot.base.nq :], v[robot.base.nv :], _ = self.reference(0.0, 0)
        return q, v


@pytest.mark.parametrize("slope", [0.0, 3.0])
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.kind)
@pytest.mark.parametrize("seed", range(3))
def test_the_lyapunov_function_has_its_stated_rate_at_any_state(seed, base, slope):
    """Along the flow of the closed loop, with forces of the environment: central differences, h^2 and rounding / h."""
    robot, rng, h, t = arm(base), np.random.default_rng(seed), 1e-5, 0.3
    law, _ = LyapunovTracking(Waves(robot.nj), kp=80.0, kd=[5.0, 6.0, 7.0, 8.0], slope=slope).start(
        robot, None, robot.neutral(), np.zeros(robot.nv)
    )
    q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
    memory, wrenches = rng.normal(size=base.nv), rng.normal(size=(len(robot.links), 6))
    tau = law.torque(t, 0, q, v, wrenches, memory)
    assert not tau[: base.nv].any()
    vdot = legged.forward_dynamics(robot, q, v, tau, wrenches)
    memory_rate = law.rate(t, 0, q, v, wrenches, memory)
    ahead, behind = (
        law.lyapunov(t + x, 0, legged.integrate(robot, q, x * v), v + x * vdot, memory + x * memory_rate)
        for x in (h, -h)
    )
    rate = law.lyapunov_rate(t, 0, q, v, memory)
    assert rate < 0.0
    assert (ahead - behind) / (2 * h) == pytest.approx(rate, rel=1e-6, abs=1e-6 * abs(ahead))


def along(function, run):
    """Return a function of t, phase, q, v and memory at the samples of a run, (T,)."""
    return np.array([function(*state) for state in zip(run.times, run.phases, run.q, run.v, run.memory, strict=True)])


@pytest.mark.filterwarnings("ignore:.*regularizes the dry friction")
@pytest.mark.parametrize("slope", [0.0, 3.0])
@pytest.mark.parametrize("base", [legged.FloatingBase(), legged.FixedBase()], ids=lambda base: base.kind)
def test_the_lyapunov_function_never_grows_in_a_run(base, slope):
    """An arm on the ground and one on a falling base track sines from a wrong start; V falls by the stated power."""
    robot, rng = arm(base), np.random.default_rng(0)
    law = LyapunovTracking(Waves(4), kp=80.0, kd=5.0, slope=slope)
    q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
    run = legged.simulate(robot, law, until=3.0, q=q, v=v, integrator=legged.RungeKutta4(1e-3))
    started, _ = law.start(robot, None, q, v)
    V, power = along(started.lyapunov, run), along(started.lyapunov_rate, run)
    assert np.diff(V).max() < 1e-9 * V[0]  # error of Runge-Kutta's steps of 1 ms
    assert V[-1] - V[0] == pytest.approx(np.trapezoid(power, run.times), rel=1e-2)  # of the trapezoids
    kept = 0.0 if base.kind == "fixed" else V[-1]  # momentum of the errors, which no actuator changes
    assert V[-1] - kept < (1e-5 if slope else 0.1) * V[0]
    assert np.diff(V)[-20:].min() > -1e-4 * V[0]
    errors = started.reference(run.times[-1], 0)[0] - run.q[-1, base.nq :]
    assert np.abs(errors).max() < (1e-2 if slope else 0.1)  # [rad], of 3 rad at the start


def test_v_falls_while_a_biped_walks_on_compliant_ground():
    """With the measured contact forces; before the first exchange of legs, at which the reference jumps."""
    robot = robots.planar_biped()
    ground = paper_ground(robot)
    law = LyapunovTracking(controllers.paper_walk(), kp=300.0, kd=30.0, slope=5.0)
    q, v = law.initial_state(robot)
    q[robot.base.nq + 1] += 0.1  # a wrong knee
    run = legged.simulate(robot, law, until=0.9, q=q, v=v, ground=ground)
    started, _ = law.start(robot, ground, q, v)
    V = along(started.lyapunov, run)
    assert not run.phases.any() and len(run) > 80
    assert np.abs(run.contacts.forces).max() > 0.3 * 9.81 * robot.mass  # the ground acts
    assert np.diff(V).max() < 1e-5 * V[0]  # tolerances of the integrator with variable steps
    assert V[-1] < 1e-2 * V[0]  # the momentum of the errors is left


def test_a_posture_is_held_by_a_spring_a_damper_and_compensation_of_gravity():
    robot = arm(legged.FixedBase())
    law, _ = LyapunovTracking(Posture([0.1, 0.2, 0.3, 0.4]), kp=50.0, kd=3.0).start(
        robot, None, np.zeros(4), np.zeros(4)
    )
    q, v = np.array([0.5, -0.2, 0.1, 0.9]), np.array([0.3, -0.4, 0.5, 0.6])
    tau = law.torque(0.0, 0, q, v, np.zeros((len(robot.links), 6)), np.zeros(0))
    gravity = legged.bias_forces(robot, q, np.zeros(4))
    friction = 0.5 * (legged.bias_forces(robot, q, v) - legged.bias_forces(robot, q, -v))
    assert tau == pytest.approx(gravity + friction + 50.0 * ([0.1, 0.2, 0.3, 0.4] - q) - 3.0 * v, abs=1e-10)


def test_gains_are_checked():
    with pytest.raises(ArgumentError, match="slope"):
        LyapunovTracking(Posture([0.0]), slope=-1.0)
