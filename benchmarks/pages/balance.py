"""Computed parts of `docs/explanation/balance.md`: workspace balance, thrown blocks, planar balance, hops, gains."""

from __future__ import annotations

import contextlib
import io
import runpy
from dataclasses import replace
from functools import cache, partial

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.subjects import robot_file
from benchmarks.pages.parts import EXAMPLES, Part, sentences, table
from controllers import WorkspaceBalance
from controllers.balance.planar.hopping import BALANCE
from examples.studies.balance import gain_study
from examples.studies.balance.bend_study import BendSwivelStudy
from examples.studies.balance.disturbance_report import DisturbanceStudy
from examples.studies.balance.experiment import (
    BalanceExperiment,
    base_errors,
    foot_events,
    paper_experiment,
    settling_time,
)
from examples.studies.balance.hop_study import Hop, HopStudy
from examples.studies.balance.planar_study import PlanarStudy
from examples.studies.balance.report import PAPER, BalanceReport
from examples.studies.balance.wheel_study import WheelStudy
from legged.app.selection import select_robot
from legged.simulation import Run
from legged.spatial import Array
from robots.bipeds import crouch

PAGE = "explanation/balance.md"


def law_costs() -> str:
    """Return the operations of workspace balance by algorithm."""
    biped, quadruped, humanoid = robots.spatial_biped(), robots.spatial_quadruped(), robots.humanoid()
    standing = controllers.Stand(hip_height=0.45).initial_state(quadruped)
    cases = {
        "biped": (biped, crouch(biped), WorkspaceBalance()),
        "biped, exact": (biped, crouch(biped), WorkspaceBalance(exact=True)),
        "quadruped": (quadruped, standing, WorkspaceBalance()),
        "humanoid, 36 freedoms": (humanoid, WorkspaceBalance().initial_state(humanoid), WorkspaceBalance()),
    }
    rows = []
    for name, (robot, state, law) in cases.items():
        started, memory = law.start(robot, None, *state)
        torque = partial(_torque, started, np.zeros((len(robot.links), 6)), memory)
        counts = legged.count(torque, None, q=robot.nq, v=robot.nv)
        stages = (f"{each.M}, {each.A}" for each in counts.by_stage.values())
        rows.append((name, *stages, str(counts.M), str(counts.A)))
    return table(("robot", *map(str, range(1, 7)), "M", "A"), rows)


def _torque(law, wrenches: Array, memory, q: Array, v: Array) -> Array:
    return law.torque(0.0, 0, q, v, wrenches, memory)


# The thrown block.


@cache
def _report() -> BalanceReport:
    return BalanceReport(paper_experiment())


def thrown_block() -> str:
    """Return the events of the paper's experiment beside the paper's."""
    report = _report()
    left, right = report.feet
    assert report.hit is not None
    away, angle = base_errors(report.experiment)
    rows = [
        ("the block hits the trunk", f"{report.hit.time:.3f} s", f"{PAPER['hit']:.2f} s"),
        (
            "heels have risen by 1 mm; begin to rise",
            f"{left.rises[0]:.3f} and {right.rises[0]:.3f} s",
            f"{PAPER['rises']:.2f} s",
        ),
        ("the right foot lands", f"{right.lands[0]:.3f} s", f"{PAPER[right.name]:.2f} s"),
        ("the left foot lands", f"{left.lands[0]:.3f} s", f"{PAPER[left.name]:.2f} s"),
        ("error stays within 10 mm and 1 degree", f"{settling_time(report.experiment):.3f} s", "-"),
        (
            "error of the trunk after 3 s",
            f"{1e6 * away[-1]:.1f} um, {np.degrees(angle[-1]):.4f} degrees",
            "near zero",
        ),
        (
            "slip of the feet, right and left, all of it before 0.4 s",
            f"{1e3 * right.slip:.1f} and {1e3 * left.slip:.1f} mm",
            "drift throughout",
        ),
        (
            "drift of the feet in the last second",
            f"below {10.0 ** np.ceil(np.log10(1e3 * max(foot.drift for foot in report.feet))):.0e} mm/s",
            "visible in y",
        ),
    ]
    return table(("", "here", "paper"), rows)


