"""Fingerprints: what changes the result of a function changes its fingerprint, and what cannot be told has none."""

from __future__ import annotations

import builtins
import functools
import os
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.compiler.cache.fingerprint import description, fingerprint
from legged.compiler.cache.fingerprint.known import Unknown
from legged.ground import paper_ground, realistic_ground
from legged.robot import base
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.steps import stepped

# Everything that a function may read. Each case is a module whose `f` reads `x` and something that `change` changes.

CASES = {
    "a constant": "def f(x): return 2.0 * x\ndef change(): f.__code__ = (lambda x: 3.0 * x).__code__",
    "an operation": "def f(x): return 2.0 * x\ndef change(): f.__code__ = (lambda x: 2.0 + x).__code__",
    "a global": "k = 2.0\ndef f(x): return k * x\ndef change(): global k; k = 3.0",
    "a global that hides a built-in": "def f(x): return abs(x)\ndef change(): global abs; abs = lambda x: 3.0 * x",
    "a global of an inner function": """
        k = 2.0
        def f(x): return (lambda: k * x)()
        def change(): global k; k = 3.0""",
    "a global of a comprehension": """
        k = 2.0
        def f(x): return sum([k * y for y in [x, x]])
        def change(): global k; k = 3.0""",
    "a global's entry": "k = {'a': [1.0, 2.0]}\ndef f(x): return k['a'][1] * x\ndef change(): k['a'][1] = 3.0",
    "an array": "k = np.array([1.0, 2.0])\ndef f(x): return k[1] * x\ndef change(): k[1] = 3.0",
    "an array of objects": """
        k = np.array([1.0, [2.0]], object)
        def f(x): return k[1][0] * x
        def change(): k[1][0] = 3.0""",
    "a number of NumPy's": "k = np.float32(2.0)\ndef f(x): return k * x\ndef change(): global k; k = np.float32(3.0)",
    "a type of number": "k = 3\ndef f(x): return k // 2 + x * (k / 2)\ndef change(): global k; k = 3.5",
    "a sign of zero": "k = 0.0\ndef f(x): return np.copysign(x, k)\ndef change(): global k; k = -0.0",
    "a closure": """
        def make():
            k = 2.0
            def f(x): return k * x
            def change(): nonlocal k; k = 3.0
            return f, change
        f, change = make()""",
    "a list in a closure": """
        def make(k): return lambda x: k[0] * x
        k = [2.0]
        f = make(k)
        def change(): k.append(k.pop() + 1.0)""",
    "a default": "def f(x, k=2.0): return k * x\ndef change(): f.__defaults__ = (3.0,)",
    "a keyword's default": "def f(x, *, k=2.0): return k * x\ndef change(): f.__kwdefaults__['k'] = 3.0",
    "an attribute of the function": "def f(x): return f.k * x\nf.k = 2.0\ndef change(): f.k = 3.0",
    "a called function": """
        def g(x): return 2.0 * x
        def f(x): return g(x)
        def change(): global g; g = lambda x: 3.0 * x""",
    "a function called by a called function": """
        k = 2.0
        def h(x): return k * x
        def g(x): return h(x)
        def f(x): return g(x)
        def change(): global k; k = 3.0""",
    "a function in a table": """
        table = {"law": lambda x: 2.0 * x}
        def f(x): return table["law"](x)
        def change(): table["law"] = lambda x: 3.0 * x""",
    "a partial function's argument": """
        import functools
        def g(k, x): return k[0] * x
        k = [2.0]
        f = functools.partial(g, k)
        def change(): k[0] = 3.0""",
    "a decorated function": """
        import functools
        def double(g):
            @functools.wraps(g)
            def inner(x): return factor * g(x)
            return inner
        factor = 2.0
        @double
        def f(x): return x
        def change(): global factor; factor = 3.0""",
    "a field of a frozen class": """
        @dataclass(frozen=True)
        class Law:
            k: float
            def torque(self, x): return self.k * x
        law = Law(2.0)
        f = law.torque
        def change(): object.__setattr__(law, "k", 3.0)""",
    "a method": """
        class Law:
            def torque(self, x): return 2.0 * x
        f = Law().torque
        def change(): Law.torque = f.__func__; f.__func__.__code__ = (lambda self, x: 3.0 * x).__code__""",
    "a method of a base": """
        class Base:
            def gain(self): return 2.0
        class Law(Base):
            def torque(self, x): return self.gain() * x
        f = Law().torque
        def change(): Base.gain = lambda self: 3.0""",
    "a method under a name that is put together": """
        class Law:
            def gain_1(self): return 2.0
        law = Law()
        def f(x, number=1): return getattr(law, f"gain_{number}")() * x
        def change(): Law.gain_1 = lambda self: 3.0""",
    "a property": """
        class Law:
            @property
            def gain(self): return 2.0
        law = Law()
        def f(x): return law.gain * x
        def change(): Law.gain = property(lambda self: 3.0)""",
    "a class attribute": """
        class Law:
            k = 2.0
            def __call__(self, x): return self.k * x
        f = Law()
        def change(): Law.k = 3.0""",
    "a slot": """
        class Law:
            __slots__ = ("k",)
            def __call__(self, x): return self.k * x
        f = Law()
        f.k = 2.0
        def change(): f.k = 3.0""",
    "a class made by the function": """
        class Law:
            def __init__(self): self.k = 2.0
        def f(x): return Law().k * x
        def change(): Law.__init__ = lambda self: setattr(self, "k", 3.0)""",
    "an operator of a class": """
        class Gain:
            def __mul__(self, x): return 2.0 * x
        def f(x): return Gain() * x
        def change(): Gain.__mul__ = lambda self, x: 3.0 * x""",
    "what a class does with names that it lacks": """
        class Law:
            def __getattr__(self, name): return 2.0
        law = Law()
        def f(x): return law.gain * x
        def change(): Law.__getattr__ = lambda self, name: 3.0""",
    "a class of a class": """
        class Kind(type):
            @property
            def k(cls): return 2.0
        class Law(metaclass=Kind): pass
        def f(x): return Law.k * x
        def change(): Kind.k = 3.0""",
    "a class derived from a list": """
        class Gains(list):
            offset = 0.0
        gains = Gains([1.0, 2.0])
        def f(x): return gains[1] * x + gains.offset
        def change(): gains[1] = 3.0""",
    "a named tuple": """
        from collections import namedtuple
        Gains = namedtuple("Gains", "p d")
        gains = Gains(1.0, 2.0)
        def f(x): return gains.d * x
        def change(): global gains; gains = Gains(1.0, 3.0)""",
    "a member of an enumeration": """
        from enum import Enum
        class Mode(Enum):
            SLOW = 2.0
            FAST = 3.0
        mode = Mode.SLOW
        def f(x): return mode.value * x
        def change(): global mode; mode = Mode.FAST""",
    "metadata of a field": """
        from dataclasses import field, fields
        @dataclass
        class Law: k: float = field(default=1.0, metadata={"unit": [2.0]})
        def f(x): return fields(Law)[0].metadata["unit"][0] * x
        def change(): fields(Law)[0].metadata["unit"][0] = 3.0""",
    "what a class remembers of itself": """
        from functools import cached_property
        class Law:
            @cached_property
            def k(self): return 2.0
        law = Law()
        law.k
        def f(x): return law.k * x
        def change(): law.__dict__["k"] = 3.0""",
    "which object remembers": """
        from functools import cached_property
        class Law:
            @cached_property
            def k(self): return scale
        scale = 2.0
        a, b = Law(), Law()
        a.k
        scale = 3.0
        def f(x): return a.k * x + 10.0 * b.k * x
        def change(): del a.__dict__["k"]; b.__dict__["k"] = 2.0""",
    "a constant of a module": "import part\npart.k = 2.0\ndef f(x): return part.k * x\ndef change(): part.k = 3.0",
    "a function of a module": """
        import part
        part.g = lambda x: 2.0 * x
        def f(x): return part.g(x)
        def change(): part.g = lambda x: 3.0 * x""",
    "a module inside a module": """
        import part, types
        part.inner = types.ModuleType("part.inner")
        part.inner.k = 2.0
        def f(x): return part.inner.k * x
        def change(): part.inner.k = 3.0""",
    "a module that is handed on": """
        import part
        part.k = 2.0
        def g(module, x): return module.k * x
        def f(x): return g(part, x)
        def change(): part.k = 3.0""",
    "a module in a closure": """
        import part
        part.k = 2.0
        def make(module): return lambda x: module.k * x
        f = make(part)
        def change(): part.k = 3.0""",
    "a module imported by the function": """
        import part
        part.k = 2.0
        def f(x):
            import part
            return part.k * x
        def change(): part.k = 3.0""",
    "a name imported by the function": """
        import part
        part.k = 2.0
        def f(x):
            from part import k
            return k * x
        def change(): part.k = 3.0""",
    "a compiled function": """
        from legged.compiler import compile
        def make(k): return compile(lambda x: (k * x, {"a": x}), x=())
        g = make(2.0)
        def f(x): return g(x)[0]
        def change(): global g; g = make(3.0)""",
    "NumPy, patched": """
        cosine = np.cos
        def f(x): return np.cos(x)
        def change(): np.cos = lambda x: 3.0 * x
        def restore(): np.cos = cosine""",
    "this package, patched": """
        import legged
        from legged.robot import base
        original = base.quaternion_rate
        def f(x): return x * legged.FloatingBase().rate(np.arange(7.0), np.arange(6.0)).sum()
        def change(): base.quaternion_rate = lambda q, omega: original(q, 3.0 * omega)
        def restore(): base.quaternion_rate = original""",
}


