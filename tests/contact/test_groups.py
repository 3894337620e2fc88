"""Groups of robots: states, controllers, contacts between robots, and the motion of each robot alone."""

from dataclasses import replace

import numpy as np
import pytest

import legged
import robots
from legged.compiler import CompilationReport
from legged.contact import Box, Capsule, FreeBody, Hull, Rigid, Scene, Sphere
from legged.errors import DefinitionError, ShapeError, UnknownNameError
from legged.robot.configuration import integrate
from legged.simulation import TimeStepping
from legged.simulation.controller import adapt
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.many_contacts import SceneInParts
from legged.simulation.results.stick_figure import drawing_of

STEP = 1e-3  # [s]


def slider(radius=0.1, mass=1.0, axis="x"):
    """Return a ball on a slide."""
    ball = legged.Link("ball", legged.sphere_inertia(mass, radius), shapes=[Sphere(radius)])
    builder = legged.RobotBuilder("slider", legged.Link("rail"), base=legged.FixedBase())
    return builder.add(legged.Prismatic("slide", axis), ball, to="rail").build()


def arm():
    """Return a capsule that turns about y."""
    link = legged.Link(
        "link", legged.box_inertia(1.0, (0.1, 0.1, 0.4), (0, 0, 0.2)), shapes=[Capsule(0.05, 0.3, (0, 0, 0.2))]
    )
    builder = legged.RobotBuilder("arm", legged.Link("post"), base=legged.FixedBase())
    joint = legged.Revolute("joint", "y", physics=legged.JointPhysics(damping=0.5))
    return builder.add(joint, link, to="post").build()


def block(mass=2.0):
    """Return a robot of one box with a tail on a floating base."""
    trunk = legged.Link("trunk", legged.box_inertia(mass, (0.2, 0.2, 0.2)), shapes=[Box((0.2, 0.2, 0.2))])
    tail = legged.Link("tail", legged.rod_inertia(0.2, (0, 0, 0), (0.1, 0, 0)), contacts={"tip": (0.1, 0.0, 0.0)})
    return (
        legged.RobotBuilder("block", trunk).add(legged.Revolute("hip", "y"), tail, to="trunk", at=(0.1, 0, 0)).build()
    )


def wall():
    """Return a robot without degrees of freedom."""
    link = legged.Link("wall", legged.box_inertia(1.0, (0.2, 0.2, 0.2)), shapes=[Box((0.2, 0.2, 0.2))])
    return legged.RobotBuilder("wall", link, base=legged.FixedBase()).build()


def random_states(group, seed):
    rng = np.random.default_rng(seed)
    q = {m.name: integrate(m.robot, m.robot.neutral(), rng.normal(size=m.robot.nv)) for m in group.members}
    return q, {m.name: rng.normal(size=m.robot.nv) for m in group.members}


def loop_of(kind, robot, ground, controller=None, bodies=(), q=None, v=None):
    """Return a closed loop of a kind, and q and s at its start, without compilation."""
    q = robot.neutral() if q is None else q
    v = np.zeros(robot.nv) if v is None else v
    started, memory = adapt(controller).start(robot, ground, q, v)
    loop = kind(robot, started, ground, len(memory), (), bodies)
    return loop, q, loop.initial(v, memory)


def stepped(loop, q, s, count, t=0.0):
    """Return (q, s) after time steps in Python."""
    for k in range(count):
        q, s = loop.time_stepping(t + k * STEP, STEP, 0, q, s)
    return q, s


def mixed_group():
    """Return robots of all bases, one with a joint that follows another, one turned."""
    belt = legged.RobotBuilder("belt", legged.Link("post"), base=legged.FixedBase()).couple("j1", "j0", -2.0, 0.1)
    for k, above in enumerate(("post", "l0")):
        link = legged.Link(f"l{k}", legged.box_inertia(1.0, (0.1, 0.2, 0.3), (0.0, 0.1, 0.1)))
        belt.add(legged.Revolute(f"j{k}", "x"), link, to=above, at=(0.0, 0.0, 0.3))
    parts = {"a": block(), "hopper": robots.planar_hopper(), "belt": belt.build(), "arm": arm()}
    places = {"belt": (0.0, 0.0, 2.0), "hopper": (0.0, 5.0, 0.0)}
    return legged.combine(parts, at=places, rotation={"belt": legged.rpy(0.5, 0.3, 0.2)})


