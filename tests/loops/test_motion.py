"""Closed loops in motion: energy, momentum, drift, MuJoCo's equality constraints, feet as loops."""

import numpy as np
import pytest
from oracles.looped import parallelogram

import legged
import robots
from legged import loops
from legged.ground.presets import realistic_ground


def spinning_four_bar():
    closed = robots.four_bar()
    q = loops.assemble(closed, [1.0, -0.7, 1.5], hold=["crank joint"])
    return closed, q, loops.consistent_velocity(closed, q, [8.0, 0, 0], hold=["crank joint"])


def test_ten_seconds_keep_the_energy_and_the_loop():
    """13 turns of the crank, at 0.1 % of a turn a step: the error of the classical rule, and rounding in the loop."""
    closed, q, v = spinning_four_bar()
    run = legged.simulate(closed, until=10.0, q=q, v=v)
    assert np.ptp(run.energy.kinetic) > 0.5  # [J]; it does move
    assert run.energy_drift < 1e-6 * run.energy.kinetic.max()
    assert legged.simulation.loop_errors(closed, run).max() < 1e-13


def test_errors_of_a_motion_that_opens_the_loop_are_its_largest_residuals():
    """A motion from numbers, whose joints do not satisfy the constraints."""
    closed, q, _ = spinning_four_bar()
    motion = q + np.linspace(0.0, 0.3, 4)[:, None] * np.array([1.0, -0.5, 0.2])
    run = legged.Run.from_motion(closed.robot, np.arange(4.0), motion)
    expected = [np.abs(loops.residual(closed, each)).max() for each in motion]
    assert expected[0] < 1e-12 and expected[-1] > 0.01  # [m], [rad]
    np.testing.assert_allclose(legged.simulation.loop_errors(closed, run), expected, rtol=1e-12, atol=1e-14)


def test_error_falls_with_the_fourth_power_of_the_step():
    """Bringing states back onto the loop takes nothing from the order of the rule."""
    closed, q, v = spinning_four_bar()
    steps = (2.5e-3, 1.25e-3, 1e-4)
    coarse, fine, exact = (
        legged.simulate(closed, until=0.5, q=q, v=v, integrator=legged.RungeKutta4(step)).q[-1] for step in steps
    )
    ratio = np.abs(coarse - exact).max() / np.abs(fine - exact).max()
    assert 11.0 < ratio < 23.0  # 16, but for higher powers


def test_stabilization_alone_keeps_the_loop_closed():
    """`Stiff` does not project: Baumgarte stabilization limits the constraint error to its tolerance."""
    closed, q, v = spinning_four_bar()
    run = legged.simulate(closed, until=3.0, q=q, v=v, integrator=legged.Stiff())
    assert legged.simulation.loop_errors(closed, run).max() < 1e-5
    assert run.energy_drift < 1e-2 * run.energy.kinetic.max()


def test_compiled_steps_equal_plain_ones():
    closed, q, v = spinning_four_bar()
    one, other = (legged.simulate(closed, until=0.01, q=q, v=v, compiled=how) for how in (None, False))
    assert one.backend == "compiled closed loop" != other.backend
    assert one.q[-1] == pytest.approx(other.q[-1], abs=1e-13)


@pytest.mark.parametrize("extra", [False, True], ids=["two bars", "three bars"])
def test_runs_start_in_and_pass_singular_postures(extra):
    """Flat, a parallelogram has a freedom more; it swings on as it moved, and an extra bar stays without effect."""
    closed = parallelogram(extra)
    v = -6.0 * np.array([1, -1, *[1] * (1 + extra)])
    run = legged.simulate(closed, until=0.6, q=np.zeros(3 + extra), v=v)
    assert run.backend == "compiled closed loop"
    ranks = legged.simulation.loop_ranks(closed, run)
    assert ranks[0] == 1 + extra and set(ranks[1:]) == {2 + extra}
    assert run.q[-1, 0] < -np.pi  # past the next flat posture
    assert run.q[:, 2:] == pytest.approx(np.repeat(run.q[:, :1], 1 + extra, axis=1), abs=1e-12)
    assert legged.simulation.loop_errors(closed, run).max() < 1e-14
    assert run.energy_drift < 1e-7 * run.energy.kinetic.max()


