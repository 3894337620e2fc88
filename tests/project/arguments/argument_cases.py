# ruff: noqa: E501  (tables of values)
"""Valid calls of all public functions, methods and classes, for `argument_fuzz`."""

import copy
import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from argument_values import FOLDER, method_arguments, resolved, special_arguments, usual_arguments
from oracles.standing import shared_quadruped
from package_cases import package_calls

import legged
import robots
from legged import deployment, environments, optimization, sweeps
from legged.compiler import Members
from legged.errors import MissingError

MODULES = (
    "legged",
    "controllers",
    "robots",
    "legged.ground",
    "legged.contact",
    "legged.loops",
    "legged.sensors",
    "legged.conversions",
    "legged.denoc",
    "legged.simulation",
)

PACKAGES = ("legged", "controllers", "robots")

RESULTS = {
    "Counts", "Kernel", "Robot", "RobotGroup", "Rollouts", "Run", "Impact", "Solution", "Mobility", "Readings", "ArticulatedModule",
    "Conversion", "RosConversion", "Candidate", "ContactGeometry", "Scene", "ClosedRobot", "Home", "Gait", "GaitLaw", "Posture",
    "Reference", "FrictionLaw", "NormalLaw", "Terrain", "Base", "Leg", "NumericalGait", "JointState", "Odometry", "Loop",
    "Pendulum", "Pose", "State", "PlanarBalanceControl", "IKSolution", "IKSolutions", "Linearization", "VelocityGains", "FootSensor",
    "HybridDynamics", "Contacts", "SimulationState", "ContactDynamics", "ContactInverseDynamics", "JointWrenches",
    "ClosedInverseDynamics", "Step", "SerialEquivalent",
    "ConditionReport", "ModuleCondition", "ModuleInverse", "ReducedModel", "Network",
}  # fmt: skip
"""Classes whose objects the toolkit makes, or that users derive from."""

INTERNAL = {
    "EulerBase", "FixedBase", "FloatingBase", "PlanarBase", "Kernel", "RosConversion", "Conversion",
    "step_sequences", "torque", "rate", "lyapunov", "lyapunov_rate", "update", "update_times", "force", "plan", "acceleration", "set_tree",
    "reference_state", "state_of", "Alternating", "OperationalSpaceControl.start", "HybridControl.start", "Run.to_pandas", "Rollouts.to_pandas",
    *(f"{name}.solve" for name in ("RungeKutta4", "SemiImplicitEuler", "LinearlyImplicitEuler", "BDF", "Stiff", "TimeStepping")),
    *(f"{name}.take" for name in ("RungeKutta4", "SemiImplicitEuler", "LinearlyImplicitEuler", "TimeStepping")), "implicit",
    "joint_of", "Sweep.fix_bounds", "Estimated.start", "OnSerialEquivalent.start", "OnSerialEquivalent.initial_state", "Estimated.estimated", "Estimated.estimate", "Estimated.kernel", "Estimated.live_parameters",
}  # fmt: skip
"""Classes and methods that only the toolkit calls, with values that it has computed."""

PROGRAMS = {"legged.conversions.drake", "legged.conversions.mujoco", "legged.conversions.pinocchio", "legged.view"}
"""Functions that need a model of another program, which may not be installed, or serve a page."""


class Case(NamedTuple):
    """A public callable and a valid call of it."""

    name: str
    function: Any
    arguments: dict[str, Any]


class Answered(Protocol):
    """What came of a call: the answer, or the error."""

    @property
    def answer(self) -> Any: ...

    @property
    def error(self) -> BaseException | None: ...


def cases(attempt: Callable[[Case], Answered]) -> tuple[list[Case], list[str]]:
    """Return the callables with valid calls, and the names of those for which no valid call could be built.

    Args:
        attempt: Makes a valid call.
    """
    values = usual_arguments()
    special, loop_state = special_arguments(values)
    calls, missing, seen = [], [], set()
    given = [resolved(values[name]) for name in ("robot", "closed", "run", "gait", "law")]
    objects: dict[type, Any] = {type(x): x for x in given}
    box = legged.FreeBody(
        "box", legged.box_inertia(1.0, (0.1, 0.1, 0.1)), [legged.Box((0.1, 0.1, 0.1))], (3.0, 0.0, 1.0)
    )
    robot = values["robot"]
    q = robot.state(base_position=(0.0, 0.0, 1.3)).q
    objects[legged.Run] = legged.simulate(robot, q=q, until=0.01, ground=legged.Rigid(), bodies=[box])
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", [k for k in vars(module) if not k.startswith("_")]):
            function = getattr(module, name)
            if not callable(function) or name in RESULTS or id(function) in seen:
                continue
            seen.add(id(function))
            full = f"{module_name}.{name}"
            if full in PROGRAMS:
                continue
            try:
                parameters = inspect.signature(function).parameters.values()
            except (ValueError, TypeError):
                continue
            usual = values | (loop_state if module_name == "legged.loops" else {})
            case = Case(full, function, _arguments(parameters, special.get(full, {}), usual))
            outcome = attempt(case)
            (calls.append(case) if outcome.error is None else missing.append(f"{full}: {outcome.error}"))
            if outcome.error is None:
                objects.setdefault(type(outcome.answer), outcome.answer)
    of_packages = [Case(name, *call) for name, call in package_calls(FOLDER).items()]
    for case in (*_methods(objects, values), *_stateful_methods(), *of_packages):
        outcome = attempt(case)
        if isinstance(outcome.error, MissingError):  # an extra that is not installed
            continue
        (calls.append(case) if outcome.error is None else missing.append(f"{case.name}: {outcome.error}"))
    return calls, missing


