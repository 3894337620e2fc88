"""Explanations of missed performance targets: the bottleneck, and the section of the documentation with its profile."""

from typing import NamedTuple

PAGE = "docs/explanation/compiler_speed.md"


class Explanation(NamedTuple):
    """Why a target is missed.

    Attributes:
        section: Heading of the section of `PAGE` that has the profile and what was tried.
        reason: What bounds the quantity, a sentence.
    """

    section: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reason} ({PAGE}, {self.section})"


ONE_STATE = Explanation(
    "Time of one state",
    "More than half of the time of a quadruped is the critical path of its recursions on Intel and AMD processors. A "
    "third of the instructions of G1 move spilled values; its code exceeds the instruction cache of an AMD processor, "
    "32 kB, where the fetch of instructions takes up to 89 % of the time. A call from Python takes 0.1 us more, 0.08 "
    "us of them because it reads arrays by functions of NumPy and not by the layout of its objects.",
)
BATCH = Explanation(
    "Time of a batch",
    "The arithmetic ports are busy for two thirds to three quarters of the time on an Intel processor; the rest goes "
    "to spilled values and to the fetch of instructions. On an AMD processor the fetch takes 86 % of the time of G1, "
    "and depends on the physical pages of the code.",
)
GIVEN_RESULTS = Explanation(
    "Time of a batch",
    "Until commit 8bec390a several results that were given as `out` went through the general call, which took 40 of "
    "the 85 us for 128 states; now they take 48 us, as with new results.",
)
FLOAT32 = Explanation(
    "Time of a batch",
    "The code of G1 exceeds the instruction cache for both types, and its time depends on the physical pages in which "
    "it lies: ratios from 1.4 to 2.4 for the same machine code, mostly 1.9 to 2.0.",
)
OTHER_TARGETS = Explanation(
    "Time of a batch",
    "With 16 registers half of the instructions access the stack, and kernels whose code exceeds the instruction cache "
    "(Go2 and G1) hand values on between sections that fit it.",
)
PEAK = Explanation(
    "Time of a batch",
    "With both ports always busy the share would be 60 to 68 %, since a quarter to a third of the additions and "
    "multiplications cannot be fused. They are busy for two thirds of the time on Intel and AMD processors.",
)
CLOSED_LOOP = Explanation(
    "Time of closed loops",
    "A step has 8355 operations, 97 divisions and square roots among the instructions of a block, and 41 % of its "
    "instructions access the stack.",
)
STEPPING = Explanation(
    "Time of closed loops",
    "`Simulation.step` also integrates the work of actuators, contacts and joints, and clears the history of contacts, "
    "which lies in the rows of the states.",
)
THROWN_BLOCK = Explanation(
    "Time of closed loops",
    "A step has at least 125 000 operations, 77 % of them in one iteration of the contact solver for 16 contacts.",
)
NEW_RESULTS = Explanation(
    "Results in new arrays",
    "Two blocks alternate; where both together exceed the last-level cache (32 MB on the AMD processor, 60 MB on the "
    "Intel one) and one does not, the bandwidth of memory bounds the time, as for two given arrays in turn.",
)
THREADS = Explanation(
    "Threads",
    "A rollout of 0.2 ms has 35 us in Python around its time loop, and eight or nine blocks of members that two "
    "threads share; other programs take the second processor.",
)
COLD_START = Explanation(
    "Time of compilation",
    "LLVM's code generation takes half of the time, 16 to 20 us an operation, and no option shortens it without slower "
    "code.",
)
PASSES = Explanation(
    "Time of compilation",
    "Each operation costs several calls and allocations of Python, which take most of the time; Python 3.12 and 3.13 "
    "take 0.8 to 1.0 of it.",
)
