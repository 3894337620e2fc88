"""Invalid definitions raise errors that name the object, say what is wrong with it, and how to correct it."""

import re

import numpy as np
import pytest

import legged
from legged import Inertia, Limb, Link, Planar, Prismatic, Revolute, RobotBuilder, Spherical
from legged.errors import DefinitionError, InertiaError, LeggedError, NotFiniteError, ShapeError, UnknownNameError

BODY = legged.box_inertia(1.0, (0.1, 0.2, 0.3), (0.05, 0.0, -0.1))
NAN = float("nan")


def link(name="leg"):
    return Link(name, BODY)


def start(**options):
    return RobotBuilder("dog", link("trunk"), **options)


def refuses(error, *words):
    """Expect an error of this class whose message contains all the words."""
    return pytest.raises(error, match="".join(f"(?=.*{re.escape(word)})" for word in words))


def test_definition_errors_derive_from_builtin_and_toolkit_errors():
    assert issubclass(DefinitionError, LeggedError)
    assert issubclass(DefinitionError, ValueError)
    assert issubclass(InertiaError, DefinitionError)
    assert issubclass(UnknownNameError, KeyError)


# --- tree


def test_a_loop_of_links_raises_an_error():
    loop = (
        start()
        .add(Revolute("hip", "y"), link("thigh"), to="trunk")
        .add(Revolute("knee", "y"), link("shank"), to="thigh")
    )
    loop.joint(Revolute("brace", "y"), parent="trunk", child="shank")
    with refuses(
        DefinitionError, "link 'shank' is the child of two joints", "'knee' and 'brace'", "closes a cycle", "remove one"
    ):
        loop.build()


def test_a_joint_with_the_base_as_child_raises_an_error():
    loop = start().add(Revolute("hip", "y"), link("thigh"), to="trunk")
    loop.joint(Revolute("back", "y"), parent="thigh", child="trunk")
    with refuses(
        DefinitionError, "joint 'back' makes the base 'trunk' a child of 'thigh'", "cycle", "the base is the root"
    ):
        loop.build()


def test_a_cycle_apart_from_the_base_raises_an_error():
    apart = start().link(link("a")).link(link("b"))
    apart.joint(Revolute("ab", "y"), parent="a", child="b").joint(Revolute("ba", "y"), parent="b", child="a")
    with refuses(DefinitionError, "form a cycle of a, b"):
        apart.build()


def test_a_disconnected_link_raises_an_error():
    with refuses(DefinitionError, "link 'stray' is a second root", "connects it to the base 'trunk'", "add a joint"):
        start().link(link("stray")).build()


def test_a_second_tree_raises_an_error_with_its_root():
    two = start().link(link("other")).link(link("arm")).joint(Revolute("elbow", "y"), parent="other", child="arm")
    with refuses(DefinitionError, "link 'other' is a second root"):
        two.build()


# --- names


def test_duplicate_names_raise_errors():
    with refuses(DefinitionError, "two links are named 'leg'", "prefix"):
        start().add(Revolute("a", "y"), link(), to="trunk").add(Revolute("b", "y"), link(), to="trunk").build()
    with refuses(DefinitionError, "two joints are named 'hip'"):
        start().add(Revolute("hip", "y"), link("a"), to="trunk").add(
            Revolute("hip", "y"), link("b"), to="trunk"
        ).build()
    foot = {"foot": (0, 0, -0.1)}
    with refuses(DefinitionError, "two contact points are named 'foot'"):
        robot = start().add(Revolute("a", "y"), Link("a", BODY, foot), to="trunk")
        robot.add(Revolute("b", "y"), Link("b", BODY, foot), to="trunk").build()


def test_a_limb_attached_twice_without_a_prefix_raises_an_error():
    leg = Limb().add(Revolute("hip", "y"), link("thigh"))
    with refuses(DefinitionError, "two links are named 'thigh'"):
        start().attach(leg, to="trunk").attach(leg, to="trunk").build()


def test_an_unknown_parent_raises_an_error_with_a_suggestion():
    with refuses(UnknownNameError, "there is no link named 'trunc'", "did you mean 'trunk'?"):
        start().add(Revolute("hip", "y"), link(), to="trunc").build()


def test_an_unknown_child_raises_an_error():
    with refuses(UnknownNameError, "there is no link named 'wing'"):
        start().joint(Revolute("hip", "y"), parent="trunk", child="wing").build()


def test_an_unknown_link_of_a_limb_raises_an_error_at_once():
    with refuses(UnknownNameError, "there is no link of this limb named 'thy'"):
        Limb().add(Revolute("hip", "y"), link("thigh")).add(Revolute("knee", "y"), link("shank"), to="thy")


