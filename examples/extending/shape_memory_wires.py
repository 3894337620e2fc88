"""Actuators with states of their own: an antagonistic pair of shape-memory-alloy wires under force control.

Two wires pull a pulley in opposite directions. An electric current heats a wire; warm, it turns from martensite to
austenite and shortens. Each wire has two states, its temperature and its austenite fraction, and the force controller
has one. The five are the memory of a controller: `torque` returns the actuator's force, `rate` the rates of the states.

The architecture is that of Teh and Featherstone, "An architecture for fast and accurate control of shape memory alloy
actuators", International Journal of Robotics Research 27(5), 2008, as far as its abstract tells: a differential
controller of the output force, a mechanism against slack, one for rapid heating, one against overload, and a position
loop around. The equations of the wires and of the mechanisms are ours, with the order of magnitude of wires of 0.1 mm.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import legged


def clip(x: Any, low: Any, high: Any) -> Any:
    """Return x between two limits, for numbers and traced scalars."""
    x = legged.where(x < low, low, x)
    return legged.where(x > high, high, x)


@dataclass(frozen=True)
class Wire:
    """A shape-memory-alloy wire: F = E A (strain - full_strain (1 - austenite)), if it is not slack."""

    length: float = 0.8  # [m]
    axial_stiffness: float = 390.0  # E A, [N]
    full_strain: float = 0.04  # of the transformation
    heat_capacity: float = 0.019  # [J/K]
    latent_heat: float = 0.8  # [J]
    cooling: float = 0.05  # [W/K]
    ambient: float = 20.0  # [degC]
    heating_range: tuple[float, float] = (70.0, 80.0)  # start and end of the transformation to austenite, [degC]
    cooling_range: tuple[float, float] = (52.0, 62.0)  # end and start of the transformation to martensite, [degC]
    stress_shift: float = 10.0  # shift of these temperatures by the tension, [K/N]
    lag: float = 0.01  # of the transformation behind the temperature, [s]

    def tension(self, strain: Any, austenite: Any) -> Any:
        """Return the force, [N]; zero if the wire is slack."""
        f = self.axial_stiffness * (strain - self.full_strain * (1.0 - austenite))
        return legged.where(f > 0.0, f, 0.0)

    def rates(self, temperature: Any, austenite: Any, tension: Any, power: Any) -> tuple[Any, Any]:
        """Return the rates of temperature, [K/s], and austenite fraction, [1/s], under a heating power, [W].

        The fraction grows while it is below the curve of heating, falls while it is above that of cooling, and stays
        between them: hysteresis.
        """
        T = temperature - self.stress_shift * tension
        fractions = [clip((T - a) / (b - a), 0.0, 1.0) for a, b in (self.heating_range, self.cooling_range)]
        least, most = fractions
        rise, fall = clip(least - austenite, 0.0, 1.0), clip(austenite - most, 0.0, 1.0)
        change = (rise - fall) / self.lag
        heat = power - self.cooling * (temperature - self.ambient) - self.latent_heat * change
        return heat / self.heat_capacity, change


@dataclass(frozen=True)
class WirePair:
    """An antagonistic pair on a pulley under force control, F = tension 1 - tension 2, as a controller of one joint."""

    command: Callable[[Any, Any, Any], Any]  # force from time, angle and its rate, [N]
    wire: Wire = Wire()
    radius: float = 0.008  # of the pulley, [m]
    strain: float = 0.02  # of both wires at angle zero
    proportional: float = 1000.0  # gains of the differential controller, [W/N]
    integral: float = 1e4  # [W/(N s)]
    least_tension: float = 0.3  # [N]; the mechanism against slack heats a wire below it
    slack_gain: float = 200.0  # [W/N]
    most_tension: float = 3.5  # [N]; the mechanism against overload cuts the power before it
    overload_band: float = 0.5  # [N]
    safe_power: float = 4.0  # [W]; that a wire can have for any time
    rapid_power: float = 16.0  # [W]; that a wire can have while its austenite fraction, seen by its resistance, is low
    rapid_below: float = 0.8

    def start(self, robot: legged.Robot, ground: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the memory: temperature and austenite fraction of each wire, integral of the force error."""
        warm = 0.5 + 0.5 / (self.wire.axial_stiffness * self.wire.full_strain)  # the fraction of 0.5 N of tension
        return np.array([70.0, warm, 70.0, warm, 0.0])

    def tensions(self, q: Any, memory: Any) -> list[Any]:
        """Return the tension of each wire, [N], at an angle."""
        shift = self.radius * q / self.wire.length
        return [self.wire.tension(self.strain - s * shift, memory[k]) for s, k in ((1.0, 1), (-1.0, 3))]

    def powers(self, t: Any, q: Any, v: Any, memory: Any) -> tuple[list[Any], Any]:
        """Return the heating power of each wire, [W], and the force error, [N].

        The differential power also reduces the power against slack: both wires act on small errors, in both directions.
        """
        tensions = self.tensions(q, memory)
        error = self.command(t, q, v) - (tensions[0] - tensions[1])
        difference = self.proportional * error + self.integral * memory[4]
        powers: list[Any] = []
        for sign, tension, austenite in ((1.0, tensions[0], memory[1]), (-1.0, tensions[1], memory[3])):
            against_slack = self.slack_gain * clip(self.least_tension - tension, 0.0, 1.0)
            coldness = clip((self.rapid_below - austenite) / 0.1, 0.0, 1.0)
            allowed = self.safe_power + (self.rapid_power - self.safe_power) * coldness
            allowed = allowed * clip((self.most_tension - tension) / self.overload_band, 0.0, 1.0)
            own = clip(sign * difference, -self.rapid_power, self.rapid_power)
            powers.append(clip(own + against_slack, 0.0, allowed))
        return powers, error

    def torque(self, t: Any, phase: Any, q: Any, v: Any, wrenches: Any, memory: Any) -> np.ndarray:
        """Return the torque of the pulley, (1,), [N m]."""
        first, second = self.tensions(q[0], memory)
        return np.array([self.radius * (first - second)])

    def rate(self, t: Any, phase: Any, q: Any, v: Any, wrenches: Any, memory: Any) -> np.ndarray:
        """Return the rates of the memory, (5,)."""
        tensions, (powers, error) = self.tensions(q[0], memory), self.powers(t, q[0], v[0], memory)
        wires = [self.wire.rates(memory[2 * k], memory[2 * k + 1], tensions[k], powers[k]) for k in range(2)]
        winding = legged.where(error * memory[4] > 0.0, clip((0.02 - abs(memory[4])) / 0.002, 0.0, 1.0), 1.0)
        return np.array([*wires[0], *wires[1], error * winding])


