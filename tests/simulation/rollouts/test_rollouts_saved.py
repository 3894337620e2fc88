"""Rollouts from worker processes, in files, and copies of simulations."""

import concurrent.futures
import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import FileError
from legged.ground import paper_ground
from legged.simulation import Rollouts

LAW = controllers.ComputedTorque(controllers.Trot())
GROUNDS = {"compliant": lambda: paper_ground(robots.spatial_quadruped()), "rigid": lambda: legged.Rigid()}


def work(ground, compiled=None, hidden=False):
    """Return rollouts of a quadruped; with a controller that no other process can import if it is hidden."""

    class Hidden(controllers.ComputedTorque):
        pass

    law = Hidden(controllers.Trot()) if hidden else LAW
    vary = {"robot.trunk.mass": [5.0, 6.0]}
    until = 0.01 if compiled is False else 0.03  # [s]
    return legged.rollout(
        robots.spatial_quadruped(), law, ground=GROUNDS[ground](), until=until, vary=vary, compiled=compiled
    )


@pytest.mark.parametrize(("ground", "compiled"), [("compliant", None), ("rigid", None), ("compliant", False)])
def test_rollouts_of_a_worker_process_are_those_of_this_one(ground, compiled):
    own = work(ground, compiled)
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        outcome = pool.submit(work, ground, compiled).result()
    for runs in (outcome, copy.deepcopy(own)):
        assert repr(runs) == repr(own) and np.array_equal(runs.q, own.q)
        one, two = own.run(1), runs.run(1)
        for part in ("q", "v", "vdot", "tau"):
            assert np.array_equal(getattr(one, part), getattr(two, part)), part
        assert np.array_equal(one.contacts.forces, two.contacts.forces)
        assert one.energy_drift == two.energy_drift


def test_rollouts_of_a_controller_that_cannot_be_pickled_keep_their_motion():
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        outcome = pool.submit(work, "compliant", None, True).result()
    own = work("compliant", None, True)
    assert np.array_equal(outcome.q, own.q)
    run = outcome.run(1)
    assert np.array_equal(run.q, own.q[1]) and np.isnan(run.tau).all()
    assert "torques, contacts and work are unknown, since its controller cannot be pickled" in run.warnings[0]
    assert run.model.robot.link("trunk").inertia.mass == 6.0


def test_saved_rollouts_come_back(tmp_path):
    own = work("compliant")
    path = own.save(tmp_path / "new" / "kp_0.5")
    assert path.name == "kp_0.5.npz"
    again = Rollouts.load(path)
    for name in ("times", "q", "v", "rest", "base_position", "fallen", "when"):
        assert np.array_equal(getattr(own, name), getattr(again, name), equal_nan=name == "when"), name
    assert (again.robot, again.backend, again.integrator) == (own.robot, own.backend, own.integrator)
    assert again.reasons == own.reasons and again.warnings == own.warnings
    assert np.array_equal(again.vary["robot.trunk.mass"], [5.0, 6.0])
    for i in (0, 1):
        one, two = own.run(i), again.run(i)
        assert np.array_equal(one.q, two.q) and np.array_equal(one.v, two.v)
        np.testing.assert_allclose(two.energy.kinetic, one.energy.kinetic, rtol=1e-9)  # of the robot of the member
        np.testing.assert_array_equal(one.ground.surface, two.ground.surface) if i == 0 else None
        assert "a file does not contain the controller" in two.warnings[0]
    assert np.array_equal(Rollouts.load(again.save(tmp_path / "twice")).q, own.q)
    assert np.array_equal(pickle.loads(pickle.dumps(again)).q, own.q)


