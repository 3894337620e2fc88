"""Detection of time steps in which the solver of rigid contact has not satisfied the contact law."""

from __future__ import annotations

from typing import Any

from legged.contact.rigid import Rigid


def violation_message(ground: Any, worst: float, member: int | None = None) -> str:
    """Return the warning that the contact law was violated, or "" below `Rigid.residual_limit`.

    Args:
        ground: The ground. worst: Largest residual of a time step, [m/s]; see `ContactRecord.worst_residual`.
        member: Number of the member of a batch.
    """
    if not isinstance(ground, Rigid) or worst <= ground.residual_limit:
        return ""
    where = "" if member is None else f" of member {member}"
    return (
        f"the contact solver left a residual of {worst:.2g} m/s in a time step{where}, more than the limit of "
        f"{ground.residual_limit:g} m/s: contacts creep, penetrate or slide by that velocity; take more iterations, "
        f"legged.Rigid(sweeps={4 * ground.sweeps}, iterations={max(2 * ground.iterations, 40)}), shorter steps, or "
        f"masses that differ less"
    )