def test_unknown_names_of_links_joints_and_contacts_raise_errors():
    robot = start().add(Revolute("hip", "y"), link(), to="trunk").build()
    with refuses(UnknownNameError, "there is no link named 'leg2'", "did you mean 'leg'?"):
        robot.link("leg2")
    with refuses(UnknownNameError, "there is no joint named 'knee'", "there are: hip"):
        robot.joint("knee")
    with refuses(UnknownNameError, "there is no contact point named 'foot'", "there are: none"):
        robot.contact("foot")


def test_a_link_or_joint_without_a_name_raises_an_error():
    with refuses(DefinitionError, "a link needs a name"):
        Link("", BODY)
    with refuses(DefinitionError, "a joint needs a name"):
        Revolute("", "y")


@pytest.mark.parametrize("base", ["fixed", legged.FixedBase])
def test_a_base_of_the_wrong_type_raises_an_error(base):
    with refuses(DefinitionError, "the base must be a Base such as FixedBase()", "got"):
        start(base=base)


# --- joints


@pytest.mark.parametrize("kind", [Revolute, Prismatic])
@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ((0, 0, 2.0), ["axis of joint 'hip'", "must have unit length", "of length 2", "divide it by that"]),
        ((0, 0, 0), ["axis of joint 'hip'", "unit"]),
        ((0, 0, 1 + 1e-6), ["must have unit length", "1.000001"]),
        ("w", ["axis of joint 'hip'", "must be 'x', 'y', 'z', '-x', '-y', '-z' or a unit vector", "got 'w'"]),
        ("--x", ["got '--x'"]),
        ("", ["got ''"]),
    ],
)
def test_an_invalid_axis_raises_an_error(kind, axis, words):
    with refuses(DefinitionError, *words):
        start().add(kind("hip", axis), link(), to="trunk").build()


def test_an_axis_with_nan_or_of_two_numbers_raises_an_error_at_its_definition():
    with refuses(NotFiniteError, "axis must be finite, got nan"):
        Revolute("hip", (0, NAN, 1))
    with refuses(ShapeError, "axis must be (3,), got shape (2,)"):
        Revolute("hip", (0, 1))


def test_planar_joints_need_perpendicular_axes():
    with refuses(DefinitionError, "sliding axes of planar joint 'glide' must be perpendicular"):
        start().add(Planar("glide", "x", (0.6, 0.8, 0.0)), link(), to="trunk").build()


@pytest.mark.parametrize("sequence", ["xx", "xxy", "xyy", "abc", "xyzx", ""])
def test_euler_sequences_need_three_axes_and_no_two_neighbors_alike(sequence):
    with refuses(DefinitionError, f"Euler sequence {sequence!r}", "no two neighbors alike"):
        legged.EulerBase(sequence)
    with refuses(DefinitionError, f"Euler sequence {sequence!r}"):
        start().add(Spherical("ball", sequence), link(), to="trunk").build()


def test_euler_sequences_may_be_written_in_capitals():
    base = legged.EulerBase("ZYX")
    assert base == legged.EulerBase("zyx")
    robot = start(base=base).add(Spherical("ball", "XZX"), link(), to="trunk").build()
    q = legged.random_configuration(robot, np.random.default_rng(0))
    assert np.isfinite(legged.inertia_matrix(robot, q)).all()


def test_axes_and_rotations_given_to_nine_digits_are_made_exact():
    axis = np.full(3, 0.577350269)
    turn = np.round(legged.rpy(0.3, 0.4, 0.5), 10)
    robot = start().add(Revolute("hip", axis), link(), to="trunk", rotation=turn).build()
    R, _ = legged.link_poses(robot, legged.random_configuration(robot, np.random.default_rng(0)))
    assert R[1].T @ R[1] == pytest.approx(np.eye(3), abs=1e-15)


@pytest.mark.parametrize(
    ("rotation", "words"),
    [
        (np.diag([1.0, 1.0, -1.0]), ["the rotation of joint 'hip' is not a rotation", "right-handed"]),
        (2 * np.eye(3), ["the rotation of joint 'hip' is not a rotation", "orthonormal"]),
        (np.eye(2), ["the rotation of joint 'hip' must be a finite (3, 3) matrix"]),
    ],
)
def test_an_invalid_rotation_matrix_raises_an_error(rotation, words):
    with refuses(DefinitionError, words[0]) as caught:
        start().add(Revolute("hip", "y"), link(), to="trunk", rotation=rotation)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    ("at", "error", "word"),
    [((0, NAN, 0), NotFiniteError, "at must be finite"), ((0, 0), ShapeError, "at must be (3,)")],
)
def test_an_invalid_position_raises_an_error(at, error, word):
    with refuses(error, "RobotBuilder.add('hip')", word):
        start().add(Revolute("hip", "y"), link(), to="trunk", at=at)
    with refuses(NotFiniteError, "RobotBuilder.add('hip')", "rotation must be finite"):
        start().add(Revolute("hip", "y"), link(), to="trunk", rotation=np.full((3, 3), NAN))
    with refuses(error, "Limb.add('hip')", word):
        Limb().add(Revolute("hip", "y"), link(), at=at)
    with refuses(error, "RobotBuilder.attach", word):
        start().attach(Limb().add(Revolute("hip", "y"), link()), to="trunk", at=at, prefix="left_")