def test_members_that_ended_early_come_back(tmp_path):
    robot = robots.planar_hopper()
    q = robot.state(base_position=(0.0, 0.0, 1.0)).q
    vary = {"robot.trunk.mass": [4.0, 5.0]}
    runs = legged.rollout(robot, ground=paper_ground(robot), q=q, until=1.0, vary=vary, sample=0.05)
    assert runs.fallen.any()
    again = Rollouts.load(runs.save(tmp_path / "runs"))
    assert np.array_equal(again.q, runs.q, equal_nan=True) and again.reasons == runs.reasons
    assert len(again.run(0)) == len(runs.run(0)) and again.run(0).ended == runs.reasons[0]


def test_other_files_are_no_rollouts(tmp_path):
    run = legged.simulate(robots.chain(1), until=0.02)
    with pytest.raises(FileError, match=r"is no saved rollouts; load it with legged\.Run\.load"):
        Rollouts.load(run.save(tmp_path / "run"))
    runs = legged.rollout(robots.chain(1), until=0.02, vary={"robot.gravity": np.zeros((2, 3))})
    path = runs.save(tmp_path / "runs")
    with pytest.raises(FileError, match=r"load them with legged\.simulation\.Rollouts\.load"):
        legged.Run.load(path)
    with np.load(path) as file:
        stored = {name: file[name] for name in file.files}
    cases = {
        "it has no q": {"q": None},
        "it has no vary 0": {"vary 0": None},
        "'vary 0' must hold numbers, one entry for each of the 2 members": {"vary 0": np.zeros(3)},
        "must have the shape": {"v": np.zeros((2, 1, 1))},
        "layout version 9": {"version": np.array(9)},
        "its model cannot be read": {"model": np.array("{}")},
        "no saved rollouts": {"kind": np.array("else")},
    }
    for words, changed in cases.items():
        np.savez(path, **{name: x for name, x in (stored | changed).items() if x is not None})
        with pytest.raises(FileError, match=words):
            Rollouts.load(path)


def balls(count):
    return [
        legged.FreeBody(f"b{k}", legged.box_inertia(1.0, (0.1,) * 3), [legged.Box((0.1,) * 3)], (0.5 * k, 1.0, 0.06))
        for k in range(count)
    ]


def simulation(kind, num):
    robot = robots.spatial_quadruped()
    if kind == "many contacts":
        plate = legged.Link("plate", legged.box_inertia(1.0, (0.2,) * 3), shapes=[legged.Box((0.2,) * 3)])
        return legged.Simulation(
            legged.RobotBuilder("plate", plate).build(), ground=legged.Rigid(), bodies=balls(14), num=num
        )
    options = {"compiled": False} if kind == "plain" else {}
    ground = legged.Rigid() if kind == "rigid" else paper_ground(robot)
    return legged.Simulation(robot, LAW, ground=ground, num=num, **options)


@pytest.mark.parametrize("num", [None, 2])
@pytest.mark.parametrize("kind", ["compliant", "rigid", "plain", "many contacts"])
def test_copies_of_a_simulation_go_on_alike_and_apart(kind, num):
    original = simulation(kind, num)
    for count in (0, 3):
        if count:
            original.step(n=count)
        copies = copy.deepcopy(original), pickle.loads(pickle.dumps(original))
        before = original.state
        for other in copies:
            other.step(n=4)
        assert np.array_equal(original.state.q, before.q) and np.array_equal(original.t, before.t)
        original.step(n=4)
        for other in copies:
            for name in ("q", "v", "rest", "t"):
                assert np.array_equal(getattr(other.state, name), getattr(original.state, name)), name
            assert np.array_equal(other.ended, original.ended)
    copies[0].reset()
    assert not np.any(copies[0].t) and np.all(original.t)


def test_the_copy_of_a_simulation_notices_its_own_fall():
    robot = robots.planar_hopper()
    q = robot.state(base_position=(0.0, 0.0, 1.0)).q
    original = legged.Simulation(robot, ground=paper_ground(robot), q=q)
    original.step()
    other = copy.deepcopy(original)
    while not other.ended and other.t < 2.0:
        other.step(n=20)
    assert other.ended and other.reasons[0] and not original.ended
