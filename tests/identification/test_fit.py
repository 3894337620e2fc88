"""Fits recover known parameters, respect bounds, and name what a log cannot tell."""

import dataclasses

import numpy as np
import pytest
from identification.pendulums import double_pendulum, sweep

import legged
from legged.errors import ArgumentError, DefinitionError, NotFiniteError, ShapeError, UnknownNameError
from legged.identification import Log, Model, Motors, Parameter

TRUE = {"damping": 0.08, "armature": 0.02, "friction": 0.05}
NOISE = 1e-3  # [rad]


def _parameters() -> dict[str, Parameter]:
    bounds = {"damping": (0.2, 0.0, 1.0), "armature": (0.04, 0.0, 0.1), "friction": (0.1, 0.0, 0.5)}
    return {f"robot.{j}_joint.{k}": Parameter(*b) for j in ("upper", "lower") for k, b in bounds.items()} | {
        "motors.*.delay": Parameter(0.002, 0.0, 0.03)
    }


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(double_pendulum(**TRUE), _parameters(), motors=Motors(kp=8.0, kd=0.2))


@pytest.fixture(scope="module")
def truth(model) -> np.ndarray:
    return np.array([TRUE.get(name.rpartition(".")[2], 0.011) for name in model.parameters.names])


@pytest.fixture(scope="module")
def clean(model, truth) -> Log:
    log = model.predict(sweep(model.robot, 4.0), truth)
    return dataclasses.replace(log, rates=None)


def noisy(log: Log, seed: int) -> Log:
    """Return a log with noise of the encoders."""
    return dataclasses.replace(
        log, positions=log.positions + np.random.default_rng(seed).normal(0, NOISE, log.positions.shape)
    )


def test_a_fit_without_noise_returns_the_parameters(model, truth, clean):
    fit = model.fit(clean)
    # The cost stops at 1e-6 of its first value.
    np.testing.assert_allclose(fit.numbers, truth, rtol=2e-3)
    assert fit.error()["positions"] < 1e-5
    assert fit.robot.parameters()["upper_joint.damping"] == pytest.approx(TRUE["damping"], rel=2e-3)


def test_intervals_hold_the_parameters_at_the_stated_rate(model, truth, clean):
    inside = []
    for seed in range(6):
        fit = model.fit(noisy(clean, seed))
        low, high = np.array(list(fit.intervals(0.9).values())).T
        inside += [*((low < truth) & (truth < high))]
        assert fit.variance == pytest.approx(1.0, abs=0.15)  # 1602 readings: standard deviation 0.035
    # 42 intervals at 90 %: 37.8 +- 1.9, and the parameters of a fit are correlated.
    assert sum(inside) >= 31


def test_robust_intervals_hold_damping_where_commands_come_late(model, truth, clean):
    """In every third window all commands come 10 ms late, so that the windows disagree: no model holds for all."""
    late = clean.desired.copy()
    for first in range(0, len(late), 150):
        late[first : first + 50] = clean.desired[np.maximum(np.arange(first, min(first + 50, len(late))) - 2, 0)]
    fit = model.fit(dataclasses.replace(noisy(clean, 4), desired=late))
    inside = []
    for robust in (False, True):
        low, high = np.array(list(fit.intervals(0.95, robust=robust).values())).T
        inside.append(np.count_nonzero((low < truth) & (truth < high)))
    assert inside[0] < inside[1]


def test_errors_on_a_log_that_was_not_used_are_those_of_the_noise(model, clean):
    fit = model.fit(noisy(clean, 1).part(0.0, 2.0))
    rest = noisy(clean, 1).part(2.0)
    assert fit.error(rest)["positions"] < 0.5 * fit.error(rest, fitted=False)["positions"]


def test_a_robust_loss_bounds_the_influence_of_outliers(model, truth, clean):
    log = noisy(clean, 3)
    broken = log.positions.copy()
    broken[::40] += 0.2
    log = dataclasses.replace(log, positions=broken)
    plain, robust = (np.abs(model.fit(log, loss=loss).numbers - truth) for loss in ("squares", "huber"))
    assert (robust / model.parameters.width).max() < 0.3 * (plain / model.parameters.width).max()


def test_a_fit_of_several_logs_uses_the_windows_of_all(model, truth, clean):
    log = noisy(clean, 2)
    parts = [log.part(0.0, 2.0), log.part(2.0, 4.0)]
    whole, both, one = (model.fit(x) for x in (log, parts, parts[0]))
    # The parts have the windows of the whole log; a command before the start of a log is its first one.
    np.testing.assert_allclose(both.numbers, whole.numbers, rtol=0.02)
    ratio = both.identifiability.deviations / one.identifiability.deviations
    assert (ratio < 0.9).all()
    planned = [model.plan(x).information for x in (parts, *parts)]
    np.testing.assert_allclose(planned[0], planned[1] + planned[2], rtol=1e-12)
    assert model.fit(parts, chosen=[0]).error(parts)["positions"] < 0.1
    errors = [both.error(x)["positions"] for x in (parts, *parts)]
    assert errors[0] ** 2 == pytest.approx((errors[1] ** 2 + errors[2] ** 2) / 2, rel=1e-9)  # as many windows each


