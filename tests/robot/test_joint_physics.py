"""Friction, springs, armature and rotors: laws of mechanics on random robots.

Robots have joints of every type in a random order of q and v; half of them have coupled joints.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from oracles.cases import random_case, size_of_forces
from oracles.differences import rate
from oracles.rebuild import rebuild

import legged
import robots
from legged import denoc
from legged.dynamics.passive import friction_forces, friction_slopes
from legged.errors import DefinitionError
from legged.robot.construction.random_tree import ALL_JOINTS
from legged.robot.physics import TRANSITION_SPEED

KINDS = ("revolute", "prismatic", "universal", "spherical", "ball", "planar", "fixed", "free", "screw", "cylindrical")
SHAPES = list(product(range(20), (False, True)))
EXACT = 1e-11  # relative to the size of the terms: the project's promise; 5e-15 is the worst seen
RATE = 1e-7  # relative to the power flows: error of finite differences
every_shape = pytest.mark.parametrize(("seed", "coupled"), SHAPES)


def case_with_physics(seed, coupled, **options):
    joints = ALL_JOINTS if coupled else KINDS
    return random_case(seed, links=1 + seed % 9, joints=joints, physics=True, coupled=coupled, shuffled=True, **options)


@every_shape
def test_recursions_equal_the_dense_theory_and_are_inverse_to_each_other(seed, coupled):
    case = case_with_physics(seed, coupled)
    robot, q, v, vdot, n0 = case.robot, case.q, case.v, case.vdot, case.robot.base.nv
    inertia, h = denoc.generalized_inertia_matrix(robot, q), denoc.bias_forces(robot, q, v, case.wrenches)
    assert np.abs(legged.inertia_matrix(robot, q) - inertia).max(initial=0) <= EXACT * np.abs(inertia).max(initial=0)
    allowed = EXACT * size_of_forces(inertia, vdot, h)
    tau = legged.inverse_dynamics(robot, q, v, vdot, case.wrenches)
    assert tau == pytest.approx(inertia @ vdot + h, abs=allowed)
    acceleration = legged.forward_dynamics(robot, q, v, tau, case.wrenches)
    assert legged.inverse_dynamics(robot, q, v, acceleration, case.wrenches) == pytest.approx(tau, abs=10 * allowed)
    base, torques = legged.floating_inverse_dynamics(robot, q, v, vdot[n0:], case.wrenches)
    forces = legged.inverse_dynamics(robot, q, v, np.concatenate([base, vdot[n0:]]), case.wrenches)
    assert forces[:n0] == pytest.approx(0.0, abs=10 * allowed)
    assert forces[n0:] == pytest.approx(torques, abs=10 * allowed)


@every_shape
def test_inertia_matrix_is_positive_definite_and_gives_the_kinetic_energy(seed, coupled):
    case = case_with_physics(seed, coupled)
    inertia = legged.inertia_matrix(case.robot, case.q)
    assert np.array_equal(inertia, inertia.T)
    assert np.linalg.eigvalsh(inertia).min(initial=np.inf) > 0.0
    energy = legged.kinetic_energy(case.robot, case.q, case.v)
    assert energy == pytest.approx(0.5 * case.v @ inertia @ case.v, rel=1e-12)
    closed = denoc.generalized_inertia_closed_form(case.robot, case.q)
    assert np.abs(closed - inertia).max(initial=0) <= EXACT * np.abs(inertia).max(initial=0)
    if not coupled:
        U, D = denoc.udu(case.robot, case.q)
        assert np.abs(U @ D @ U.T - inertia).max(initial=0) <= EXACT * np.abs(inertia).max(initial=0)


@every_shape
def test_input_power_is_the_rate_of_energy_plus_friction_losses(seed, coupled):
    case = case_with_physics(seed, coupled)
    robot, q, v = case.robot, case.q, case.v

    def energy(q, v):
        return legged.kinetic_energy(robot, q, v) + legged.potential_energy(robot, q)

    vdot = legged.forward_dynamics(robot, q, v, case.tau)
    flows = np.abs(case.tau * v).sum() + np.abs(legged.bias_forces(robot, q, v) * v).sum()
    gained, taken = rate(robot, energy, q, v, vdot), dissipation(robot, v)
    assert taken >= 0.0
    assert gained + taken == pytest.approx(case.tau @ v, abs=RATE * flows)


def dissipation(robot, v):
    """Return the power dissipated by friction, computed from the definitions of the joints."""
    total = 0.0
    for joint in (*robot.joints, *robot.followers):
        rates = getattr(joint, "ratio", 1.0) * v[joint.v]
        physics = joint.definition.physics
        total += (rates * (physics.damping * rates + physics.friction * np.tanh(rates / TRANSITION_SPEED))).sum()
    return total


@pytest.mark.parametrize("seed", range(20))
def test_inertia_rate_minus_twice_the_convective_matrix_is_skew_with_rotors(seed):
    case = case_with_physics(seed, coupled=False)
    C = denoc.convective_inertia_matrix(case.robot, case.q, case.v)
    change = rate(case.robot, lambda q, v: legged.inertia_matrix(case.robot, q), case.q, case.v)
    S = change - 2 * C
    assert np.abs(S + S.T).max(initial=0) <= RATE * (1 + np.abs(C).max(initial=0))


@pytest.mark.parametrize("seed", range(12))
def test_momentum_is_conserved_with_spinning_rotors_and_no_external_force(seed):
    case = case_with_physics(seed, coupled=bool(seed % 2), bases=("floating",), gravity=(0.0, 0.0, 0.0))
    robot, q, v = case.robot, case.q, case.v
    tau = np.concatenate([np.zeros(6), case.tau[6:]])
    vdot = legged.forward_dynamics(robot, q, v, tau)
    momentum = legged.momentum(robot, q, v)
    inertia = legged.inertia_matrix(robot, q)
    R, o = robot.base.pose(q)
    n, f = R @ (inertia[:3] @ v), R @ (inertia[3:6] @ v)
    about_center = n + np.cross(o - legged.center_of_mass(robot, q), f)
    size = np.abs(inertia).max() * (1 + np.abs(vdot).max())
    assert momentum == pytest.approx(np.concatenate([about_center, f]), abs=EXACT * size)
    gained = rate(robot, lambda q, v: legged.momentum(robot, q, v), q, v, vdot)
    assert gained == pytest.approx(0.0, abs=RATE * size)


@pytest.mark.parametrize("seed", range(0, 20, 4))
@pytest.mark.parametrize("coupled", [False, True])
def test_compiled_evaluation_equals_plain_evaluation_with_joint_physics(seed, coupled):
    case = case_with_physics(seed, coupled)
    robot, q, v = case.robot, case.q, case.v
    for function, arguments in (
        (legged.inverse_dynamics, (q, v, case.vdot)),
        (legged.forward_dynamics, (q, v, case.tau)),
        (legged.inertia_matrix, (q,)),
        (legged.kinetic_energy, (q, v)),
        (legged.potential_energy, (q,)),
    ):
        plain = function(robot, *arguments)
        fast = legged.compile(function, robot)(*arguments)
        assert np.abs(fast - plain).max(initial=0) <= EXACT * (1 + np.abs(plain).max(initial=0)), function.__name__


# Rotors.

GEARS = [9.0, -6.0, 1.0]


def machine(kind, physics=None):
    """A floating trunk with a wheel and a two-link arm; the wheel rotates unless the drive has physics."""
    at, axis = np.array([0.2, 0.1, -0.05]), np.array([0.6, 0.0, 0.8])
    wheel = legged.Link(
        "wheel", legged.Inertia(0.5, tensor=ACROSS * np.eye(3) + (SPIN - ACROSS) * np.outer(axis, axis))
    )
    mount = legged.Revolute("rotor", axis) if physics is None else legged.Fixed("mount")
    body = legged.box_inertia(1.0, (0.1, 0.1, 0.4), (0.0, 0.03, -0.2))
    drive = kind("drive", axis, physics=physics or legged.JointPhysics())
    return (
        legged.RobotBuilder(
            "machine", legged.Link("trunk", legged.box_inertia(5.0, (0.4, 0.3, 0.2), (0.02, 0.0, 0.01)))
        )
        .add(mount, wheel, to="trunk", at=at)
        .add(drive, legged.Link("arm", body), to="trunk", at=(0.1, -0.2, 0.1))
        .add(legged.Revolute("elbow", "y"), legged.Link("hand", body), to="arm", at=(0, 0, -0.3))
    )


SPIN, ACROSS = 0.003, 0.002  # inertias of the wheel about its axis and across, [kg m^2]


@pytest.mark.parametrize("gear", GEARS)
@pytest.mark.parametrize("kind", [legged.Revolute, legged.Prismatic])
def test_a_gyroscopic_rotor_is_equivalent_to_a_coupled_wheel_on_the_parent(gear, kind):
    """The reference: the wheel as a separate link, coupled to the joint with the gear ratio."""
    wheel = machine(kind).couple("rotor", "drive", gear).build()
    rotor = machine(kind, legged.JointPhysics(rotor=legged.Rotor(SPIN, gear, gyroscopic=True))).build()
    rng = np.random.default_rng(0)
    q = legged.random_configuration(rotor, rng)
    v, vdot = rng.normal(size=(2, rotor.nv))
    inertia, tau = legged.inertia_matrix(wheel, q), legged.inverse_dynamics(wheel, q, v, vdot)
    assert legged.inertia_matrix(rotor, q) == pytest.approx(inertia, abs=1e-13)
    assert legged.inverse_dynamics(rotor, q, v, vdot) == pytest.approx(tau, abs=1e-12)
    assert legged.forward_dynamics(rotor, q, v, tau) == pytest.approx(vdot, abs=1e-10)
    assert legged.momentum(rotor, q, v) == pytest.approx(legged.momentum(wheel, q, v), abs=1e-13)
    assert legged.kinetic_energy(rotor, q, v) == pytest.approx(legged.kinetic_energy(wheel, q, v), rel=1e-13)


@pytest.mark.parametrize("gear", GEARS)
def test_a_rotor_without_gyroscopic_effect_is_an_armature_of_gear_squared_times_its_inertia(gear):
    rotor = machine(legged.Revolute, legged.JointPhysics(rotor=legged.Rotor(SPIN, gear))).build()
    armature = machine(legged.Revolute, legged.JointPhysics(armature=gear**2 * SPIN)).build()
    bare = machine(legged.Revolute, legged.JointPhysics()).build()
    q = legged.random_configuration(rotor, np.random.default_rng(1))
    inertia, where = legged.inertia_matrix(rotor, q), rotor.joint("drive").v.start
    assert np.array_equal(inertia, legged.inertia_matrix(armature, q))
    added = np.zeros_like(inertia)
    added[where, where] = gear**2 * SPIN
    assert inertia - legged.inertia_matrix(bare, q) == pytest.approx(added, abs=1e-14)


# A single joint against closed forms.


def arm(physics, kind=legged.Revolute, **joint):
    """A link of 1 kg at 0.5 m below a joint in a wall, without gravity: 0.251 kg m^2 about it."""
    builder = legged.RobotBuilder("arm", legged.Link("wall"), base=legged.FixedBase(), gravity=(0, 0, 0))
    body = legged.Inertia(1.0, (0, 0, -0.5), 1e-3 * np.eye(3))
    return builder.add(kind("hinge", physics=physics, **joint), legged.Link("rod", body), to="wall").build()


@pytest.mark.parametrize("speed", [0.0, 1e-6, 1e-3, 1.0])
def test_friction_slopes_are_secants_of_the_friction_forces(speed):
    """Slope times v is the force, for joints of one or three freedoms and for a follower at a ratio, at any speed."""
    robot = coupled_robot_with_friction()
    v = speed * np.linspace(-1.0, 1.2, robot.nv)
    for body in robot.bodies:
        forces = friction_forces(body, v)
        assert friction_slopes(body, v) * v[body.v] == pytest.approx(forces, rel=1e-9, abs=1e-15)
    if speed:
        assert np.abs(np.concatenate([friction_forces(body, v) for body in robot.bodies])).min() > 0.0
    else:  # the slopes at rest: c + F / (transition speed), by the squared ratio of a follower
        slopes = [friction_slopes(body, v) for body in robot.bodies]
        expected = 0.3 + 0.2 / TRANSITION_SPEED
        assert np.concatenate(slopes) == pytest.approx([expected] * 4 + [0.49 * expected], rel=1e-12)


def coupled_robot_with_friction():
    """Return a robot of a hinge, a ball joint, and a hinge that follows the first at the ratio -0.7."""
    physics = legged.JointPhysics(damping=0.3, friction=0.2)
    body = legged.sphere_inertia(1.0, 0.1)
    builder = legged.RobotBuilder("hand", legged.Link("palm", body), base=legged.FixedBase())
    kinds = (("a", legged.Revolute, "palm"), ("b", legged.Spherical, "a"), ("c", legged.Revolute, "b"))
    for name, kind, parent in kinds:
        builder.add(kind(f"joint {name}", physics=physics), legged.Link(name, body), to=parent, at=(0.1, 0.0, 0.0))
    return builder.couple("joint c", "joint a", -0.7).build()


def test_force_of_a_joint_is_the_sum_of_its_parts():
    physics = legged.JointPhysics(damping=0.4, friction=0.3, armature=0.05, stiffness=2.0, rest=0.2)
    robot = arm(physics, axis="y")
    q, v, vdot = np.array([[0.7], [0.03], [1.5]])
    by_hand = (0.251 + 0.05) * 1.5 + 0.4 * 0.03 + 0.3 * np.tanh(0.03 / TRANSITION_SPEED) + 2.0 * (0.7 - 0.2)
    assert legged.inverse_dynamics(robot, q, v, vdot) == pytest.approx([by_hand], rel=1e-14)
    assert legged.potential_energy(robot, q) == pytest.approx(0.5 * 2.0 * 0.5**2, rel=1e-14)
    still = legged.JointPhysics(damping=0.4, friction=0.3, armature=0.05)
    assert legged.inverse_dynamics(arm(still, axis="y"), q, 0 * v, 0 * vdot) == pytest.approx([0.0], abs=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5, 1.2e-4, 0.3, 3.1])
def test_the_spring_moment_of_a_ball_joint_is_along_the_rotation_vector_to_rest(angle):
    rest, axis = np.array([0.3, -0.5, 0.2]), np.array([2.0, 3.0, 6.0]) / 7.0
    robot = arm(legged.JointPhysics(stiffness=2.0, rest=rest), kind=legged.Spherical)
    q = legged.integrate(robot, np.array([1.0, 0, 0, 0]), rest)
    q = legged.integrate(robot, q, angle * axis)
    force = legged.inverse_dynamics(robot, q, np.zeros(3), np.zeros(3))
    assert force == pytest.approx(2.0 * angle * axis, abs=1e-14)
    assert legged.compile(legged.inverse_dynamics, robot)(q, np.zeros(3), np.zeros(3)) == pytest.approx(
        force, abs=1e-14
    )
    assert legged.potential_energy(robot, q) == pytest.approx(0.5 * 2.0 * angle**2, abs=1e-14)


def test_a_massless_last_link_may_hang_on_a_joint_with_armature():
    def tip(physics):
        builder = legged.RobotBuilder(
            "arm", legged.Link("wall", legged.sphere_inertia(1.0, 0.1)), base=legged.FixedBase()
        )
        return builder.add(legged.Revolute("hinge", "y", physics=physics), legged.Link("tip"), to="wall")

    robot = tip(legged.JointPhysics(armature=0.02)).build()
    assert legged.forward_dynamics(robot, np.zeros(1), np.zeros(1), np.ones(1)) == pytest.approx([50.0])
    robot = tip(legged.JointPhysics(rotor=legged.Rotor(0.0002, 10.0))).build()
    assert legged.forward_dynamics(robot, np.zeros(1), np.zeros(1), np.ones(1)) == pytest.approx([50.0])
    with pytest.raises(DefinitionError, match="'tip' is the last of its limb and has no mass"):
        tip(legged.JointPhysics(damping=1.0)).build()


def test_a_thin_rod_may_turn_about_itself_with_an_armature():
    def shaft(physics):
        rod = legged.Link("rod", legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -1.0)))
        builder = legged.RobotBuilder("shaft", legged.Link("wall"), base=legged.FixedBase())
        return builder.add(legged.Revolute("twist", "z", physics=physics), rod, to="wall")

    with pytest.raises(DefinitionError, match="joint 'twist' of link 'rod' can move without inertia"):
        shaft(legged.JointPhysics()).build()
    assert legged.inertia_matrix(shaft(legged.JointPhysics(armature=0.01)).build(), np.zeros(1)) == pytest.approx(0.01)


# Operation counts.

QUADRUPED = robots.spatial_quadruped()


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "inertia_matrix", "kinetic_energy"])
def test_zero_parameters_cost_no_operations(name):
    def counted(**physics):
        robot = rebuild(QUADRUPED, joint=lambda joint: replace(joint, physics=legged.JointPhysics(**physics)))
        c = legged.count(getattr(legged, name), robot)
        return c.multiplications + c.additions + c.divisions, c

    bare, plain = counted()
    assert plain == legged.count(getattr(legged, name), QUADRUPED)
    nothing = {"damping": 0.0, "friction": 0.0, "armature": 0.0, "stiffness": 0.0, "rest": 0.3}
    assert counted(**nothing)[1] == plain
    limits = {"lower": -1.0, "upper": 1.0, "effort": 10.0, "speed": 20.0}
    assert counted(**limits)[1] == plain
    joints = QUADRUPED.nj
    if name == "inverse_dynamics":
        assert counted(damping=0.3)[0] == bare + 2 * joints
        assert counted(stiffness=0.3)[0] == bare + 2 * joints
        assert counted(stiffness=0.3, rest=0.1)[0] == bare + 3 * joints
        assert counted(armature=0.3)[0] == bare + 2 * joints
    if name == "inertia_matrix":
        assert bare < counted(armature=0.3)[0] <= bare + joints


# Invalid input.


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (
            legged.Revolute("j", physics=legged.JointPhysics(damping=(1.0, 2.0))),
            "damping of joint 'j' must be one number or 1",
        ),
        (
            legged.Universal("j", physics=legged.JointPhysics(rotor=legged.Rotor(1.0))),
            "joint 'j' has 2 degrees of freedom; a rotor needs one",
        ),
        (
            legged.Spherical("j", physics=legged.JointPhysics(armature=(1.0, 1.0, 2.0))),
            "ball joint 'j' needs one armature for all axes",
        ),
        (
            legged.Spherical("j", physics=legged.JointPhysics(stiffness=(1.0, 1.0, 2.0))),
            "ball joint 'j' needs one stiffness for all axes",
        ),
        (legged.Spherical("j", physics=legged.JointPhysics(upper=1.0)), "ball joint 'j' cannot have stops"),
    ],
)
def test_physics_that_does_not_fit_its_joint_raises_an_error(joint, words):
    builder = legged.RobotBuilder("arm", legged.Link("wall"), base=legged.FixedBase())
    with pytest.raises(DefinitionError) as caught:
        builder.add(joint, legged.Link("rod", legged.box_inertia(1.0, (0.1, 0.2, 0.3))), to="wall").build()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"damping": -1.0}, "a joint's damping must not be negative, got -1.0"),
        ({"armature": np.nan}, "a joint's armature must be finite, got nan"),
        ({"stiffness": np.inf}, "a joint's stiffness must be finite, got inf"),
        ({"upper": -np.inf}, "a joint's upper must be finite, got -inf"),
        ({"lower": 1.0, "upper": 0.5}, "the lower limit 1.0 lies above the upper limit 0.5; swap them"),
        ({"speed": 0.0}, "a motor's speed must be positive"),
        ({"effort": -1.0}, "a joint's effort must not be negative"),
    ],
)
def test_impossible_physics_raises_an_error(numbers, words):
    with pytest.raises(DefinitionError) as caught:
        legged.JointPhysics(**numbers)
    assert words in str(caught.value)


def test_an_impossible_rotor_raises_an_error():
    with pytest.raises(DefinitionError, match="a rotor needs a finite inertia that is not negative"):
        legged.Rotor(-1.0)
