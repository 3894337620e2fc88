"""Computed parts of `docs/reference/algorithms.md`."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import cache, partial

import numpy as np

import legged
import robots
from benchmarks.pages.parts import EXAMPLES, Part, sentences, spaced, table
from benchmarks.studies import conditioning, parallel_forms, sparsity, stability
from legged.algorithms import operational
from legged.compiler import count_and_depth
from legged.spatial import Array

PAGE = "reference/algorithms.md"
BODIES = (8, 16, 32, 64, 128)
MATRIX_BODIES = BODIES[:-1]
"""Numbers of bodies of the chains, and of those whose inverse inertia matrix is computed."""
FOUR_BARS = (2, 4, 8, 16)
CENTIPEDE = 10
"""Pairs of legs."""


# Operational space.


def _at(form: Callable[..., Array], points: list[tuple[str, Array]], robot: legged.Robot, q: Array) -> Array:
    return form(robot, q, points)


def inverse_operational_inertias() -> str:
    """Return the operations of J M^-1 J^T at the feet of robots."""
    chosen = {
        "12-link chain": robots.chain(12),
        "spatial quadruped": robots.spatial_quadruped(),
        "hexapod": robots.hexapod(),
        "humanoid": robots.humanoid(),
        f"centipede, {CENTIPEDE} pairs of legs": robots.centipede(CENTIPEDE),
    }
    forms = (operational.by_propagators, operational.by_factors, operational.by_operators)
    rows = []
    for name, robot in chosen.items():
        points = [(robot.links[contact.link].name, contact.position) for contact in robot.contacts]
        points = points[::3] if name.startswith("centipede") else points or [(robot.links[-1].name, np.zeros(3))]
        counts = [legged.count(partial(_at, form, points), robot, q=True) for form in forms]
        rows.append((name, str(robot.nv), str(len(points)), *(f"{each.M}, {each.A}" for each in counts)))
    return table(("robot", "degrees of freedom", "points", "propagators", "sparse factors", "recursion"), rows)


def tree_costs() -> str:
    """Return the cost of sparse factors of trees, without the star of single links."""
    names = {"1.5": "1 and 2 alternately"}
    rows = [
        (names.get(branching, branching), nonzeros, *(spaced(int(cost)) for cost in costs))
        for branching, nonzeros, *costs in sparsity.tree_table().rows[:-1]
    ]
    header = ("children per link", "D1", "L^T D L", "solution", "forward dynamics by L^T D L", "by articulated bodies")
    return table(header, rows)


def task_costs() -> str:
    """Return the operations of task quantities of a humanoid, with sparse and dense matrices."""
    costs = sparsity.task_table(sparsity.asimo_like())
    rows = [
        (name, spaced(int(sparse)), spaced(int(dense)), ratio, spaced(int(saved)))
        for name, sparse, dense, ratio, saved in costs.rows
    ]
    return table(costs.header, rows)


def task_methods() -> str:
    """Return the operations of the inverse operational-space inertia of a humanoid, beside the ratios of 2010."""
    published = {"sparse factors": "1", "recursion of the operators": "1.6", "dense matrices": "6.7"}
    names = {
        "extended force propagators": "extended force propagators (2012)",
        "recursion of the operators": "recursion of the operators (Rodriguez and others)",
    }
    rows = [
        (names.get(name, name), spaced(int(cost)), relative, published.get(name, "-"))
        for name, cost, relative in sparsity.method_table(sparsity.asimo_like()).rows
    ]
    return table(("J M^-1 J^T from q", "operations", "relative", "the paper's"), rows)


# Parallel forms.


@cache
def _depths(kind: str) -> dict[int, list[tuple[int, int]]]:
    """Return the depth and the operations of each method: number of bodies -> (depth, operations)."""
    if kind == "four-bars":
        depths = {}
        for n in FOUR_BARS:
            linkage = parallel_forms.four_bars(n)
            robot = linkage.robot
            sizes = {"q": robot.nq, "v": robot.nv, "tau": robot.nv}
            traced = [partial(method, linkage) for method in parallel_forms.LOOP_METHODS.values()]
            depths[n] = [(depth, counts.total) for counts, depth in (count_and_depth(f, None, **sizes) for f in traced)]
        return depths
    methods, sizes, arguments = {
        "forward dynamics": (parallel_forms.METHODS, BODIES, {}),
        "inverse operational inertias": (parallel_forms.INVERSE_OPERATIONAL_INERTIAS, BODIES, {"q": True}),
        "inverse inertia matrices": (parallel_forms.INVERSE_INERTIA_MATRICES, MATRIX_BODIES, {"q": True}),
    }[kind]
    each = {n: robots.chain(n - 1, twist=0.7) for n in sizes}
    return {
        n: [
            (depth, counts.M + counts.A)
            for counts, depth in (count_and_depth(f, robot, **arguments) for f in methods.values())
        ]
        for n, robot in each.items()
    }


def _depth_rows(kind: str) -> list[tuple[str, ...]]:
    return [
        (str(n), *(f"{depth} (of {spaced(operations)})" for depth, operations in depths))
        for n, depths in _depths(kind).items()
    ]


def _added(kind: str, method: int) -> int:
    """Return the depth that the last doubling adds, by the number of the method."""
    *_, before, last = _depths(kind).values()
    return last[method][0] - before[method][0]


def _fits(kind: str) -> tuple[str, ...]:
    """Return the lines fitted to the depth of each method by least squares."""
    depth_of = _depths(kind)
    depths = np.array([[depth for depth, _ in each] for each in depth_of.values()])
    slope, constant = np.polyfit(np.log2(list(depth_of)), depths, 1)
    return "fit", *(f"{a:.0f} + {b:.1f} log2 n" for a, b in zip(constant, slope, strict=True))


def forward_depths() -> str:
    """Return the depth of forward dynamics of chains."""
    kind, most = "forward dynamics", BODIES[-1]
    serial, parallel = _depths(kind)[most][0][1], [operations for _, operations in _depths(kind)[most][2:]]
    return "\n\n".join(
        [
            table(
                (
                    "bodies", "articulated bodies", "sparse system (27)", "constraint forces (28)",
                    "divide and conquer, inverse", "divide and conquer, pivoted",
                ),
                _depth_rows(kind),
                left=0,
            ),
            sentences(
                f"Each doubling of the bodies adds {_added(kind, 3)} or {_added(kind, 4)} to the depth of divide and "
                f"conquer and {_added(kind, 2)} to that of the constraint forces; it doubles the depth of the others. "
                f"For {most} bodies the number of operations is {min(parallel) / serial:.1f} to "
                f"{max(parallel) / serial:.1f} times that of articulated bodies."
            ),
        ]
    )  # fmt: skip


def inverse_operational_depths() -> str:
    """Return the depth of the inverse operational-space inertia at the tip of chains."""
    kind = "inverse operational inertias"
    header = ("bodies", *parallel_forms.INVERSE_OPERATIONAL_INERTIAS)
    return table(header, [*_depth_rows(kind), _fits(kind)])


def inverse_matrix_depths() -> str:
    """Return the depth of the inverse inertia matrix of chains."""
    kind = "inverse inertia matrices"
    return table(("bodies", *parallel_forms.INVERSE_INERTIA_MATRICES), [*_depth_rows(kind), _fits(kind)])


def loop_depths() -> str:
    """Return the depth of forward dynamics of stacked four-bar linkages."""
    kind = "four-bars"
    depths = _depths(kind)
    cheaper = next((n for n, (elimination, *_, pivoted) in depths.items() if elimination[1] > pivoted[1]), None)
    assert cheaper is not None
    *_, before, last = depths
    each = (depths[last][1][1] - depths[before][1][1]) / (last - before)
    header = ("four-bars", "elimination (21)", *list(parallel_forms.LOOP_METHODS)[1:])
    return "\n\n".join(
        [
            table(header, _depth_rows(kind), left=0),
            sentences(
                f"The last doubling adds {_added(kind, 2)} or {_added(kind, 3)} to the depth of divide and conquer and "
                "doubles that of the others. Elimination couples every pair of constraints, so that its operations "
                f"grow with the third power of their number, and exceed those of the pivoted version from {cheaper} "
                f"four-bars on; by subsystems each four-bar costs {each:.0f} operations."
            ),
        ]
    )


# Rounding and conditioning.


def conditions() -> str:
    """Return the condition numbers of trees."""
    growth = conditioning.growth_table(conditioning.growth())
    return table((*growth.header[:-1], "exponent"), growth.rows, left=2)


@cache
def _tree_errors(n: int) -> dict[str, dict[str, tuple[float, float, float]]]:
    return {
        torques: {name: stability.tree_errors(name, n, torques) for name in stability.CHAINS}
        for torques in stability.TORQUES
    }


def tree_errors() -> str:
    """Return the rounding errors of chains, and for which torques the statement of the paper holds."""
    short, long = 8, stability.SIZES[-1]
    titles = {
        "payload of 1e4 kg": "payload of 10^4 kg at the end",
        "lengths fall to 0.7": "lengths fall to 0.7 from link to link",
    }
    rows = [
        (titles.get(name, name), torques, *(f"{x:.1e}" for x in (errors[2], errors[0], errors[1])))
        for name in stability.CHAINS
        for torques, errors in ((torques, each[name]) for torques, each in _tree_errors(long).items())
    ]
    header = ("chain", "torques", "condition number of M", "articulated bodies", "composite bodies")
    random, accelerated = stability.TORQUES
    straight = [_tree_errors(n)[torques]["straight"] for torques in (random, accelerated) for n in (short, long)]
    return "\n\n".join(
        [
            table(header, rows, left=2),
            sentences(
                f"The first statement holds for random torques, in each case. From {short} to {long} links of a "
                f"straight chain the errors of articulated bodies then go from {straight[0][0]:.0e} to "
                f"{straight[1][0]:.0e}, those of composite bodies from {straight[0][1]:.0e} to {straight[1][1]:.0e}. "
                "It does not hold for the torques of random accelerations: the errors of both algorithms grow with "
                f"the condition number, from {straight[2][0]:.0e} to {straight[3][0]:.0e} and from "
                f"{straight[2][1]:.0e} to {straight[3][1]:.0e}, and are of the same order of magnitude in each case."
            ),
        ]
    )


def loop_errors() -> str:
    """Return the rounding errors of closed chains."""
    titles = {
        "welded": "welded to the world, 4 degrees of freedom",
        "pinned by a ball joint": "pinned by a ball joint, 7 degrees of freedom",
    }
    payloads = {1.0: "1", 1e9: "10^9"}
    rows = []
    for name, joint in stability.CLOSINGS.items():
        for payload, shown in payloads.items():
            errors = stability.loop_errors(joint, payload)
            first = titles[name] if payload == 1.0 else "the same"
            rows.append((first, shown, *(f"{error:.1e} ({residual:.0e})" for error, residual in errors.values())))
    return table(("closed chain", "payload [kg]", "direct", "elimination", "projection"), rows)


def wires() -> str:
    """Return the results of the shape-memory-alloy wires beside those of the abstract."""
    example = runpy.run_path(str(EXAMPLES / "extending" / "shape_memory_wires.py"))
    runs = {name: example["experiment"](*case) for name, case in example["experiments"]().items()}
    each = {
        name: dict(zip(("error", "rate", "least", "largest"), _numbers(example["summary"](run)), strict=True))
        for name, run in runs.items()
    }
    held, heavy = each["held shaft"], each["heavy load"]
    settled, swing = example["settled_position"](example["position_run"]())
    rows = [
        ("error of a force held at 2 N, shaft held", f"{held['error']} mN", "1 mN within 3 N"),
        ("the same, load of 0.0001 kg m^2", f"{each['light load']['error']} mN", "not affected"),
        ("the same, load of 0.01 kg m^2 that swings", f"{heavy['error']} mN", "not affected"),
        (
            "error of no force while that load swings by 2.4 rad/s",
            f"{each['zero force, swinging load']['error']} mN",
            "accurate",
        ),
        (
            "the same with wires without hysteresis",
            f"{each['the same, wires without hysteresis']['error']} mN",
            "-",
        ),
        (
            "largest rate of the force",
            f"{held['rate']} N/s, without rapid heating {each['no rapid heating']['rate']} N/s",
            "50 N/s",
        ),
        (
            "least tension, with and without the mechanism against slack",
            f"{held['least']} N, {each['no mechanism against slack']['least']} N",
            "-",
        ),
        (
            "largest tension, with and without the mechanism against overload",
            f"{heavy['largest']} N, {each['no mechanism against overload']['largest']} N",
            "-",
        ),
        ("position error 2.5 s after a step of 14 deg", f"{settled:.3f} deg", "below the resolution of the encoder"),
        ("oscillation of the position, peak to peak", f"{swing:.3f} deg", "no sign of limit cycles"),
    ]
    wire, pair = example["Wire"](), example["WirePair"](None)
    width = wire.heating_range[0] - wire.cooling_range[0]
    across = wire.heat_capacity * width / pair.rapid_power
    stiffness = 2.0 * wire.axial_stiffness * pair.radius / wire.length
    return "\n\n".join(
        [
            table(("", "here", "the abstract"), rows),
            sentences(
                f"A load disturbs the force here, where the abstract sees no effect. A wire whose motion reverses has "
                f"to be heated through its hysteresis of {width:.0f} K before its transformation reverses, which takes "
                f"{1e3 * across:.0f} ms with {pair.rapid_power:.0f} W. Until then the force follows the stiffness of "
                f"the pair, {stiffness:.1f} N/rad, whatever the controller does; wires without hysteresis are not "
                "disturbed. Our wires have the whole width of the hysteresis for a motion of any size, so this figure "
                "depends on the model of the wires, of which the abstract tells nothing."
            ),
        ]
    )


def _numbers(summary: str) -> list[str]:
    return [cell.strip() for cell in summary.split("|")]


ROUNDING = 0.9
"""Relative tolerance of rounding errors: a factor of ten, since libraries and processors round in other orders."""
PARTS = {
    "inverse-operational-inertias": Part(PAGE, inverse_operational_inertias),
    "tree-costs": Part(PAGE, tree_costs, slow=True),
    "task-costs": Part(PAGE, task_costs, slow=True),
    "task-methods": Part(PAGE, task_methods, slow=True),
    "forward-depths": Part(PAGE, forward_depths, slow=True),
    "inverse-operational-depths": Part(PAGE, inverse_operational_depths, slow=True),
    "inverse-matrix-depths": Part(PAGE, inverse_matrix_depths, slow=True),
    "loop-depths": Part(PAGE, loop_depths, slow=True),
    "conditions": Part(PAGE, conditions, relative=0.02, slow=True),
    "wires": Part(PAGE, wires, relative=0.3, slow=True),
    "tree-errors": Part(PAGE, tree_errors, ROUNDING, 1e-15, slow=True),
    "loop-errors": Part(PAGE, loop_errors, ROUNDING, 1e-15, slow=True),
}
