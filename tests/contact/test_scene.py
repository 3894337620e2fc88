"""Scenes: default and named collision pairs, their impulses and wrenches, traced and plain."""

import numpy as np
import pytest

import legged
import robots
from legged.compiler import compile as compile_function
from legged.contact import Box, Capsule, FreeBody, Rigid, Scene, Sphere
from legged.contact.detection.pairs import ShapePair, SphereTerrain
from legged.contact.impulses.newton import CONVERGED
from legged.errors import DefinitionError, SimulationWarning, UnknownNameError
from legged.ground import Stairs


def dog():
    """Return a quadruped whose trunk carries a box."""
    robot = robots.spatial_quadruped()
    return robot.edit().change_link(robot.links[0].name, shapes=[Box((1.0, 0.5, 0.1))]).build()


def block(name="block", **start):
    return FreeBody(name, legged.box_inertia(1.8, (0.1, 0.1, 0.1)), [Box((0.1, 0.1, 0.1))], **start)


def ball(name="ball", **start):
    return FreeBody(name, legged.sphere_inertia(1.0, 0.1), [Sphere(0.1)], **start)


def names(scene):
    return [candidate.name for candidate in scene.candidates]


def test_default_pairs_of_feet_terrain_bodies_and_shapes():
    robot = dog()
    scene = Scene.of(robot, Rigid(), [block(), ball()])
    feet, trunk = [point.name for point in robot.contacts], robot.links[0].name
    corners = [f"block_{k}" for k in (1, 2, 3, 4)]
    hits = [f"{trunk}-block_{k}" for k in (1, 2, 3, 4)]
    assert names(scene) == [*feet, *corners, "ball", *hits, f"{trunk}-ball", "block-ball"]
    assert scene.robots[0] is robot
    assert [r.name for r in scene.robots[1:]] == ["block", "ball"]
    geometry = scene.contact_geometry([r.neutral() for r in scene.robots])
    m = len(scene.candidates)
    assert (geometry.gap.shape, geometry.frame.shape, geometry.point.shape) == ((m,), (m, 3, 3), (m, 3))


def test_a_robot_without_contacts_and_bodies_has_no_candidates():
    robot = robots.chain(3)
    scene = Scene.of(robot, Rigid())
    q, v, none = robot.neutral(), np.ones(robot.nv), np.zeros(robot.nv)
    assert not scene.candidates
    impact = scene.impulses([q], [v], [v], [none], 1e-3, scene.contact_geometry([q]), np.zeros((0, 3)))
    assert np.array_equal(impact.v_next[0], v)
    assert impact.p.shape == (0, 3)


def test_named_pairs_replace_the_default_pairs():
    robot = dog()
    trunk, foot = robot.links[0].name, robot.links[robot.contacts[2].link].name
    ground = Rigid(pairs=((foot, "terrain"), ("block", trunk), ("terrain", trunk)))
    scene = Scene.of(robot, ground, [block()])
    kinds = [type(pair) for pair in scene.pairs]
    assert kinds[:2] == [SphereTerrain, ShapePair]
    assert names(scene)[0] == robot.contacts[2].name
    assert [c.second is None for c in scene.candidates] == [True, *[False] * 4, *[True] * 4]
    assert all(pair.first.robot == 0 for pair in (scene.pairs[0], scene.pairs[2]))


