"""Balance in the plane: the plant's identities, the poles, and commands followed on pivots and on contact points."""

import numpy as np
import pytest

import legged
from controllers.balance.planar import (
    AngularMomentumControl,
    BalanceGains,
    LinearQuadraticBalance,
    PartialLinearizationBalance,
    PlanarBalance,
    PlanarBalanceControl,
    SmoothCommand,
    StepCommand,
    UnactuatedMomentumBalance,
)
from controllers.balance.planar.commands import previewed
from legged.errors import ArgumentError, DefinitionError, UnknownNameError


def pendulum(*lengths, axis="y", scale=1.0):
    """Return a chain of rods of 0.5 kg on a pivot; joint names are pivot, joint1, joint2, ..."""
    builder = legged.RobotBuilder("pendulum", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
    parent, at = "ground", (0.0, 0.0, 0.0)
    for k, length in enumerate(lengths):
        rod = legged.rod_inertia(0.5 * (scale if k else 1.0), (0, 0, 0), (0, 0, length))
        name = f"joint{k}" if k else "pivot"
        builder.add(legged.Revolute(name, axis), legged.Link(f"link{k}", rod), to=parent, at=at)
        parent, at = f"link{k}", (0.0, 0.0, length)
    return builder.build()


def standing_pendulum(*lengths):
    """Return the same rods on a planar base, the first of them standing on its lower end."""
    first = legged.rod_inertia(0.5, (0, 0, 0), (0, 0, lengths[0]))
    base = legged.Link("link0", first, contacts={"tip": (0.0, 0.0, 0.0)})
    builder = legged.RobotBuilder("standing", base, base=legged.PlanarBase())
    parent, at = "link0", (0.0, 0.0, lengths[0])
    for k, length in enumerate(lengths[1:], 1):
        rod = legged.rod_inertia(0.5, (0, 0, 0), (0, 0, length))
        builder.add(legged.Revolute(f"joint{k}", "y"), legged.Link(f"link{k}", rod), to=parent, at=at)
        parent, at = f"link{k}", (0.0, 0.0, length)
    return builder.build()


@pytest.mark.parametrize("axis", ["y", "-y"])
def test_momentum_its_derivatives_and_the_plant_along_a_driven_motion(axis):
    robot = pendulum(0.5, 0.4, 0.3, axis=axis)
    model = PlanarBalance(robot, {"joint1": 1.0, "joint2": -0.5})
    rng = np.random.default_rng(1)
    q, v, tau = 0.3 * rng.normal(size=3), rng.normal(size=3), rng.normal(size=3) * [0, 1, 1]
    h = 1e-4
    ends = []
    for sign in (1, -1):
        vdot = legged.forward_dynamics(robot, q, v, tau)
        middle = q + sign * h / 2 * v, v + sign * h / 2 * vdot
        slope = legged.forward_dynamics(robot, *middle, tau)
        ends.append(model.state(q + sign * h * middle[1], v + sign * h * slope))
    at = model.state(q, v)
    weight = model.mass * 9.81
    assert np.isclose((ends[0].L - ends[1].L) / (2 * h), at.L1, rtol=1e-6)  # differences: h^2
    assert np.isclose((ends[0].L1 - ends[1].L1) / (2 * h), at.L2, rtol=1e-6)
    assert np.isclose(at.Y1 * at.L + at.Y2 * at.L2 + at.Y3, at.q2_rate, rtol=1e-10)
    vdot, equations = legged.forward_dynamics(robot, q, v, tau), model.equations(q, v)
    slope = model.weight * (equations.X @ vdot + equations.X_rate)  # L'''
    assert np.isclose((ends[0].L2 - ends[1].L2) / (2 * h), slope, rtol=1e-5)
    assert np.isclose((ends[0].q2 - ends[1].q2) / (2 * h), at.q2_rate, rtol=1e-6)
    assert np.isclose(at.Y1, -at.Y2 / at.time_constant**2, rtol=1e-12)
    assert abs(at.Y2 * weight * at.gain) == pytest.approx(1.0)


def test_two_numbers_of_a_double_pendulum_by_hand():
    robot = pendulum(0.5, 0.7)
    at = PlanarBalance(robot, {"joint1": 1.0}).state(np.zeros(2), np.zeros(2))
    m, g, l1, l2 = 0.5, 9.81, 0.5, 0.7
    H11 = m * l1**2 / 3 + m * l2**2 / 12 + m * (l1 + l2 / 2) ** 2
    H12 = m * l2**2 / 12 + m * (l1 + l2 / 2) * l2 / 2
    c_z, X2 = (l1 / 2 + l1 + l2 / 2) / 2, l2 / 4
    assert np.isclose(at.gain, X2 - c_z * H12 / H11, rtol=1e-12)
    assert np.isclose(at.time_constant, np.sqrt(H11 / (2 * m * g * c_z)), rtol=1e-12)


def test_a_pivot_and_a_contact_point_have_one_model():
    pivoted = PlanarBalance(pendulum(0.5, 0.4, 0.3), {"joint2": 1.0})
    standing = PlanarBalance(standing_pendulum(0.5, 0.4, 0.3), {"joint2": 1.0}, contact="tip")
    rng = np.random.default_rng(2)
    q, v = rng.normal(size=3), rng.normal(size=3)
    expected = pivoted.state(q, v)
    base = np.concatenate([q[:1], [0.3, 0.1], q[1:]]), np.concatenate([v[:1], [0.0, 0.0], v[1:]])
    assert np.allclose(standing.state(*base), expected, rtol=1e-10, atol=1e-12)
    torques = PlanarBalanceControl(pivoted, 0.2)(0.0, q, v)
    assert np.allclose(PlanarBalanceControl(standing, 0.2)(0.0, *base)[3:], torques[1:], rtol=1e-9)


def test_gains_put_all_poles_at_the_chosen_place():
    Y1, Y2, pole = 20.0, -1.7, 5.0
    k = BalanceGains.of(pole, Y1, Y2)
    polynomial = [1.0, k.k_dd, k.k_d + k.k_q * Y2, k.k_L, k.k_q * Y1]
    assert np.allclose(polynomial, np.poly([-pole] * 4), rtol=1e-12)


def lag(t, at, size, T):
    """Return the step response of 1 / (1 + T s)^3."""
    x = np.maximum((t - at) / T, 0.0)
    return size * (1.0 - np.exp(-x) * (1.0 + x + x**2 / 2.0))


def followed(control, robot, until=6.0, **options):
    run = legged.simulate(robot, control, until=until, integrator=legged.RungeKutta4(step=1e-3), sample=0.01, **options)
    assert run.ended == ""
    return run


def test_a_step_is_followed_as_the_third_order_lag_predicts():
    robot = pendulum(0.5, 0.7)
    model = PlanarBalance(robot, {"joint1": 1.0})
    run = followed(PlanarBalanceControl(model, StepCommand((2.0,), (0.4,))), robot)
    T = model.state(np.zeros(2), np.zeros(2)).time_constant
    assert np.abs(run.q[:, 1] - lag(run.times, 2.0, 0.4, T)).max() < 1e-3  # asked: 0.01; T changes with the posture
    assert np.abs(run.q[run.times < 1.95, 0]).max() > 1e-3  # it leans before the step


def test_without_preview_it_moves_the_wrong_way_first():
    robot = pendulum(0.5, 0.7)
    model = PlanarBalance(robot, {"joint1": 1.0})
    run = followed(PlanarBalanceControl(model, StepCommand((1.0,), (0.4,)), preview=False), robot)
    assert run.q[:, 1].min() < -0.03
    assert np.abs(run.q[run.times < 0.99]).max() < 1e-9
    assert abs(run.q[-1, 1] - 0.4) < 1e-3


def test_other_motions_do_not_disturb_the_command():
    robot = pendulum(0.5, 0.4, 0.3)
    model = PlanarBalance(robot, {"joint1": 1.0})

    def swing(t):
        return 0.3 * np.sin(3.0 * t), 0.9 * np.cos(3.0 * t), -2.7 * np.sin(3.0 * t)

    run = followed(PlanarBalanceControl(model, 0.0, others={"joint2": swing}), robot, until=10.0)
    late = run.times > 5.0
    assert np.abs(run.q[late, 2] - 0.3 * np.sin(3.0 * run.times[late])).max() < 1e-6
    assert np.abs(run.q[late, 1]).max() < 5e-3  # the plant changes with the posture
    careless = PlanarBalanceControl(model, 0.0, others={"joint2": swing}, preview=False)
    assert np.abs(followed(careless, robot, until=10.0).q[late, 1]).max() > 0.05


def test_a_wrong_model_and_saturated_motors_still_balance():
    robot = pendulum(0.5, 0.7)
    model = PlanarBalance(robot, {"joint1": 1.0})
    nominal = PlanarBalance(pendulum(0.5, 0.7, scale=1.1), {"joint1": 1.0})
    for options in ({"nominal": nominal}, {"limit": 4.0}):
        run = followed(PlanarBalanceControl(model, StepCommand((2.0,), (0.3,)), **options), robot, until=8.0)
        assert abs(run.q[-1, 1] - 0.3) < (0.06 if "nominal" in options else 1e-3)  # a wrong mass shifts the balance
        if "limit" in options:
            assert np.abs(run.tau).max() <= 4.0


def test_preview_of_a_smooth_command_solves_its_filter():
    T, t, h = 0.28, 0.7, 1e-4
    y, ahead, behind = (previewed(lambda t: np.sin(2.0 * t), at, T) for at in (t, t + h, t - h))
    assert np.isclose(y - T * (ahead - behind) / (2 * h), np.sin(2.0 * t), rtol=0, atol=1e-6)  # y - T y' = u


def test_the_momentum_of_a_command_solves_the_plant():
    model = PlanarBalance(pendulum(0.5, 0.7), {"joint1": 1.0})
    at = model.state(np.zeros(2), np.zeros(2))
    control = AngularMomentumControl(model, lambda t: 0.2 * np.sin(3.0 * t))
    t, h = 0.7, 1e-4
    L, ahead, behind = (control.momentum(x) for x in (t, t + h, t - h))
    assert np.isclose(at.Y1 * L.L + at.Y2 * L.L2, 0.6 * np.cos(3.0 * t), rtol=0, atol=1e-12)
    for k in range(3):
        # differences: h^2; quadrature: 1e-6
        assert np.isclose((ahead[k] - behind[k]) / (2 * h), L[k + 1], rtol=1e-4, atol=1e-6)


def test_angular_momentum_control_follows_a_fast_motion_without_lag():
    robot = pendulum(0.5, 0.7)
    model = PlanarBalance(robot, {"joint1": 1.0})

    def move(t):
        """Return a minimum-jerk motion of 0.8 rad within 0.6 s."""
        x = (t - 2.0) / 0.6
        inside = 0.8 * x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
        return legged.where(x < 0.0, 0.0 * x, legged.where(x > 1.0, 0.8 + 0.0 * x, inside))

    run = followed(AngularMomentumControl(model, move), robot, until=5.0)
    assert np.abs(run.q[:, 1] - [move(t) for t in run.times]).max() < 0.02  # the plant changes with the posture
    assert np.abs(run.q[run.times < 1.95, 0]).max() > 1e-3  # it leans before it moves


def test_the_preview_controller_is_angular_momentum_control_of_a_lagged_command():
    robot = pendulum(0.5, 0.7)
    model, steps = PlanarBalance(robot, {"joint1": 1.0}), StepCommand((1.5,), (0.4,))
    T = model.state(np.zeros(2), np.zeros(2)).time_constant
    expected = followed(PlanarBalanceControl(model, steps), robot, until=4.0)
    run = followed(AngularMomentumControl(model, SmoothCommand(steps, T)), robot, until=4.0)
    assert np.abs(run.q - expected.q).max() < 2e-3  # the plant changes with the posture


@pytest.mark.parametrize("standing", [False, True])
def test_poles_of_the_regulator_with_cheap_torques_are_the_mirrored_zeros_of_the_plant(standing):
    robot = standing_pendulum(0.5, 0.7) if standing else pendulum(0.5, 0.7)
    model = PlanarBalance(robot, {"joint1": 1.0}, contact="tip" if standing else None)
    control = LinearQuadraticBalance(model, torque_weight=1e-4)
    pivot = pendulum(0.5, 0.7)
    A, B, _ = legged.linearize(pivot, np.zeros(2), np.zeros(2), np.zeros(2))
    poles = np.linalg.eigvals(A - B[:, 1:] @ control.gain)
    slow = np.sort(-poles.real)[:2]
    T = model.state(robot.neutral(), np.zeros(robot.nv)).time_constant
    # With cheap torques the poles tend to the zeros of the plant, mirrored to the left: 1 / T_c twice.
    assert np.allclose(slow, 1.0 / T, rtol=2e-2)


def test_the_regulator_obeys_kalmans_identity():
    """|1 + K (jw - A)^-1 B|^2 = 1 + |q2 / torque|^2 / R at every frequency: the regulator of the cost e^2 + R tau^2."""
    robot = pendulum(0.5, 0.7)
    model = PlanarBalance(robot, {"joint1": 1.0})
    R = 100.0 / (model.weight * model.center(np.zeros(2))[2]) ** 2  # the default
    K = LinearQuadraticBalance(model).gain
    A, B, _ = legged.linearize(robot, np.zeros(2), np.zeros(2), np.zeros(2))
    for w in (0.5, 3.0, 20.0):
        response = np.linalg.solve(1j * w * np.eye(4) - A, B[:, 1])
        assert abs(1.0 + (K @ response)[0]) ** 2 == pytest.approx(1.0 + abs(response[1]) ** 2 / R, rel=1e-6)


def test_the_regulator_holds_a_command():
    robot = pendulum(0.5, 0.7)
    control = LinearQuadraticBalance(PlanarBalance(robot, {"joint1": 1.0}), StepCommand((0.5,), (0.3,)))
    run = followed(control, robot, until=5.0)
    assert abs(run.q[-1, 1] - 0.3) < 1e-5


LINEARIZING = (PartialLinearizationBalance, UnactuatedMomentumBalance)


@pytest.mark.parametrize("standing", [False, True])
@pytest.mark.parametrize("law", LINEARIZING)
def test_linearizing_controllers_put_all_poles_at_the_chosen_place(law, standing):
    """The rates of the closed loop, by differences, at the posture about which it is designed."""
    robot = standing_pendulum(0.5, 0.7) if standing else pendulum(0.5, 0.7)
    control = law(PlanarBalance(robot, {"joint1": 1.0}, contact="tip" if standing else None), pole=4.0)
    pivot, h = pendulum(0.5, 0.7), 1e-5

    def rate(x):
        q, v = x[:2], x[2:]
        if standing:
            q, v = np.concatenate([q[:1], [0.0, 0.0], q[1:]]), np.concatenate([v[:1], [0.0, 0.0], v[1:]])
        tau = control(0.0, q, v)[[0, -1]]
        return np.concatenate([x[2:], legged.forward_dynamics(pivot, x[:2], x[2:], tau)])

    A = np.stack([(rate(h * e) - rate(-h * e)) / (2 * h) for e in np.eye(4)], axis=1)
    assert np.poly(A) == pytest.approx(np.poly([-4.0] * 4), rel=1e-4)  # of the differences of gravity in the design


@pytest.mark.parametrize("law", LINEARIZING)
def test_linearizing_controllers_hold_a_command(law):
    robot = pendulum(0.5, 0.4, 0.3)
    control = law(PlanarBalance(robot, {"joint1": 1.0, "joint2": -0.5}), StepCommand((0.5,), (0.3,)))
    run = followed(control, robot, until=6.0)
    assert run.q[-1, 1:] == pytest.approx([0.3, -0.15], abs=1e-5)
    assert legged.center_of_mass(robot, run.q[-1])[0] == pytest.approx(0.0, abs=1e-5)


def test_partial_linearization_gives_the_joint_the_acceleration_of_its_linear_law():
    """It is linear in the errors at any posture and velocity; the pivot has no torque."""
    robot, rng = pendulum(0.5, 0.7), np.random.default_rng(3)
    control = PartialLinearizationBalance(PlanarBalance(robot, {"joint1": 1.0}), pole=4.0)
    states = rng.normal(size=(6, 4))
    accelerations = []
    for x in states:
        tau = control(0.0, x[:2], x[2:])
        assert tau[0] == 0.0
        accelerations.append(legged.forward_dynamics(robot, x[:2], x[2:], tau)[1])
    K = np.linalg.lstsq(states, np.array(accelerations), rcond=None)[0]
    assert np.abs(states @ K - accelerations).max() < 1e-9 * np.abs(accelerations).max()


def test_the_output_of_the_unactuated_momentum_obeys_its_linear_law():
    """h''' + 3 p h'' + 3 p^2 h' + p^3 h = 0 far from balance: h decays with three equal poles."""
    robot, pole = pendulum(0.5, 0.7), 4.0
    model = PlanarBalance(robot, {"joint1": 1.0})
    control = UnactuatedMomentumBalance(model, 0.4, pole=pole)
    q, v = model.balanced(np.array([0.9])) + np.array([0.05, 0.0]), np.array([0.3, -0.5])
    run = legged.simulate(robot, control, until=1.0, q=q, v=v, integrator=legged.RungeKutta4(step=1e-3), sample=0.01)
    target = model.balanced(np.array([0.4]))
    K = 1.0 / (pole * model.reduced_inertia(target)[0, 0])
    h = np.array([control._angle(q, q[1]) + K * model.state(q, v).L for q, v in zip(run.q, run.v, strict=True)])
    h -= control._angle(target, 0.4)
    t, decay = run.times, np.exp(-pole * run.times)
    modes = np.stack([decay, t * decay, t**2 * decay], axis=1)
    fit = modes @ np.linalg.lstsq(modes, h, rcond=None)[0]
    assert np.abs(fit - h).max() < 1e-6 * np.abs(h).max()


def test_the_conjugate_angle_changes_by_the_momentum_over_the_inertia():
    model = PlanarBalance(pendulum(0.5, 0.7), {"joint1": 1.0})
    control, rng, h = UnactuatedMomentumBalance(model), np.random.default_rng(4), 1e-5
    q, v = rng.normal(size=2), rng.normal(size=2)
    ahead, behind = (control._angle(q + s * v, (q + s * v)[1]) for s in (h, -h))
    at = model.equations(q, v)
    assert (ahead - behind) / (2 * h) == pytest.approx(at.H[0] @ v / at.H[0, 0], rel=1e-8)


def test_the_regulator_asks_for_the_holding_torques_alone_on_its_moving_reference():
    """On the balanced posture of the reference, with the reference's velocities, no error is left to correct."""
    robot = pendulum(0.5, 0.4, 0.3)
    model = PlanarBalance(robot, {"joint1": 1.0})

    def swing(t):
        return 0.3 * np.sin(3.0 * t), 0.9 * np.cos(3.0 * t), -2.7 * np.sin(3.0 * t)

    control = LinearQuadraticBalance(model, 0.2, others={"joint2": swing})
    t = 0.4
    q = model.balanced(np.array([0.2, swing(t)[0]]))
    hold = legged.bias_forces(robot, q, np.zeros(3))
    assert hold[0] == pytest.approx(0.0, abs=1e-12)  # it is balanced
    assert control(t, q, np.array([0.0, 0.0, swing(t)[1]])) == pytest.approx(hold, abs=1e-12)
    assert np.abs(control(t, q, np.zeros(3)) - hold).max() > 0.1


def test_wrong_arguments_are_named():
    robot, sideways = pendulum(0.5, 0.7), pendulum(0.5, 0.7, axis="x")
    model = PlanarBalance(robot, {"joint1": 1.0})
    weightless = robot.edit().change_robot(gravity=(0.0, 0.0, 0.0)).build()
    for error, words, call in (
        (ArgumentError, "robot", lambda: PlanarBalance(None, {"joint1": 1.0})),
        (UnknownNameError, "jiont1", lambda: PlanarBalance(robot, {"jiont1": 1.0})),
        (ArgumentError, "is the pivot", lambda: PlanarBalance(robot, {"pivot": 1.0})),
        (ArgumentError, "is the pivot", lambda: PlanarBalance(robot, {"joint1": 1.0}, zero={"pivot": 0.2})),
        (ArgumentError, "is the pivot", lambda: PlanarBalanceControl(model, others={"pivot": lambda t: (t, 1, 0)})),
        (ArgumentError, "at least one", lambda: PlanarBalance(robot, {"joint1": 0.0})),
        (DefinitionError, "has no gravity", lambda: PlanarBalance(weightless, {"joint1": 1.0})),
        (DefinitionError, "planar base", lambda: PlanarBalance(robot, {"joint1": 1.0}, contact="tip")),
        (DefinitionError, "y axis", lambda: PlanarBalance(sideways, {"joint1": 1.0}).state(np.zeros(2), np.zeros(2))),
        (ArgumentError, "pole must be positive", lambda: PlanarBalanceControl(model, pole=0.0)),
        (ArgumentError, "SmoothCommand", lambda: AngularMomentumControl(model, StepCommand((1.0,), (0.1,)))),
        (ArgumentError, "torque_weight", lambda: LinearQuadraticBalance(model, torque_weight=-1.0)),
        (ArgumentError, "time_constant", lambda: SmoothCommand(StepCommand((1.0,), (0.1,)), 0.0)),
        (ArgumentError, "times must increase", lambda: StepCommand((1.0, 1.0), (0.1, 0.2))),
    ):
        with pytest.raises(error, match=words):
            call()


def test_a_step_acts_from_its_time_on():
    command = StepCommand((0.5, 2.0), (0.4, 0.1), start=-1.0)
    assert [command(t) for t in (0.0, 0.5, 1.0, 2.0)] == pytest.approx([-1.0, 0.4, 0.4, 0.1])
