"""Dynamics of 300 random robots, 60 of them daily, against Pinocchio, with models built from their definitions.

Inverse dynamics and the inertia matrix agree to 6e-15 of the size of their terms. Accelerations are compared relative
to the largest: the worst seen is 7e-12 at a condition number of 1e6; the tolerance is 1e-10.
"""

import numpy as np
import pytest
from oracles.cases import BATCHES, batch_name, case_of, dense, forward, random_case, size_of_forces, special_tree

import legged
import robots

pytest.importorskip("pinocchio")
from oracles.programs.pinocchio_model import pinocchio_twin

PROMISED = 1e-10


@pytest.mark.parametrize("seeds", BATCHES, ids=batch_name)
def test_dynamics_equal_pinocchios(seeds):
    for seed in seeds:
        case = random_case(seed)
        if case.robot.nv:
            compare(case, *dense(seed), forward(seed))


def compare(case, inertia, h, rates):
    robot, q, v, vdot, tau, wrenches = case.robot, case.q, case.v, case.vdot, case.tau, case.wrenches
    twin = pinocchio_twin(robot)
    ours = legged.inertia_matrix(robot, q)
    assert np.abs(ours - twin.inertia_matrix(q)).max() <= PROMISED * np.abs(ours).max(), case.label
    forces = legged.inverse_dynamics(robot, q, v, vdot, wrenches)
    allowed = PROMISED * size_of_forces(inertia, vdot, h)
    assert np.abs(forces - twin.inverse_dynamics(robot, q, v, vdot, wrenches)).max() <= allowed, case.label
    theirs = twin.forward_dynamics(robot, q, v, tau, wrenches)
    assert np.abs(rates - theirs).max() <= PROMISED * np.abs(rates).max(), case.label


READY_MADE = [
    robots.hexapod(),
    robots.humanoid(),
    robots.planar_biped(),
    robots.planar_hopper(),
    robots.spatial_quadruped(),
    robots.spatial_quadruped(legged.EulerBase("xyz")),
    robots.chain(12),
]


@pytest.mark.parametrize("robot", READY_MADE, ids=lambda robot: f"{robot.name}, {robot.base.kind}")
def test_dynamics_of_ready_made_robots_equal_pinocchios(robot):
    case = case_of(robot, seed=7)
    inertia, h = legged.inertia_matrix(robot, case.q), legged.bias_forces(robot, case.q, case.v, case.wrenches)
    compare(case, inertia, h, legged.forward_dynamics(robot, case.q, case.v, case.tau, case.wrenches))


@pytest.mark.parametrize("seed", range(20))
def test_link_poses_twists_and_point_jacobians_equal_pinocchios(seed):
    import pinocchio as pin

    case = random_case(seed)
    robot, q, v = case.robot, case.q, case.v
    twin = pinocchio_twin(robot)
    pin.forwardKinematics(twin.model, twin.data, twin.q(q), twin.v(v))
    rotations, origins = legged.link_poses(robot, q)
    twists = legged.link_twists(robot, q, v)
    for link, R, o, t in zip(robot.links, rotations, origins, twists, strict=True):
        joint, place = twin.where[link.name]
        pose, motion = twin.data.oMi[joint] * place, place.actInv(twin.data.v[joint])
        # lengths of meters, speeds of a few m/s: rounding near 1e-14 for forty links
        assert pytest.approx(pose.rotation, abs=1e-12) == R
        assert o == pytest.approx(pose.translation, abs=1e-12)
        assert t == pytest.approx(np.concatenate([motion.angular, motion.linear]), abs=1e-11)


@pytest.mark.parametrize("seed", range(20))
def test_energy_momentum_and_center_of_mass_equal_pinocchios(seed):
    import pinocchio as pin

    case = random_case(seed)
    robot, q, v = case.robot, case.q, case.v
    twin = pinocchio_twin(robot)
    kinetic = pin.computeKineticEnergy(twin.model, twin.data, twin.q(q), twin.v(v))
    potential = pin.computePotentialEnergy(twin.model, twin.data, twin.q(q))
    if robot.base.kind == "fixed":  # Pinocchio omits links fixed to the world
        welded = sum((i.inertia.mass * (o + R @ i.inertia.center) for i, R, o in on_world(robot, q)), np.zeros(3))
        potential -= robot.gravity @ welded
    else:
        momentum = pin.computeCentroidalMomentum(twin.model, twin.data, twin.q(q), twin.v(v))
        ours = legged.momentum(robot, q, v)
        theirs = np.concatenate([momentum.angular, momentum.linear])
        assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-11 * np.abs(theirs).max())
        center = pin.centerOfMass(twin.model, twin.data, twin.q(q))
        assert legged.center_of_mass(robot, q) == pytest.approx(center, abs=1e-12)
    assert legged.kinetic_energy(robot, q, v) == pytest.approx(kinetic, rel=1e-11)
    assert legged.potential_energy(robot, q) == pytest.approx(potential, rel=1e-11, abs=1e-9)


def on_world(robot, q):
    for link, R, o in zip(robot.links, *legged.link_poses(robot, q), strict=True):
        if link.body == 0:
            yield link, R, o


@pytest.mark.parametrize(
    "tilt", [0.0, 1e-8, *(pytest.param(x, marks=pytest.mark.slow) for x in (1e-3, 1e-6, 1e-12, 1e-15))]
)
def test_dynamics_of_special_geometry_equal_pinocchios(tilt):
    """Coordinate axes, quarter turns, no offsets, and nearly aligned axes, as from rounded numbers in a file."""
    for seed in range(30):
        case = case_of(special_tree(seed, tilt=tilt), seed)
        if case.robot.nv:
            inertia = legged.inertia_matrix(case.robot, case.q)
            h = legged.bias_forces(case.robot, case.q, case.v, case.wrenches)
            compare(case, inertia, h, legged.forward_dynamics(case.robot, case.q, case.v, case.tau, case.wrenches))


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_forces_on_robots_of_millimeters_and_kilometers_equal_pinocchios(scale):
    """Base positions of meters, inertias of 1e-9 kg m^2; forces are compared relative to the size of their terms."""
    for seed in range(30):
        case = case_of(special_tree(seed, scale), seed)
        robot, q, v, vdot, wrenches = case.robot, case.q, case.v, case.vdot, case.wrenches
        theirs = pinocchio_twin(robot).inverse_dynamics(robot, q, v, vdot, wrenches)
        inertia, h = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v, wrenches)
        ours = legged.inverse_dynamics(robot, q, v, vdot, wrenches)
        assert np.abs(ours - theirs).max(initial=0) <= PROMISED * size_of_forces(inertia, vdot, h), case.label
