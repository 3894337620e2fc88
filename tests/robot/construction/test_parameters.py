"""Robots with other numbers, plain or traced, have the dynamics of the edited robot; impossible numbers are refused."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from oracles.cases import case_of

import legged
import robots
from legged.algorithms import articulated, composite, derivatives, newton_euler
from legged.algorithms.newton_euler import INERTIAL_PARAMETERS, inertial_parameters, inverse_dynamics_regressor
from legged.errors import DefinitionError, InertiaError, NotFiniteError, ShapeError, TraceError, UnknownNameError
from legged.robot.construction.random_tree import ALL_JOINTS

ROUNDING = 1e-12  # relative to the largest entry, for up to a dozen links
ROTOR = {"rotor_inertia": "inertia", "gear": "gear"}
CONDITION = 1e-9  # accelerations lose the condition number of the inertia matrix
FUNCTIONS = {
    legged.inverse_dynamics: (("q", "v", "vdot"), ROUNDING),
    legged.inertia_matrix: (("q",), ROUNDING),
    legged.forward_dynamics: (("q", "v", "tau"), CONDITION),
}


def random_values(robot, rng):
    """Return random values of about two thirds of a robot's parameters."""
    drawn = {}
    for name, present in robot.parameters().items():
        field = name.rpartition(".")[2]
        if field in ("stop_stiffness", "restitution"):
            drawn[name] = np.full(np.shape(present), 0.25)
            continue
        if rng.random() < 1 / 3 or field in ("lower", "upper", "speed"):
            continue
        if field == "tensor":
            drawn[name] = legged.box_inertia(1.0, rng.uniform(0.1, 0.5, 3)).tensor
        else:
            least = -0.4 if field in ("center", "at", "position", "rest", "gravity", "gear") else 0.1
            drawn[name] = rng.uniform(least, 0.5, np.shape(present))
    return drawn


def edited(robot, values):
    """Return the robot edited to the values of some parameters."""
    editor = robot.edit()
    links, contacts = [link.name for link in robot.links], [contact.name for contact in robot.contacts]
    for owner in dict.fromkeys(name.rpartition(".")[0] for name in values):
        own = {name.rpartition(".")[2]: x for name, x in values.items() if name.rpartition(".")[0] == owner}
        if not owner:
            editor.change_robot(gravity=own.pop("gravity"))
        if owner == "base" and "base.armature" in robot.parameters():
            fields = {field: float(own.pop(field)) for field in ("armature", "damping") if field in own}
            editor.change_robot(base=replace(robot.base, **fields))
        if "position" in own and owner in contacts:
            editor.change_contact(owner, own.pop("position"))
        inertial = {field: own.pop(field) for field in ("mass", "center", "tensor") if field in own}
        if inertial and owner in links:
            editor.change_link(owner, **inertial)
        rotor = {field: own.pop(name) for name, field in ROTOR.items() if name in own}
        if rotor:
            present = next(c.joint.physics.rotor for c in robot.connections if c.joint.name == owner)
            own["rotor"] = replace(present, **rotor)
        if own:
            editor.change_joint(owner, **own)
    return editor.build()