@pytest.fixture
def module(monkeypatch) -> Callable[[str], Any]:
    """What makes a module of a text, with no source that Python could show, beside another one called `part`."""
    monkeypatch.setitem(sys.modules, "part", types.ModuleType("part"))

    def make(text: str) -> Any:
        made: Any = types.ModuleType("case")
        made.np, made.dataclass = np, dataclass
        monkeypatch.setitem(sys.modules, "case", made)
        exec(builtins.compile(textwrap.dedent(text), "case", "exec", dont_inherit=True), vars(made))
        return made

    return make


@pytest.mark.parametrize("case", CASES)
def test_what_changes_the_result_changes_the_fingerprint(case, module):
    """The oracle is the function itself, run on a number."""
    made = module(CASES[case])
    before, marked = made.f(0.7), fingerprint(made.f)
    assert marked is not None and fingerprint(made.f) == marked
    made.change()
    try:
        assert made.f(0.7) != before
        assert fingerprint(made.f) not in (marked, None)
    finally:
        getattr(made, "restore", lambda: None)()


UNTOLD = {
    "random numbers": "def f(x): return np.random.normal() * x",
    "Python's random numbers": "import random\ndef f(x): return random.random() * x",
    "random numbers of a module by another name": "def f(x):\n    m = np\n    return m.random.normal() * x",
    "random numbers of a module handed on": "def g(m): return m.random.normal()\ndef f(x): return g(np) * x",
    "random numbers in this package, patched": """
        import legged
        from legged.robot import base
        def f(x): return x * legged.FloatingBase().rate(np.arange(7.0), np.arange(6.0)).sum()
        base.quaternion_rate = lambda q, omega: q * np.random.normal()""",
    "a generator": "rng = np.random.default_rng(0)\ndef f(x): return rng.normal() * x",
    "a clock": "import time\ndef f(x): return time.time() * x",
    "a file": "def f(x): return float(open('gain').read()) * x",
    "a file of numbers": "def f(x): return np.loadtxt('gain') * x",
    "a file by its path": "from pathlib import Path\ndef f(x): return float(Path('gain').read_text()) * x",
    "the environment": "import os\ndef f(x): return float(os.environ['GAIN']) * x",
    "another process": "import subprocess\ndef f(x): return float(subprocess.check_output('gain')) * x",
    "a warning": "import warnings\ndef f(x): warnings.warn('careful'); return x",
    "what is printed": "def f(x): print(x); return x",
    "code made as it runs": "def f(x): return eval('x * k')",
    "a function that remembers": """
        import functools
        k = 2.0
        @functools.cache
        def g(): return k
        def f(x): return g() * x""",
    "a set of objects": "s = {(1, 2), (3, 4)}\ndef f(x): return next(iter(s))[0] * x",
    "what a list is iterated with": "s = iter([1.0, 2.0])\ndef f(x): return next(s) * x",
    "names in a module that are put together": "import part\ndef f(x): return getattr(part, 'k' + str(1)) * x",
    "the dictionary of a module": "import part\ndef f(x): return part.__dict__['k' + str(1)] * x",
    "another language": "from decimal import Decimal\ndef f(x): return float(Decimal('1.1')) * x",
    "another thread's data": "import threading\nd = threading.local()\nd.k = 2.0\ndef f(x): return d.k * x",
    "a weak reference": "import weakref\nclass A: k = 2.0\na = A()\nw = weakref.ref(a)\ndef f(x): return w().k * x",
    "a function of arrays in another language": "g = np.frompyfunc(lambda x: 2.0 * x, 1, 1)\ndef f(x): return g(x)",
    "what is half traced": """
        from legged.compiler.ir.tracer import Tracer
        a = Tracer().input()
        def f(x): return a * x""",
    "an array that knows its file": "a = np.zeros(3).view(np.memmap)\ndef f(x): return a * x",
}