def test_energies_and_power_of_a_group_are_the_sums_of_those_of_its_robots():
    group = mixed_group()
    q_of, v_of = random_states(group, 1)
    q, v = group.join_states(q_of, v_of)
    own = [(m, q_of[m.name], v_of[m.name]) for m in group.members]
    for m, x, w in own:
        assert np.allclose(np.concatenate(m.state(q, v)), np.concatenate([x, w]), atol=1e-14)
        assert np.allclose(np.concatenate(m.state(np.stack([q, q]), np.stack([v, v]))[0][1:]), x, atol=1e-14)
    kinetic = [legged.kinetic_energy(m.robot, x, w) for m, x, w in own]
    potential = [legged.potential_energy(m.robot, x) + 9.81 * m.robot.mass * m.place.position[2] for m, x, w in own]
    assert legged.kinetic_energy(group, q, v) == pytest.approx(sum(kinetic), rel=1e-12)
    assert legged.potential_energy(group, q) == pytest.approx(sum(potential), rel=1e-12)
    tau_of = random_states(group, 2)[1]
    tau = np.concatenate([m.forces(x, tau_of[m.name]) for m, x, _ in own])
    assert tau @ v == pytest.approx(sum(tau_of[m.name] @ w for m, _, w in own), rel=1e-12)


def test_robots_far_apart_move_as_each_of_them_alone():
    """The integration is the same up to rounding, some 1e-15 of the motion in a step."""
    alone, far = block(), np.array([0.0, 50.0, 0.0])
    start = (
        np.array([np.cos(0.1), np.sin(0.1), 0.0, 0.0, 0.0, 0.0, 0.12, 0.3]),
        np.array([0.1, 0.2, 0.3, 1.0, 0.0, -0.5, 2.0]),
    )
    loop, q, s = loop_of(
        RigidLoop,
        alone,
        Rigid(pairs=(("tail", "terrain"), ("trunk", "terrain")), balances_momentum=True),
        servo,
        (),
        *start,
    )
    expected_q, expected_s = stepped(loop, q, s, 8)
    group = legged.combine({"a": alone, "b": alone})
    moved = start[0].copy()
    moved[4:7] += far
    pairs = tuple((f"{name}/{link}", "terrain") for name in "ab" for link in ("tail", "trunk"))
    ground = Rigid(pairs=(*pairs, ("a/trunk", "b/trunk")))
    states = group.join_states({"a": start[0], "b": moved}, {"a": start[1], "b": start[1]})
    loop, q, s = loop_of(RigidLoop, group, ground, {"a": servo, "b": servo}, (), *states)
    q, s = stepped(loop, q, s, 8)
    assert np.abs(expected_s[:7] - start[1]).max() > 0.3  # it has hit the ground
    for m in group.members:
        own_q, own_v = m.state(q, s[: group.nv])
        own_q[4:7] -= far if m.name == "b" else 0.0
        assert np.abs(own_q - expected_q).max() < 1e-11
        assert np.abs(own_v - expected_s[:7]).max() < 1e-9


def servo(t, q, v, wrenches):
    return -5.0 * q[7:] - 0.1 * v[6:]