def case(seed):
    """Return (robot, random values, robot edited to them, state)."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(
        seed, links=int(rng.integers(3, 10)), physics=True, coupled=True, shuffled=True, joints=ALL_JOINTS
    )
    values = random_values(robot, rng)
    return robot, values, edited(robot, values), case_of(robot, seed)


def assert_close(actual, expected, tolerance):
    np.testing.assert_allclose(actual, expected, atol=tolerance * (1.0 + np.abs(expected).max(initial=0.0)))


@pytest.mark.parametrize("seed", range(12))
def test_robots_with_other_numbers_equal_edited_robots(seed):
    robot, values, expected, state = case(seed)
    changed = robot.with_parameters(values)
    for function, (names, tolerance) in FUNCTIONS.items():
        arguments = [getattr(state, name) for name in names]
        assert_close(function(changed, *arguments), function(expected, *arguments), tolerance)
    assert_close(legged.link_poses(changed, state.q)[1], legged.link_poses(expected, state.q)[1], ROUNDING)
    assert_close(legged.center_of_mass(changed, state.q), legged.center_of_mass(expected, state.q), ROUNDING)
    assert_close(legged.potential_energy(changed, state.q), legged.potential_energy(expected, state.q), ROUNDING)
    assert changed.mass == pytest.approx(expected.mass, rel=ROUNDING)
    for (name, one), (other, two) in zip(changed.parameters().items(), expected.parameters().items(), strict=True):
        assert name == other
        np.testing.assert_allclose(one, two, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(2))
def test_kernels_with_parameters_equal_kernels_of_the_edited_robot(seed):
    robot, values, expected, state = case(seed)
    numbers = np.concatenate([np.ravel(value) for value in values.values()])
    for function, (names, tolerance) in FUNCTIONS.items():
        kernel = legged.compile(function, robot, parameters=list(values))
        arguments = [getattr(state, name) for name in names]
        assert_close(kernel(*arguments, parameters=numbers), function(expected, *arguments), tolerance)


def test_a_batch_varies_states_and_parameters_together():
    robot = robots.spatial_quadruped()
    rng, names = np.random.default_rng(0), ["trunk.mass", "leg1_knee.at", "leg2_hip.damping"]
    kernel = legged.compile(legged.forward_dynamics, robot, parameters=names)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(9)])
    v, tau = rng.normal(size=(2, 9, robot.nv))
    numbers = rng.uniform(0.1, 1.0, (9, 5))
    for values, x, *state in zip(kernel(q, v, tau, numbers), numbers, q, v, tau, strict=True):
        expected = edited(robot, dict(zip(names, (x[0], x[1:4], x[4]), strict=True)))
        assert_close(values, legged.forward_dynamics(expected, *state), CONDITION)
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(twin(q, v, tau, numbers), kernel(q, v, tau, numbers))


def test_the_derivative_by_inertial_parameters_is_the_regressor():
    robot = legged.random_tree(5, links=5)
    state = case_of(robot, 5)

    def torques(robot, q, v, vdot, theta):
        values = {}
        for link, (m, *h, xx, xy, yy, xz, yz, zz) in zip(
            robot.links, theta.reshape(-1, len(INERTIAL_PARAMETERS)), strict=True
        ):
            c = np.stack(h) / m
            about_origin = np.stack([np.stack(row) for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))])
            values[f"{link.name}.mass"], values[f"{link.name}.center"] = m, c
            values[f"{link.name}.tensor"] = about_origin - m * ((c @ c) * np.eye(3) - np.outer(c, c))
        return legged.inverse_dynamics(robot.with_parameters(values), q, v, vdot)

    arguments = robot, state.q, state.v, state.vdot
    derivative = legged.jacobian(torques, "theta")(*arguments, inertial_parameters(robot))
    assert_close(derivative, inverse_dynamics_regressor(*arguments), 1e-11)  # differences of products of size 10


def test_other_functions_take_a_robot_with_traced_numbers():
    robot = robots.spatial_quadruped()
    q = legged.random_configuration(robot, np.random.default_rng(0))

    def mixed(mass, at):
        changed = robot.with_parameters({"trunk.mass": mass, "leg1_knee.at": at, "leg1_foot.position": at})
        foot = changed.contact("leg1_foot")
        jacobian = legged.point_jacobian(changed, q, foot.link, foot.position)
        return legged.inertia_matrix(changed, q), jacobian, legged.center_of_mass(changed, q)

    at = np.array([0.01, 0.02, -0.25])
    expected = edited(robot, {"trunk.mass": 5.0, "leg1_knee.at": at, "leg1_foot.position": at})
    actual = legged.compile(mixed, mass=(), at=(3,))(5.0, at)
    foot = expected.contact("leg1_foot")
    assert_close(actual[0], legged.inertia_matrix(expected, q), ROUNDING)
    assert_close(actual[1], legged.point_jacobian(expected, q, foot.link, foot.position), ROUNDING)
    assert_close(actual[2], legged.center_of_mass(expected, q), ROUNDING)


def test_a_payload_is_a_massless_link_whose_mass_varies():
    robot = robots.spatial_quadruped()
    empty = robot.edit().add(legged.Fixed("mount"), legged.Link("payload"), to="trunk", at=(0, 0, 0.1)).build()
    load = legged.Link("payload", legged.point_mass(2.0))
    loaded = robot.edit().add(legged.Fixed("mount"), load, to="trunk", at=(0.1, 0, 0.1)).build()
    changed = empty.with_parameters({"payload.mass": 2.0, "mount.at": (0.1, 0, 0.1)})
    q = legged.random_configuration(robot, np.random.default_rng(0))
    assert_close(legged.inertia_matrix(changed, q), legged.inertia_matrix(loaded, q), ROUNDING)


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("trunk.mass", -1.0, InertiaError, r"trunk.mass must not be negative, got -1"),
        ("trunk.tensor", np.diag([1.0, 1.0, 3.0]), InertiaError, "exceeds the sum of the others"),
        ("trunk.tensor", np.diag([1.0, 1.0, -0.1]), InertiaError, "not positive definite"),
        ("trunk.tensor", np.eye(3) + np.eye(3, k=1), InertiaError, "not symmetric"),
        ("leg1_hip.damping", -0.1, DefinitionError, r"leg1_hip.damping must not be negative"),
        ("leg1_hip.speed", 0.0, DefinitionError, r"leg1_hip.speed must be positive"),
        ("leg1_hip.effort", np.nan, NotFiniteError, r"leg1_hip.effort must be finite"),
    ],
)
def test_impossible_numbers_are_refused_by_robots_and_kernels(name, value, error, words):
    robot = robots.spatial_quadruped()
    with pytest.raises(error, match=words):
        robot.with_parameters({name: value})
    kernel = legged.compile(legged.inertia_matrix, robot, parameters=[name])
    size = np.size(value)
    possible = np.ravel(1.0 if size == 1 else np.eye(3))
    q = robot.neutral()
    with pytest.raises(error, match=rf"(?s){words}.*\(entry 1\)"):
        kernel(q, [possible, np.ravel(value)])
    with pytest.raises(error, match=words):
        kernel(q=q, parameters=np.ravel(value))


def test_stops_and_massless_links_are_checked_together():
    robot = robots.spatial_quadruped().edit().change_joint("leg1_hip", lower=-1.0, upper=1.0).build()
    with pytest.raises(DefinitionError, match=r"leg1_hip.lower lies above leg1_hip.upper"):
        robot.with_parameters({"leg1_hip.lower": 1.5})
    robot.with_parameters({"leg1_hip.lower": 1.5, "leg1_hip.upper": 2.0})
    with pytest.raises(InertiaError, match="give it a mass"):
        robot.with_parameters({"trunk.mass": 0.0, "trunk.tensor": np.eye(3)})


def test_wrong_names_and_shapes_are_refused():
    robot = robots.spatial_quadruped()
    with pytest.raises(UnknownNameError, match=r"trunk.mas.*trunk.mass"):
        robot.with_parameters({"trunk.mas": 1.0})
    with pytest.raises(ShapeError, match=r"trunk.center must be \(3,\)"):
        robot.with_parameters({"trunk.center": 1.0})
    with pytest.raises(UnknownNameError, match="robot parameter"):
        legged.compile(legged.inertia_matrix, robot, parameters=["trunk.masses"])
    with pytest.raises(DefinitionError, match="twice"):
        legged.compile(legged.inertia_matrix, robot, parameters=["trunk.mass", "trunk.mass"])
    with pytest.raises(TraceError, match="of its own"):
        legged.compile(lambda robot, parameters: parameters, robot, parameters=["trunk.mass"])
    kernel = legged.compile(legged.inertia_matrix, robot, parameters=["trunk.mass", "trunk.center"])
    with pytest.raises(ShapeError, match=r"parameters must be \(4,\), the entries of trunk.mass, trunk.center"):
        kernel(robot.neutral(), [1.0, 2.0])


def test_an_argument_called_parameters_keeps_its_meaning():
    kernel = legged.compile(lambda parameters: 2.0 * parameters, parameters=(2,))
    np.testing.assert_array_equal(kernel([1.0, 2.0]), [2.0, 4.0])


def test_parameters_cost_what_they_add():
    """The cost of one mass is that of the regrouped base; functions without parameters cost what they did."""
    robot = robots.spatial_quadruped()
    plain = legged.count(legged.forward_dynamics, robot)
    varied = legged.count(legged.forward_dynamics, robot, parameters=["trunk.mass"])
    assert plain.multiplications < varied.multiplications < 1.1 * plain.multiplications
    again = legged.count(legged.forward_dynamics, robot.with_parameters({}))
    assert (again.multiplications, again.additions) == (plain.multiplications, plain.additions)


def test_rotors_and_gravity_are_parameters_only_where_they_exist():
    robot = robots.spatial_quadruped()
    assert not [name for name in robot.parameters() if name.endswith(("rotor_inertia", "gear"))]
    with pytest.raises(UnknownNameError, match=r"leg1_knee.gear"):
        robot.with_parameters({"leg1_knee.gear": 9.0})
    geared = robot.edit().change_joint("leg1_knee", rotor=legged.Rotor(1e-4, 9.0, gyroscopic=True)).build()
    for name, value, words in (
        ("leg1_knee.rotor_inertia", -1e-4, "not be negative"),
        ("gravity", np.full(3, np.nan), "finite"),
    ):
        with pytest.raises((DefinitionError, NotFiniteError), match=f"{name} must .*{words}"):
            geared.with_parameters({name: value})


def test_algorithms_take_traced_rotors_and_gravity():
    """The algorithms beside the core choose their formulas by whether a rotor is gyroscopic, not by its numbers."""
    robot = legged.random_tree(3, links=6, joints=("revolute",), physics=True)
    state = case_of(robot, 3)
    geared = [c.joint.name for c in robot.connections if c.joint.physics.rotor.gyroscopic]
    assert geared
    values = {"gravity": np.array([1.0, -2.0, -3.0])}
    values |= {f"{name}.rotor_inertia": 0.03 for name in geared} | {f"{name}.gear": -2.0 for name in geared}
    expected, numbers = edited(robot, values), np.concatenate([np.ravel(value) for value in values.values()])
    for function, names, tolerance in (
        (newton_euler.inverse_dynamics, ("q", "v", "vdot"), ROUNDING),
        (composite.inertia_matrix, ("q",), ROUNDING),
        (articulated.forward_dynamics, ("q", "v", "tau"), CONDITION),
        (derivatives.of_forward_dynamics, ("q", "v", "tau"), 1e-8),
    ):
        arguments = [getattr(state, name) for name in names]
        actual = legged.compile(function, robot, parameters=list(values))(*arguments, numbers)
        for one, two in zip(np.atleast_1d(actual), np.atleast_1d(function(expected, *arguments)), strict=True):
            assert_close(one, two, tolerance)


@pytest.mark.parametrize("seed", range(4))
def test_the_robots_of_a_changed_group_have_its_numbers(seed):
    """Controllers see these robots: alone they move as in the group, whose base velocities have other axes."""
    fixed = robots.chain(3, base=legged.FixedBase())
    parts = {"fixed": fixed, "planar": robots.planar_hopper(), "floating": robots.spatial_quadruped()}
    group = legged.combine(parts, rotation={"fixed": legged.rpy(0.5, 0.3, 0.2)})
    rng = np.random.default_rng(seed)
    values = {name: x for name, x in random_values(group, rng).items() if not name.startswith("world")}
    own = (".at", ".armature", ".damping")
    values = {k: x for k, x in values.items() if k.endswith(own) or k.rpartition(".")[0] not in parts}
    changed = group.with_parameters(values)
    states = {m.name: case_of(m.robot, seed) for m in changed.members}
    q, v = changed.join_states({k: x.q for k, x in states.items()}, {k: x.v for k, x in states.items()})
    tau = np.concatenate([m.forces(states[m.name].q, states[m.name].tau) for m in changed.members])
    vdot = legged.forward_dynamics(changed, q, v, tau)
    for member in changed.members:
        state, joints = states[member.name], slice(member.robot.base.nv, None)
        own = legged.forward_dynamics(member.robot, state.q, state.v, state.tau)
        assert_close(own[joints], vdot[member.v][joints], CONDITION * np.abs(vdot).max())
        numbers = {name: x for name, x in member.robot.parameters().items() if name != "gravity"}
        of_base = {f"base.{field}": f"{member.name}.{field}" for field in ("armature", "damping")}
        names = {name: of_base.get(name, f"{member.name}/{name}") for name in numbers}
        assert all(np.array_equal(x, changed.parameters()[names[name]]) for name, x in numbers.items())
