"""Impulses, peaks and touches of contacts are those of all time steps, whatever the samples and the calls."""

import numpy as np
import pytest

import legged
from legged.contact.rigid import Rigid
from legged.errors import SimulationWarning
from legged.ground import realistic_ground
from legged.simulation import BDF
from legged.simulation.loop.contact_memory import ContactHistory

MASS, G, HEIGHT = 2.0, 9.81, 0.05  # [kg], [m/s^2], [m]
UNTIL = 0.4  # [s]
TOUCH = float(np.sqrt(2.0 * HEIGHT / G))  # [s], after a fall from the height


def brick():
    link = legged.Link("brick", legged.box_inertia(MASS, (0.1, 0.2, 0.3)), {"foot": (0.0, 0.0, 0.0)})
    return legged.RobotBuilder("brick", link, gravity=(0.0, 0.0, -G)).build()


ROBOT = brick()
COMPLIANT = realistic_ground(ROBOT)
CASES = {
    "semi-implicit": (COMPLIANT, legged.SemiImplicitEuler(1e-4)),
    "linearly implicit": (COMPLIANT, legged.LinearlyImplicitEuler(1e-3)),
    "Runge-Kutta": (COMPLIANT, legged.RungeKutta4(1e-4)),
    "variable steps": (COMPLIANT, BDF()),
    "rigid": (Rigid(restitution=0.5), legged.TimeStepping(1e-3)),
}


def start(height=HEIGHT):
    q = ROBOT.neutral()
    q[6] = height
    return q


def fall(case, sample, **options):
    ground, integrator = CASES[case]
    given = {"until": UNTIL, "fall": False, **options}
    return legged.simulate(ROBOT, ground=ground, q=start(), integrator=integrator, sample=sample, **given)


@pytest.mark.parametrize("case", CASES)
def test_records_of_a_fall_do_not_depend_on_the_samples(case):
    runs = [fall(case, sample) for sample in (1e-3, 1e-2, 4e-2, UNTIL)]
    for run in runs:
        momentum = MASS * (run.v[:, 5] - run.v[0, 5]) + MASS * G * run.times
        # Impulses of at most 10 N s, summed over 4000 steps.
        np.testing.assert_allclose(np.cumsum(run.contacts.impulse[:, 0, 2]), momentum, atol=1e-12)
        for name in ("peak", "first_touch", "last_touch"):
            own, first = (np.asarray(getattr(r.contacts, name))[-1] for r in (run, runs[0]))
            np.testing.assert_allclose(own, first, rtol=1e-9, err_msg=name)
        assert run.energy.contact_work[-1] == pytest.approx(runs[0].energy.contact_work[-1], abs=1e-9)
    run = runs[-1]
    assert run.contacts.first_touch[0] == pytest.approx(TOUCH, abs=2e-3)
    assert run.contacts.last_touch[0] > 0.98 * UNTIL  # it rests
    assert run.contact("foot").last_touch == run.contacts.last_touch[0]
    assert run.contacts.peak[-1, 0] > 10.0 * MASS * G
    assert not run.contacts.peak[run.times < TOUCH - 2e-3].any()


def test_records_in_python_and_of_a_rollout_are_the_same():
    one = fall("semi-implicit", 0.04)
    other = fall("semi-implicit", 0.04, compiled=False)
    ground, integrator = CASES["semi-implicit"]
    q = np.array([start(), start()])
    batch = legged.rollout(ROBOT, ground=ground, q=q, until=UNTIL, sample=0.04, integrator=integrator, fall=False)
    for run in (other, batch.run(1)):
        np.testing.assert_allclose(run.contacts.impulse, one.contacts.impulse, atol=1e-9)
        np.testing.assert_allclose(run.contacts.peak, one.contacts.peak, rtol=1e-9)
        np.testing.assert_allclose(run.contacts.first_touch, one.contacts.first_touch, atol=1e-12)


def test_files_keep_the_last_touch(tmp_path):
    run = fall("semi-implicit", 0.04)
    again = legged.Run.load(run.save(tmp_path / "run.npz"))
    np.testing.assert_array_equal(again.contacts.last_touch, run.contacts.last_touch)


@pytest.mark.parametrize("num", [None, 2])
@pytest.mark.parametrize("case", [name for name in CASES if name != "variable steps"])
def test_calls_of_a_simulation_report_what_has_happened_in_them(case, num):
    """A ball that bounces between two looks at the contacts has touched in the call, with its whole impulse."""
    ground, integrator = CASES[case]
    sim = legged.Simulation(ROBOT, ground=ground, num=num, q=start(), integrator=integrator, fall=False)
    count = round(0.04 / sim.time_step)
    before, touched = np.zeros(num or 1), []
    for _ in range(10):
        sim.step(n=count)
        speed, contacts = np.atleast_2d(sim.v)[:, 5], sim.contacts
        impulse, peak, touching = (
            x.reshape(num or 1, 1, *x.shape[2 if num else 1 :]) for x in contacts[3:] + contacts[2:3]
        )
        np.testing.assert_allclose(impulse[:, 0, 2], MASS * (speed - before + G * 0.04), atol=1e-11)
        np.testing.assert_array_equal(touching[:, 0], peak[:, 0] > 0.0)
        before = speed
        touched.append(bool(touching[0, 0]))
    assert touched[:2] == [False, False] and touched[2]  # the fall takes 0.101 s
    if case == "rigid":  # it is in the air at the end of the third call, and bounces back in the sixth
        assert touched[3:6] == [False, False, True]
    sim.step(n=count)
    same = sim.observe(lambda contacts: contacts.impulse)
    np.testing.assert_array_equal(same, sim.contacts.impulse)
    sim.reset()
    assert not sim.contacts.touching.any() and not sim.contacts.impulse.any()


