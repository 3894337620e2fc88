"""The report on a robot's file: what is strange, what was fused, lost, repaired, decided and found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from legged.files.feet import Foot
from legged.files.findings import Finding
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Audit:
    """What a file says and what was made of it.

    Attributes:
        source: Path. name: The robot's.
        base: "floating" or "fixed".
        findings: What is strange, the worst first.
        fused: Link -> the links fixed to it, which move as one body with it.
        lost: What the file has and the robot has not.
        decided: What was made of what the file leaves open.
        repaired: What was repaired, as the user asked.
        feet: With their contact points, and how they were found.
        mass: Total, [kg]. center: Center of mass with all joints at zero, (3,), [m], axes and origin of the root link.
        joints: Names in the order of v; followers: those that follow others.
        modules: Names of links, module by module. alike: Groups of numbers of modules that are alike.
        conditions: Of the modules' articulated inertias with all joints at zero, units taken out; see
            `legged.conditioning`.

    What follows from the built robot is empty for a file that is refused.
    """

    source: str
    name: str
    base: str
    findings: tuple[Finding, ...]
    fused: Mapping[str, tuple[str, ...]]
    lost: tuple[str, ...]
    decided: tuple[str, ...]
    repaired: tuple[str, ...]
    feet: tuple[Foot, ...]
    mass: float
    center: Array
    joints: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    modules: tuple[tuple[str, ...], ...] = ()
    alike: tuple[tuple[int, ...], ...] = ()
    conditions: tuple[float, ...] = ()

    @property
    def singular(self) -> tuple[Finding, ...]:
        """The findings for which the file is refused."""
        return self.of("singular")

    def of(self, severity: str) -> tuple[Finding, ...]:
        """Return the findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def __str__(self) -> str:
        lines = [f"{self.name} ({self.source}), {self.mass:.4g} kg, {len(self.joints)} joints, {self.base} base"]
        lines += [f"{f.severity}: {f.where}: {f.words}" for f in self.findings]
        lines += [f"repaired: {words}" for words in self.repaired]
        lines += [f"decided: {words}" for words in self.decided]
        lines += [f"fused with {head!r}: {', '.join(others)}" for head, others in self.fused.items()]
        lines += [f"lost: {words}" for words in self.lost]
        lines += [f"foot {foot.link!r}: {foot.how}" for foot in self.feet]
        return "\n".join(lines)
