"""Packets over UDP with a checked length, sender, sequence number, checksum and values, and injected losses and delays.

Checks find damaged, late and foreign packets. They do not authenticate a sender: a program that can send packets from
the address of the other side, or reads its session, can imitate it.
"""

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
LARGEST_DATAGRAM = 65507
"""Largest length of a datagram over IPv4, [byte]."""
LARGEST_NUMBER = 1e12
"""Largest magnitude of a time or value that is accepted, so that products of two of them are finite."""
_MOST_AT_ONCE = 1000
"""Largest number of datagrams that one call reads, so that a flood of packets does not stop the loop."""


class Packet(NamedTuple):
    """A packet that has passed all checks.

    Attributes:
        session: Random number of the sender, drawn when it was made, below 2^32.
        sequence: Number of the packet, below 2^32; it increases by one with each packet and wraps around to zero.
        time: Time of the sender's clock, [s].
        values: Numbers, (n,), mixed units; finite, of magnitudes up to `LARGEST_NUMBER`.
    """

    session: int
    sequence: int
    time: float
    values: Array


def encoded(kind: int, session: int, sequence: int, time: float, values: Array) -> bytes:
    """Return the bytes of a packet.

    Args:
        kind: Kind of the packet, 0 to 255. session, sequence: As in `Packet`, below 2^32.
        time: Time of the sender's clock, [s]. values: (n,), mixed units.
    """
    body = np.asarray(values, dtype="<f8").tobytes()
    header = _HEADER.pack(_MAGIC, _VERSION, kind, len(body) // 8, session, sequence, time)
    return header + body + _CHECKSUM.pack(zlib.crc32(header + body))


def decoded(data: bytes, kind: int, count: int) -> Packet | None:
    """Return the packet in a datagram, or None if it is no complete packet of this kind with admissible numbers.

    Args:
        data: A datagram, untrusted. kind: Expected kind. count: Expected number of values.
    """
    if len(data) != _HEADER.size + 8 * count + _CHECKSUM.size:
        return None
    *stated, session, sequence, time = _HEADER.unpack_from(data)
    if stated != [_MAGIC, _VERSION, kind, count]:
        return None
    if _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)[0] != zlib.crc32(data[: -_CHECKSUM.size]):
        return None
    values = np.frombuffer(data, "<f8", count, _HEADER.size).astype(float)
    if not np.abs(values).max(initial=abs(time)) <= LARGEST_NUMBER:  # also of NaN
        return None
    return Packet(session, sequence, time, values)


@checked
@dataclass(frozen=True)
class Network:
    """Losses, delay and jitter that a sender adds to those of the real network, for tests of a loop.

    Attributes:
        loss: Probability that a packet is lost, 0 to 1.
        delay: Time that each packet waits before it is sent, [s].
        jitter: Largest additional delay, [s]; that of a packet is uniformly distributed, so that packets may arrive in
            another order.
        seed: Seed of losses and jitter.
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
    """Sends packets of one kind with injected losses and delay; `flush` sends those that are due.

    Args:
        channel: A UDP socket. kind: Kind of the packets. network: Losses and delay.
    """

    def __init__(self, channel: socket.socket, kind: int, network: Network):
        self._socket, self._kind, self._network = channel, kind, network
        self._rng = np.random.default_rng(network.seed)
        self._session, self._sequence = int(np.random.default_rng().integers(2**32)), 0
        self._queue: list[tuple[float, int, bytes, tuple[str, int]]] = []

    def send(self, time: float, values: Array, address: tuple[str, int]) -> None:
        """Send values to an address, after the injected delay if there is one.

        Args:
            time: Time of the sender's clock, [s]. values: (n,), mixed units. address: Host and port.
        """
        self._sequence = (self._sequence + 1) % 2**32
        data = encoded(self._kind, self._session, self._sequence, time, values)
        chance, share = self._rng.random(2)
        if chance >= self._network.loss:
            due = time + self._network.delay + self._network.jitter * share
            heapq.heappush(self._queue, (due, self._sequence, data, address))
        self.flush(time)

    def flush(self, time: float) -> None:
        """Send the delayed packets that are due; an address that does not answer is no error.

        Args:
            time: Time of the sender's clock, [s].
        """
        while self._queue and self._queue[0][0] <= time:
            _, _, data, address = heapq.heappop(self._queue)
            with contextlib.suppress(OSError):  # no network or no other side: the watchdog of a loop stops it
                self._socket.sendto(data, address)


class Receiver:
    """Receives the newest packet of one kind; late, repeated, damaged and foreign ones are counted and dropped.

    The first sender whose packet passes all checks is accepted, and with it its session and address. Another sender is
    accepted only after a time without packets of the present one. Packets that were on the way for long are dropped,
    such as those that waited in the buffer of a paused process; the clocks of both sides must run equally fast.

    Args:
        channel: A UDP socket that does not block. kind: Kind of the packets. count: Number of their values.
        silence: Time without packets, [s], after which another sender is accepted.
        only: Address of the only sender that is accepted, (IPv4 address, port); None for any.
        oldest: Largest delay of a packet beyond the smallest delay of those of its sender so far, [s].

    Attributes:
        refused: Number of packets that were dropped.
        address: Address of the present sender, (IPv4 address, port); None before the first packet.
    """

    def __init__(
        self,
        channel: socket.socket,
        kind: int,
        count: int,
        silence: float = 0.5,
        only: tuple[str, int] | None = None,
        oldest: float = 0.1,
    ):
        self._socket, self._kind, self._count, self._silence, self._only = channel, kind, count, silence, only
        self._oldest, self._least_delay = oldest, np.inf
        self._last: Packet | None = None
        self._last_time = -np.inf  # of the receiver's clock
        self.refused = 0
        self.address: tuple[str, int] | None = None

    def newest(self, time: float) -> Packet | None:
        """Return the newest packet since the last call, or None.

        Args:
            time: Time of the receiver's clock, [s].
        """
        newest = None
        for _ in range(_MOST_AT_ONCE):
            try:
                data, address = self._socket.recvfrom(LARGEST_DATAGRAM)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:  # for example the other side's port is closed
                continue
            packet = decoded(data, self._kind, self._count)
            if packet is None or not self._accepts(packet, address[:2], time):
                self.refused += 1
                continue
            delay = time - packet.time  # and the difference of the clocks
            if self._last is None or packet.session != self._last.session:
                self._least_delay = delay
            self._least_delay = min(delay, self._least_delay)
            if delay - self._least_delay > self._oldest:
                self.refused += 1
                continue
            newest = self._last = packet
            self._last_time, self.address = time, address[:2]
        return newest

    def _accepts(self, packet: Packet, address: tuple[str, int], time: float) -> bool:
        """Return whether a packet is newer than the last one of its sender, or from a new sender after a silence."""
        if self._only is not None and address != self._only:
            return False
        last = self._last
        if last is None:
            return True
        if packet.session != last.session:
            return time - self._last_time > self._silence
        return address == self.address and 0 < (packet.sequence - last.sequence) % 2**32 < 2**31


def channel(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """Return a bound UDP socket that does not block.

    Args:
        port: Its port; 0 for a free one.
        host: Address of the network interface; by default that of packets from the same computer alone.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.bind((host, port))
    return opened