def test_impulses_between_robots_keep_the_momentum_of_the_group():
    """Linear and angular momentum, up to rounding of some kg m/s."""
    group = legged.combine({"a": block(), "b": block()})
    places = {"a": (0.0, 0.0, 10.0), "b": (-0.2, 0.05, 10.03)}
    q_of = {name: np.array([1.0, 0.0, 0.0, 0.0, *place, 0.3]) for name, place in places.items()}
    q, v = group.join_states(q_of, {"b": np.array([0.1, 0.2, 0.0, 3.0, 0.0, 0.5, 1.0])})
    scene = Scene.of(group, Rigid(0.5))
    geometry = scene.contact_geometry([q])
    impact = scene.impulses([q], [v], [v], [np.zeros(group.nv)], STEP, geometry, np.zeros((len(geometry.gap), 3)))
    v_next = impact.v_next[0]
    assert impact.residual < 1e-5
    assert np.abs(legged.momentum(group, q, v_next) - legged.momentum(group, q, v)).max() < 1e-12
    pushed = group.member("a")
    gained = legged.momentum(pushed.robot, *pushed.state(q, v_next))[3:]
    assert gained[0] > 0.5  # [kg m/s]
    total = sum(frame.T @ p for frame, p in zip(geometry.frame, impact.p, strict=True))
    assert np.abs(gained - total).max() < 1e-12  # the first side of each contact is robot a


def test_wrenches_between_robots_are_opposite():
    group = legged.combine({"a": slider(), "b": slider()}, at={"b": (0.19, 0.0, 0.0)})
    scene = Scene.of(group, Rigid())
    q = np.zeros(2)
    forces = np.array([[3.0, 1.0, -2.0]])
    assert [c.name for c in scene.candidates] == ["a/ball-b/ball"]
    wrenches = scene.wrenches([q], scene.contact_geometry([q]), forces)[0]
    a, b = (wrenches[group.link(f"{name}/ball").index] for name in "ab")
    assert np.abs(a[3:] + b[3:]).max() < 1e-15
    assert np.linalg.norm(a[3:]) == pytest.approx(np.sqrt(14.0))


@pytest.mark.parametrize("count", [0, 1])
def test_parts_move_a_group_as_the_equations_of_the_whole_do(count):
    """Both solve the contact law to the tolerance of the solver, 1e-9 m/s in a step."""
    size = (0.1, 0.1, 0.1)
    bodies = [FreeBody("cube", legged.box_inertia(1.0, size), [Box(size)], (0.05, 0.0, 0.45))][:count]
    places = {"b": (0.12, 0.0, 0.0), "wall": (1.0, 0.0, 0.1)}
    group = legged.combine({"a": arm(), "wall": wall(), "b": arm()}, at=places)
    q, v, ground = np.array([0.05, -0.05]), np.array([3.0, -1.0]), Rigid(tolerance=1e-9)
    starts = [loop_of(kind, group, ground, None, bodies, q, v) for kind in (RigidLoop, SceneInParts)]
    ends = [stepped(*start, 8) for start in starts]
    assert abs(ends[0][1][0] - v[0]) > 0.5  # the arms have met
    assert np.abs(np.concatenate(ends[0]) - np.concatenate(ends[1]))[:4].max() < 1e-7


@pytest.mark.parametrize("changed", [{}, {"b/link.mass": 3.0}])
@pytest.mark.parametrize("pushed", ["", "a", "c"])
def test_equal_robots_share_kernels_at_their_own_places(changed, pushed):
    """Energies, works and motion are those of the equations of the whole, up to rounding."""
    parts = {"block": block(), "hopper": robots.planar_hopper(), "a": arm(), "b": arm(), "c": arm(), "d": arm()}
    places = {"b": (0.12, 0.0, 0.2), "c": (1.0, 2.0, 0.1), "d": (3.0, 0.0, 0.0), "hopper": (0.0, 5.0, 2.0)}
    combined = legged.combine(parts, at=places, rotation={"d": legged.rpy(0.0, 0.0, 1.0)})
    group = combined.with_parameters(changed) if changed else combined
    q_of, v_of = random_states(combined, 3)
    q_of["block"][4:7] = (0.0, -5.0, 3.0)
    q, v = combined.join_states(q_of, v_of)
    (whole, *_), (loop, _, s) = (loop_of(kind, group, Rigid(), None, (), q, v) for kind in (RigidLoop, SceneInParts))
    pushes = [legged.Push(f"{name}/link", (0.0, 0.0, 0.3), at=0.0, duration=0.02) for name in pushed]
    whole, loop = (replace(each, pushes=pushes) for each in (whole, loop))
    others = len(changed) + len(pushes)  # which are robots of their own kind
    assert sorted(len(kind.q) for kind in loop._kinds) == [1] * (3 + others) + [3 - others] * (others < 3)
    for one, other in zip(whole.outputs(q, s), loop.outputs(q, s), strict=True):
        assert np.allclose(one, other, atol=1e-12)
    (q_whole, s_whole), (q_parts, s_parts) = (stepped(each, q, s, 3) for each in (whole, loop))
    assert np.abs(q_whole - q_parts).max() < 1e-12
    assert np.abs(s_whole - s_parts).max() < 1e-12