def test_advance_and_python_report_the_whole_call():
    sims = [
        legged.Simulation(ROBOT, ground=Rigid(restitution=0.5), q=start(), fall=False, compiled=c)
        for c in (None, False)
    ]
    for sim in sims:
        sim.advance(0.11)
        assert sim.contacts.touching[0]
        assert sim.contacts.impulse[0, 2] == pytest.approx(MASS * (sim.v[5] + G * 0.11), abs=1e-12)
        sim.advance(0.111)
        assert not sim.contacts.touching[0]


def test_without_ground_there_are_no_forces():
    sim = legged.Simulation(ROBOT, q=start())
    sim.step(n=5)
    assert not sim.contacts.touching.any() and not sim.contacts.peak.any() and sim.contacts.impulse.shape == (1, 3)
    run = legged.simulate(ROBOT, q=start(), until=0.05)
    assert not run.contacts.impulse.any() and np.isnan(run.contacts.first_touch).all()


# Starts inside of the ground.


@pytest.mark.parametrize("case", ["semi-implicit", "rigid"])
@pytest.mark.parametrize("compiled", [None, False])
def test_starts_inside_of_the_ground_warn_in_every_door(case, compiled):
    ground, integrator = CASES[case]
    options = {"ground": ground, "integrator": integrator, "fall": False, "compiled": compiled}
    with pytest.warns(SimulationWarning, match=r"^contact 'foot' begins 200 mm inside"):
        run = legged.simulate(ROBOT, q=start(-0.2), until=1e-3, **options)
    assert "200 mm" in run.warnings[0]
    for count in (2, 9):  # members are examined one by one, or at once
        q = np.array([start(1e-3 * k) for k in range(count)])
        q[1] = start(-0.2)
        with pytest.warns(SimulationWarning, match=r"^member 1: contact 'foot' begins 200 mm inside"):
            runs = legged.rollout(ROBOT, q=q, until=1e-3, **options)
        assert "200 mm" in runs.run(1).warnings[0] and not runs.run(0).warnings
        with pytest.warns(SimulationWarning, match=r"^robot 1: contact 'foot' begins 200 mm inside"):
            legged.Simulation(ROBOT, q=q, num=count, **options)
    sim = legged.Simulation(ROBOT, q=start(), **options)
    sim.reset()
    sim.reset(start(0.1))
    with pytest.warns(SimulationWarning, match=r"^contact 'foot' begins 200 mm inside"):
        sim.reset(start(-0.2))
    sim.reset(start(-0.2))  # warns once
    assert len(sim.warnings) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", ["semi-implicit", "rigid"])
def test_starts_on_and_slightly_inside_of_the_ground_do_not_warn(case):
    ground, integrator = CASES[case]
    for height in (0.0, -1e-3):
        legged.Simulation(ROBOT, q=start(height), ground=ground, integrator=integrator, fall=False).reset(start(height))


@pytest.mark.filterwarnings("error")
def test_a_robot_that_rests_deep_in_soft_ground_does_not_warn():
    soft = legged.ground.Ground(legged.ground.KelvinVoigt(1e3, 40.0), COMPLIANT.friction)  # [N/m], 20 mm deep at rest
    legged.simulate(
        ROBOT, q=start(-MASS * G / 1e3), ground=soft, until=0.01, integrator=legged.SemiImplicitEuler(1e-4), fall=False
    )


def test_times_of_the_first_and_last_touch_are_those_of_forces():
    """Three contacts: one in the air since a touch, one in its first touch, and one in a later one."""
    history = ContactHistory(np.zeros((3, 3)), np.array([7.0, 0.0, 2.0]), *np.array([[0.1, 0.0, 0.1], [0.2, 0.0, 0.2]]))
    after = history.after(0.5, 0.01, np.array([[0.0, 0.0, 0.0], [0.0, 3.0, 4.0], [0.0, 0.0, 1.0]]))
    assert after.touched.tolist() == [0.1, 0.5, 0.1] and after.last.tolist() == [0.2, 0.5, 0.5]
    assert after.peak.tolist() == [7.0, 5.0, 2.0] and after.impulse.sum(axis=1) == pytest.approx([0.0, 0.07, 0.01])