def test_logs_of_one_fit_have_one_period_and_the_same_channels(model, clean):
    other = dataclasses.replace(clean, rates=np.zeros_like(clean.positions))
    with pytest.raises(ArgumentError, match="same channels"):
        model.fit([clean, other])
    with pytest.raises(ShapeError, match=r"resampled\(0.005\)"):
        model.fit([clean, clean.resampled(0.01)])
    with pytest.raises(ArgumentError, match="at least one log"):
        model.fit([])


def test_values_stay_within_their_bounds(truth, clean):
    bounded = {
        "robot.upper_joint.damping": Parameter(0.2, 0.1, 1.0),
        "robot.lower_joint.damping": Parameter(0.2, 0.0, 1.0),
    }
    fit = Model(double_pendulum(**TRUE), bounded, motors=Motors(kp=8.0, kd=0.2, delay=0.011)).fit(clean)
    assert fit.values["robot.upper_joint.damping"] == 0.1
    assert 0.0 < fit.values["robot.lower_joint.damping"] < 0.1


def test_damping_and_the_gain_of_the_rate_cannot_be_told_apart(clean):
    parameters = {
        "robot.upper_joint.damping": Parameter(0.1, 0.0, 1.0),
        "motors.upper_joint.kd": Parameter(0.2, 0.0, 1.0),
        "robot.upper_joint.armature": Parameter(0.02, 0.0, 0.1),
    }
    model = Model(double_pendulum(**TRUE), parameters, motors=Motors(kp=8.0, kd=0.2, delay=0.011))
    before, fit = model.plan(sweep(model.robot, 4.0)), model.fit(noisy(clean, 0))
    for known in (before, fit.identifiability):
        assert known.rank == 2
        (direction,) = known.open_directions
        assert direction.deviation == np.inf
        changes = direction.changes
        assert changes["robot.upper_joint.damping"] == pytest.approx(-changes["motors.upper_joint.kd"])
        assert np.isinf(known.deviations[:2]).all() and np.isfinite(known.deviations[2])
        assert "cannot tell" in str(known) and "motors.upper_joint.kd" in str(known)
    total = fit.values["robot.upper_joint.damping"] + fit.values["motors.upper_joint.kd"]
    assert total == pytest.approx(TRUE["damping"] + 0.2, abs=0.02)


KINDS = {
    "gear": (
        {"rotor": legged.Rotor(inertia=2e-4, gear=8.0)},
        {"robot.upper_joint.gear": (7.0, 9.0), "robot.lower_joint.gear": (7.0, 6.0), "robot.*.damping": (0.1, 0.05)},
    ),
    "spring": (
        {"stiffness": 2.0, "rest": 0.2},
        {
            "robot.upper_joint.stiffness": (1.0, 2.0),
            "robot.lower_joint.stiffness": (1.0, 3.0),
            "robot.*.rest": (0, 0.25),
        },
    ),
    "motor limits": (
        {"effort": 1.0, "speed": 6.0, "damping": 0.05},
        {"robot.*.effort": (1.5, 1.0), "robot.*.speed": (9.0, 6.0)},
    ),
    "servo": (
        {"damping": 0.05},
        {
            "motors.upper_joint.delay": (0.005, 0.0123),
            "motors.lower_joint.delay": (0.005, 0.0071),
            "sensors.*.offset": (0.0, 0.05),
            "motors.*.gain": (1.0, 0.9),
        },
    ),
}
"""Name -> (physics of the joints, name of a parameter -> nominal and true value)."""


@pytest.mark.parametrize("kind", KINDS)
def test_gears_springs_motor_limits_and_servos_are_recovered(kind):
    physics, values = KINDS[kind]
    chosen = {
        name: Parameter(nominal, 0.0 if "offset" not in name else -0.5, 20.0) for name, (nominal, _) in values.items()
    }
    model = Model(double_pendulum(**physics), chosen, motors=Motors(kp=8.0, kd=0.2))
    truth = np.array([true for _, true in values.values()])
    log = noisy(model.predict(sweep(model.robot, 4.0), truth), 0)
    fit = model.fit(dataclasses.replace(log, rates=None))
    assert fit.identifiability.rank == len(values)
    # A normally distributed error exceeds four deviations in 6 of 1e5 cases.
    assert (np.abs(fit.numbers - truth) < 4.0 * fit.identifiability.deviations).all()
    np.testing.assert_allclose(fit.numbers, truth, rtol=0.02)


def test_parameters_without_any_effect_keep_their_nominal_values(clean):
    """The model has no stops, and the mass of a fixed link changes nothing."""
    nothing = {"robot.*.lower": Parameter(-0.2, -1.0, 0.0), "robot.ground.mass": Parameter(1.0, 0.1, 2.0)}
    for chosen in (nothing, {"robot.ground.mass": nothing["robot.ground.mass"]}):
        fit = Model(double_pendulum(**TRUE), chosen, motors=Motors(kp=8.0, kd=0.2, delay=0.011)).fit(clean)
        assert fit.numbers.tolist() == [parameter.nominal for parameter in chosen.values()]
        assert fit.identifiability.rank == 0 and np.isinf(fit.identifiability.deviations).all()
        assert "cannot tell" in str(fit.identifiability)


