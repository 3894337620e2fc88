"""A scene in parts: the memory of its controller, and the wrenches of contacts on links that are fixed to others."""

import numpy as np

import legged
from legged.contact import FreeBody, Rigid, Sphere
from legged.simulation.controller import adapt
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.many_contacts import SceneInParts

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
