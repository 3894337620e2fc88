"""The serial equivalent of robots with closed loops: maps of states and forces, and what it takes from the loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import legged
import robots
from legged import loops
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.errors import DefinitionError, LoopError, UnknownNameError
from legged.loops.ranges import configuration_within_ranges
from legged.loops.serial import looped_columns

RNG = np.random.default_rng(3)
LEGS = ("FL", "FR", "RL", "RR")
HIPS = [f"{leg}_{side}_hip" for leg in LEGS for side in ("front", "rear")]
BENT = np.array([1, 0, 0, 0, 0, 0, 0.5, *[0.4, -0.9, -0.4, 0.9] * 4])
ROUNDING = 1e-11  # of sums of some ten products of numbers of the order of 10
KNEE = 'range="-2 -0.3"'
LEG = """<mujoco><compiler angle="radian"/><worldbody><body name="trunk" pos="0 0 1"><freejoint/>
  <inertial pos="0 0 0" mass="10" diaginertia="0.1 0.1 0.1"/>
  <body name="thigh"><joint name="hip" axis="0 1 0"/><inertial pos="0 0 -0.15" mass="1" diaginertia="0.01 0.01 0.01"/>
    <body name="rod" pos="0.05 0 -0.3"><joint name="rod" type="ball"/>
      <inertial pos="0 0 -0.2" mass="0.3" diaginertia="0.004 0.004 0.0001"/></body>
    <body name="shin" pos="0 0 -0.3"><joint name="knee" axis="0 1 0" KNEE damping="0.4" armature="0.02"/>
      <inertial pos="0 0 -0.2" mass="1" diaginertia="0.01 0.01 0.001"/>
      <body name="spring"><joint name="spring" axis="0 1 0" stiffness="1500"/>
        <inertial pos="0 0 -0.2" mass="0.2" diaginertia="0.001 0.001 0.001"/>
        <body name="tarsus" pos="0 0 -0.4"><joint name="tarsus" axis="0 1 0" damping="0.1"/>
          <inertial pos="0 0 -0.1" mass="0.5" diaginertia="0.002 0.002 0.001"/>
          <body name="foot" pos="0 0 -0.3"><joint name="ankle" axis="0 1 0"/>
            <inertial pos="0 0 0" mass="0.1" diaginertia="0.001 0.001 0.001"/>
            <geom type="capsule" size="0.02" fromto="-0.08 0 -0.02 0.08 0 -0.02"/>
          </body></body></body></body></body></body></worldbody>
  <equality><connect name="rod" body1="rod" body2="tarsus" anchor="0 0 -0.4"/></equality>
  <actuator><motor joint="hip" ctrlrange="-90 90"/><motor joint="knee" ctrlrange="-80 80" gear="2"/>
    <motor joint="ankle" ctrlrange="-30 30"/></actuator></mujoco>"""


def five_bar(**options):
    closed = robots.five_bar_quadruped()
    return loops.serial_equivalent(closed, options.get("motors", HIPS), options.get("near", BENT))


@pytest.fixture(scope="module")
def five_bars():
    return five_bar()


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """A leg whose tarsus a rod keeps parallel to the thigh, with a spring in the shin."""
    path = tmp_path_factory.mktemp("leg") / "leg.xml"
    path.write_text(LEG.replace("KNEE", KNEE))
    return loops.serial_equivalent(loops.load(path))


def random_state(equivalent, size=0.1):
    """A state with closed loops near the one for which an equivalent was made."""
    q, _ = equivalent.state(equivalent.at, np.zeros(equivalent.closed.nv))
    base = equivalent.robot.base.nq
    q[base:] += RNG.uniform(-size, size, len(q) - base)
    full = equivalent.configuration(q)
    v = RNG.normal(size=equivalent.robot.nv)
    return full, equivalent.rates(full) @ v, q, v


@pytest.mark.parametrize("name", ["five_bars", "linked"])
def test_states_close_the_loops_and_keep_the_entries_of_the_equivalent(name, request):
    equivalent = request.getfixturevalue(name)
    q, v, own_q, own_v = random_state(equivalent)
    assert np.abs(loops.residual(equivalent.closed, q)).max() < 1e-12  # as assemble demands
    assert np.abs(loops.jacobian(equivalent.closed, q) @ v).max() < ROUNDING
    for given, found in zip((own_q, own_v), equivalent.state(q, v), strict=True):
        assert_allclose(found, given, rtol=0.0, atol=1e-15)


def test_rates_are_the_derivatives_of_configurations(five_bars):
    q, _, own, v = random_state(five_bars)
    v[:6], h, base = 0.0, 1e-6, five_bars.robot.base
    ahead, behind = (five_bars.configuration(own + s * h * np.r_[np.zeros(base.nq), v[base.nv :]]) for s in (1, -1))
    rates = (five_bars.rates(q) @ v)[base.nv :]
    assert_allclose((ahead - behind)[base.nq :] / (2.0 * h), rates, rtol=0.0, atol=1e-8)  # h^2, and 1e-13 / h


@pytest.mark.parametrize("name", ["five_bars", "linked"])
def test_forces_have_the_power_of_those_of_the_equivalent_and_act_in_motors_alone(name, request):
    equivalent = request.getfixturevalue(name)
    q, v, _, own = random_state(equivalent)
    tau = RNG.normal(size=equivalent.robot.nv)
    forces = equivalent.forces(q, tau)
    assert forces @ v == pytest.approx(tau @ own, abs=ROUNDING)
    kept = set(equivalent.motors) | {
        e for k, e in enumerate(equivalent.v_entries) if k not in looped_columns(equivalent)
    }
    assert not forces[[e for e in range(len(forces)) if e not in kept]].any()


def test_forces_that_hold_the_robot_are_those_of_inverse_dynamics(five_bars):
    closed = five_bars.closed
    q, *_ = random_state(five_bars)
    zero = np.zeros(closed.nv)
    expected = loops.inverse_dynamics(closed, q, zero, zero, actuated=HIPS).tau
    held = five_bars.rates(q).T @ bias_forces(closed.robot, q, zero)
    assert_allclose(five_bars.forces(q, held), expected, rtol=0.0, atol=1e-9)


def test_one_motor_too_many_gives_the_least_sum_of_squares():
    closed = robots.five_bar_quadruped()
    equivalent = loops.serial_equivalent(closed, [*HIPS, "FL_front_knee"], BENT)
    q, v, _, own = random_state(equivalent)
    tau = RNG.normal(size=equivalent.robot.nv)
    forces = equivalent.forces(q, tau)
    assert forces @ v == pytest.approx(tau @ own, abs=ROUNDING)
    columns = looped_columns(equivalent)
    E = equivalent.rates(q)[np.ix_(equivalent.motors, columns)]
    assert_allclose(forces[list(equivalent.motors)], np.linalg.lstsq(E.T, tau[columns], rcond=None)[0], atol=1e-9)


def test_joints_of_chains_have_the_inertia_and_friction_of_what_moves_with_them(five_bars, linked):
    for equivalent in (five_bars, linked):
        tree, robot, at = equivalent.closed.robot, equivalent.robot, equivalent.at
        E = equivalent.rates(at)
        whole = np.diag(E.T @ inertia_matrix(tree, at) @ E)
        own = np.diag(inertia_matrix(robot, equivalent.state(at, np.zeros(tree.nv))[0]))
        columns = looped_columns(equivalent)
        assert_allclose(own[columns], whole[columns], rtol=1e-9)
        assert robot.mass == pytest.approx(tree.mass, rel=1e-12)
        whole, own = (
            legged.center_of_mass(r, q) for r, q in ((tree, at), (robot, equivalent.state(at, np.zeros(tree.nv))[0]))
        )
        assert_allclose(own, whole, rtol=0.0, atol=1e-12)
    damping = np.zeros(linked.closed.nv)
    for joint in linked.closed.robot.joints:
        damping[joint.v] = joint.definition.physics.damping
    (tarsus,), column = linked.robot.followers, linked.rates(linked.at)[:, linked.robot.joint("knee").v.start]
    own, follower = (linked.robot.joint("knee").definition.physics.damping, tarsus.definition.physics.damping)
    assert own + tarsus.ratio**2 * follower == pytest.approx(column**2 @ damping)  # of the whole, each joint once


def test_a_tarsus_that_a_rod_moves_follows_the_knee(linked):
    (follower,) = linked.robot.followers
    assert (follower.name, follower.master) == ("tarsus", "knee")
    assert follower.ratio == pytest.approx(-1.0, abs=1e-9)  # rod and shin are the sides of a parallelogram
    assert follower.offset == pytest.approx(0.0, abs=1e-9)
    assert linked.held == ("spring",)
    assert [joint.name for joint in linked.robot.joints] == ["hip", "knee", "ankle"]
    assert linked.robot.joint("knee").definition.physics.effort == pytest.approx(160.0)


def test_the_loop_may_have_the_name_of_a_joint(linked):
    assert linked.closed.loops[0].name == "rod connect"


def test_limits_are_those_that_the_motors_allow_for_all_joints_at_once():
    effort, speed = 20.0, 15.0
    tree = robots.five_bar_quadruped()
    editor = tree.robot.edit()
    for name in HIPS:
        editor.change_joint(name, effort=effort, speed=speed)
    closed = loops.ClosedRobot(editor.build(), tree.loops, tree.rows)
    equivalent = loops.serial_equivalent(closed, near=BENT)  # its motors are those with a limit
    columns = looped_columns(equivalent)
    physics = [joint.definition.physics for joint in equivalent.robot.joints]
    for most, limits, T in (
        (
            effort,
            [p.effort for p in physics],
            np.linalg.pinv(equivalent.rates(equivalent.at)[np.ix_(equivalent.motors, columns)].T),
        ),
        (speed, [p.speed for p in physics], equivalent.rates(equivalent.at)[np.ix_(equivalent.motors, columns)]),
    ):
        loads = np.abs(T) @ np.array(limits)
        assert loads.max() == pytest.approx(most, rel=1e-9)
        assert (loads <= most * (1.0 + 1e-9)).all()


def test_knees_keep_their_side(five_bars):
    for leg in LEGS:
        physics = five_bars.robot.joint(f"{leg}_rear_knee").definition.physics
        assert (physics.lower, physics.upper) == pytest.approx((0.2, 0.2 + np.pi))
    mirrored = five_bar(near=np.array([1, 0, 0, 0, 0, 0, 0.5, *[-0.4, 0.9, 0.4, -0.9] * 4]))
    for leg in LEGS:
        assert mirrored.robot.joint(f"{leg}_rear_knee").definition.physics.upper == pytest.approx(-0.2)


def test_ranges_choose_how_a_loop_closes(tmp_path):
    """A crank that closes in two ways is closed within its range."""
    found = []
    for low, high in ((-2.0, -0.3), (0.3, 2.0)):
        path = tmp_path / f"leg{low}.xml"
        path.write_text(LEG.replace("KNEE", f'range="{low} {high}"'))
        closed = loops.load(path)
        q = configuration_within_ranges(closed, ["spring"])
        found.append(float(q[closed.robot.joint("knee").q][0]))
        assert low <= found[-1] <= high
        assert np.abs(loops.residual(closed, q)).max() < 1e-11
    assert found[0] == pytest.approx(-found[1], abs=1e-6)  # the middle of both ranges
    path.write_text(
        LEG.replace("KNEE", 'range="-2 -0.3"').replace('name="tarsus" axis', 'range="-3 -2.9" name="tarsus" axis')
    )
    with pytest.raises(LoopError, match="within the ranges of these joints"):
        loops.serial_equivalent(loops.load(path))


REFUSED = {
    "no motor is known": ({"motors": None}, DefinitionError, "has a limit of effort"),
    "two motors of one leg missing": ({"motors": HIPS[2:]}, DefinitionError, "do not move all joints"),
    "a motor that is none": ({"motors": ["hip"]}, UnknownNameError, "joint in a loop"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_equivalent_is_refused(what):
    options, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        five_bar(**options)


def test_a_robot_without_contact_points_has_no_chains():
    with pytest.raises(DefinitionError, match="no contact points"):
        loops.serial_equivalent(robots.four_bar(), ["crank joint"])


def test_rounding_in_redundant_rows_does_not_stop_the_assembly():
    """Hinges that are parallel to 1e-5 rad, closed by a ball, whose constraint across the plane cannot be satisfied."""
    rng, rod = np.random.default_rng(5), legged.rod_inertia(0.2, (0, 0, 0), (0, 0, -0.2))
    for _ in range(10):
        tree = legged.RobotBuilder("bars", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
        for side, x in (("a", -0.1), ("b", 0.1)):
            to, at = "ground", (x, 0, 0)
            for k in (1, 2):
                axis = np.array([0.0, 1.0, 0.0]) + 1e-5 * rng.normal(size=3)
                joint = legged.Revolute(f"{side}{k}", axis / np.linalg.norm(axis))
                tree.add(joint, legged.Link(f"{side}{k} bar", rod), to=to, at=at)
                to, at = f"{side}{k} bar", (0, 0, -0.2)
        ends = {"parent": "a2 bar", "child": "b2 bar", "at": (0, 1e-5, -0.2), "child_at": (0, 0, -0.2)}
        closed = loops.close(tree.build(), legged.Spherical("pin"), **ends)
        q = loops.assemble(closed, np.array([-0.4, 0.9, 0.5, -0.9]), hold=["a1", "b1"])
        for size in 10.0 ** np.arange(-11.5, -3.0, 0.5):  # errors below rounding of the residual across the plane
            again = loops.assemble(closed, q + size * np.array([0.0, 1.0, 0.0, -0.5]), hold=["a1", "b1"])
            x, _, z = np.abs(loops.residual(closed, again))
            assert max(x, z) < 1e-8  # 1e-5 m across the plane, times the tilt and a few


def test_a_robot_without_loops_is_its_own_equivalent():
    robot = robots.spatial_quadruped()
    equivalent = loops.serial_equivalent(loops.ClosedRobot(robot, (), ()))
    assert equivalent.robot.describe() == robot.describe()
    tau = RNG.normal(size=robot.nv)
    assert_allclose(equivalent.forces(robot.neutral(), tau), tau, rtol=0.0, atol=0.0)