def test_work_in_is_the_rate_of_energy():
    """Closing joints do none: energy less the motors' work stays."""
    closed, q, v = spinning_four_bar()
    run = legged.simulate(
        closed, lambda t, q, v, w: np.stack([0.3 - 0.1 * v[0], 0.0 * t, 0.05 * v[2]]), until=2.0, q=q, v=v
    )
    assert np.abs(run.energy.actuator_work).max() > 0.3
    assert run.energy_drift < 1e-6 * np.abs(run.energy.balance).max()


def floating_leg(gravity=(0, 0, -9.81)):
    closed = robots.five_bar_leg(legged.FloatingBase(), gravity)
    angles = {"front_hip": 0.9, "front_knee": -1.5, "rear_hip": -0.9, "rear_knee": 1.5}
    q = loops.assemble(closed, closed.robot.state(joints=angles).q, hold=["front_hip", "rear_hip"])
    return closed, q


def test_loop_forces_are_internal_to_momentum():
    """A leg in free fall, spinning: closing forces change neither angular momentum nor that of its fall."""
    closed, q = floating_leg()
    rng = np.random.default_rng(0)
    for _ in range(3):
        v = loops.consistent_velocity(closed, q, rng.normal(size=closed.robot.nv))
        tau = np.concatenate([np.zeros(6), rng.normal(size=4)])
        vdot = loops.forward_dynamics(closed, q, v, tau)
        rate = legged.momentum_rate(closed.robot, q, v, vdot)
        weight = closed.robot.mass * closed.robot.gravity
        assert rate == pytest.approx([0, 0, 0, *weight], abs=1e-10 * np.abs(vdot).max())


@pytest.mark.slow
def test_ten_seconds_of_a_falling_delta():
    """It swings through with 3.7 J, near postures in which its arms and rods line up.

    The motion is chaotic there, and the drift depends on rounding: 2e-6 to 1.3e-5 J for starts that differ by up to
    1e-8 rad, and up to 5e-4 J with steps of 1 ms.
    """
    closed = robots.delta()
    run = legged.simulate(closed, until=10.0, integrator=legged.RungeKutta4(5e-4))
    assert run.energy_drift < 1e-4 * run.energy.kinetic.max()
    assert legged.simulation.loop_errors(closed, run).max() < 1e-13


@pytest.mark.slow
def test_ten_seconds_of_a_tumbling_leg():
    closed, q = floating_leg(gravity=(0, 0, 0))
    v = loops.consistent_velocity(closed, q, np.random.default_rng(1).normal(size=closed.robot.nv))
    run = legged.simulate(closed, until=10.0, q=q, v=v)
    start, end = (legged.momentum(closed.robot, run.q[k], run.v[k]) for k in (0, -1))
    assert end == pytest.approx(start, abs=1e-6 * np.abs(start).max())
    assert run.energy_drift < 1e-6 * run.energy.kinetic.max()
    assert legged.simulation.loop_errors(closed, run).max() < 1e-13


def test_five_bar_leg_lands_and_carries_its_weight():
    """Loops and a compliant floor in one run; the hips' servos hold the leg."""
    closed = robots.five_bar_leg()
    robot, angles = closed.robot, {"front_hip": 0.9, "front_knee": -1.5, "rear_hip": -0.9, "rear_knee": 1.5}
    q = loops.assemble(closed, robot.state(joints=angles).q, hold=["front_hip", "rear_hip"])
    q[2] = 1e-3 - legged.frame_pose(robot, q, "foot").position[2]
    gains = np.array([0, 0, 0, 40.0, 0, 40.0, 0])
    wanted = np.array(q)
    floor, step = realistic_ground(robot, support=1), legged.RungeKutta4(5e-5)
    run = legged.simulate(
        closed, lambda t, q, v, w: gains * (wanted - q - 0.025 * v), until=1.0, q=q, ground=floor, integrator=step
    )
    weight = 9.81 * robot.mass
    assert run.ground_force[:, 2].max() > 1.2 * weight  # it lands
    assert run.ground_force[-1, 2] == pytest.approx(weight, rel=1e-3)
    assert run.energy_drift < 1e-6
    assert legged.simulation.loop_errors(closed, run).max() < 1e-13