def test_code_does_not_grow_with_equal_robots(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    operations = []
    for count in (2, 2, 5):  # the kernels of all scenes together belong to the first
        group = legged.combine({f"r{k}": block() for k in range(count)})
        q = np.concatenate([[0.2 * k, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0] for k in range(count)])
        loop, q, s = loop_of(SceneInParts, group, Rigid(0.5), None, (), q)
        with CompilationReport() as report:
            loop.time_stepping(0.0, STEP, 0, q, s)
            loop.energies(q, s)
        operations.append(report.passes["tracing"].operations)
    assert operations[1] == operations[2]


@pytest.mark.parametrize("kind", [RigidLoop, SceneInParts])
@pytest.mark.parametrize("robot", [wall(), legged.combine({"wall": wall()})])
def test_a_robot_without_freedom_carries_a_body(robot, kind):
    cube = FreeBody("cube", legged.box_inertia(1.0, (0.1, 0.1, 0.1)), [Box((0.1, 0.1, 0.1))], (0.0, 0.0, 0.15))
    loop, q, s = loop_of(kind, robot, Rigid(), None, (cube,))
    q, s = stepped(loop, q, s, 4)
    assert s[-7] == pytest.approx(0.15, abs=1e-7)  # the height; it would fall 8e-5 m


def test_only_different_robots_collide_by_default_and_all_links_by_choice():
    group = legged.combine({"a": arm(), "b": arm()}, at={"b": (0.12, 0.0, 0.0)})
    assert {c.name.rsplit("_", 1)[0] for c in Scene.of(group, Rigid()).candidates} == {"a/link-b/link"}
    chain = legged.RobotBuilder("chain", legged.Link("post"), base=legged.FixedBase())
    for k, above in enumerate(("post", "l0", "l1")):
        link = legged.Link(f"l{k}", legged.sphere_inertia(1.0, 0.1), shapes=[Sphere(0.1)])
        chain.add(legged.Revolute(f"j{k}", "y"), link, to=above, at=(0.3, 0.0, 0.0))
    two = legged.combine({"a": chain.build(), "b": chain.build()})
    names = {c.name for c in Scene.of(two, Rigid(self_collision=True)).candidates}
    assert {"a/l0-a/l2", "b/l0-b/l2", "a/l0-b/l0"} <= names  # robots at one place with joints at zero collide
    assert len(names) == 9 + 2
    named = Scene.of(two, Rigid(pairs=(("a/l2", "b/l0"),)))
    assert [c.name for c in named.candidates] == ["a/l2-b/l0"]


class Integral:
    """A controller with a memory, a discrete update, gains and a command."""

    implicit_gains = np.array([4.0]), np.array([1.0])

    def start(self, robot, ground, q, v):
        self.seen = len(q), len(v)
        return np.array([0.5])

    def torque(self, t, phase, q, v, wrenches, memory, command):
        return -4.0 * q - v + memory + command[1]

    def rate(self, t, phase, q, v, wrenches, memory):
        return q

    def update(self, t, phase, q, v, wrenches, memory):
        return memory + 0.25

    def update_times(self, until):
        return (0.2,)


def test_controllers_by_name_act_on_their_own_robots():
    group = mixed_group()
    q_of, v_of = random_states(group, 3)
    q, v = group.join_states(q_of, v_of)
    seen = {}

    def law(t, q, v, wrenches):
        seen.update(q=q, v=v, wrenches=wrenches)
        return np.arange(7.0)

    controller = adapt({"a": law, "arm": Integral()})
    started, memory = controller.start(group, None, q, v)
    wrenches = np.random.default_rng(4).normal(size=(len(group.links), 6))
    state = 0.1, 0, q, v, wrenches, memory
    tau = started.torque(*state, np.array([10.0, 20.0]))
    assert np.allclose(seen["q"], q_of["a"], atol=1e-14)
    assert np.allclose(seen["v"], v_of["a"], atol=1e-14)
    tail = group.link("a/tail").index
    assert np.array_equal(seen["wrenches"][group.member("a").robot.link("tail").index], wrenches[tail])
    R = legged.rotations.quaternion_matrix(q_of["a"][:4])
    assert np.allclose(tau[:7], [*(R @ (3.0, 4.0, 5.0)), 0.0, 1.0, 2.0, 6.0])
    assert not tau[7:-1].any()
    assert tau[-1] == pytest.approx(-4.0 * q[-1] - v[-1] + 0.5 + 20.0)
    assert started.rate(*state) == pytest.approx(q[-1:])
    assert started.update(*state) == pytest.approx([0.75])
    assert list(started.update_times(1.0)) == [0.2]
    assert started.has_update
    assert started.takes_command
    assert [gain[-1] for gain in started.implicit_gains] == [4.0, 1.0]
    assert not np.any([gain[:-1] for gain in started.implicit_gains])


def test_a_run_a_rollout_and_a_simulation_of_two_robots_agree(tmp_path):
    group = legged.combine({"a": slider(), "b": slider(mass=2.0)}, at={"b": (0.3, 0.0, 0.0)})

    def push(t, q, v, wrenches):
        return np.array([4.0 - 8.0 * t])

    setup = {"controller": {"a": push}, "ground": Rigid(), "integrator": TimeStepping(STEP)}
    run = legged.simulate(group, until=0.4, **setup)
    batch = legged.rollout(group, until=0.4, v=np.zeros((2, 2)), **setup)
    simulation = legged.Simulation(group, **setup)
    for _ in range(400):
        simulation.step()
    assert np.abs(batch.q[1, -1] - run.q[-1]).max() < 1e-12
    assert np.abs(simulation.q - run.q[-1]).max() < 1e-12
    impulse = run.contact("a/ball-b/ball").impulse.sum(axis=0)
    assert run.contacts.on == ("a/ball",)
    assert run.contacts.against == ("b/ball",)
    assert 2.0 * run.v[-1, 1] == pytest.approx(-impulse[0], rel=1e-9)  # action on b
    given = STEP * sum(4.0 - 8.0 * STEP * k for k in range(400))
    assert run.v[-1, 0] == pytest.approx(impulse[0] + given, rel=1e-9)
    loaded = legged.simulation.Run.load(run.save(tmp_path / "run.npz"))
    assert loaded.contacts.on == run.contacts.on


def test_a_fall_of_one_robot_ends_the_run_with_its_name():
    group = legged.combine({"a": block(), "b": block()})
    q, _ = group.join_states({"a": [1, 0, 0, 0, 0, 0, 0.11, 0.0], "b": [1, 0, 0, 0, 3, 0, 1.0, 0.0]})
    limits = legged.simulation.Fall(height=0.5).limits(group, Rigid(), q)
    assert limits.termination_code(group, Rigid(), q) == 0.0
    lower = q.copy()
    lower[10] = 0.4
    assert limits.termination_code(group, Rigid(), lower) == 3.0
    assert limits.message(group, 3) == "link 'b/trunk' fell below 0.5 m, 0.5 of its initial height (Fall.height)"
    lower[2] = 0.01
    assert limits.message(group, int(limits.termination_code(group, Rigid(), lower))).startswith("link 'a/trunk'")


def test_no_lines_are_drawn_between_robots():
    parts = {"a": robots.planar_hopper(), "b": robots.spatial_quadruped(), "c": arm(), "d": wall()}
    group = legged.combine(parts, at={"c": (1.0, 0.0, 0.0)})
    assert len(drawing_of(group).edges) == sum(len(drawing_of(robot).edges) for robot in parts.values())


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: legged.combine({}), DefinitionError, "at least one robot"),
        (lambda: legged.combine({"a/b": arm()}), DefinitionError, "no '/'"),
        (lambda: legged.combine({"a": arm()}, at={"b": (0, 0, 0)}), UnknownNameError, "robot of the group"),
        (lambda: legged.combine({"a": block()}, at={"a": (0, 0, 1)}), DefinitionError, "place by q"),
        (lambda: legged.combine({"a": legged.combine({"b": arm()})}), DefinitionError, "group itself"),
        (
            lambda: legged.combine({"a": arm(), "b": arm().edit().change_robot(gravity=(0, 0, -1)).build()}),
            DefinitionError,
            "make them equal",
        ),
        (lambda: legged.combine({"a": arm()}).join_states({"a": np.zeros(2)}), ShapeError, "q of robot 'a'"),
        (lambda: legged.combine({"a": arm()}).join_states({"c": np.zeros(1)}), UnknownNameError, "'c'"),
        (lambda: legged.simulate(arm(), {"a": None}, until=0.1), DefinitionError, "single robot"),
        (lambda: legged.simulate(legged.combine({"a": arm()}), {"b": None}, until=0.1), UnknownNameError, "'b'"),
    ],
)
def test_errors_say_what_to_do(make, error, words):
    with pytest.raises(error, match=words):
        make()