REVERSIBLE = Wire(cooling_range=Wire.heating_range)
"""A wire without hysteresis."""


def pulley(inertia: float, stiffness: float = 0.3, damping: float = 0.002) -> legged.Robot:
    """Return a pulley with a load about a vertical axis, on a spring: inertia [kg m^2], [N m/rad], [N m s/rad]."""
    load = legged.Link("load", legged.Inertia(1.0, np.zeros(3), inertia * np.diag([0.6, 0.6, 1.0])))
    physics = legged.JointPhysics(stiffness=stiffness, damping=damping)
    builder = legged.RobotBuilder("pulley", legged.Link("frame"), base=legged.FixedBase())
    return builder.add(legged.Revolute("axle", "z", physics=physics), load, to="frame").build()


def zero(t: Any, q: np.ndarray, v: np.ndarray) -> Any:
    """Return no command, [N]."""
    return 0.0 * t


def square(t: Any, *_: Any) -> Any:
    """Return a force that changes between +2 N and -2 N each second, by ramps of 50 N/s."""
    return 2.0 * clip(12.5 * np.cos(np.pi * t) * 2.0 / np.pi, -1.0, 1.0)


def experiment(actuator: WirePair, robot: legged.Robot, until: float = 4.0, speed: float = 0.0):
    """Return (run, tensions (T, 2), commanded force (T,)), [N]."""
    integrator = legged.RungeKutta4(step=5e-4)
    run = legged.simulate(robot, actuator, until=until, v=[speed], sample=0.002, integrator=integrator)
    tensions = np.array([actuator.tensions(q[0], m) for q, m in zip(run.q, run.memory, strict=True)])
    command = np.array([actuator.command(t, q[0], v[0]) for t, q, v in zip(run.times, run.q, run.v, strict=True)])
    return run, tensions, command


def summary(result: tuple[Any, np.ndarray, np.ndarray]) -> str:
    """Return the force error after settling, the largest rate of the force, and the least and largest tension."""
    run, tensions, command = result
    force = tensions[:, 0] - tensions[:, 1]
    settled = (run.times > 1.0) & ((run.times + 0.5) % 1.0 > 0.6) & ((run.times + 0.5) % 1.0 < 0.9)
    error = np.sqrt(np.mean((force - command)[settled] ** 2))
    rate = np.abs(np.diff(force)[run.times[1:] > 0.5]).max() / 0.002
    after = tensions[run.times > 0.5]
    return f"{1e3 * error:.1f} | {rate:.0f} | {after.min():.2f} | {after.max():.2f}"