def test_a_plan_predicts_the_deviations_of_the_fit(model, truth, clean):
    nominal = {
        n: dataclasses.replace(x, nominal=0.011 if "delay" in n else TRUE[n.rpartition(".")[2]])
        for n, x in _parameters().items()
    }
    planned = Model(model.robot, nominal, motors=model.motors).plan(sweep(model.robot, 4.0))
    fitted = model.fit(noisy(clean, 0)).identifiability
    # The variance of the fit has a deviation of 3.5 %, and the fitted parameters differ from the true ones by 1 %.
    np.testing.assert_allclose(planned.deviations, fitted.deviations, rtol=0.15)


def test_frozen_parameters_keep_their_values(clean):
    parameters = {**_parameters(), "robot.upper_joint.friction": Parameter(0.07, frozen=True)}
    fit = Model(double_pendulum(**TRUE), parameters, motors=Motors(kp=8.0, kd=0.2)).fit(clean, iterations=3)
    assert "robot.upper_joint.friction" not in fit.values
    assert fit.robot.parameters()["upper_joint.friction"] == 0.07


def test_inertias_stay_physically_possible_and_are_recovered_up_to_what_the_log_tells(clean):
    robot = double_pendulum(**TRUE)
    truth = robot.link("lower").inertia
    wrong = robot.edit().change_link("lower", mass=0.5).build()
    model = Model(wrong, {"robot.lower.inertia": Parameter(0.0, -2.0, 2.0)}, motors=Motors(kp=8.0, kd=0.2, delay=0.011))
    fit = model.fit(clean)
    assert fit.error()["positions"] < 2e-4
    estimated = fit.robot.link("lower").inertia
    first = lambda inertia: inertia.mass * np.asarray(inertia.center)[[0, 2]]  # noqa: E731
    np.testing.assert_allclose(first(estimated), first(truth), atol=2e-3)
    assert fit.identifiability.open_directions  # planar motion does not tell ten parameters


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"robot.upper_joint.dumping": Parameter()}, UnknownNameError, "did you mean"),
        ({"robot.*.nothing": Parameter()}, UnknownNameError, "nothing"),
        ({"robot.upper_joint.damping": Parameter(frozen=True)}, DefinitionError, "free"),
        (
            {"robot.upper_joint.damping": Parameter(0.1), "robot.*_joint.damping": Parameter(0.1)},
            DefinitionError,
            "twice",
        ),
        ({"robot.upper_joint.damping": Parameter(lower=0.5)}, DefinitionError, "outside"),
        ({"robot.upper.tensor": Parameter()}, DefinitionError, "inertia"),
        ({"robot.upper.center[3]": Parameter()}, DefinitionError, "shape"),
    ],
)
def test_parameters_that_do_not_fit_the_robot_are_refused(parameters, error, words):
    with pytest.raises(error, match=words):
        Model(double_pendulum(**TRUE), parameters)


def test_logs_that_cannot_be_fitted_are_refused(model, clean):
    with pytest.raises(UnknownNameError, match="desired"):
        model.fit(dataclasses.replace(clean, desired=None))
    with pytest.raises(ShapeError, match="resampled"):
        times = clean.times.copy()
        times[10:] += 0.1
        model.fit(dataclasses.replace(clean, times=times))
    with pytest.raises(ShapeError, match="window"):
        model.fit(clean.part(0.0, 0.2))
    with pytest.raises(UnknownNameError, match="joint of the log"):
        model.fit(dataclasses.replace(clean, joints=("upper_joint", "other")))


def test_a_divergent_simulation_is_an_error():
    robot = double_pendulum(**TRUE)
    model = Model(robot, {"motors.*.kp": Parameter(1e9, 0.0, 1e12)})
    with pytest.raises(NotFiniteError, match="diverges"):
        model.fit(sweep(robot, 2.0), window=2.0)


def test_results_are_written_as_robot_files(model, clean, tmp_path):
    fit = model.fit(clean, iterations=2)
    for path in (fit.save_urdf(tmp_path / "r.urdf"), fit.save_mjcf(tmp_path / "r.xml")):
        robot = legged.load(path, base="fixed")
        assert robot.parameters()["upper_joint.damping"] == pytest.approx(
            fit.values["robot.upper_joint.damping"], rel=1e-6
        )


def test_a_report_states_values_errors_and_open_directions(model, clean, tmp_path):
    fit = model.fit(noisy(clean, 0).part(0.0, 2.0))
    text = fit.save_html(tmp_path / "report", noisy(clean, 0).part(2.0)).read_text()
    stated = ("held out", "95 % interval", "SI units", "positions, rad or m", "data:image/png")
    for words in (*model.parameters.names, *stated):
        assert words in text