def _arguments(parameters: Iterable[inspect.Parameter], given: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """Return valid arguments: those given, default values, and those of the usual names."""
    arguments = dict(given)
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name in arguments or p.name.startswith("_"):
            continue
        if p.default is not p.empty:
            arguments[p.name] = p.default
        elif p.name in usual:
            arguments[p.name] = usual[p.name]
    return arguments


def _methods(objects: dict[type, Any], values: dict[str, Any]) -> Iterator[Case]:
    """Yield the public methods of the objects that public callables return, one object of each class."""
    special = method_arguments(values)
    for kind, of in objects.items():
        if kind.__module__.partition(".")[0] not in PACKAGES or kind.__name__.startswith("_"):
            continue
        for name, setter in inspect.getmembers(kind, lambda x: isinstance(x, property) and x.fset is not None):
            del setter
            yield Case(f"{kind.__name__}.{name}", Method(of, name), {name: getattr(of, name)})
        for name, function in inspect.getmembers(kind, callable):
            if name.startswith("_") or not (inspect.isfunction(function) or inspect.ismethod(function)):
                continue
            full = f"{kind.__name__}.{name}"
            if INTERNAL & {name, kind.__name__, full}:
                continue
            given = special.get(full, special.get(f"*.{name}", {}))
            parameters = inspect.signature(getattr(of, name)).parameters.values()
            yield Case(full, Method(of, name), _arguments(parameters, given, values))


def _stateful_methods() -> Iterator[Case]:
    """Yield the methods of the objects of `makers`; one object serves all methods of its class until a call changes it."""
    made = {name: Made(make) for name, make in makers(FOLDER).items()}
    for full, arguments in stateful_arguments().items():
        kind, _, name = full.partition(".")
        if kind in made:
            yield Case(full, StatefulMethod(made[kind], name), arguments)


class Made:
    """An object that is made when it is first needed, and again after a call has changed it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._object = make, None

    def now(self) -> Any:
        """Return the object."""
        if self._object is None:
            self._object = self._make()
        return self._object

    def discard(self) -> None:
        """Make the object anew for the next call."""
        self._object = None


class StatefulMethod:
    """A method of an object that cannot be copied, with the same check as `Method`."""

    is_of_mutable = True

    def __init__(self, made: Made, name: str) -> None:
        self.made, self.name = made, name

    def __call__(self, **given: Any) -> Any:
        """Return the result of the method; see `Method`."""
        of = self.made.now()
        try:
            answer = unchanged_if_refused(of, self.name, given)
        except AssertionError:
            self.made.discard()
            raise
        self.made.discard()
        return answer


def unchanged_if_refused(of: Any, name: str, given: dict[str, Any]) -> Any:
    """Return the result of a method, or of setting a property; a call that is refused must leave the object as it is.

    Raises:
        AssertionError: The call has raised an error and changed the object.
    """
    before, is_setter = snapshot(of), isinstance(getattr(type(of), name), property)
    try:
        return setattr(of, name, next(iter(given.values()))) if is_setter else getattr(of, name)(**given)
    except Exception as error:
        changed = [part for part, value in snapshot(of)[1].items() if value != before[1].get(part)]
        assert not changed, f"a refused call changed {', '.join(changed)} ({error})"
        raise


class Method:
    """A method of an object that is copied before each call if calls may change it."""

    def __init__(self, of: Any, name: str) -> None:
        self.of, self.name = of, name

    @property
    def is_of_mutable(self) -> bool:
        """Whether calls may change the object."""
        return not _is_frozen(self.of)

    def __call__(self, **given: Any) -> Any:
        """Return the result of the method; see `unchanged_if_refused`."""
        if not self.is_of_mutable:
            return getattr(self.of, self.name)(**given)
        return unchanged_if_refused(copy.deepcopy(self.of), self.name, given)


def _is_frozen(x: Any) -> bool:
    return dataclasses.is_dataclass(x) and type(x).__dataclass_params__.frozen  # pyright: ignore


def snapshot(x: Any, depth: int = 0) -> Any:
    """Return the value of an object, to be compared with its value after a call; frozen and foreign objects are equal
    to themselves alone, and cached properties are no part of the value."""
    if isinstance(x, np.ndarray):
        return (x.dtype, x.shape, [id(y) for y in x.flat] if x.dtype == object else x.tobytes())
    if isinstance(x, dict):
        return {key: snapshot(y, depth + 1) for key, y in x.items()}
    if isinstance(x, list | tuple):
        return [snapshot(y, depth + 1) for y in x]
    if isinstance(x, set | frozenset | int | float | str | bytes | None):
        return copy.copy(x)
    parts = type(x).__module__.split(".")
    if parts[0] not in PACKAGES or ("compiler" in parts and type(x) is not Members) or _is_frozen(x) or depth > 8:
        return id(x)
    stored = getattr(x, "__dict__", {})
    hidden = {name for name in stored if isinstance(getattr(type(x), name, None), functools.cached_property)}
    return type(x), {name: snapshot(y, depth + 1) for name, y in stored.items() if name not in hidden}


# Objects with a state of the packages above simulation.


class Interface(deployment.RobotInterface):
    """A robot that sends nothing, and whose time goes on while the loop sleeps."""

    def __init__(self) -> None:
        self.time = 0.0

    def read(self) -> None: ...

    def write(self, command: deployment.JointCommand) -> None: ...

    def clock(self) -> float:
        return self.time

    def sleep_until(self, time: float) -> None:
        self.time = max(self.time, time)

    def close(self) -> None: ...


def _effort(robot: Any, at: Any) -> Any:
    return at.u


def _trial(x: float) -> float:
    return abs(x)


def _law(t: float, memory: Any, reading: Any, command: Any) -> Any:
    return memory, np.zeros(1), np.zeros(0)


def makers(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return functions that make objects whose methods change them, by name of their class.

    Args:
        folder: For files.
    """
    pendulum, hopper = robots.chain(1, base=legged.FixedBase()), robots.planar_hopper()
    stages = [optimization.Stage(0.01, terms=[optimization.Cost(_effort)]) for _ in range(3)]

    def problem() -> Any:
        return optimization.Problem(pendulum, stages, q=pendulum.neutral())

    def plan() -> Any:
        robots_of_plan = legged.Simulation(hopper, ground=legged.Rigid(), num=2, fall=False)
        return optimization.Sampling(
            robots_of_plan, [], horizon=0.02, command=np.zeros(2), noise=0.1, interval=0.01, knots=2
        )

    def study() -> Any:
        return sweeps.sweep(_trial, {"x": [1.0, 2.0]}, folder / "objects").compute()

    quadruped = shared_quadruped()
    high = quadruped.state(base_position=(0.0, 0.0, 1.0)).q
    made: dict[str, Callable[[], Any]] = {
        "Problem": problem,
        "Solver": lambda: optimization.Solver(problem()),
        "Sampling": plan,
        "Runner": lambda: deployment.Runner(Interface(), _law, np.zeros(1)),
        "LiveVelocity": deployment.LiveVelocity,
        "SimulatedRobot": lambda: deployment.SimulatedRobot(quadruped, high),
        "Sweep": study,
    }
    if find_spec("gymnasium"):
        made["VectorEnvironment"] = lambda: _begun(environments.make(environments.pendulum(), num_envs=2))
        made["Environment"] = lambda: _begun(environments.make(environments.pendulum()))
    return made


def _begun(environment: Any) -> Any:
    environment.reset(seed=1)
    return environment


def stateful_arguments() -> dict[str, dict[str, Any]]:
    """Return the arguments of the methods that are called, by class and name."""
    pendulum, nj = robots.chain(1, base=legged.FixedBase()), shared_quadruped().nj
    q, v = robots.planar_hopper().neutral(), np.zeros(5)
    return {
        "Problem.set_start": {"q": pendulum.neutral() + 0.1, "v": np.ones(1)},
        "Solver.set_guess": {"q": pendulum.neutral() + 0.1, "v": np.ones(1), "u": np.ones(1)},
        "Solver.shift": {"count": 1},
        "Solver.solve": {"iterations": 1, "tolerance": 1e-9, "gap_tolerance": 1e-8, "constraint_tolerance": 1e-4},
        "Sampling.improve": {"q": q, "v": v, "iterations": 1},
        "Sampling.shift": {"duration": 0.01},
        "Runner.change": {"limits": deployment.SafetyLimits(), "law": _law, "command": np.zeros},
        "Runner.stop": {"reason": "a test"},
        "Runner.run": {"duration": 0.0},
        "LiveVelocity.move": {"axes": np.zeros(3)},
        "LiveVelocity.press": {"key": "w"},
        "SimulatedRobot.write": {"command": deployment.JointCommand.damping(nj, 1.0)},
        "VectorEnvironment.reset": {"seed": 3, "options": {"reset_mask": np.array([True, False])}},
        "VectorEnvironment.step": {"actions": np.zeros((2, 1))},
        "VectorEnvironment.record": {"robots": 0},
        "VectorEnvironment.commands": {"commands": np.zeros(0)},
        "Environment.reset": {"seed": 3, "options": None},
        "Environment.step": {"action": np.zeros(1)},
        "Sweep.table": {"partial": True},
        "Sweep.run": {"row": 0},
    }