def floating(shape, mass):
    """Return a robot of one link on a floating base, without gravity; its inertia is the same about all axes."""
    link = legged.Link("body", legged.box_inertia(mass, (0.2, 0.2, 0.2)), shapes=[shape])
    return legged.RobotBuilder("one", link, gravity=(0.0, 0.0, 0.0)).build()


def test_hulls_that_meet_in_parts_keep_the_momentum_of_the_group():
    """Linear and angular momentum about the origin, up to rounding: the flight of these bodies has no error."""
    points = np.random.default_rng(3).normal(size=(20, 3)) * 0.1
    group = legged.combine({"a": floating(Hull(points), 1.0), "b": floating(Hull(points[:9]), 3.0)})
    q_of = {"a": np.array([1.0, 0, 0, 0, 0, 0, 0]), "b": np.array([1.0, 0, 0, 0, 0.5, 0.05, 0.02])}
    v_of = {"a": np.array([0.1, 0.2, -0.3, 3.0, 0.0, 0.5]), "b": np.zeros(6)}
    q, v = group.join_states(q_of, v_of)
    loop, q, s = loop_of(SceneInParts, group, Rigid(0.5), None, (), q, v)
    expected = legged.momentum(group, q, v)
    for _ in range(60):
        q, s = loop.time_stepping(0.0, 5 * STEP, 0, q, s)
    assert np.abs(s[: group.nv] - v).max() > 0.5  # they have met
    assert np.abs(legged.momentum(group, q, s[: group.nv]) - expected).max() < 1e-12


def test_hulls_move_in_parts_as_in_the_equations_of_the_whole():
    """Both solve the contact law to the tolerance of the solver, 1e-9 m/s in a step."""
    points = np.random.default_rng(3).normal(size=(20, 3)) * 0.1
    group = legged.combine({"a": floating(Hull(points), 1.0), "b": floating(Hull(points[:9]), 3.0)})
    q_of = {"a": np.array([1.0, 0, 0, 0, 0, 0, 0]), "b": np.array([1.0, 0, 0, 0, 0.19, 0.05, 0.02])}
    q, v = group.join_states(q_of, {"a": np.array([0.1, 0.2, -0.3, 3.0, 0.0, 0.5])})
    starts = [loop_of(kind, group, Rigid(0.5, tolerance=1e-9), None, (), q, v) for kind in (RigidLoop, SceneInParts)]
    (q_whole, s_whole), (q_parts, s_parts) = (stepped(*start, 20) for start in starts)
    assert np.abs(s_whole[: group.nv] - v).max() > 0.5  # they have met
    assert np.abs(q_whole - q_parts).max() < 1e-7
    assert np.abs(s_whole - s_parts)[: group.nv].max() < 1e-7
