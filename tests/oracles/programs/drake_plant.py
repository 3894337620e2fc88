"""A substitute for Drake's plant with the methods that `legged.conversions.drake` calls."""

from types import SimpleNamespace


def plant_of(names, floating=True):
    """Return a substitute for a plant, with joints in the given order after the base."""
    kinds = [("$world_trunk", "quaternion_floating", 7, 6)] * floating + [(name, "revolute", 1, 1) for name in names]
    joints, q, v = [], 0, 0
    for name, kind, nq, nv in kinds:
        joints.append(joint_of_plant(name, kind, q, v, nq, nv))
        q, v = q + nq, v + nv
    return SimpleNamespace(
        GetJointIndices=lambda: range(len(joints)),
        get_joint=lambda index: joints[index],
        world_body=lambda: SimpleNamespace(index=lambda: 0),
        num_positions=lambda: q,
        num_velocities=lambda: v,
    )


def joint_of_plant(name, kind, q, v, nq, nv):
    answers = {"name": name, "type_name": kind, "position_start": q, "velocity_start": v}
    answers |= {"num_positions": nq, "num_velocities": nv}
    answers |= {"parent_body": SimpleNamespace(index=lambda: 0 if kind == "quaternion_floating" else 1)}
    answers |= {"child_body": SimpleNamespace(name=lambda: name.removeprefix("$world_"))}
    return SimpleNamespace(**{word: lambda answer=answer: answer for word, answer in answers.items()})
