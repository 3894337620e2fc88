"""Materials of links and feet on compliant ground: the friction of each contact point, by the rule of rigid ground."""

from dataclasses import replace

import numpy as np
import pytest

import legged
from legged.contact import Material, MaterialPair, Sphere
from legged.errors import DefinitionError, UnknownNameError
from legged.ground import AxisFriction, BristleFriction, Frictionless, Ground, KelvinVoigt, VectorFriction

G, SPEED, MASS = 9.81, 1.0, 2.0  # [m/s^2], [m/s], [kg]
ICE, STEEL = Material("ice", 0.02), Material("steel", 0.4, priority=1)
LAWS = [AxisFriction(0.6, 4e3), VectorFriction(0.6, 4e3), BristleFriction(0.6, 2e5, 4e3)]
INTEGRATORS = [None, legged.SemiImplicitEuler(1e-4), legged.simulation.LinearlyImplicitEuler(2e-4)]
CORNERS = {f"corner_{i}_{k}": (0.2 * i, 0.2 * k, -0.05) for i in (-1, 1) for k in (-1, 1)}


def sled(*materials):
    """Return a sled on four points; with several materials its points belong to links of these materials."""
    parts = [legged.Link("base", legged.box_inertia(MASS, (0.4, 0.4, 0.1)), CORNERS, material=materials[0])]
    return legged.RobotBuilder("sled", *parts).build()


def ground(law, **rule):
    return Ground(KelvinVoigt(4e4, 400.0), law, **rule)


def friction_of(robot, on, integrator):
    """Return the mean deceleration of the sliding sled over the acceleration of gravity: mu."""
    q, v = robot.neutral(), np.zeros(6)
    q[6], v[3] = 0.05 - MASS * G / 4 / 4e4, SPEED
    run = legged.simulate(robot, ground=on, until=0.1, q=q, v=v, integrator=integrator, fall=False)
    return (SPEED - run.v[-1, 3]) / 0.1 / G


@pytest.mark.parametrize(
    "integrator", [None, legged.SemiImplicitEuler(1e-4), legged.simulation.LinearlyImplicitEuler(2e-4)]
)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize(
    ("rule", "material", "mu"),
    [
        ({}, None, 0.6),
        ({}, ICE, 0.02),  # a declared material before the default of the ground, as on rigid ground
        ({"combination": "maximum"}, ICE, 0.6),
        ({"combination": "minimum"}, ICE, 0.02),
        ({"combination": "harmonic mean"}, ICE, 2 * 0.02 * 0.6 / 0.62),
        ({}, STEEL, 0.4),
        ({"material_pairs": (MaterialPair("ice", "ground", 0.2),)}, ICE, 0.2),
        ({"material": "oak", "material_pairs": (MaterialPair("oak", "oak", 0.25),)}, None, 0.25),
    ],
)
def test_a_sliding_sled_decelerates_by_the_friction_of_its_pair(law, rule, material, mu, integrator):
    """The start of sliding, where a bristle bends by mu F / k, and the arctangent of 1 m/s take 3 % of the friction."""
    friction = friction_of(sled(material), ground(law, **rule), integrator)
    assert friction == pytest.approx(mu, rel=0.04, abs=1e-4)
    assert legged.Rigid(0.6, **rule).coefficients(material, None)[0] == pytest.approx(mu)


def test_each_contact_point_has_the_friction_of_its_own_link():
    builder = legged.RobotBuilder("pair", legged.Link("base", legged.box_inertia(1.0, (0.1, 0.1, 0.1))))
    for name, material in (("ice", ICE), ("steel", STEEL), ("bare", None)):
        foot = legged.Link(
            name, legged.box_inertia(0.1, (0.1, 0.1, 0.1)), {f"{name}_foot": (0, 0, 0)}, material=material
        )
        builder.add(legged.Revolute(f"{name}_joint", "y"), foot, to="base")
    robot = builder.build()
    on = ground(VectorFriction(0.6, 1e9), combination="minimum").under(robot)
    points, velocities = np.array([[0.0, 0, -1e-3]] * 3), np.array([[1.0, 0, 0]] * 3)
    forces, _ = on.forces(points, velocities)
    assert forces[:, 0] / forces[:, 2] == pytest.approx([-0.02, -0.4, -0.6], rel=1e-6)


def test_compiled_python_and_batches_agree_and_the_ground_of_bare_robots_is_itself():
    on, q, v = ground(LAWS[2], combination="minimum"), sled(ICE).neutral(), np.zeros(6)
    assert on.under(sled(None)) is on
    q[6], v[3] = 0.0495, SPEED
    options = {"ground": on, "until": 0.05, "integrator": legged.SemiImplicitEuler(1e-4), "fall": False}
    runs = [legged.simulate(sled(ICE), q=q, v=v, compiled=c, **options).q for c in (True, False)]
    batch = legged.rollout(
        sled(ICE), q=np.stack([q, q]), v=v, vary={"ground.friction.coefficient": [0.6, 0.01]}, **options
    )
    assert runs[1] == pytest.approx(runs[0], abs=1e-12)
    assert batch.q[0] == pytest.approx(runs[0], abs=1e-12)
    assert batch.v[1, -1, 3] > batch.v[0, -1, 3] + 0.05 * 0.005 * G  # on the smaller coefficient of the ground


def test_errors_name_the_law_and_the_material():
    class Own:
        memory = 0

        def force(self, normal_force, velocity, memory):
            return -velocity, memory

    with pytest.raises(DefinitionError, match="friction law Own has no attribute 'coefficient'"):
        ground(Own()).under(sled(ICE))
    pair = MaterialPair("ise", "ground", 0.1)
    with pytest.raises(UnknownNameError, match="'ise'"):
        ground(LAWS[0], material_pairs=(pair,)).under(sled(ICE))
    with pytest.raises(DefinitionError, match="occurs twice"):
        ground(LAWS[0], material_pairs=(pair, pair))
    with pytest.raises(UnknownNameError, match="combination"):
        replace(ground(LAWS[0]), combination="largest")
    assert ground(Frictionless()).under(sled(ICE)).friction == Frictionless()
    assert Sphere(0.1, material=ICE).material is ICE