@pytest.mark.parametrize(
    ("pairs", "error", "words"),
    [
        ((("trunk", "blok"),), UnknownNameError, "did you mean 'block'"),
        ((("block", "block"),), DefinitionError, "itself"),
        ((("terrain", "terrain"),), DefinitionError, "itself"),
        ((("terrain", "shank"),), DefinitionError, "no collision shapes"),
        ((("tail", "trunk"),), DefinitionError, "one rigid body"),
    ],
)
def test_invalid_pairs_are_refused(pairs, error, words):
    trunk = legged.Link("trunk", legged.box_inertia(4, (0.5, 0.3, 0.1)), shapes=[Box((0.5, 0.3, 0.1))])
    builder = legged.RobotBuilder("dog", trunk)
    builder.add(
        legged.Fixed("stump"), legged.Link("tail", legged.sphere_inertia(0.1, 0.02), shapes=[Sphere(0.02)]), to="trunk"
    )
    builder.add(
        legged.Revolute("knee", "y"), legged.Link("shank", legged.rod_inertia(1, (0, 0, 0), (0, 0, -1))), to="trunk"
    )
    with pytest.raises(error, match=words):
        Scene.of(builder.build(), Rigid(pairs=pairs), [block()])


def test_names_must_differ():
    with pytest.raises(DefinitionError, match="'block'"):
        Scene.of(dog(), Rigid(), [block(), block()])
    with pytest.raises(DefinitionError, match="'terrain'"):
        Scene.of(dog(), Rigid(), [block("terrain")])


def test_shapes_keep_their_poses_through_prefixes_fixed_joints_and_fused_links():
    """A paw fixed to a shank, rotated by a quarter turn about x, has equal contacts as a body and as a link."""
    paw = legged.Link(
        "paw", legged.sphere_inertia(0.2, 0.05), {"tip": Sphere(0.03, (0, 0.1, 0))}, [Sphere(0.05, (0, 0.1, 0))]
    )
    limb = legged.Limb().add(
        legged.Revolute("hip", "y"), legged.Link("shank", legged.rod_inertia(1, (0, 0, 0), (0, 0, -0.3)))
    )
    limb.add(legged.Fixed("wrist"), paw, at=(0, 0, -0.3), rotation=legged.rpy(-np.pi / 2, 0, 0))
    builder = legged.RobotBuilder("hopper", legged.Link("trunk", legged.box_inertia(2, (0.2, 0.2, 0.2))))
    robot = builder.attach(limb, to="trunk", prefix="left_").build()
    q = legged.random_configuration(robot, np.random.default_rng(0))
    stone = ball(position=(0.3, 0.1, -0.2))
    whole = Scene.of(robot, Rigid(), [stone])
    fused = Scene.of(robot.fused(), Rigid(), [stone])
    qs = [q, stone.state()[0]]
    assert names(whole) == ["left_tip", "ball", "left_paw-ball"]
    for ours, others in zip(whole.contact_geometry(qs), fused.contact_geometry(qs), strict=True):
        assert np.abs(ours - others).max() < 1e-14
    R, o = legged.link_poses(robot, q)
    k = robot.link("left_paw").index
    center = o[k] + R[k] @ [0.0, 0.1, 0.0]
    gap = np.linalg.norm(center - [0.3, 0.1, -0.2]) - 0.15
    assert abs(whole.contact_geometry(qs).gap[2] - gap) < 1e-14


@pytest.mark.parametrize("seed", range(5))
def test_wrenches_of_internal_contacts_cancel(seed):
    rng = np.random.default_rng(seed)
    scene = Scene.of(dog(), Rigid(), [block(position=(0.1, 0.2, 0.7))])
    qs = [legged.random_configuration(robot, rng) for robot in scene.robots]
    geometry, forces = scene.contact_geometry(qs), rng.normal(size=(len(scene.candidates), 3))
    total = np.zeros(6)
    for robot, q, wrenches in zip(scene.robots, qs, scene.wrenches(qs, geometry, forces), strict=True):
        R, o = legged.link_poses(robot, q)
        f = np.einsum("lij,lj->li", R, wrenches[:, 3:])
        total += np.r_[(np.einsum("lij,lj->li", R, wrenches[:, :3]) + np.cross(o, f)).sum(axis=0), f.sum(axis=0)]
    world = np.einsum("mji,mj->mi", geometry.frame, forces)
    ground = [k for k, candidate in enumerate(scene.candidates) if candidate.second is None]
    expected = np.r_[np.cross(geometry.point[ground], world[ground]).sum(axis=0), world[ground].sum(axis=0)]
    assert np.abs(total - expected).max() < 1e-12


