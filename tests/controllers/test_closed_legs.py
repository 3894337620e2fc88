"""Walks of robots with closed loops by laws for serial legs."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import Command, Delay, Locomotion, OnSerialEquivalent
from legged import conversions, loops, sweeps
from legged.errors import DefinitionError

mujoco = pytest.importorskip("mujoco")
LEGS = ("FL", "FR", "RL", "RR")
HIPS = [f"{leg}_{side}_hip" for leg in LEGS for side in ("front", "rear")]
BENT = np.array([1, 0, 0, 0, 0, 0, 0.5, *[0.4, -0.9, -0.4, 0.9] * 4])
GROUND = legged.Rigid(friction=0.6)
STEP = legged.TimeStepping(2e-3)


@pytest.fixture(scope="module")
def quadruped():
    """The quadruped with five-bar legs, with limits of its motors and of the sides to which its knees bend."""
    closed = robots.five_bar_quadruped()
    editor = closed.robot.edit()
    for name in HIPS:
        editor.change_joint(name, effort=30.0)
    for leg in LEGS:
        editor.change_joint(f"{leg}_rear_knee", lower=0.1, upper=2.8).change_joint(
            f"{leg}_front_knee", lower=-2.8, upper=-0.1
        )
    return replace(closed, robot=editor.build())


def mean_velocity(run, closed):
    """Mean velocity of the center of mass in the last two of three seconds, (2,), [m/s]."""
    ends = [legged.center_of_mass(closed.robot, run.q[k])[:2] for k in (len(run.times) // 3, -1)]
    return (ends[1] - ends[0]) / (run.times[-1] - run.times[len(run.times) // 3])


def test_it_walks_as_commanded_with_its_loops_closed(quadruped):
    run = legged.simulate(
        quadruped, Locomotion("walk", Command(vx=0.3)), ground=GROUND, until=3.0, integrator=STEP, compiled=True
    )
    vx, vy = mean_velocity(run, quadruped)
    assert vx == pytest.approx(0.3, abs=0.045)  # 15 %, as in the benchmark
    assert abs(vy) < 0.03
    assert legged.simulation.loop_errors(quadruped, run).max() < 1e-12
    motors = {f"{name}" for name in HIPS}
    passive = [j.v.start for j in quadruped.robot.joints if j.name not in motors]
    law, q = OnSerialEquivalent(Locomotion("walk"), quadruped), run.q[-1]
    started, memory = law.start(quadruped.robot, GROUND, q, run.v[-1])
    tau = started.torque(0.0, 0, q, run.v[-1], np.zeros((len(quadruped.robot.links), 6)), run.memory[-1])
    assert len(memory) == run.memory.shape[1]
    assert not tau[passive].any() and np.abs(tau[[quadruped.robot.joint(n).v.start for n in HIPS]]).max() > 1.0


def test_members_of_a_rollout_have_their_own_commands(quadruped):
    speeds = np.array([0.0, 0.15, 0.3])
    runs = legged.rollout(
        quadruped,
        Locomotion("walk", Command(vx=0.1)),
        ground=GROUND,
        until=3.0,
        integrator=STEP,
        vary={"controller.command.vx": speeds},
        progress=False,
    )
    assert not runs.fallen.any()
    for k, speed in enumerate(speeds):
        assert mean_velocity(runs.run(k), quadruped)[0] == pytest.approx(speed, abs=0.045)


def test_it_follows_live_commands_through_delayed_actuators(quadruped):
    sim = legged.Simulation(
        quadruped, Delay(Locomotion("walk", None), 0.004, frequency=500.0), ground=GROUND, integrator=STEP
    )
    start = sim.q[4]
    for _ in range(1500):
        sim.step(command=[0.25, 0.0, 0.0, 0.0, 0.0])
    assert sim.q[4] - start == pytest.approx(0.25 * 3.0, rel=0.25)  # it accelerates from rest


def test_motors_may_be_named_and_the_configuration_given():
    closed = robots.five_bar_quadruped()
    with pytest.raises(DefinitionError, match=r"OnSerialEquivalent\(law, closed, motors="):
        legged.simulate(closed, Locomotion("walk"), ground=GROUND, until=0.1, integrator=STEP)
    law = OnSerialEquivalent(Locomotion("stand"), closed, HIPS, BENT)
    run = legged.simulate(closed, law, ground=GROUND, until=1.0, integrator=STEP)
    assert run.q[-1, 4:7] == pytest.approx(run.q[0, 4:7], abs=5e-3)


def test_a_law_without_legs_in_mind_runs_as_well(quadruped):
    """Joint servos at the posture of the serial equivalent hold it."""
    equivalent = OnSerialEquivalent(Locomotion("walk"), quadruped).equivalent
    q, _ = equivalent.state(equivalent.at, np.zeros(quadruped.nv))

    def servo(t, q_now, v, wrenches):
        return 100.0 * (q[7:] - q_now[7:]) - 2.0 * v[6:]

    law = OnSerialEquivalent(servo, quadruped)
    start, v = law.initial_state(quadruped.robot)
    assert not v.any() and np.array_equal(start, equivalent.at)
    start = start.copy()
    start[6] = 0.5
    run = legged.simulate(quadruped, law, q=start, ground=GROUND, until=1.5, integrator=STEP)
    assert run.q[-1, 6] > 0.25 and np.abs(run.v[-1]).max() < 0.1


def test_a_law_for_another_robot_is_refused(quadruped):
    law = OnSerialEquivalent(Locomotion("walk"), quadruped)
    with pytest.raises(DefinitionError, match="five-bar quadruped"):
        legged.simulate(robots.spatial_quadruped(), law, ground=GROUND, until=0.1)


def wrenches_in_mujoco(robot, model, data):
    """Wrenches of the floor on the links, (n_links, 6), [N m] and [N], about each link's origin in its axes."""
    wrenches, force = np.zeros((len(robot.links), 6)), np.zeros(6)
    for k, contact in enumerate(data.contact):
        mujoco.mj_contactForce(model, data, k, force)
        on_first = model.geom_bodyid[contact.geom1] != 0  # the normal points from the first geom to the second
        body = data.body(model.geom_bodyid[contact.geom1 if on_first else contact.geom2])
        R = body.xmat.reshape(3, 3)
        local = R.T @ contact.frame.reshape(3, 3).T @ force[:3] * (-1.0 if on_first else 1.0)
        arm = R.T @ (contact.pos - body.xpos)
        wrenches[robot.link(body.name).index] += np.concatenate([np.cross(arm, local), local])
    return wrenches