@pytest.mark.parametrize("case", UNTOLD)
def test_what_cannot_be_told_has_no_fingerprint(case, module, monkeypatch):
    monkeypatch.setattr(base, "quaternion_rate", base.quaternion_rate)  # put back after a case has patched it
    assert fingerprint(module(UNTOLD[case]).f) is None


def test_a_file_of_the_users_is_not_taken_for_pythons(tmp_path):
    """Its name alone does not say what it does."""
    (tmp_path / "fractions.py").write_text("gain = 2.0\ndef law(x):\n    return gain * x\n")
    program = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import fractions
        from legged.compiler.cache.fingerprint import fingerprint
        before = fingerprint(fractions.law)
        fractions.gain = 3.0
        assert before and fingerprint(fractions.law) not in (before, None)"""
    assert child(program, str(tmp_path)) == ""


def child(program: str, *arguments: str, **environment: str) -> str:
    """Return what a program prints in a process of its own."""
    variables = {**os.environ, "PYTHONPATH": str(Path(legged.__file__).parents[1]), **environment}
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout


def test_fingerprints_are_the_same_in_every_process():
    program = """
        import legged, robots
        from legged.compiler.cache.fingerprint import fingerprint
        print(fingerprint(legged.forward_dynamics, robots.planar_biped()))"""
    assert len({child(program, PYTHONHASHSEED=seed) for seed in "012"}) == 1
    assert child(program) == f"{fingerprint(legged.forward_dynamics, robots.planar_biped())}\n"


FUNCTIONS = (legged.forward_dynamics, legged.inverse_dynamics, legged.inertia_matrix, legged.bias_forces)
ROBOTS = {"chain": {"links": 3}, "fixed": {"links": 4, "base": "fixed"}, "euler": {"links": 5, "base": "euler"}}


def test_functions_and_robots_have_fingerprints_of_their_own():
    made = [legged.random_tree(seed=k, links=5) for k in range(3)]
    marks = {fingerprint(function, robot) for function in FUNCTIONS for robot in made}
    assert len(marks) == len(FUNCTIONS) * len(made) and None not in marks


def test_a_method_named_by_a_string_counts(monkeypatch):
    """The rule of integration is handed on as a string and looked up by it."""
    nothing: Any = None
    step = functools.partial(stepped, ClosedLoop(robots.planar_biped(), nothing, nothing), "runge_kutta")
    before = fingerprint(step)
    monkeypatch.setattr(ClosedLoop, "runge_kutta", lambda self, t, h, phase, q, s: (q, s))
    assert before is not None and fingerprint(step) not in (before, None)


def test_a_robot_built_again_has_the_same_fingerprint():
    for name in ("planar_biped", "spatial_quadruped", "humanoid", "hexapod"):
        first, second = (fingerprint(legged.forward_dynamics, getattr(robots, name)()) for _ in range(2))
        assert first == second is not None


def test_a_robot_from_a_file_has_a_fingerprint(tmp_path):
    pytest.importorskip("yourdfpy")
    legged.save_urdf(robots.spatial_quadruped(), tmp_path / "robot.urdf")
    first, second = (fingerprint(legged.forward_dynamics, legged.load(tmp_path / "robot.urdf")) for _ in range(2))
    assert first == second is not None


def test_closed_loops_have_fingerprints():
    """Gaits, laws and grounds of this project, with all that they are made of."""
    robot = robots.spatial_quadruped()
    law = controllers.ComputedTorque(controllers.Trot(period=1.0, stride=0.3, clearance=0.08))
    marks = []
    for ground in (paper_ground(robot), realistic_ground(robot)):
        loop = ClosedLoop(robot, law, ground)
        marks += [fingerprint(loop.rate), fingerprint(loop.observe)]
    assert len(set(marks)) == 4 and None not in marks


@pytest.mark.parametrize(
    "make", [lambda: legged.random_tree(seed=3, links=6, physics=True, coupled=True), robots.humanoid]
)
def test_looking_at_a_robot_does_not_change_its_fingerprint(make):
    robot = make()
    before = fingerprint(legged.forward_dynamics, robot)
    _ = robot.mass, robot.children, robot.alike_modules, robot.graph, robot.neutral()
    for function in FUNCTIONS[:2]:
        function(robot, robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv))
    assert fingerprint(legged.forward_dynamics, robot) == before


def test_what_is_written_on_the_graph_of_a_robot_counts():
    robot = robots.planar_biped()

    def heaviest(robot, q):
        return robot.graph.nodes["trunk"].get("load", 1.0) * q

    before = fingerprint(heaviest, robot)
    robot.graph.nodes["trunk"]["load"] = 2.0
    assert fingerprint(heaviest, robot) not in (before, None)


def arrays(x: Any, met: set[int]) -> Iterator[np.ndarray]:
    """Yield every array of a definition once, whatever leads to its numbers."""
    place = x.ctypes.data if isinstance(x, np.ndarray) else id(x)
    if place in met:
        return
    met.add(place)
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, tuple | list):
        for item in x:
            yield from arrays(item, met)
    elif is_dataclass(x):
        for part in fields(x):
            yield from arrays(getattr(x, part.name), met)


@pytest.mark.parametrize("seed", range(3))
def test_every_number_of_a_robot_counts(seed):
    """However small the change."""
    robot, rng = legged.random_tree(seed=seed, links=4), np.random.default_rng(seed)
    marks = {fingerprint(legged.forward_dynamics, robot)}
    found = [a for a in arrays(robot, set()) if a.size]
    assert len(found) > 40
    for array in found:
        place = tuple(rng.integers(array.shape))
        before, frozen = array[place], not array.flags.writeable
        array.flags.writeable = True
        array[place] = before + 1 if array.dtype.kind == "i" else np.nextafter(before, np.pi)
        marks.add(fingerprint(legged.forward_dynamics, robot))
        array[place], array.flags.writeable = before, not frozen
    assert len(marks) == len(found) + 1 and None not in marks


def test_every_part_of_a_robot_counts():
    robot = legged.random_tree(seed=1, links=4)
    marks = {fingerprint(legged.forward_dynamics, robot)}
    for part in fields(robot):
        marks.add(fingerprint(legged.forward_dynamics, replace(robot, **{part.name: "another"})))
    assert len(marks) == len(fields(robot)) + 1 and None not in marks


def test_descriptions_do_not_run_into_each_other():
    """Different things in one list, so that no separator may be part of a neighbor."""
    things: list[Any] = [
        *([], [[]], [[], []], (), [()], ["a", "b"], ["a\nb"], ["a'", "b"], [["a"], "b"], [["a", "b"]], "a", b"a"),
        *(None, [None], "None", 1, 1.0, True, np.float64(1.0), np.float32(1.0), np.int64(1), np.array(1.0)),
        *(np.array([1.0]), np.array([[1.0]]), {}, {1: 2}, {2: 1}, [1, 2], (1, 2), {1, 2}, frozenset([1, 2])),
        *(0.0, -0.0, 0, float("inf"), 1j, range(3), range(1, 3), slice(3), slice(1, 3), 10**5000, 10**5001),
        *(float, int, list, np.float64, np.ndarray, np.cos, np.sin, abs, len, [].append, [1].append, np.dtype(float)),
    ]
    texts = ["\n".join(description(thing)) for thing in things]
    assert len(set(texts)) == len(things)
    assert all(a is b or not a.startswith(b + "\n") for a in texts for b in texts)


def test_what_is_met_twice_is_not_what_is_only_equal():
    a: list[Any]
    a, b = [1.0], [1.0]
    assert fingerprint([a, a]) != fingerprint([a, b]) == fingerprint([b, a])
    a.append(a)
    assert fingerprint(a) is not None


def test_a_chain_of_functions_may_be_long(module):
    """Longer than Python's stack."""
    text = "\n".join(f"def f{k}(x): return f{k - 1}(x)" for k in range(1, 2000))
    made = module(f"k = 2.0\ndef f0(x): return k * x\n{text}\nf = f1999")
    before = fingerprint(made.f)
    made.k = 3.0
    assert before and fingerprint(made.f) not in (before, None)


def test_the_reason_is_told():
    with pytest.raises(Unknown, match=r"numpy\.load"):
        description(lambda x: np.load("gain") * x)
