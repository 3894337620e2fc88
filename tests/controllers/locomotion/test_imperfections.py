"""A walking robot stands delays, lag, noise, friction of gears, an unknown payload and low control rates."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from oracles.standing import shared_biped

import controllers
from benchmarks.locomotion.loops import locomotion_setup, simulate_balanced, simulate_locomotion
from benchmarks.locomotion.outcomes import EARLIER, OURS, Outcome, failure_table, outcomes, success_table, swept
from benchmarks.locomotion.trials import ACTUATED, DELAYED, RATES, Trial, trials
from benchmarks.locomotion.walkers import walkers
from controllers.locomotion.fitting import swing_limits
from controllers.locomotion.gait.posture import has_slow_legs
from controllers.locomotion.gait.schedule import GAITS
from controllers.locomotion.torques.whole_body import JointLimits
from legged.errors import SimulationWarning

QUICK = "test_a_trial_fails_by_a_fall_or_by_a_velocity_far_from_the_command"

pytestmark = pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")


def named(name: str):
    chosen = walkers([name])
    if not chosen:
        pytest.skip(f"the package with the file of {name}, of the extra test, is not installed")
    return chosen[0]


def go2():
    return named("Go2")


def check(selected: list[Trial], name: str = "Go2") -> list[Outcome]:
    walker = named(name)
    outcome = outcomes(walker, OURS, simulate_locomotion(walker, selected))
    assert [x.trial for x in outcome if not x.succeeded] == []
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Solo12", "Spot", "Mini Cheetah"])
def test_trots_reach_the_commanded_speed_up_to_1_2_sqrt_g_h(name):
    check(trials(4, ["forward"]), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ANYmal B", "HyQ"])
def test_robots_with_weak_motors_walk_by_every_gait(name):
    """Their largest torque is 0.60 and 0.31 m g h."""
    check(trials(4, ["gaits"]), name)


@pytest.mark.slow
def test_a_trot_stands_delays_of_5_and_10_ms():
    check([x for x in trials(4, ["delay"]) if x.kind == DELAYED])


@pytest.mark.slow
def test_a_trot_stands_lag_of_the_actuators_and_friction_of_gears():
    check([x for x in trials(4, ["actuators"]) if x.kind == ACTUATED])


@pytest.mark.slow
def test_a_trot_stands_noise_and_a_payload_at_plausible_power():
    outcome = check(trials(4, ["noise", "payload"]))
    costs = [x.cost_of_transport for x in outcome if not x.trial.noise]
    assert min(costs) > 0.1 and max(costs) < 1.5  # positive mechanical power; animals and robots of this size need more


@pytest.mark.slow
def test_a_trot_stands_control_at_50_to_1000_hz():
    check([x for x in trials(4, ["rates"]) if x.kind == RATES])


@pytest.mark.slow
def test_a_trot_climbs_and_descends_known_stairs_of_a_third_of_its_height():
    results = check([x for x in trials(4, ["stairs"]) if abs(x.rise) == 0.33])
    assert len(results) == 8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Talos", "G1"])
def test_humanoids_walk_at_1_2_meters_per_second(name):
    """Joints of Talos are slow: knees reach 2 sqrt(g / h)."""
    assert len(check([x for x in trials(2, ["fast"]) if x.command[0] < (0.45 if name == "Talos" else 0.5)], name)) >= 2


def test_robots_with_slow_joints_stand_and_walk_on_straighter_legs():
    slow, fast = named("Talos"), named("G1")
    assert [has_slow_legs(x.robot, x.home) for x in (slow, fast)] == [True, False]
    shares = []
    for walker in (slow, fast):
        started, _ = walker.law().start(walker.robot, None, *walker.law().initial_state(walker.robot))
        legs = started.home.legs
        shares.append(started.home.hip_height / min(leg.length for leg in legs))
    assert shares == pytest.approx([0.87, 0.82], abs=0.01)
    assert [float(x.schedule("walk").parameters[1]) for x in (slow, fast)] == [0.52, 0.6]


def test_robots_with_damped_or_very_slow_joints_walk_with_the_short_steps_of_a_trot():
    """The damping takes all torque of a hip at 1.3 or 2.9 sqrt(g / h); then its largest speed is 1.3 or 1.5
    sqrt(g / h), or so small that it cannot raise the foot in a short swing."""
    robot = shared_biped()
    home = controllers.home_of(robot)
    unit = np.sqrt(9.81 / np.mean([leg.length for leg in home.legs]))
    column = home.legs[0].pitch_columns[0]
    hip = next(joint.name for joint in robot.joints if joint.v.start - robot.base.nv == column)
    effort = JointLimits.of(robot).torque[column]
    laws = []
    for name, value in (
        *(("damping", effort / (speed * unit)) for speed in (1.3, 2.9)),
        *(("speed", speed * unit) for speed in (1.3, 1.5, 0.25)),
    ):
        slow = robot.with_parameters({f"{hip}.{name}": value})
        law = controllers.Locomotion("walk")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)  # a hip this slow is named
            laws.append(law.start(slow, None, *law.initial_state(slow))[0])
    gaits = [law.gaits.schedules[0][1] for law in laws]
    short, usual = GAITS["trot"].period, GAITS["walk"].period
    periods = [gait.period / law.planner.time_unit for gait, law in zip(gaits, laws, strict=True)]
    assert periods == pytest.approx([short, usual, short, usual, usual])
    assert [gait.parameters[1] for gait in gaits] == [0.46, 0.52, 0.46, 0.52, 0.52]
    shares = [law.home.hip_height / min(leg.length for leg in law.home.legs) for law in laws]
    assert shares[2:4] == pytest.approx([0.82, 0.87], abs=1e-3)  # longer steps need straighter legs
    for law, gait, least in zip(laws[2:4], gaits[2:4], (0.92, 1.0), strict=True):  # flights need more force in stance
        duty = float(gait.parameters[1])
        mean = swing_limits(law.robot, law.home, 0.15, (1.0 - duty) * gait.period)[1][0]
        assert law.fastest[0] == pytest.approx(least * mean * (1.0 - duty) / duty)


@pytest.mark.slow
def test_g1_climbs_and_descends_known_stairs_of_10_cm():
    assert len(check([x for x in trials(2, ["stairs"]) if abs(x.rise) == 0.165 and x.command[0] < 0.16], "G1")) == 4


@pytest.mark.slow
@pytest.mark.parametrize("row", ["waves", "stones"])
def test_a_trot_crosses_known_waves_and_stepping_stones(row):
    assert len(check(trials(4, [row]))) == 8


@pytest.mark.slow
def test_a_trot_survives_pushes_that_change_its_velocity_by_1_meter_per_second():
    results = check([x for x in trials(4, ["pushes"]) if x.push > 0.5])
    assert len(results) == 32


@pytest.mark.slow
def test_the_earlier_law_is_measured_on_the_same_trials():
    walker = go2()
    selected = [x for x in trials(4, ["forward"]) if x.command[0] == 0.15]
    outcome = outcomes(walker, EARLIER, simulate_balanced(walker, selected))
    assert [x.succeeded for x in outcome] == [True]


@pytest.mark.slow
def test_a_sweep_gives_the_outcomes_of_rollouts_and_simulates_them_once(tmp_path):
    pytest.importorskip("distributed")
    walker, selected = named("Solo12"), trials(4, ["forward"])[:3]
    expected = repr(outcomes(walker, OURS, simulate_locomotion(walker, selected)))
    assert repr(swept(walker, OURS, selected, locomotion_setup(walker, selected), tmp_path)) == expected
    chunks = {path: path.stat().st_mtime_ns for path in (tmp_path / "chunks").iterdir()}
    assert repr(swept(walker, OURS, selected, locomotion_setup(walker, selected), tmp_path)) == expected
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "chunks").iterdir()} == chunks


def test_a_trial_fails_by_a_fall_or_by_a_velocity_far_from_the_command():
    trial = Trial("forward", (0.3, 0.0, 0.0))
    good = Outcome("a", OURS, trial, (2.0, 2.0, 5.0), (0.31, 0.0, 0.01), float("nan"), power=0.1)
    slow, fallen = replace(good, reached=(0.25, 0.0, 0.0)), replace(good, fallen_at=1.0)
    turned = replace(good, reached=(0.3, 0.0, 0.06))
    assert [x.succeeded for x in (good, slow, fallen, turned)] == [True, False, False, False]
    assert replace(slow, trial=replace(trial, push=0.5)).succeeded  # a pushed robot need not be at its speed
    assert good.cost_of_transport == pytest.approx(0.1 / 0.31)
    ((row, law, *cells),) = success_table([good, slow]).rows
    assert (row, law, cells) == ("forward", OURS, ["1/2", "1/2"])


def test_failed_trials_are_listed_with_their_conditions_and_reasons():
    trial = Trial("survey", (0.3, 0.0, 0.1), push=0.11, direction=np.pi / 2.0, slope=-0.175)
    good = Outcome("a", OURS, replace(trial, push=0.0), (2.0, 2.0, 5.0), (0.3, 0.0, 0.1), float("nan"))
    slow = replace(good, reached=(0.1, 0.01, 0.1))
    fallen, refused = replace(good, trial=trial, fallen_at=2.61), replace(good, fallen_at=0.0)
    table = failure_table([good, slow, fallen, refused])
    start = ("a", OURS, "survey", "0.60, 0.00, 0.50")
    assert table.rows == (
        (*start, "slope -0.175, direction 1.57", "reaches 0.20, 0.02, 0.50"),
        (*start, "slope -0.175, push 0.11, direction 1.57", "falls at 2.6 s"),
        (*start, "slope -0.175, direction 1.57", "is refused"),
    )
    assert "falls at 2.6 s" in table.text() and not failure_table([good]).rows


def test_two_feet_get_slower_commands_and_every_trial_is_distinct():
    rows = ["forward", "sideways", "turning", "gaits", "slopes", "stairs", "friction", "pushes", "delay", "noise"]
    biped, quadruped = trials(2, rows), trials(4, rows)
    assert max(x.command[0] for x in biped) < max(x.command[0] for x in quadruped)
    assert len(set(quadruped)) == len(quadruped) and len(set(biped)) == len(biped)
    assert np.unique([x.direction for x in quadruped if x.push]).size == 8