def test_delta_only_translates():
    """Three freedoms; its platform keeps level, and no row is superfluous."""
    closed = robots.delta()
    mobility = loops.mobility(closed, closed.robot.neutral())
    assert (mobility.rows, mobility.rank, mobility.freedoms) == (15, 15, 3)
    q = closed.robot.state(joints={"a_shoulder": 0.3, "b_shoulder": -0.2, "c_shoulder": 0.1}).q
    q = loops.assemble(closed, q, hold=["a_shoulder", "b_shoulder", "c_shoulder"])
    R, o = legged.frame_pose(closed.robot, q, "platform")
    assert np.abs(R - np.eye(3)).max() < 1e-10
    assert np.linalg.norm(o - legged.frame_pose(closed.robot, closed.robot.neutral(), "platform").position) > 0.01
    v = loops.consistent_velocity(closed, q, np.random.default_rng(0).normal(size=18))
    assert np.abs(legged.frame_twist(closed.robot, q, v, "platform")[:3]).max() < 1e-10


def test_the_key_frame_of_a_scene_is_the_given_configuration(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    closed, q, _ = spinning_four_bar()
    path = loops.save_mjcf(closed, tmp_path / "scene.xml", scene=True, home=q)
    assert mujoco.MjModel.from_xml_path(str(path)).key_qpos[0] == pytest.approx(q, abs=1e-9)
    plain = loops.save_mjcf(closed, tmp_path / "plain.xml")
    assert mujoco.MjModel.from_xml_path(str(plain)).nkey == 0


# MuJoCo's constraints are soft. An impedance of 0.9999, the most it allows, leaves 1e-4 of what the links would do
# without the loop, more where the rows' mobilities differ much; a stiff reference keeps the drift small.

SOFT = 1e-3
STIFF = 'solref="2e-3 1" solimp="0.9999 0.9999 0.001"'


def in_mujoco(closed, equality, tmp_path):
    """Return (mujoco, the model of the tree with an equality constraint)."""
    mujoco = pytest.importorskip("mujoco")
    text = legged.save_mjcf(closed.robot, tmp_path / "tree.xml").read_text()
    option = '<option timestep="1e-4" integrator="RK4" solver="Newton" tolerance="1e-15" iterations="200"/>'
    text = text.replace("<worldbody>", option + "<worldbody>", 1)
    return mujoco, mujoco.MjModel.from_xml_string(
        text.replace("</mujoco>", f"<equality>{equality}</equality></mujoco>")
    )


def test_connected_four_bar_accelerates_and_moves_as_in_mujoco(tmp_path):
    closed, q, v = spinning_four_bar()
    connect = f'<connect body1="coupler" body2="rocker" anchor="0.45 0 0" {STIFF}/>'
    mujoco, model = in_mujoco(closed, connect, tmp_path)
    model.eq_data[0, 3:6] = 0.4, 0, 0  # where the pin is on the rocker
    data, tau = mujoco.MjData(model), np.array([0.3, -0.1, 0.2])
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
    mujoco.mj_forward(model, data)
    free = np.abs(legged.forward_dynamics(closed.robot, q, v, tau)).max()
    assert data.qacc == pytest.approx(loops.forward_dynamics(closed, q, v, tau), abs=SOFT * free)
    data.qfrc_applied[:] = 0.0
    for _ in range(5000):
        mujoco.mj_step(model, data)
    run = legged.simulate(closed, until=0.5, q=q, v=v)
    assert data.qpos == pytest.approx(run.q[-1], abs=1e-5)  # softness, while it turns by 4 rad


def test_welded_arms_accelerate_as_in_mujoco(tmp_path):
    """Two arms of six joints whose ends are welded, at rest and moving."""
    arm = legged.Limb()
    for k, axis in enumerate("zyyzyx"):
        part = legged.Link(f"link{k}", legged.box_inertia(1.0, (0.1, 0.12, 0.3), (0, 0.01, 0.15)))
        arm.add(legged.Revolute(f"joint{k}", axis), part, at=(0, 0, 0.3 * (k > 0)))
    trunk = legged.Link("trunk", legged.box_inertia(5.0, (1, 0.3, 0.2)))
    builder = legged.RobotBuilder("arms", trunk, base=legged.FixedBase())
    for side, x in (("left_", -0.4), ("right_", 0.4)):
        builder.attach(arm, to="trunk", at=(x, 0, 0), prefix=side)
    robot, rng = builder.build(), np.random.default_rng(3)
    q, speed, tau = rng.normal(size=(3, robot.nv))
    R, o = legged.frame_pose(robot, q, "right_link5", "left_link5")
    closed = loops.close(robot, legged.Fixed("weld"), parent="left_link5", child="right_link5", at=o, rotation=R)
    numbers = " ".join(f"{x:.17g}" for x in [*o, *legged.rotations.quaternion_of(R)])
    weld = f'<weld body1="left_link5" body2="right_link5" relpose="{numbers}" {STIFF}/>'
    mujoco, model = in_mujoco(closed, weld, tmp_path)
    data = mujoco.MjData(model)
    for v in (0.0 * speed, loops.consistent_velocity(closed, q, speed)):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(model, data)
        free = np.abs(legged.forward_dynamics(robot, q, v, tau)).max()
        assert data.qacc == pytest.approx(loops.forward_dynamics(closed, q, v, tau), abs=SOFT * free)


PHASES = {  # posture of legs a and b, how it moves, what stands, how many of its rows are independent
    "double support": ([0.6, -0.7, 0.1, 0.1, -0.7, 0.6], [0.1, -0.2, 0.1, 0.1, -0.2, 0.1], "ab", 6),
    "single support": ([0.3, -0.6, 0.3, 0.5, -1.4, 0.9], [0.0, 0.0, 0.0, 0.1, -0.2, 0.1], "a", 3),
}


@pytest.mark.parametrize("phase", PHASES)
def test_pinned_feet_have_the_forces_of_a_stiff_floor(phase):
    """A biped that moves slowly on its feet: forces of the configuration-dependent approach and of the compliant one.

    Heel and toe bind a rigid foot twice, and a planar robot is bound sideways as well. How heel and toe share friction
    is not determined; a foot's force and the load of the heel are.
    """
    posture, sway, feet, rank = PHASES[phase]
    posture, sway, pace = np.array(posture), np.array(sway), 0.5 * np.pi  # [rad/s]
    robot = robots.planar_biped()
    q = np.concatenate([np.zeros(3), posture])
    q[2] = -legged.frame_pose(robot, q, "a_heel").position[2]

    def sways(t, q, v, wrenches):
        wanted, rate = posture + np.sin(pace * t) * sway, pace * np.cos(pace * t) * sway
        return 3000.0 * (wanted - q[3:]) + 60.0 * (rate - v[3:])

    run = legged.simulate(robot, sways, until=3.0, ground=realistic_ground(robot), q=q)
    contacts = [f"{foot}_{end}" for foot in feet for end in ("heel", "toe")]
    weight = 9.81 * robot.mass
    for k in range(100, len(run), 50):  # the landing has died out
        closed = loops.pin_contacts(robot, run.q[k], contacts)
        solution = loops.solve(closed, run.q[k], run.v[k], run.tau[k])
        forces = loops.loop_wrenches(closed, run.q[k], solution.multipliers)[:, 3:]
        contact_forces = run.contacts.forces[k, : len(contacts)]
        assert solution.rank == rank
        of_pins, of_floor = (each.reshape(len(feet), 2, 3).sum(axis=1) for each in (forces, contact_forces))
        assert of_pins == pytest.approx(of_floor, abs=1e-3 * weight)
        assert forces[:, 2] == pytest.approx(contact_forces[:, 2], abs=1e-2 * weight)
    assert not run.contacts.forces[100:, len(contacts) :].any()
    stands = loops.pin_contacts(robot, q, contacts)
    bound = legged.simulate(stands, sways, until=3.0, q=q, integrator=legged.Stiff())  # the free ankle is stiff
    assert legged.simulation.loop_errors(stands, bound).max() < 1e-5
    assert np.abs(bound.q - run.q).max() < 0.02  # the floor gives way by 0.5 mm under feet of 0.15 m
