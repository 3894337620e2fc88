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


def on_floor(robot: Robot, friction: float, step: float, slope: float = 0.0) -> mujoco.MjModel:
    """Return a MuJoCo model of a robot with small spheres at its contact points over a plane through the origin.

    Args:
        robot: The robot. friction: mu. step: Time step, [s]. slope: Inclination of the plane, rising along x, [rad].
    """
    xml = to_mjcf(robot)
    option = xml.find("option")
    option = ElementTree.SubElement(xml, "option") if option is None else option
    option.set("timestep", str(step))
    option.set("cone", "elliptic")
    for k, contact in enumerate(robot.contacts):
        body, point = _point_of_body(xml, robot.links[contact.link].name, contact.position)
        place = {"pos": " ".join(map(str, point)), "size": str(_BALL)}
        sides = {"contype": "1", "conaffinity": "2", "friction": f"{friction} 0 0"}
        ElementTree.SubElement(body, "geom", {"type": "sphere", "name": f"foot{k}", **place, **sides, **_STIFF})
    floor = {"contype": "2", "conaffinity": "1", "friction": f"{friction} 0 0", **_STIFF, "priority": "0"}
    world, normal = xml.find("worldbody"), np.array([-np.sin(slope), 0.0, np.cos(slope)])
    assert world is not None
    place = {"pos": " ".join(map(str, -_BALL * normal)), "zaxis": " ".join(map(str, normal))}
    ElementTree.SubElement(world, "geom", {"type": "plane", "size": "9 9 1", **place, **floor})
    return mujoco.MjModel.from_xml_string(ElementTree.tostring(xml, encoding="unicode"))


def _point_of_body(xml: ElementTree.Element, link: str, point: Array) -> tuple[ElementTree.Element, Array]:
    """Return the body that contains a link, and a point of the link in its axes, (3,); fixed links are sites."""
    for body in xml.iter("body"):
        if body.get("name") == link:
            return body, point
        for site in body.findall("site"):
            if site.get("name") == link:
                R, place = np.zeros(9), np.array(str(site.get("pos")).split(), dtype=float)
                mujoco.mju_quat2Mat(R, np.array(str(site.get("quat")).split(), dtype=float))
                return body, place + R.reshape(3, 3) @ point
    raise ValueError(f"the MJCF has no link {link!r}")


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
    return to.from_configuration(data.qpos), contact_forces(robot, model, data)


def contact_forces(robot: Robot, model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return the forces on the contact points of a robot of `on_floor`, (n, 3), [N], world axes."""
    forces, wrench = np.zeros((len(robot.contacts), 3)), np.zeros(6)
    for i in range(data.ncon):
        contact = data.contact[i]
        feet = [k for k in (contact.geom1, contact.geom2) if model.geom(k).name.startswith("foot")]
        if not feet:
            continue
        mujoco.mj_contactForce(model, data, i, wrench)
        away = 1.0 if contact.geom2 == feet[0] else -1.0  # the frame's normal points from the first geom to the second
        forces[int(model.geom(feet[0]).name[4:])] += away * contact.frame.reshape(3, 3).T @ wrench[:3]
    return forces
