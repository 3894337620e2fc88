"""MuJoCo as a reference for standing: a robot on its floor, and the forces on its feet."""

from collections.abc import Callable
from xml.etree import ElementTree

import mujoco
import numpy as np

from legged import conversions
from legged.files.mjcf.export import to_mjcf
from legged.robot.robot import Robot
from legged.spatial import Array

_BALL = 1e-4  # [m], radius of a contact point
_STIFF = {"solref": "0.004 1", "solimp": "0.99 0.9999 0.0001", "condim": "3", "priority": "1"}


def on_floor(robot: Robot, friction: float, step: float) -> mujoco.MjModel:
    """Return a MuJoCo model of a robot with small spheres at its contact points over a floor at z = 0."""
    xml = to_mjcf(robot)
    option = xml.find("option")
    option = ElementTree.SubElement(xml, "option") if option is None else option
    option.set("timestep", str(step))
    option.set("cone", "elliptic")
    for k, contact in enumerate(robot.contacts):
        (body,) = (b for b in xml.iter("body") if b.get("name") == robot.links[contact.link].name)
        place = {"pos": " ".join(map(str, contact.position)), "size": str(_BALL)}
        sides = {"contype": "1", "conaffinity": "2", "friction": f"{friction} 0 0"}
        ElementTree.SubElement(body, "geom", {"type": "sphere", "name": f"foot{k}", **place, **sides, **_STIFF})
    floor = {"contype": "2", "conaffinity": "1", "friction": f"{friction} 0 0", **_STIFF, "priority": "0"}
    world = xml.find("worldbody")
    assert world is not None
    ElementTree.SubElement(world, "geom", {"type": "plane", "size": "9 9 1", "pos": f"0 0 {-_BALL}", **floor})
    return mujoco.MjModel.from_xml_string(ElementTree.tostring(xml, encoding="unicode"))


def standing(
    robot: Robot, law: Callable[[Array, Array], Array], q: Array, friction: float, until: float, step: float = 1e-3
) -> tuple[Array, Array]:
    """Return (q, forces on the contact points (n, 3), [N], world) after a robot has stood from q under a law tau(q, v).

    Args:
        robot: The robot. law: Its generalized forces, (nv,). q: Start, at rest, (nq,). friction: mu.
        until: How long, [s]. step: MuJoCo's, [s].
    """
    model = on_floor(robot, friction, step)
    data, to = mujoco.MjData(model), conversions.mujoco(robot, model)
    data.qpos[:], data.qvel[:] = to.to_configuration(q), 0.0
    for _ in range(round(until / step)):
        q, v = to.from_configuration(data.qpos), to.from_velocity(data.qpos, data.qvel)
        data.qfrc_applied[:] = to.to_force(q, law(q, v))
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    forces, wrench = np.zeros((len(robot.contacts), 3)), np.zeros(6)
    for i in range(data.ncon):
        contact = data.contact[i]
        mujoco.mj_contactForce(model, data, i, wrench)
        (foot,) = (g for g in (contact.geom1, contact.geom2) if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_SPHERE)
        away = 1.0 if contact.geom2 == foot else -1.0  # the frame's normal points from the first geom to the second
        forces[int(model.geom(foot).name[4:])] += away * contact.frame.reshape(3, 3).T @ wrench[:3]
    return to.from_configuration(data.qpos), forces