def other_throws() -> str:
    """Return the table of `examples/experiments/other_throws.py`."""
    with contextlib.redirect_stdout(io.StringIO()):
        throws = runpy.run_path(str(EXAMPLES / "experiments" / "other_throws.py"))["table"]
    return table(throws.header, throws.rows)


def sensitivity() -> str:
    """Return the effect of the time step and of the iterations of the solver on the paper's experiment."""
    usual, coarse, fine = (
        paper_experiment(step=step, sweeps=sweeps) for step, sweeps in ((1e-3, 10), (2e-3, 10), (2.5e-4, 40))
    )
    own, other = _apart(usual, fine), _apart(coarse, fine)
    run, residual = usual.run, usual.run.contacts.residual
    hit = _report().hit
    assert hit is not None
    total = run.energy.kinetic.max() + np.ptp(run.energy.potential)
    lost = -np.diff(run.energy.contact_work)[run.at(hit.time) - 2 : run.at(hit.time) + 30].sum()
    worst = 10.0 ** np.ceil(np.log10(residual.max()))
    return sentences(
        f"Compared with 40 sweeps of the solver at time steps of 0.25 ms, the default of 10 sweeps at 1 ms changes the "
        f"trunk's position by at most {own[0]:.2f} mm, joint angles by {own[1]:.2f} degrees, landing times by "
        f"{own[2]:.0f} ms and the final state by {own[3]:.1f} um. Time steps of 2 ms change them by {other[0]:.2f} mm, "
        f"{other[1]:.2f} degrees, {other[2]:.0f} ms and {other[3]:.1f} um. The residual of the contact law is less "
        f"than 1e-8 m/s in half of all samples and less than {worst:.0e} m/s in all. The energy balance is accurate to "
        f"{1e3 * abs(run.energy_drift):.0f} mJ of {total:.0f} J; contacts dissipate {lost:.0f} J in the first 30 ms of "
        "the impact."
    )


def _apart(first: BalanceExperiment, second: BalanceExperiment) -> tuple[float, float, float, float]:
    """Return differences of trunk position [mm], joint angles [degree], landing [ms] and final position [um]."""
    one, two = first.run, second.run
    own = np.linspace(0.0, first.duration, 1501)
    a, b = ([run.at(t) for t in own] for run in (one, two))
    place = np.linalg.norm(one.base.position[a] - two.base.position[b], axis=1)
    angles = np.abs(one.q[a, 7:] - two.q[b, 7:]).max()
    landings = [[foot.lands[0] for foot in foot_events(each.robot, each.run, since=0.08)] for each in (first, second)]
    late = float(np.abs(np.array(landings[0]) - np.array(landings[1])).max())
    return 1e3 * float(place.max()), float(np.degrees(angles)), 1e3 * late, 1e6 * float(place[-1])


# Maps of disturbances.


def disturbances() -> str:
    """Return the largest disturbances that robots survive."""
    biped, quadruped = robots.spatial_biped(), robots.spatial_quadruped()
    cases = {
        "biped, {mass} kg, push [N s]": DisturbanceStudy(biped),
        "biped, block [m/s]": DisturbanceStudy(biped, throw=True),
        "Talos, {mass} kg, push [N s]": DisturbanceStudy(
            select_robot(str(robot_file("talos_data/robots/talos_reduced_box.urdf")))
        ),
        "G1, {mass} kg, push on the pelvis [N s]": DisturbanceStudy(
            select_robot(str(robot_file("g1_description/urdf/g1_29dof_rev_1_0.urdf")))
        ),
        "quadruped, {mass} kg, standing (`--most 14`), push [N s]": DisturbanceStudy(quadruped, most=14.0),
        "quadruped, trot under `Balanced` (`--gait trot`), push [N s]": DisturbanceStudy(quadruped, "trot"),
    }
    rows = []
    for name, study in cases.items():
        boundary = study.map().boundary
        quarter = len(boundary) // 4
        each = (*(boundary[k * quarter] for k in range(4)), boundary.min())
        rows.append((name.format(mass=f"{study.robot.mass:.0f}"), *(f"{x:.1f}" for x in each)))
    header = ("survived, all smaller sizes too", "from +x", "from +y", "from -x", "from -y", "weakest")
    return table(header, rows)


