"""A robot over UDP: an interface for the program with the loop, and a server for the program with the robot."""

from __future__ import annotations

import socket
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, Protocol

import numpy as np

from legged.arguments import number, shown, whole
from legged.checked import checked
from legged.deployment.interface import (
    JointCommand,
    Measurement,
    measurement_of,
    measurement_values,
    steps_per_measurement,
)
from legged.deployment.packets import Network, Receiver, Sender, channel
from legged.errors import ArgumentError

MEASURED, COMMANDED = 1, 2
"""Kinds of packets: measurements that the robot sends, and commands that it receives."""
_SILENCE, _GREETING = 0.1, 0.01
"""Time without a measurement after which commands without torques are sent, so that a server learns the address of this
side, and the time between two of them, [s]."""


@checked
class UdpRobot:
    """A `RobotInterface` that receives measurements and sends commands as UDP packets on the same computer.

    Measurements from another address than that of the robot are refused. A server that was restarted on the same port
    is found again.

    Args:
        address: Host and port of the server of the robot, see `serve`. nj: Number of joints. feet: Number of feet.
        truth: Number of entries of `Measurement.truth` in the packets: nq + nv of a simulated robot, or 0.
        network: Losses and delay that are injected into the commands.
        speed: Seconds of the robot's clock per second; below 1 for simulations on busy computers.

    Raises:
        ArgumentError: The address does not name a host and a port.
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
        self.address, self._nj, self._feet = _resolved(address), nj, feet
        self._speed = number("speed", speed, above=0.0)
        self._socket = channel()
        self._sender = Sender(self._socket, COMMANDED, network or Network())
        self._receiver = Receiver(self._socket, MEASURED, 7 + 3 * nj + 4 * feet + truth, only=self.address)
        self._greeted = self._heard = -np.inf

    def read(self) -> Measurement | None:
        """Return the newest measurement, or None."""
        now = self.clock()
        packet = self._receiver.newest(now)
        if packet is not None:
            self._heard = now
        elif now - self._heard > _SILENCE and now - self._greeted > _GREETING:
            self._greeted = now
            self.write(JointCommand.damping(self._nj, 0.0))
        return None if packet is None else measurement_of(packet.values, self._nj, self._feet)

    def write(self, command: JointCommand) -> None:
        """Send a command."""
        self._sender.send(self.clock(), command.flat(), self.address)

    def clock(self) -> float:
        """Return the time, [s]."""
        return monotonic() * self._speed

    def sleep_until(self, time: float) -> None:
        """Wait until a time of `clock`, [s], and send delayed packets that are due."""
        end = monotonic() + (time - self.clock()) / self._speed  # also if `clock` is replaced and goes back meanwhile
        while (rest := end - monotonic()) > 0.0:
            sleep(min(rest, 0.001 / self._speed))
            self._sender.flush(self.clock())

    @property
    def refused(self) -> int:
        """Number of packets that were damaged, late, repeated or from another sender."""
        return self._receiver.refused

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _resolved(address: tuple[str, int]) -> tuple[str, int]:
    """Return the IPv4 address and port of a host and port, or raise ArgumentError."""
    try:
        host, port = address
        return socket.gethostbyname(host), whole("port", port, 1, 65535)
    except (OSError, TypeError, ValueError) as error:
        raise ArgumentError(f"address must be a host and a port, got {shown(address)}: {error}") from error


class Plant(Protocol):
    """A robot that `serve` puts behind UDP.

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


@checked
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
    """Serve a robot to one program on the same computer: take time steps, send measurements, and receive commands.

    The robot takes its first time step with the first command. Its joints are damped when no command has arrived for a
    time. The first program that sends a command is served; another one is accepted after half a second without
    commands.

    Args:
        plant: The robot. port: UDP port; 0 for a free one.
        rate: Measurements per second of the robot's clock, [1/s].
        network: Losses and delay that are injected into measurements.
        silence: Time without commands after which joints are damped, [s].
        damping: Gain of the joint velocities in this state, [N m s/rad] or [N s/m].
        speed: Seconds of the robot's clock per second. until: Time of this clock at which the server ends, [s].
        started: Called with the port when the server is ready.

    Raises:
        ArgumentError: The time between measurements is not a whole number of time steps.
    """
    every = steps_per_measurement(rate, plant.step)
    opened = channel(port)
    sender = Sender(opened, MEASURED, network or Network())
    receiver = Receiver(opened, COMMANDED, 5 * plant.nj)
    started(opened.getsockname()[1])
    command, last_command_time, k = None, -np.inf, 0
    begin = monotonic() * speed
    try:
        while k * plant.step < until:
            time = monotonic() * speed
            if (packet := receiver.newest(time)) is not None:
                command, last_command_time = JointCommand.of(packet.values), time
            if command is not None and time - last_command_time > silence:
                command = JointCommand.damping(plant.nj, damping)
            if receiver.address is not None:
                # Packets have the time of the clock: that of the plant falls behind it on a busy computer.
                if k % every == 0:
                    sender.send(time, measurement_values(plant.measured()), receiver.address)
                sender.flush(time)
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