def test_initial_state_of_a_free_body():
    p = np.array([0.5, 0.5, -0.5, 0.5])
    inertia = legged.sphere_inertia(1.0, 0.1, (0.2, 0.0, 0.0))
    stone = FreeBody("stone", inertia, [Sphere(0.1)], (1, 2, 3), p, velocity=(4, 5, 6), spin=(7, 8, 9))
    (q, v), robot = stone.state(), stone.robot()
    J = legged.point_jacobian(robot, q, "stone")
    assert np.allclose(J @ v, [7, 8, 9, 4, 5, 6])
    assert np.array_equal(q, [0.5, 0.5, -0.5, 0.5, 1, 2, 3])
    assert np.array_equal(stone.robot((0, 0, -1)).gravity, [0, 0, -1])


def test_traced_steps_equal_plain_ones():
    robot = dog()
    foot, trunk = robot.links[robot.contacts[0].link].name, robot.links[0].name
    pairs = ((foot, "terrain"), ("block", "terrain"), (trunk, "block"), (trunk, "ball"), ("ball", "block"))
    scene = Scene.of(robot, Rigid(0.4, 0.3, sweeps=2, pairs=pairs), [block(), ball()])
    m, h = len(scene.candidates), 1e-3
    rng = np.random.default_rng(1)

    def step(q, v, q_block, v_block, q_ball, v_ball):
        qs, vs = [q, q_block, q_ball], [v, v_block, v_ball]
        extra = [np.zeros(r.nv) for r in scene.robots]
        impact = scene.impulses(qs, vs, vs, extra, h, scene.contact_geometry(qs), np.zeros((m, 3)))
        return impact.p, *impact.v_next, impact.residual

    bodies = {"q_block": (7,), "v_block": (6,), "q_ball": (7,), "v_ball": (6,)}
    kernel = compile_function(step, None, q=(robot.nq,), v=(robot.nv,), **bodies)
    for _ in range(4):
        state = []
        for r, height in zip(scene.robots, (0.4, 0.45, 0.1), strict=True):
            q = legged.random_configuration(r, rng)
            q[4:7] = rng.normal(size=3) * 0.1 + [0, 0, height]
            state += [q, rng.normal(size=r.nv)]
        for ours, plain in zip(kernel(*state), step(*state), strict=True):
            assert np.abs(ours - plain).max() < 1e-9 * max(np.abs(plain).max(), 1.0)


def skid():
    """Return a box on four balls, one robot whose contacts with the ground are redundant, 0.1 m over its balls."""
    balls = [Sphere(0.02, (x, y, -0.08)) for x in (-0.1, 0.15) for y in (-0.05, 0.07)]
    trunk = legged.Link("skid", legged.box_inertia(3.0, (0.3, 0.2, 0.1)), shapes=balls)
    return legged.RobotBuilder("skid", trunk).build()


def tilted(angle, seed):
    """Return a configuration of the skid on its balls, inclined by about an angle, [rad], and a falling velocity."""
    rng = np.random.default_rng(seed)
    q = np.array([1.0, 0.5 * angle, -0.3 * angle, 0.0, 0.0, 0.0, 0.1 - 2e-3])
    return q / np.linalg.norm(q[:4]) ** (np.arange(7) < 4), 0.1 * rng.normal(size=6) - np.eye(6)[5]


def impulses_of(scene, q, v):
    m, none = len(scene.candidates), np.zeros(scene.robots[0].nv)
    return scene.impulses([q], [v], [v], [none], 1e-3, scene.contact_geometry([q]), np.zeros((m, 3)))