# Planar balance and hops.


MEASURES = ("settles [s]", "overshoot [mrad]", "off the lag [mrad]", "final error [mrad]")


def planar_balance() -> str:
    """Return the comparison of controllers of planar balance: three rows for each scenario, a column for each."""
    study = PlanarStudy()
    merits = study.table()
    shown = [merits.header.index(name) for name in MEASURES]
    cells = {row[:2]: ["falls" if row[2].startswith("falls") else row[k] for k in shown] for row in merits.rows}
    rows = [
        (
            scenario.words if measure == MEASURES[0] else "",
            measure,
            *(cells[scenario.words, name][k] for name in study.controllers),
        )
        for scenario in study.scenarios
        for k, measure in enumerate(MEASURES)
    ]
    return table(("scenario", "", *study.controllers), rows, left=2)


@cache
def _hops(step: float = HopStudy.step, friction: float | None = None) -> HopStudy:
    study = HopStudy(step=step)
    return study if friction is None else replace(study, frictions=(friction,))


def hops() -> str:
    """Return the first of three hops on ground with different friction, and sentences about all of them."""
    study = _hops()
    rows, hops_by_friction = [], {mu: study.hops_of(run) for mu, run in study.runs.items()}
    for mu, run in study.runs.items():
        hop, last = hops_by_friction[mu][0], hops_by_friction[mu][-1]
        landed = np.isfinite(hop.error)
        lost = run.times[-1] - hop.start - hop.flight
        rows.append(
            (
                f"{mu:g}",
                f"{1e3 * hop.flight:.0f}",
                f"{hop.velocity[0]:.2f}, {hop.velocity[2]:.2f}",
                f"{hop.momentum:.3f}",
                f"{1e3 * hop.distance:.0f}" if landed else f"lost {lost:.1f} s after landing",
                f"{1e3 * hop.slip:.1f}" if landed else "",
                f"{1e3 * last.error:.2f}" if landed else "",
            )
        )
    header = (
        "friction", "flight [ms]", "velocity at take-off x, z [m/s]", "L_c [kg m^2/s]", "distance [mm]", "slip [mm]",
        "error after the third hop [mrad]",
    )  # fmt: skip
    return "\n\n".join([table(header, rows, left=0), _hop_sentences(study, hops_by_friction)])


def _hop_sentences(study: HopStudy, hops_by_friction: dict[float, list[Hop]]) -> str:
    complete = [hop for hops in hops_by_friction.values() if len(hops) == study.hops for hop in hops]
    change = max(hop.momentum_change / abs(hop.momentum) for hop in complete)
    deviation = max(hop.deviation for hop in complete)
    runs = [run for mu, run in study.runs.items() if len(hops_by_friction[mu]) == study.hops]
    drift = max(run.energy_drift for run in runs)
    between = max(hops[k].error for hops in hops_by_friction.values() for k in range(len(hops) - 1))
    coarse = _hops(1e-3, 0.8)
    last = coarse.hops_of(coarse.runs[0.8])[-1].error
    slip = max(hop.slip for hop in hops_by_friction[0.3])
    return sentences(
        f"In flight the angular momentum is constant within {change:.0e} of itself and the center of mass follows the "
        f"parabola within {1e6 * deviation:.1f} um (the error of the time stepping; with `RungeKutta4` both are exact "
        f"to rounding). The change of the energy and the work of all forces agree within {1e3 * drift:.0f} mJ, of "
        f"{_work(runs[0]):.1f} J of the motor's work. With friction 0.3 the foot slips by {1e3 * slip:.0f} mm in each "
        f"hop, and all {study.hops} hops "
        "succeed. With 0.2 it slips away in the launch; the jump is too low and too short, and the robot does not "
        "recover. The error is the larger of lean and error of the hip; after each but the last hop it is "
        f"{1e3 * between:.0f} mrad, where the next crouch starts. The rest has an error of second order in the time "
        f"step ({1e3 * study.step:g} ms here; {1e3 * last:.1f} mrad with 1 ms), because the time stepping predicts "
        "velocity-product terms without contact forces."
    )