def force_figure(forces: dict[str, tuple[Any, np.ndarray, np.ndarray]], position: Any) -> Figure:
    """Return force and tensions of two runs, and angle and tensions of the run under position control."""
    figure = Figure(figsize=(10.0, 6.0), layout="constrained")
    axes = figure.subplots(2, 3, sharex="col")
    for top, (name, (run, tensions, command)) in zip(axes[0], forces.items(), strict=False):
        top.plot(run.times, tensions[:, 0] - tensions[:, 1], color="#0072b2", label="force")
        top.plot(run.times, command, ":", color="black", label="command")
        top.set_title(f"{name}: force [N]", fontsize=10, loc="left")
    angle = axes[0, 2]
    angle.plot(position[0].times, np.degrees(position[0].q[:, 0]), color="#0072b2")
    angle.plot(position[0].times, np.degrees([target(t) for t in position[0].times]), ":", color="black")
    angle.set_title("position control: angle [deg]", fontsize=10, loc="left")
    for bottom, (run, tensions, _) in zip(axes[1], (*forces.values(), position), strict=True):
        for k, color in enumerate(("#d55e00", "#009e73")):
            bottom.plot(run.times, tensions[:, k], color=color, linewidth=1.0, label=f"wire {k + 1}")
        bottom.set_xlabel("time [s]")
    axes[1, 0].set_ylabel("tension [N]")
    for ax in axes[:, 0]:
        ax.legend(fontsize=8, frameon=False, loc="center")
    return figure


def target(t: Any) -> Any:
    """Return the commanded angle of the position loop, [rad]: 0.25 rad after 0.5 s."""
    return 0.25 * clip((t - 0.5) / 0.1, 0.0, 1.0)


def position_loop(t: Any, q: Any, v: Any) -> Any:
    """Return the force that the position loop commands, [N], within 2.5 N."""
    return clip(12.0 * (target(t) - q) - 2.0 * v, -2.5, 2.5)


def experiments() -> dict[str, tuple[WirePair, legged.Robot, float, float]]:
    """Return the force experiments: name -> (actuator, pulley, duration [s], initial speed [rad/s])."""
    pair, still = WirePair(square), replace(WirePair(square), command=zero)
    held, light, heavy = pulley(1e-4, 30.0, 0.05), pulley(1e-4), pulley(1e-2)
    return {
        "held shaft": (pair, held, 4.0, 0.0),
        "light load": (pair, light, 4.0, 0.0),
        "heavy load": (pair, heavy, 4.0, 0.0),
        "no mechanism against slack": (replace(pair, slack_gain=0.0), held, 4.0, 0.0),
        "no rapid heating": (replace(pair, rapid_power=pair.safe_power), held, 4.0, 0.0),
        "no mechanism against overload": (replace(pair, most_tension=100.0), heavy, 4.0, 0.0),
        "zero force, swinging load": (still, heavy, 4.0, 2.4),
        "the same, wires without hysteresis": (replace(still, wire=REVERSIBLE), heavy, 4.0, 2.4),
    }


def position_run() -> Any:
    """Return (run, tensions, command) of a load that the position loop turns by 0.25 rad."""
    return experiment(WirePair(position_loop), pulley(1e-3, 0.0, 0.0), until=3.0)


def settled_position(reached: Any) -> tuple[float, float]:
    """Return the error of the position at the end, and its oscillation in the last second, peak to peak, [deg]."""
    angles = np.degrees(reached[0].q[:, 0] - 0.25)
    return float(abs(angles[-1])), float(np.ptp(angles[reached[0].times > 2.0]))


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/shape_memory_wires")
    results = {name: experiment(*case) for name, case in experiments().items()}
    print("| experiment | error [mN] | rate [N/s] | least tension [N] | largest [N] |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, result in results.items():
        print(f"| {name} | {summary(result)} |")
    reached = position_run()
    overshoot = np.degrees(reached[0].q[:, 0].max() - 0.25)
    error, oscillation = settled_position(reached)
    print(f"position control: overshoot {overshoot:.2f} deg, error {error:.3f} deg after 3 s")
    print(f"position control: oscillation of {oscillation:.3f} deg, peak to peak, in the last second")
    folder.mkdir(parents=True, exist_ok=True)
    shown = {name: results[name] for name in ("held shaft", "zero force, swinging load")}
    force_figure(shown, reached).savefig(folder / "shape_memory_wires.png", dpi=110)
    print(f"wrote shape_memory_wires.png to {folder}")