@pytest.mark.parametrize("seed", range(5))
def test_contacts_at_different_heights_fulfil_the_contact_law(seed):
    """Tangential impulses on a body that tilts have moments, so that they are not free to move between its contacts."""
    scene = Scene.of(skid(), Rigid(0.8, pairs=(("skid", "terrain"),)))
    solution = impulses_of(scene, *tilted(1e-2, seed))
    assert (solution.p[:, 0] > 0.0).all()  # all contacts press
    assert solution.residual <= CONVERGED * scene.ground.tolerance


def test_traced_impulses_on_a_tread_of_stairs_equal_plain_ones():
    """The frames of contacts on a tread are equal in numbers, but differ as functions of their places."""
    scene = Scene.of(skid(), Rigid(0.8, terrain=Stairs((1.0,), (0.1,)), pairs=(("skid", "terrain"),)))

    def step(q, v):
        solution = impulses_of(scene, q, v)
        return solution.p, *solution.v_next

    kernel = compile_function(step, None, q=(7,), v=(6,))
    for angle, seed in ((0.0, 0), (0.0, 1), (1e-2, 2)):
        q, v = tilted(angle, seed)
        for ours, plain in zip(kernel(q, v), step(q, v), strict=True):
            assert np.abs(ours - plain).max() < 1e-9 * np.abs(plain).max()
    p, v = kernel(*tilted(0.0, 0))
    places = scene.contact_geometry([q]).point[:, :2]
    fit = np.column_stack([places, np.ones(4)])
    assert np.abs(fit @ np.linalg.lstsq(fit, p[:, 0], rcond=None)[0] - p[:, 0]).max() < 1e-9 * p.max()  # spread


def kinetic(scene, qs, vs):
    return sum(legged.kinetic_energy(robot, q, v) for robot, q, v in zip(scene.robots, qs, vs, strict=True))


@pytest.mark.parametrize("restitution", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 15))])
def test_random_impacts_add_no_energy_and_their_work_is_its_change(seed, restitution):
    """Robot, block and ball collide with each other and the ground at random; penetrations are not corrected."""
    rng = np.random.default_rng(seed)
    ground = Rigid(rng.uniform(0.0, 1.2), restitution, threshold=0.0, recovery=0.0)
    scene = Scene.of(dog(), ground, [block(), ball()])
    qs, vs = [], []
    for robot, height in zip(scene.robots, (0.5, 0.3, 0.2), strict=True):
        q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
        q[4:7] = 0.1 * q[4:7] + [0.0, 0.0, height]
        v[3:6] = robot.base.pose(q)[0].T @ (rng.normal(size=3) - [0.0, 0.0, 4.0])
        qs.append(q)
        vs.append(v)
    guess = rng.normal(size=(len(scene.candidates), 3)) * rng.integers(2)
    extra = [np.zeros(robot.nv) for robot in scene.robots]
    impact = scene.impulses(qs, vs, vs, extra, 0.05, scene.contact_geometry(qs), guess)
    before, after = kinetic(scene, qs, vs), kinetic(scene, qs, impact.v_next)
    assert np.abs(impact.p).max() > 0.01  # they do meet
    assert abs(after - before - impact.work) < 1e-11 * before
    assert impact.work <= 1e-12 * before


@pytest.mark.parametrize("step", [1e-3, 2e-3])
def test_penetration_is_corrected_at_the_recovery_speed(step):
    """From 2 cm depth it leaves within a second, rises no higher than the recovery speed allows, and rests."""
    size = np.array([0.2, 0.2, 0.1])
    feet = {f"corner{k}": corner for k, corner in enumerate(Box(size).corners) if corner[2] < 0.0}
    robot = legged.RobotBuilder("brick", legged.Link("brick", legged.box_inertia(2.0, size), feet)).build()
    q = robot.neutral()
    q[6] = 0.03
    options = {"ground": Rigid(recovery=0.05), "integrator": legged.TimeStepping(step), "fall": False}
    with pytest.warns(SimulationWarning, match=r"contact 'corner\d' begins 20 mm inside of the other surface"):
        run = legged.simulate(robot, q=q, until=1.5, **options)
    height = run.q[:, 6] - 0.05
    assert np.abs(run.v[:, 5]).max() < 0.05 + 1e-9
    assert height.max() < 0.05**2 / (2 * 9.81) + 0.05 * step
    assert np.abs(height[run.times > 1.0]).max() < 1e-6


