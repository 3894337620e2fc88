"""A robot over UDP: the side of the loop, and the server on the side of the robot."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, Protocol

import numpy as np

from legged.arguments import number
from legged.deployment.interface import JointCommand, Measurement, measurement_of, measurement_values
from legged.deployment.packets import Network, Receiver, Sender, channel

MEASURED, COMMANDED = 1, 2
"""Kinds of packets: measurements from the robot, commands to it."""


class UdpRobot:
    """A `RobotInterface` that reads measurements from UDP and writes commands to it.

    Args:
        address: Host and port of the robot. nj: Number of joints. feet: Number of feet.
        truth: Length of the truth that the measurements contain, nq + nv of a simulated robot, or 0.
        network: Losses and delay of the commands that this side injects.
        speed: Seconds of the robot's clock per second; below 1 for simulations on busy computers.
    """

    def __init__(
        self,
        address: tuple[str, int],
        nj: int,
        feet: int,
        truth: int = 0,
        network: Network | None = None,
        speed: float = 1.0,
    ):
        self.address, self._nj, self._feet = address, nj, feet
        self._speed = number("speed", speed, above=0.0)
        self._socket = channel()
        self._sender = Sender(self._socket, COMMANDED, network or Network())
        self._receiver = Receiver(self._socket, MEASURED, 7 + 3 * nj + 4 * feet + truth)
        self.write(JointCommand.damping(nj, 0.0))  # the robot learns the address of this side

    def read(self) -> Measurement | None:
        """Return the newest measurement, or None."""
        packet = self._receiver.newest(self.clock())
        return None if packet is None else measurement_of(packet.values, self._nj, self._feet)

    def write(self, command: JointCommand) -> None:
        """Send a command."""
        self._sender.send(self.clock(), command.flat(), self.address)

    def clock(self) -> float:
        """Return the time, [s]."""
        return monotonic() * self._speed

    def sleep_until(self, time: float) -> None:
        """Wait until a time, [s], and send delayed packets that are due."""
        while (rest := time - self.clock()) > 0.0:
            sleep(min(rest, 0.001) / self._speed)
            self._sender.flush(self.clock())

    @property
    def refused(self) -> int:
        """Number of packets that were damaged, late or from another sender."""
        return self._receiver.refused

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class Plant(Protocol):
    """A robot on the side of the server.

    Attributes:
        nj: Number of joints. step: Time step, [s].
    """

    nj: int
    step: float

    def measured(self) -> Measurement:
        """Return the present measurement."""
        ...

    def advance(self, command: JointCommand) -> None:
        """Take one time step under a command."""
        ...


def serve(
    plant: Plant,
    port: int,
    *,
    rate: float = 500.0,
    network: Network | None = None,
    silence: float = 0.1,
    damping: float = 2.0,
    speed: float = 1.0,
    until: float = np.inf,
    started: Callable[[int], Any] = lambda port: None,
) -> None:
    """Serve a robot over UDP: take time steps, send measurements, and receive commands.

    The time of the robot begins with the first command. Joints are damped if commands stay away.

    Args:
        plant: The robot. port: Port of UDP; 0 for a free one. rate: Measurements per second, [1/s].
        network: Losses and delay that this side injects into measurements.
        silence: Time without commands after which joints are damped, [s]. damping: Gain of damping.
        speed: Seconds of the robot's clock per second. until: Time at which the server ends, [s].
        started: Called with the port.
    """
    opened = channel(port)
    sender = Sender(opened, MEASURED, network or Network())
    receiver = Receiver(opened, COMMANDED, 5 * plant.nj)
    started(opened.getsockname()[1])
    command, heard, k = None, -np.inf, 0
    every = max(1, round(1.0 / (rate * plant.step)))
    begin = monotonic() * speed
    try:
        while (now := k * plant.step) < until:
            if (packet := receiver.newest(now)) is not None:
                command, heard = JointCommand.of(packet.values), now
            if command is not None and now - heard > silence:
                command = JointCommand.damping(plant.nj, damping)
            if receiver.address is not None:
                if k % every == 0:
                    sender.send(now, measurement_values(plant.measured()), receiver.address)
                sender.flush(now)
            if command is not None:
                plant.advance(command)
            k += 1
            late = monotonic() * speed - begin - k * plant.step
            if late < 0.0:
                sleep(-late / speed)
            elif late > 0.2:  # a computer that was busy does not make up for lost time
                begin += late
    finally:
        opened.close()
