"""Sensors of a trotting quadruped: foot contacts, an inertial measurement unit and balance points."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import controllers
import legged
import robots
from legged import sensors
from legged.ground import realistic_ground

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/sensors")
robot = robots.spatial_quadruped()
law = controllers.Balanced(controllers.Trot(period=0.4, stride=0.15, clearance=0.06))  # [s], [m], [m]
push = legged.Push("trunk", (0.0, 0.3 * robot.mass, 0.0), at=1.3)  # [N s] for 0.3 m/s to the left, [s]
run = legged.simulate(robot, law, ground=realistic_ground(robot), until=2.4, sample=0.002, pushes=[push])

seen = sensors.measure(robot, run, imu=legged.Frame("trunk", at=(0.1, 0.0, 0.05)))  # [m]
noisy = sensors.Noise(density=2e-3, bias=0.05).on(run.times, seen.specific_force)  # [m/s^2/sqrt(Hz)], [m/s^2]
steady, pushed = (run.times > 0.4) & (run.times < 1.2), (run.times > 1.3) & (run.times < 1.4)
apart = 1e3 * np.linalg.norm(seen.zero_moment_point - seen.center_of_pressure, axis=1)  # [mm]
load, weight = seen.contacts.forces[steady, :, 2].sum(axis=1).mean(), robot.mass * 9.81
print(f"feet carry {load:.0f} N on average, the robot weighs {weight:.0f} N")
for name in seen.contacts.names:
    print(f"{name} is down for {seen.foot(name).touching[steady].mean():.0%} of the time")
print(f"the accelerometer reads {seen.specific_force[steady, 2].mean():.1f} m/s^2 upward on average")
print(f"the zero-moment point is up to {np.nanmax(apart[steady]):.1f} mm from the center of pressure, ", end="")
print(f"{np.nanmax(apart[pushed]):.0f} mm under the push")

figure = Figure(figsize=(9.0, 9.5), layout="constrained")
loads, forces, margins, above = figure.subplots(4, 1, height_ratios=(1, 1, 1, 1.2))
for k, name in enumerate(seen.contacts.names):
    foot = seen.foot(name)
    loads.plot(run.times, foot.force[:, 2], color=f"C{k}", linewidth=0.8, label=name)
    loads.fill_between(run.times, -12 - 8 * k, -6 - 8 * k, where=foot.touching, color=f"C{k}", linewidth=0)
for i, axis in enumerate("xyz"):
    forces.plot(run.times, noisy[:, i], color=f"C{i}", linewidth=0.6, label=f"accelerometer, {axis}")
points = {"center of mass": seen.center_of_mass, "capture point": seen.capture_point}
for name, places in points.items():
    margins.plot(run.times, seen.margin(places), ".", markersize=1.5, label=name)
for name, places in {**points, "center of pressure": seen.center_of_pressure}.items():
    above.plot(places[:, 0], places[:, 1], ".", markersize=1.5, label=name)
loads.set(ylabel="load, and switches [N]", ylim=(-45, 150))
forces.set(ylabel="[m/s$^2$]", ylim=(-10, 30))
margins.set(ylabel="inside the feet [m]", xlabel="time [s]", ylim=(-0.3, 0.3))
above.set(xlabel="x [m]", ylabel="y [m]", xlim=(-0.1, 1.0), ylim=(-0.15, 0.25), aspect="equal")
for ax in figure.axes:
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False, markerscale=5)
for ax in (loads, forces, margins):
    ax.axvspan(*push.edges, color="#eeeeee", zorder=0)
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "sensors.png", dpi=110)
print("wrote sensors.png")
