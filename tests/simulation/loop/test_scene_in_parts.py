"""A scene in parts: the memory of its controller, and the wrenches of contacts on links that are fixed to others."""

import numpy as np

import legged
from legged.contact import FreeBody, Rigid, Sphere
from legged.contact.bodies import in_blocks
from legged.contact.impulses.dense import twist_jacobian
from legged.robot.configuration import drift
from legged.simulation.controller import adapt
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.many_contacts import SceneInParts
from tests.contact.test_groups import loop_of

STEP = 2e-3  # [s]


class Filter:
    """A controller whose memory follows the position of a joint."""

    def start(self, robot, ground, q, v):
        return np.array([0.5])

    def torque(self, t, phase, q, v, wrenches, memory):
        return -memory

    def rate(self, t, phase, q, v, wrenches, memory):
        return 3.0 * (q - memory)


def pendulum():
    """Return a pendulum whose ball is a link that is fixed to the rod at an angle and a distance."""
    rod = legged.Link("rod", legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.5)))
    ball = legged.Link("ball", legged.sphere_inertia(0.2, 0.1), shapes=[Sphere(0.1, (0.05, 0.0, 0.0))])
    builder = legged.RobotBuilder("pendulum", legged.Link("post"), base=legged.FixedBase())
    builder.add(legged.Revolute("joint", "y"), rod, to="post", at=(0.0, 0.0, 1.0))
    return builder.add(
        legged.Fixed("weld"), ball, to="rod", at=(0.0, 0.1, -0.5), rotation=legged.rpy(0.3, 0.2, 0.1)
    ).build()


def test_memories_and_wrenches_on_fixed_links_are_those_of_the_whole():
    robot, ground, q, v = (
        pendulum(),
        Rigid(0.3, pairs=(("ball", "stone"),), tolerance=1e-9),
        np.array([0.1]),
        np.ones(1),
    )
    stone = FreeBody(
        "stone", legged.sphere_inertia(0.5, 0.1), [Sphere(0.1)], (0.15, 0.1, 0.45), velocity=(-1.0, 0.0, 0.0)
    )
    started, memory = adapt(Filter()).start(robot, ground, q, v)
    loops = [kind(robot, started, ground, len(memory), (), [stone]) for kind in (SceneInParts, RigidLoop)]
    s, pressed = loops[0].initial(v, memory), 0.0
    for k in range(4):
        ends = [loop.time_stepping(k * STEP, STEP, 0, q, s) for loop in loops]
        one, other = (loop.split(end[1]).memory for loop, end in zip(loops, ends, strict=True))
        np.testing.assert_allclose(one, other, atol=1e-14)
        np.testing.assert_allclose(
            one - loops[0].split(s).memory, STEP * 3.0 * (q - loops[0].split(s).memory), rtol=1e-9
        )
        wrenches, expected = (loop.external_forces(*end).contact for loop, end in zip(loops, ends, strict=True))
        np.testing.assert_allclose(
            wrenches, expected, atol=1e-5
        )  # [N m] and [N], 1e-9 m/s in a step of 0.5 kg and more
        q, s = ends[0]
        pressed = max(pressed, np.abs(wrenches).max())
    assert pressed > 10.0  # [N], the ball has met the stone


def test_jacobians_of_a_step_are_those_of_the_bodies_in_its_middle():
    """Of two equal robots and another one, some of whose joints follow others."""
    rng, robots = np.random.default_rng(5), {}
    for name, seed in (("a", 6), ("b", 6), ("c", 9)):
        editor = legged.random_tree(seed, 5, bases=["floating"], physics=True, coupled=True).edit()
        for link in list(editor.build().links):
            editor.change_link(link.name, shapes=[Sphere(0.1)])
        robots[name] = editor.build()
    group = legged.combine(robots)
    assert all(robot.coupled_joints for robot in robots.values())
    names = [[link.name for link in group.links if link.name.startswith(f"{name}/")] for name in robots]
    pairs = [(one, other) for k in range(2) for one in names[k] for other in names[k + 1]]
    q, v = legged.random_configuration(group, rng), rng.normal(size=group.nv)
    loop, _, s = loop_of(SceneInParts, group, Rigid(0.5, pairs=tuple(pairs)), q=q, v=v)
    loop.time_stepping(0.0, STEP, 0, q, s)
    middle, step = drift(group, q, v, 0.5 * STEP)[0], loop._step
    for number, kind in enumerate(loop._kinds):
        own, touching = step.bodies.jacobians[number], len(kind.touching)
        blocks = step.bodies.jacobian_blocks[step.bodies.layout.jacobian_parts[number]]
        np.testing.assert_array_equal(blocks, in_blocks(own))
        for k, entries in enumerate(kind.v):
            for J, body in zip(own[k * touching :], kind.bodies[k, kind.touching], strict=False):
                whole = twist_jacobian(group, middle, body, np.eye(6))
                np.testing.assert_allclose(J, whole[:, entries], atol=1e-13 * max(1.0, np.abs(whole).max()))
