"""The inverse of the generalized inertia matrix (GIM) in module blocks, and the modules that worsen its condition.

Source: the inverse is that of Saha, "Analytical expression for the inverted inertia matrix of serial robots",
International Journal of Robotics Research 18(1), 1999, for a serial chain, which Shah, Saha, Dutt 2012 cite; here links
become modules and the chain a tree. The diagnosis is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.arguments import whole
from legged.checked import checked
from legged.denoc.equations import (
    ArticulatedModule,
    articulated_modules,
    module_joint_rate_propagation,
    module_twist_propagation,
    udu,
)
from legged.denoc.kinematics import zeros
from legged.errors import SingularError
from legged.robot.robot import Robot
from legged.spatial import Array
from legged.table import Table

_SINGULAR = 1e15
"""Condition number of a scaled articulated inertia above which a motion has no inertia beyond rounding."""
_LARGEST = 1e300
"""Stands for infinity, so that ratios are numbers."""


@dataclass(frozen=True, eq=False)
class ModuleInverse:
    """The inverse of the GIM, I^-1 = U^-T D^-1 U^-1, in blocks of modules.

    Attributes:
        robot: The robot.
        U_inverse: U^-1 by blocks, (k, j) -> (DoF of M_k, DoF of M_j), for k on the path from j to the base.
        D_inverse: (I^^k)^-1 of each module, (DoF of M_k, DoF of M_k): accelerations of M_k per generalized force of M_k
            with the modules inward of it held.
    """

    robot: Robot
    U_inverse: Mapping[tuple[int, int], Array]
    D_inverse: tuple[Array, ...]

    def term(self, i: int, j: int, k: int) -> Array:
        """Return the part of the block (i, j) that is due to the motion of M_k, (DoF of M_i, DoF of M_j).

            ((U^-1)^(k,i))^T (I^^k)^-1 (U^-1)^(k,j)

        A force in M_j accelerates M_k, as much as its articulated inertia permits, and M_k carries M_i. The part is
        zero unless both are M_k itself or outward of it.

        Args:
            i, j, k: Module numbers.

        Raises:
            ArgumentError: The robot has no module of such a number.
        """
        i, j, k = (
            whole(name, x, least=0, most=len(self.robot.modules) - 1) for name, x in zip("ijk", (i, j, k), strict=True)
        )
        if (k, i) not in self.U_inverse or (k, j) not in self.U_inverse:
            return np.zeros((len(self.robot.modules[i].v), len(self.robot.modules[j].v)))
        return self.U_inverse[k, i].T @ self.D_inverse[k] @ self.U_inverse[k, j]

    def block(self, i: int, j: int) -> Array:
        """Return the accelerations of M_i per generalized force of M_j, (DoF of M_i, DoF of M_j): the sum of its terms.

        Args:
            i, j: Module numbers.
        """
        return sum((self.term(i, j, k) for k in range(len(self.robot.modules))), start=self.term(i, j, 0) * 0.0)

    @cached_property
    def matrix(self) -> Array:
        """I^-1, (nv, nv)."""
        inverse = zeros((self.robot.nv, self.robot.nv), *self.D_inverse)
        for own in self.robot.modules:
            for other in self.robot.modules:
                inverse[np.ix_(own.v, other.v)] = self.block(own.index, other.index)
        return inverse


@checked
def module_inverse(robot: Robot, q: Array) -> ModuleInverse:
    """Return the inverse of the GIM in module blocks, by an explicit expression of its factors.

        (U^-1)^(i,j) = -(A~^(j,i) N^i)^T Psi^j        for M_j outward of M_i
        A~^(j,i) = A^(j,k) (1 - N^k (Psi^k)^T) A~^(k,i),   M_k the parent of M_j;   A~^(j,i) = A^(j,i) for k = i

    A~^(j,i) carries the twist of M_i to M_j with the joints between them free, where A^(j,i) has them locked.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        DefinitionError: For a robot with coupled joints. SingularError: For a module with a motion without inertia.

    Source: Saha 1999 for links of a chain; Shah, Saha, Dutt 2012, eqs. (A.4) to (A.7) for U and D.
    """
    udu(robot, q)  # refuses coupled joints
    parts = articulated_modules(robot, q)
    for module, part in zip(robot.modules, parts, strict=True):
        if part.I_hat.dtype != object and _condition(_scaled(part.I_hat)[0]) > _SINGULAR:
            raise SingularError(
                f"the inertia matrix of robot {robot.name!r} has no inverse at this configuration: module "
                f"M_{module.index} has a motion without inertia"
            )
    return _inverse(robot, q, parts)


def _inverse(robot: Robot, q: Array, parts: Sequence[ArticulatedModule]) -> ModuleInverse:
    """Return the inverse; accelerations along motions without inertia are zero in it."""
    N = [module_joint_rate_propagation(robot, q, m.index) for m in robot.modules]
    blocks: dict[tuple[int, int], Array] = {}
    for i, module in enumerate(robot.modules):
        blocks[i, i] = np.eye(len(module.v))
        free: dict[int, Array] = {i: N[i]}  # A~^(j,i) N^i
        for j in range(i + 1, len(robot.modules)):
            k = robot.modules[j].parent
            if k in free:
                carried = free[k] if k == i else free[k] - N[k] @ (parts[k].Psi.T @ free[k])
                free[j] = module_twist_propagation(robot, q, j, k) @ carried
                blocks[i, j] = -free[j].T @ parts[j].Psi
    own = [p.inverse if p.I_hat.dtype == object else np.linalg.pinv(p.I_hat, hermitian=True) for p in parts]
    return ModuleInverse(robot, blocks, tuple(own))


@dataclass(frozen=True)
class ModuleCondition:
    """The conditioning of one articulated module against that of the whole GIM; all numbers are without units.

    Attributes:
        module: Number of the module. name: Name of its last link.
        own: Condition number of I^^, rows and columns scaled.
        share: Part of the trace of the scaled inverse of the GIM that this module causes, from 0 to 1.
        locked: Condition number of the scaled GIM with the joints of the module locked.
        factor: Factor by which the module worsens the condition number: that of the GIM over `locked`, at least 1.
    """

    module: int
    name: str
    own: float
    share: float
    locked: float
    factor: float


@dataclass(frozen=True)
class ConditionReport:
    """The condition number of the GIM, and its causes.

    Attributes:
        whole: Condition number of the GIM, rows and columns divided by the square roots of its diagonal.
        modules: The modules, that with the largest share first.
        causes: The modules that together worsen it at least a hundredfold, each with the factor by which it alone
            worsens the condition number of the others; empty if no small group of modules causes it.
        remaining: Condition number with the joints of all causes locked.
    """

    whole: float
    modules: tuple[ModuleCondition, ...]
    causes: tuple[tuple[ModuleCondition, float], ...]
    remaining: float

    def __str__(self) -> str:
        words = [f"condition number {self.whole:.3g}"]
        words += [f"M_{cause.module} ({cause.name}) worsens it {factor:.3g} times" for cause, factor in self.causes]
        end = f"{self.remaining:.3g} without" if self.causes else "no small group of modules causes it"
        return "; ".join([*words, end])

    def table(self) -> Table:
        """Return the modules as a table."""
        rows = tuple(
            (f"M_{m.module}: {m.name}", f"{m.own:.3g}", f"{100 * m.share:.1f} %", f"{m.locked:.3g}", f"{m.factor:.3g}")
            for m in self.modules
        )
        header = ("module", "condition of I^^", "share of the inverse", "condition with it locked", "factor")
        return Table("Conditioning of the modules", header, rows, (f"{self}.",), left=1)


@checked
def condition_report(robot: Robot, q: Array) -> ConditionReport:
    """Return which modules make the GIM badly conditioned, and by how much.

    The GIM is scaled to ones on its diagonal, S I S, which removes units, masses and sizes and leaves the coupling.
    The trace of its inverse is a sum over the modules,

        tr((S I S)^-1) = sum over k of tr((I^^k)^-1 (U^-1)^(k,.) S^-2 ((U^-1)^(k,.))^T)

    by the terms of `ModuleInverse`; the condition number is at most nv times this trace and at least the trace over nv,
    since the eigenvalues lie between 0 and nv. So a module whose term dominates the trace is the cause. Its factor is
    confirmed by locking its joints, which removes its rows and columns from the GIM and never worsens the condition
    number.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        DefinitionError: For a robot with coupled joints.
    """
    (U, D), parts = udu(robot, q), articulated_modules(robot, q)
    inverse = _inverse(robot, q, parts)
    scaled, size = _scaled(U @ D @ U.T)
    traces = []
    for m in robot.modules:
        rows = [
            inverse.U_inverse[m.index, o.index] * size[list(o.v)]
            for o in robot.modules
            if (m.index, o.index) in inverse.U_inverse
        ]
        row = np.concatenate(rows, axis=1)
        traces.append(float(np.trace(inverse.D_inverse[m.index] @ (row @ row.T))) if len(m.v) else 0.0)
    whole_condition, total = _condition(scaled), sum(traces) or 1.0
    modules = []
    for m, part, trace in zip(robot.modules, parts, traces, strict=True):
        without = _condition(_locked(robot, scaled, {m.index}))
        name, condition = robot.links[_last_link(robot, m.index)].name, _condition(_scaled(part.I_hat)[0])
        modules.append(
            ModuleCondition(m.index, name, condition, trace / total, without, _ratio(whole_condition, without))
        )
    modules.sort(key=lambda m: -m.share)
    locked = [{m.module for m in modules[:n]} for n in range(len(modules) + 1)]
    count, remaining = _causes([_condition(_locked(robot, scaled, each)) for each in locked])
    worst = {m.module for m in modules[:count]}
    alone = [_ratio(_condition(_locked(robot, scaled, worst - {m.module})), remaining) for m in modules[:count]]
    return ConditionReport(whole_condition, tuple(modules), tuple(zip(modules, alone, strict=False)), remaining)


def _causes(conditions: list[float]) -> tuple[int, float]:
    """Return (number of ill-conditioned modules, condition number of the robot with these modules locked).

    It is the number for which the logarithm of the condition number falls the most for each module, or none if the
    condition number falls less than a hundredfold.

    Args:
        conditions: Condition numbers with none, one, two, ... of the modules locked, worst first.
    """
    gains = [np.log10(_ratio(conditions[0], conditions[n])) for n in range(1, len(conditions))]
    count = 1 + int(np.argmax([gain / n for n, gain in enumerate(gains, 1)]))
    return (count, conditions[count]) if gains[count - 1] >= 2.0 else (0, conditions[0])


def _locked(robot: Robot, matrix: Array, modules: set[int]) -> Array:
    """Return a matrix of joint rates, (nv, nv), without the rows and columns of some modules."""
    kept = [entry for m in robot.modules if m.index not in modules for entry in m.v]
    return matrix[np.ix_(kept, kept)]


def _scaled(matrix: Array) -> tuple[Array, Array]:
    """Return a symmetric matrix, (n, n), with ones on its diagonal, and the roots of its diagonal, (n,)."""
    size = np.sqrt(np.abs(np.diag(matrix)))
    size[size == 0.0] = 1.0
    return matrix / np.outer(size, size), size


def _condition(matrix: Array) -> float:
    return min(float(np.linalg.cond(matrix)), _LARGEST) if matrix.size else 1.0


def _ratio(a: float, b: float) -> float:
    return max(a / b, 1.0)  # below 1 by rounding only: locking never worsens the condition number


def _last_link(robot: Robot, module: int) -> int:
    last = robot.modules[module].bodies[-1]
    return next(link.index for link in robot.links if link.body == last)