def test_gravity_and_contact_points_must_be_points():
    with refuses(DefinitionError, "gravity must be finite"):
        start(gravity=(0, 0, NAN))
    with refuses(DefinitionError, "gravity must be three numbers"):
        start(gravity=(9.81,))
    with refuses(DefinitionError, "contact point 'toe' of link 'foot' must be finite"):
        Link("foot", BODY, {"toe": (0, np.inf, 0)})


# --- masses


@pytest.mark.parametrize(
    ("mass", "center", "tensor", "words"),
    [
        (-1.0, (0, 0, 0), (1, 1, 1), ["mass -1.0 kg is negative", "a massless link has mass 0"]),
        (NAN, (0, 0, 0), (1, 1, 1), ["must be finite", "mass nan"]),
        (1.0, (0, np.inf, 0), (1, 1, 1), ["must be finite"]),
        (1.0, (0, 0, 0), (1, NAN, 1), ["must be finite"]),
        (1.0, (0, 0, 0), (1, 1, -0.1), ["principal inertias -0.1, 1, 1 kg m^2", "not positive definite"]),
        (1.0, (0, 0, 0), (0.01, 0.02, 0.05), ["principal inertias 0.01, 0.02, 0.05 kg m^2", "sum of the other two"]),
        (1.0, (0, 0, 0), [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], ["not symmetric"]),
        (1.0, (0, 0, 0), [[1, 2, 0], [2, 1, 0], [0, 0, 1]], ["principal inertias -1, 1, 3", "not positive definite"]),
        (0.0, (0, 0, 0), (1, 1, 1), ["zero mass has a rotational inertia", "give it a mass"]),
        (1.0, (0, 0), (1, 1, 1), ["a center (3,)", "got (2,)"]),
        (1.0, (0, 0, 0), (1, 1), ["a tensor (3, 3) or its diagonal (3,)"]),
    ],
)
def test_physically_impossible_inertias_raise_errors(mass, center, tensor, words):
    with pytest.raises(InertiaError) as caught:
        Inertia(mass, center, tensor)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "inertia",
    [
        legged.point_mass(1.0, (0.1, 0.2, 0.3)),
        legged.rod_inertia(1.0, (0, 0, 0), (0.3, -0.2, 0.5)),
        legged.box_inertia(1.0, (0.5, 0.3, 0.0)),
        legged.cylinder_inertia(1.0, 0.1, (0, 0, 0), (0.3, -0.2, 0.5)),
        legged.sphere_inertia(1.0, 0.2),
        Inertia(),
    ],
)
def test_points_rods_plates_and_solids_are_valid_inertias(inertia):
    turned = inertia.moved(legged.rpy(0.3, -0.4, 1.2), np.array([1.0, -2.0, 0.3]))
    assert turned.mass == inertia.mass
    assert np.linalg.eigvalsh(turned.tensor) == pytest.approx(np.linalg.eigvalsh(inertia.tensor), abs=1e-15)


def test_a_cylinder_without_direction_is_refused():
    with pytest.raises(InertiaError, match="no direction: it starts and ends at"):
        legged.cylinder_inertia(1.0, 0.1, (0.1, 0, 0), (0.1, 0, 0))


def test_the_sum_of_the_inertias_of_two_halves_is_that_of_the_whole():
    """Two half boxes moved to their places: the parallel axis theorem in both directions."""
    whole = legged.box_inertia(3.0, (0.2, 0.4, 0.6))
    turn, at = legged.rpy(0.5, 0.6, 0.7), np.array([0.3, 0.2, 0.1])
    halves = [legged.box_inertia(1.5, (0.2, 0.4, 0.3), (0, 0, z)).moved(turn, at) for z in (-0.15, 0.15)]
    moved, glued = whole.moved(turn, at), halves[0] + halves[1]
    assert glued.mass == moved.mass
    assert glued.center == pytest.approx(moved.center, abs=1e-15)
    assert glued.tensor == pytest.approx(moved.tensor, abs=1e-15)
    assert glued.about_origin == pytest.approx(moved.about_origin, abs=1e-15)
    assert (halves[0] + Inertia()).tensor == pytest.approx(halves[0].tensor)
