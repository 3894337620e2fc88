"""Linear identification: base parameters, and least squares for physically possible inertial parameters.

The generalized forces are linear in the links' inertial parameters and in damping and friction of the joints, tau =
Y(q, v, vdot) parameters. The regressor Y has dependent columns: only some combinations of the inertial parameters, the
base parameters, have an influence.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from legged.algorithms.newton_euler import INERTIAL_PARAMETERS, inertial_parameters, inverse_dynamics_regressor
from legged.arguments import array, whole
from legged.checked import checked
from legged.compiler import compile
from legged.dynamics.inverse import inverse_dynamics
from legged.errors import ArgumentError, MissingError, ShapeError, SingularError
from legged.identification.parameter import inertia_of
from legged.robot.configuration import random_configuration
from legged.robot.physics import TRANSITION_SPEED
from legged.robot.robot import Robot
from legged.spatial import Array

_RANK = 1e-9  # diagonal entries of R below it, relative to the largest, count as zero
_SAMPLES = 20  # number of random states times degrees of freedom, for each column of the regressor
_LEAST_EIGENVALUE = 1e-8  # [kg m^2] and [kg], of the pseudo-inertia: a body is not a point


@checked
@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The combinations of inertial parameters that have an influence on the generalized forces.

    Attributes:
        robot: The robot. independent: Columns of the regressor that are linearly independent, (k,).
        grouping: K, (k, 10 n_links), with Y parameters = Y[:, independent] (K parameters).
    """

    robot: Robot
    independent: Array
    grouping: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters that stand for the combinations, "link.Ixx"."""
        links, count = self.robot.links, len(INERTIAL_PARAMETERS)
        return tuple(f"{links[i // count].name}.{INERTIAL_PARAMETERS[i % count]}" for i in self.independent.tolist())

    @property
    def values(self) -> Array:
        """Base parameters of the robot, (k,), mixed units."""
        return self.grouping @ inertial_parameters(self.robot)


@checked
def base_parameters(robot: Robot, seed: int = 0) -> BaseParameters:
    """Return the base parameters of a robot, from a QR factorization with pivoting of its regressor at random states.

    Args:
        robot: The robot. seed: Seed of the random states.

    Source: Gautier 1991, "Numerical calculation of the base inertial parameters of robots".
    """
    rng = np.random.default_rng(whole("seed", seed, least=0))
    n = 10 * len(robot.links)
    count = max(_SAMPLES * n // max(robot.nv, 1), _SAMPLES)
    q = np.array([random_configuration(robot, rng) for _ in range(count)])
    v, vdot = rng.normal(size=(2, count, robot.nv))
    Y = compile(inverse_dynamics_regressor, robot)(q, v, vdot).reshape(-1, n)
    scale = np.linalg.norm(Y, axis=0)
    active = np.flatnonzero(scale > _RANK * scale.max())
    factors: Any = qr(Y[:, active], mode="r", pivoting=True)
    R, order = factors
    size = np.abs(np.diag(R))
    rank = int(np.count_nonzero(size > _RANK * size[0] * np.sqrt(len(Y))))
    R1, R2 = R[:rank, :rank], R[:rank, rank:]
    grouping = np.zeros((rank, n))
    grouping[:, active[order[:rank]]] = np.eye(rank)
    dependent = solve_triangular(R1, R2)
    dependent[np.abs(dependent) < 1e-9] = 0.0
    grouping[:, active[order[rank:]]] = dependent
    ranked = np.argsort(active[order[:rank]])
    return BaseParameters(robot, active[order[:rank]][ranked], grouping[ranked])


@dataclass(frozen=True, eq=False)
class LinearFit:
    """The result of `fit_inertias`.

    Attributes:
        robot: The robot with the identified inertial parameters, damping and friction.
        parameters: Inertial parameters of all links, (10 n_links,), in the order of `robot.links`.
        damping, friction: Of the joints, (n_joints,), [N m s/rad] and [N m], or None.
        error: Root mean square of the residual generalized forces, [N m] and [N] together.
    """

    robot: Robot
    parameters: Array
    damping: Array | None
    friction: Array | None
    error: float


@checked
def fit_inertias(
    robot: Robot,
    q: Array,
    v: Array,
    vdot: Array,
    tau: Array,
    *,
    with_friction: bool = True,
    total_mass: float | None = None,
    regularization: float = 1e-6,
) -> LinearFit:
    """Return the physically possible inertial parameters that fit generalized forces best.

        minimize |Y x + damping v + friction tanh(v / v_s) - tau|^2 + w |(x - x0) / scale|^2
        such that the pseudo-inertia of each link is positive definite, damping >= 0, friction >= 0

    w is `regularization` relative to the data, and the scales follow from the masses of the links: parameters that the
    motion does not determine stay near those of the robot. v_s is `legged.robot.physics.TRANSITION_SPEED`. The forces
    of armature, rotors and springs are those of the robot.

    Args:
        robot: The robot, whose inertial parameters x0 are the prior.
        q: Configurations, (T, nq). v: Velocities, (T, nv). vdot: Accelerations, (T, nv).
        tau: Generalized forces, (T, nv), without those of the ground, [N m] and [N].
        with_friction: Whether to identify damping and dry friction of the joints.
        total_mass: Mass of the robot, if it is known, [kg]. regularization: Weight of the prior, relative to the data.

    Raises:
        ShapeError: The arrays do not fit the robot. SingularError: The solver finds no solution.
        ArgumentError: The robot has no link with mass. MissingError: clarabel is not installed.

    Source: Wensing, Kim, Slotine 2018, "Linear matrix inequalities for physically-consistent inertial parameter
    identification: a statistical perspective on the mass distribution".
    """
    if find_spec("clarabel") is None:
        raise MissingError("fitting inertias needs clarabel: pip install 'legged[identification]'")
    q = array("q", q, (None, robot.nq))
    v, vdot, tau = (
        array(name, x, (len(q), robot.nv), "a row for each configuration")
        for name, x in (("v", v), ("vdot", vdot), ("tau", tau))
    )
    Y, known = regressor_and_known_forces(robot, q, v, vdot, with_friction)
    x0 = inertial_parameters(robot)
    massive = [k for k, link in enumerate(robot.links) if link.inertia.mass]
    if not massive:
        raise ArgumentError("the robot has no link with mass")
    columns = [10 * k + i for k in massive for i in range(10)]
    columns += list(range(len(x0), Y.shape[1]))
    A, b = Y[:, columns], (tau - known).ravel()
    start = np.append(x0, np.zeros(Y.shape[1] - len(x0)))[columns]
    scale = np.tile([1.0, *[0.1] * 3, *[0.01] * 6], len(massive))
    scale = np.append(
        scale * np.repeat([robot.links[k].inertia.mass for k in massive], 10), np.ones(len(columns) - len(scale))
    )
    weight = np.sqrt(regularization * max(float((A**2).sum()) * float((scale**2).mean()), 1e-300) / len(scale))
    stacked = np.vstack([A * scale, weight * np.eye(len(scale))])
    target = np.append(b, weight * start / scale)
    x = _constrained_least_squares(stacked, target, *_constraints(len(massive), scale, total_mass)) * scale
    return _result(robot, massive, x, x0, A @ x - b, with_friction)


def _constrained_least_squares(A: Array, b: Array, rows: Array, constants: Array, cones: Any) -> Array:
    """Return the minimizer x, (n,), of |A x - b|^2 with constants - rows @ x in the cones, by clarabel.

    Args:
        A, b: The squares, (m, n) and (m,). rows, constants, cones: As `_constraints` returns them.
    """
    import clarabel
    from scipy import sparse

    # The QR factors keep the program small: |A x - b|^2 = |R x - Q^T b|^2 + constant.
    R: Any = np.linalg.qr(np.column_stack([A, b]), mode="r")
    H, g = R[:, :-1].T @ R[:, :-1], R[:, :-1].T @ R[:, -1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-10
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(H)), -g, sparse.csc_matrix(rows), constants, cones, settings
    )
    try:
        solution = solver.solve()
    except BaseException as error:  # a panic of the solver, which is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise SingularError(f"the numbers are too large or too different for the solver: {error}") from None
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise SingularError(f"the solver finds no physically possible parameters: {solution.status}")
    return np.asarray(solution.x)


def _constraints(links: int, scale: Array, total_mass: float | None) -> tuple[Array, Array, list[Any]]:
    """Return (A (k, n), b (k,), cones) of the constraints b - A x in cones, for x over `scale` of links with mass."""
    import clarabel

    rows: list[Array] = []
    cones: list[Any] = []
    constants: list[float] = []
    n = len(scale)
    if total_mass is not None:
        rows.append(np.where(np.isin(np.arange(n), range(0, 10 * links, 10)), scale, 0.0))
        constants.append(total_mass)
        cones.append(clarabel.ZeroConeT(1))
    friction = range(10 * links, n)
    if len(friction):
        rows += [-np.eye(n)[i] for i in friction]
        constants += [0.0] * len(friction)
        cones.append(clarabel.NonnegativeConeT(len(friction)))
    basis = _pseudo_inertia_basis()
    for k in range(links):
        for i in range(4):
            for j in range(i + 1):  # upper triangle by columns, off-diagonal entries times sqrt(2)
                row = np.zeros(n)
                factor = 1.0 if i == j else np.sqrt(2.0)
                row[10 * k : 10 * k + 10] = -factor * basis[:, i, j] * scale[10 * k : 10 * k + 10]
                rows.append(row)
                constants.append(-_LEAST_EIGENVALUE if i == j else 0.0)
        cones.append(clarabel.PSDTriangleConeT(4))
    return np.array(rows), np.array(constants), cones


def _result(robot: Robot, massive: list[int], x: Array, x0: Array, residual: Array, with_friction: bool) -> LinearFit:
    """Return the fit with x: the parameters of the links with mass, then damping and friction of the joints."""
    parameters, values = x0.copy(), {}
    for i, k in enumerate(massive):
        link_parameters = x[10 * i : 10 * i + 10]
        parameters[10 * k : 10 * k + 10] = link_parameters
        inertia = inertia_of(np.einsum("p,pij->ij", link_parameters, _pseudo_inertia_basis()))
        name = robot.links[k].name
        values |= {f"{name}.mass": inertia.mass, f"{name}.center": inertia.center, f"{name}.tensor": inertia.tensor}
    damping = friction = None
    if with_friction:
        damping, friction = np.maximum(x[10 * len(massive) :].reshape(2, -1), 0.0)
        for joint, c, F in zip(robot.joints, damping.tolist(), friction.tolist(), strict=True):
            values |= {f"{joint.name}.damping": c, f"{joint.name}.friction": F}
    error = float(np.sqrt((residual**2).mean()))
    return LinearFit(robot.with_parameters(values), parameters, damping, friction, error)


def regressor_and_known_forces(
    robot: Robot, q: Array, v: Array, vdot: Array, with_friction: bool
) -> tuple[Array, Array]:
    """Return the regressor of inertial parameters and friction, (T nv, n), and the known forces, (T, nv).

    Args:
        robot: The robot. q, v, vdot: States and accelerations, (T, nq) and (T, nv).
        with_friction: Whether damping and friction of the joints are columns; otherwise their forces are known.
    """
    if with_friction:
        if any(joint.nv != 1 for joint in robot.joints):
            raise ShapeError("friction can be identified for joints of one degree of freedom; use with_friction=False")
        names = {f"{joint.name}.{field}": 0.0 for joint in robot.joints for field in ("damping", "friction")}
        robot = robot.with_parameters(names)
    Y = compile(inverse_dynamics_regressor, robot)(q, v, vdot)
    known = compile(inverse_dynamics, robot)(q, v, vdot) - Y @ inertial_parameters(robot)
    if with_friction:
        at = [joint.v.start for joint in robot.joints]
        more = np.zeros((len(q), robot.nv, 2 * len(at)))
        for i, k in enumerate(at):
            more[:, k, i], more[:, k, len(at) + i] = v[:, k], np.tanh(v[:, k] / TRANSITION_SPEED)
        Y = np.concatenate([Y, more], axis=2)
    return Y.reshape(-1, Y.shape[-1]), known


def _pseudo_inertia_basis() -> Array:
    """Return the derivatives of the pseudo-inertia with respect to the inertial parameters of a link, (10, 4, 4)."""
    basis = np.zeros((10, 4, 4))
    basis[0, 3, 3] = 1.0
    for i in range(3):
        basis[1 + i, i, 3] = basis[1 + i, 3, i] = 1.0
    for k, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), 4):
        if i == j:
            basis[k, :3, :3] = 0.5 * np.eye(3)
            basis[k, i, i] -= 1.0
        else:
            basis[k, i, j] = basis[k, j, i] = -1.0
    return basis
