"""Packets over UDP with a checked length, sender, sequence number and checksum, and a network that loses and delays."""

from __future__ import annotations

import contextlib
import heapq
import socket
import struct
import zlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.spatial import Array

_HEADER = struct.Struct("<4sBBHIId")  # magic, version, kind, count, session, sequence, time
_MAGIC, _VERSION = b"LEGD", 1
_CHECKSUM = struct.Struct("<I")
LARGEST = 65507
"""Largest length of a datagram over IPv4, [bytes]."""


class Packet(NamedTuple):
    """A packet that has passed all checks.

    Attributes:
        session: Number that the sender has drawn at its start. sequence: Number of the packet.
        time: Time of the sender's clock, [s]. values: Numbers, (n,), mixed units; finite.
    """

    session: int
    sequence: int
    time: float
    values: Array


def encoded(kind: int, session: int, sequence: int, time: float, values: Array) -> bytes:
    """Return the bytes of a packet.

    Args:
        kind: Kind of the packet, 0 to 255. session, sequence: As in `Packet`, below 2^32. time: [s].
        values: (n,), mixed units.
    """
    body = np.asarray(values, dtype="<f8").tobytes()
    header = _HEADER.pack(_MAGIC, _VERSION, kind, len(body) // 8, session, sequence, time)
    return header + body + _CHECKSUM.pack(zlib.crc32(header + body))


def decoded(data: bytes, kind: int, count: int) -> Packet | None:
    """Return a packet, or None for anything else than a complete packet of this kind with finite numbers.

    Args:
        data: A datagram, untrusted. kind: Expected kind. count: Expected number of values.
    """
    if len(data) != _HEADER.size + 8 * count + _CHECKSUM.size:
        return None
    magic, version, own, size, session, sequence, time = _HEADER.unpack_from(data)
    if (magic, version, own, size) != (_MAGIC, _VERSION, kind, count):
        return None
    if _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)[0] != zlib.crc32(data[: -_CHECKSUM.size]):
        return None
    values = np.frombuffer(data, "<f8", count, _HEADER.size).astype(float)
    if not (np.isfinite(values).all() and np.isfinite(time)):
        return None
    return Packet(session, sequence, time, values)


@checked
@dataclass(frozen=True)
class Network:
    """Losses, delay and jitter that a sender injects.

    Attributes:
        loss: Probability that a packet is lost. delay: Time from sending to arrival, [s].
        jitter: Largest further delay, [s], drawn for each packet; packets may overtake each other.
        seed: Seed of the draws.
    """

    loss: float = 0.0
    delay: float = 0.0
    jitter: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        number("loss", self.loss, least=0.0, most=1.0)
        number("delay", self.delay, "s", least=0.0)
        number("jitter", self.jitter, "s", least=0.0)


class Sender:
    """Sends packets of one kind over a network with losses and delay; `flush` sends those that are due.

    Args:
        channel: A socket of UDP. kind: Kind of the packets. network: Losses and delay.
    """

    def __init__(self, channel: socket.socket, kind: int, network: Network):
        self._socket, self._kind, self._network = channel, kind, network
        self._rng = np.random.default_rng(network.seed)
        self._session, self._sequence = int(np.random.default_rng().integers(2**32)), 0
        self._queue: list[tuple[float, int, bytes, tuple[str, int]]] = []

    def send(self, time: float, values: Array, address: tuple[str, int]) -> None:
        """Send values, (n,), mixed units, at a time of the sender's clock, [s], to an address.

        Args:
            time: [s]. values: (n,), mixed units. address: Host and port.
        """
        self._sequence = (self._sequence + 1) % 2**32
        data = encoded(self._kind, self._session, self._sequence, time, values)
        lost, late = self._rng.random(2)
        if lost >= self._network.loss:
            due = time + self._network.delay + self._network.jitter * late
            heapq.heappush(self._queue, (due, self._sequence, data, address))
        self.flush(time)

    def flush(self, time: float) -> None:
        """Send the packets that are due at a time, [s]. An address that does not answer is no error."""
        while self._queue and self._queue[0][0] <= time:
            _, _, data, address = heapq.heappop(self._queue)
            with contextlib.suppress(OSError):  # the network or the other side is away, which a watchdog notices
                self._socket.sendto(data, address)


class Receiver:
    """Receives the newest packet of one kind; older, repeated and damaged ones are counted and dropped.

    Args:
        channel: A socket of UDP that does not block. kind: Kind of packets. count: Number of their values.
        silence: Time without packets, [s], after which another sender is accepted.
    """

    def __init__(self, channel: socket.socket, kind: int, count: int, silence: float = 0.5):
        self._socket, self._kind, self._count, self._silence = channel, kind, count, silence
        self._last: Packet | None = None
        self._heard = -np.inf
        self.refused = 0
        self.address: tuple[str, int] | None = None

    def newest(self, time: float) -> Packet | None:
        """Return the newest packet since the last call, or None.

        Args:
            time: Time of the receiver's clock, [s].
        """
        found = None
        for _ in range(1000):  # a flood of packets does not hold the loop
            try:
                data, address = self._socket.recvfrom(LARGEST)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:  # for example a port that nobody has opened
                continue
            packet = decoded(data, self._kind, self._count)
            if packet is None or not self._follows(packet, time):
                self.refused += 1
                continue
            found = self._last = packet
            self._heard, self.address = time, (address[0], address[1])
        return found

    def _follows(self, packet: Packet, time: float) -> bool:
        """Return whether a packet is newer than the last one, or from a new sender after a silence."""
        last = self._last
        if last is None:
            return True
        if packet.session != last.session:
            return time - self._heard > self._silence
        return 0 < (packet.sequence - last.sequence) % 2**32 < 2**31


def channel(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """Return a bound socket of UDP that does not block.

    Args:
        port: Its port; 0 for a free one. host: Its address.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.bind((host, port))
    return opened