def test_immobile_bodies_take_no_impulse():
    """The base of a fixed robot inside the ground, and its hand that falls on it: numbers, not NaN, traced or not."""
    base = legged.Link("post", legged.box_inertia(5.0, (0.1, 0.1, 0.5)), {"sole": (0.0, 0.0, -0.1)})
    hand = legged.Link("hand", legged.rod_inertia(1.0, (0, 0, 0), (0.5, 0, 0)), {"tip": (0.5, 0.0, 0.0)})
    builder = legged.RobotBuilder("bat", base, base=legged.FixedBase())
    robot = builder.add(legged.Revolute("wrist", "y"), hand, to="post", at=(0.0, 0.0, 0.0)).build()
    scene = Scene.of(robot, Rigid(restitution=0.5))

    def step(q, v):
        impact = scene.impulses([q], [v], [v], [np.zeros(1)], 1e-3, scene.contact_geometry([q]), np.zeros((2, 3)))
        return impact.p, impact.v_next[0]

    for function in (step, compile_function(step, None, q=(1,), v=(1,))):
        p, v = function(np.zeros(1), np.ones(1))  # turning about +y takes the tip down
        assert np.array_equal(p[0], np.zeros(3))
        assert p[1, 0] > 0.0
        assert np.allclose(v, -0.5)


def arm(links=4):
    """Return a fixed arm of capsules, which moves in the plane of x and z and is straight with all joints at zero."""
    capsule = Capsule(0.02, 0.22, (0.15, 0.0, 0.0), legged.rpy(0.0, np.pi / 2, 0.0))
    parts = [
        legged.Link(f"link{k}", legged.rod_inertia(1.0, (0, 0, 0), (0.3, 0, 0)), shapes=[capsule]) for k in range(links)
    ]
    builder = legged.RobotBuilder("arm", parts[0], base=legged.FixedBase(), gravity=(0.0, 0.0, 0.0))
    for k in range(1, links):
        joint = legged.Universal(f"joint{k}", "y", "z") if k == 1 else legged.Revolute(f"joint{k}", "y")
        builder.add(joint, parts[k], to=f"link{k - 1}", at=(0.3, 0.0, 0.0))
    return builder.build()


def test_self_collision_leaves_out_neighbors_and_overlapping_links():
    scene = Scene.of(arm(), Rigid(self_collision=True))
    assert {name[:-2] for name in names(scene)} == {"link0-link2", "link0-link3", "link1-link3"}
    assert not Scene.of(arm(), Rigid()).candidates
    robot = arm()
    robot = robot.edit().change_link("link2", shapes=[Sphere(0.5, (0.0, 0.0, 0.0))]).build()
    assert {name[:-2] for name in names(Scene.of(robot, Rigid(self_collision=True)))} == {"link0-link3", "link1-link3"}


def test_links_of_an_arm_that_folds_do_not_pass_through_each_other():
    robot, gaps = arm(), []
    q, v = np.array([0.0, 0.0, 1.9, 0.3]), np.array([0.0, 0.0, 4.0, 4.0])  # [rad], [rad/s]
    for collides in (True, False):
        run = legged.simulate(robot, q=q, v=v, until=0.4, ground=Rigid(self_collision=collides), fall=False)
        scene = Scene.of(robot, Rigid(self_collision=True))
        gaps.append(min(scene.contact_geometry([q]).gap.min() for q in run.q))
    assert -5e-4 < gaps[0] < 1e-3  # [m]: contact is detected in the middle of each step of 1 ms
    assert gaps[1] < -0.02