def hop_plans() -> str:
    """Return the share of plans, near that of the study, whose hops end in balance."""
    study, number = HopStudy((0.8,), hops=1), 15
    least, most, low, high = -5.2, -3.2, 0.3, 1.1
    rates, angles = (x.ravel() for x in np.meshgrid(np.linspace(least, most, number), np.linspace(low, high, number)))
    q, v = study.control.initial_state(study.model.robot)
    runs = legged.rollout(
        study.model.robot,
        study.control,
        until=10.0,
        ground=legged.Rigid(friction=0.8),
        q=q,
        v=v,
        vary={"controller.plan.rate": rates, "controller.plan.landing": angles},
        integrator=legged.TimeStepping(1e-3),
        sample=0.1,
        fall=False,
    )
    ends = [end for end in runs.q[:, -1] if np.isfinite(end).all()]
    centers = np.array([study.model.center(end) for end in ends])
    lean, error = centers[:, 0] / centers[:, 2], np.array(ends)[:, 3] - study.plan.stance
    balanced = int(np.sum((np.abs(lean) < NEARLY) & (np.abs(error) < NEARLY)))
    return sentences(
        f"It does not depend on exact numbers: of a grid of {number} rates from {least} to {most} rad/s and {number} "
        f"landing angles from {low} to {high} rad, {100 * balanced / len(rates):.0f} % end in balance within "
        f"{1e3 * NEARLY:.0f} mrad after 10 s."
    )


def _work(run: Run) -> float:
    assert run.memory[-1, 0] == BALANCE
    return float(run.energy.actuator_work[-1])


def wheels() -> str:
    """Return the comparison of a reaction wheel and a gyroscope."""
    pushed = WheelStudy().table()
    return table(
        pushed.header,
        [tuple("falls" if cell.startswith("falls") else cell for cell in row) for row in pushed.rows],
        left=2,
    )


def bending() -> str:
    """Return the errors of bending and swiveling in all scenarios."""
    scenarios = BendSwivelStudy().table()
    shown = [
        scenarios.header.index(name)
        for name in scenarios.header
        if not name.startswith(("L_z", "torque", "off closed"))
    ]
    rows = [tuple(row[k] for k in shown) for row in scenarios.rows]
    return table([scenarios.header[k] for k in shown], rows)


def quadruped_gains() -> str:
    """Return the velocity gains of two quadrupeds on diagonal feet."""
    names = (
        "abduction of the lifted front leg", "flexion of its hip", "flexion of its knee",
        "abduction of the lifted hind leg", "flexion of its hip", "flexion of its knee",
        "the trunk moves across the line", "the trunk moves up", "the trunk turns about the line",
    )  # fmt: skip
    hyq, go2 = (
        gain_study.DiagonalStance(select_robot(str(path))).table().rows for path in gain_study.quadruped_files()
    )
    rows = [(name, *one[1:], *two[1:]) for name, one, two in zip(names, hyq, go2, strict=True)]
    return table(("action", "HyQ: linear", "angular", "Go2: linear", "angular"), rows)


NEARLY = 0.01  # [rad]
NEAR = 0.02
"""Relative tolerance of simulations with contact, for other orders of summation in machine code and libraries."""
PARTS = {
    "law-costs": Part(PAGE, law_costs),
    "thrown-block": Part(PAGE, thrown_block, relative=NEAR),
    "other-throws": Part(PAGE, other_throws, relative=NEAR, slow=True),
    "sensitivity": Part(PAGE, sensitivity, relative=0.2, slow=True),
    "disturbances": Part(PAGE, disturbances, relative=0.1, slow=True),
    "planar-balance": Part(PAGE, planar_balance, relative=0.05, slow=True),
    "hops": Part(PAGE, hops, relative=0.05),
    "wheels": Part(PAGE, wheels, relative=0.02),
    "hop-plans": Part(PAGE, hop_plans, relative=0.05, slow=True),
    "bending": Part(PAGE, bending, relative=0.05),
    "quadruped-gains": Part(PAGE, quadruped_gains),
}