def test_it_walks_in_mujoco(quadruped, tmp_path):
    """The law drives MuJoCo's model of the robot, whose loops are soft equalities."""
    robot, law = quadruped.robot, OnSerialEquivalent(Locomotion("walk", Command(vx=0.3)), quadruped)
    running = controllers.RunningLaw(law, robot)
    q, scene = running.initial_q, tmp_path / "scene.xml"
    loops.save_mjcf(quadruped, scene, scene=True, ground=GROUND, home=q, time_step=1e-3)
    model = mujoco.MjModel.from_xml_path(str(scene))
    data, to = mujoco.MjData(model), conversions.mujoco(robot, model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for k in range(3000):
        if k % 2 == 0:
            q, v = to.from_configuration(data.qpos), to.from_velocity(data.qpos, data.qvel)
            tau = running.step(k * 1e-3, q, v, wrenches_in_mujoco(robot, model, data))
        data.qfrc_applied[:] = to.to_force(q, tau)
        mujoco.mj_step(model, data)
    assert data.qpos[0] == pytest.approx(0.3 * 3.0, rel=0.25)  # it accelerates from rest
    assert np.abs(loops.residual(quadruped, q)).max() < 5e-3  # equalities are soft


def test_studies_simulate_it(quadruped, tmp_path):
    options = {"ground": GROUND, "integrator": STEP}
    setup = sweeps.Setup(quadruped, Locomotion("walk", Command(vx=0.1)), until=1.0, options=options)
    table = sweeps.sweep(setup, {"controller.command.vx": [0.0, 0.3]}, tmp_path, progress=False).table()
    assert list(table["error"]) == ["", ""]
    assert table["distance"][1] > table["distance"][0] + 0.1  # [m]
