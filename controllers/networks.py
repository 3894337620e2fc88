"""Neural networks in plain NumPy, read from arrays, ONNX files and Torch modules: they can be traced and exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import known_name, real_array
from legged.compiler.ir import where
from legged.errors import DefinitionError, MissingError, ShapeError

Array = np.ndarray


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _leaky(slope: float) -> Callable[[Array], Array]:
    return lambda x: _each(lambda e: where(e < 0.0, slope * e, e), x)


def _elu(alpha: float = 1.0) -> Callable[[Array], Array]:
    # The exponential of the minimum is finite in the branch that is not selected.
    return lambda x: _each(lambda e: where(e < 0.0, alpha * (np.exp(np.minimum(e, 0.0)) - 1.0), e), x)


def _each(function: Callable[[Any], Any], x: Array) -> Array:
    if isinstance(x, np.ndarray) and x.dtype != object:
        return function(x)
    return np.stack([function(e) for e in np.ravel(x)]).reshape(np.shape(x))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "elu": _elu(),
    "leaky_relu": _leaky(0.01),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "softplus": lambda x: np.maximum(x, 0.0) + np.log(1.0 + np.exp(-np.abs(x))),
}
"""Activations by name, functions of arrays, (n,), dimensionless."""


@dataclass(frozen=True, eq=False)
class Network:
    """A function from observations and a state to actions and the next state, as a list of named operations.

    Attributes:
        steps: Operations in order: (name of the result, function, names of the arguments).
        constants: Name -> array.
        inputs: Names of the observation, (observed,), and of the state, if there is one, with their sizes.
        outputs: Names of the action and of the next state.
    """

    steps: Sequence[tuple[tuple[str, ...], Callable[..., Any], tuple[str, ...]]]
    constants: Mapping[str, Array]
    inputs: Mapping[str, int]
    outputs: Sequence[str]

    @property
    def observed(self) -> int:
        """Number of entries of an observation."""
        return next(iter(self.inputs.values()))

    @property
    def memory(self) -> int:
        """Number of entries of the state."""
        return sum(self.inputs.values()) - self.observed

    def __call__(self, observation: Array, state: Array | None = None) -> tuple[Array, Array]:
        """Return (action, next state), (actions,) and (memory,), dimensionless; all may be traced.

        Args:
            observation: (observed,), dimensionless. state: (memory,), dimensionless; zero by default.

        Raises:
            ShapeError: The observation or the state has another size.
        """
        state = np.zeros(self.memory) if state is None else state
        if np.shape(observation) != (self.observed,) or np.shape(state) != (self.memory,):
            raise ShapeError(
                f"the network takes an observation of {self.observed} and a state of {self.memory} numbers, got shapes "
                f"{np.shape(observation)} and {np.shape(state)}"
            )
        values: dict[str, Any] = dict(self.constants)
        first, *others = self.inputs.items()
        values[first[0]], start = observation, 0
        for name, size in others:
            values[name], start = state[start : start + size], start + size
        for results, function, arguments in self.steps:
            result = function(*[values[name] for name in arguments])
            values.update(zip(results, result if isinstance(result, tuple) else (result,), strict=False))
        action, *following = [np.ravel(values[name]) for name in self.outputs]
        return action, np.concatenate(following) if following else np.zeros(0)

    @classmethod
    def of_layers(
        cls,
        layers: Sequence[tuple[Any, Any]],
        activation: str = "elu",
        mean: Any = 0.0,
        deviation: Any = 1.0,
    ) -> Network:
        """Return dense layers, y = W x + b, with an activation after all but the last.

        Args:
            layers: (W, b) of each layer, (out, in) and (out,), dimensionless. activation: A name in `ACTIVATIONS`.
            mean, deviation: Of observations, (observed,) or one number, which are subtracted and divided by.

        Raises:
            UnknownNameError: The activation does not exist. ShapeError: sizes of layers do not fit.
        """
        act = ACTIVATIONS[known_name("activation", activation, ACTIVATIONS)]
        weights = [(real_array("W", W), real_array("b", b)) for W, b in layers]
        size = weights[0][0].shape[-1]
        last = size
        for k, (W, b) in enumerate(weights):
            if W.ndim != 2 or W.shape[1] != last or b.shape != W.shape[:1]:
                raise ShapeError(f"layer {k} takes {last} numbers, but W is {W.shape} and b {b.shape}")
            last = len(b)
        mean, deviation = real_array("mean", mean), real_array("deviation", deviation)
        if not (deviation > 0.0).all():
            raise DefinitionError("standard deviations of observations must be positive")
        steps: list[Any] = [(("x",), lambda o: (o - mean) * (1.0 / deviation), ("observation",))]
        for k, (W, b) in enumerate(weights):
            steps.append((("x",), _dense(W, b), ("x",)))
            if k + 1 < len(weights):
                steps.append((("x",), act, ("x",)))
        return cls(steps, {}, {"observation": size}, ("x",))

    @classmethod
    def of_torch(cls, module: Any) -> Network:
        """Return a `torch.nn.Sequential` of `Linear` layers and activations, or a `Linear` layer.

        Args:
            module: The module; sequences inside a sequence are read too.

        Raises:
            DefinitionError: A part of the module is of another type; export the module to ONNX.
        """
        steps: list[Any] = []
        sizes: list[int] = []
        for part in _parts(module):
            name = type(part).__name__
            if name == "Linear":
                W = part.weight.detach().cpu().double().numpy()
                b = np.zeros(len(W)) if part.bias is None else part.bias.detach().cpu().double().numpy()
                sizes.append(W.shape[1])
                steps.append((("x",), _dense(W, b), ("x",)))
            elif name in _TORCH:
                steps.append((("x",), _TORCH[name](part), ("x",)))
            else:
                raise DefinitionError(f"a module of type {name} is not read; export it: torch.onnx.export(...)")
        if not sizes:
            raise DefinitionError("the module has no Linear layer")
        return cls(steps, {}, {"x": sizes[0]}, ("x",))

    @classmethod
    def of_onnx(cls, path: str | Path) -> Network:
        """Return the network of an ONNX file; further inputs are states, whose next values are the further outputs.

        Args:
            path: The file.

        Raises:
            MissingError: onnx is not installed. DefinitionError: an operation is not supported; the message names it.
        """
        return _read_onnx(path, cls)


def _dense(W: Array, b: Array) -> Callable[[Array], Array]:
    return lambda x: W @ x + b


def _parts(module: Any) -> list[Any]:
    return [p for child in module for p in _parts(child)] if type(module).__name__ == "Sequential" else [module]


_TORCH: dict[str, Callable[[Any], Callable[[Array], Array]]] = {
    "Identity": lambda part: ACTIVATIONS["identity"],
    "ReLU": lambda part: ACTIVATIONS["relu"],
    "ELU": lambda part: _elu(float(part.alpha)),
    "LeakyReLU": lambda part: _leaky(float(part.negative_slope)),
    "Tanh": lambda part: ACTIVATIONS["tanh"],
    "Sigmoid": lambda part: ACTIVATIONS["sigmoid"],
    "SiLU": lambda part: ACTIVATIONS["silu"],
    "Softplus": lambda part: ACTIVATIONS["softplus"],
}


# ONNX. Batches of one are dropped: vectors are (n,), and matrices of weights act on them.


def _gemm(x: Array, W: Array, b: Array | None = None, *, attributes: Mapping[str, Any]) -> Array:
    W = W.T if attributes.get("transB") else W
    y = attributes.get("alpha", 1.0) * (np.ravel(x) @ W)
    return y if b is None else y + attributes.get("beta", 1.0) * np.ravel(b)


def _gates(W: Array, R: Array, B: Array | None, x: Array, h: Array) -> tuple[Array, Array]:
    """Return the sums of the gates of a recurrent cell over its input and over its state, (gates n,) each."""
    input_bias, state_bias = (0.0, 0.0) if B is None else np.split(B[0], 2)
    return W[0] @ np.ravel(x) + input_bias, R[0] @ np.ravel(h) + state_bias


def _lstm(
    x: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    *,
    attributes: Mapping[str, Any],
) -> tuple[Array, Array, Array]:
    n = R.shape[-1]
    h, c = (np.zeros(n) if z is None else np.ravel(z) for z in (h, c))
    from_input, from_state = _gates(W, R, B, x, h)
    a = from_input + from_state
    i, o, f, g = (a[k * n : (k + 1) * n] for k in range(4))
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    h = _sigmoid(o) * np.tanh(c)
    return h, h, c


def _gru(
    x: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    lengths: Any = None,
    h: Any = None,
    *,
    attributes: Mapping[str, Any],
) -> tuple[Array, Array]:
    n = R.shape[-1]
    h = np.zeros(n) if h is None else np.ravel(h)
    a, b = _gates(W, R, B, x, h)
    update, reset = _sigmoid(a[:n] + b[:n]), _sigmoid(a[n : 2 * n] + b[n : 2 * n])
    if not attributes.get("linear_before_reset"):
        raise DefinitionError("a GRU needs linear_before_reset = 1, as PyTorch writes it")
    new = np.tanh(a[2 * n :] + reset * b[2 * n :])
    h = (1.0 - update) * new + update * h
    return h, h


def _normalization(x: Array, scale: Array, bias: Array | None = None, *, attributes: Mapping[str, Any]) -> Array:
    e = x - x.sum() * (1.0 / len(x))
    y = e / np.sqrt((e @ e) * (1.0 / len(x)) + attributes.get("epsilon", 1e-5)) * np.ravel(scale)
    return y if bias is None else y + np.ravel(bias)


def _simple(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays, attributes: function(*arrays)


def _clip(x: Array, low: Any = None, high: Any = None) -> Array:
    x = x if low is None else np.maximum(x, float(np.ravel(low)[0]))
    return x if high is None else np.minimum(x, float(np.ravel(high)[0]))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "Gemm": _gemm,
    "LSTM": _lstm,
    "GRU": _gru,
    "LayerNormalization": _normalization,
    "MatMul": _simple(lambda x, W: np.ravel(x) @ W),
    **{
        name: _simple(f)
        for name, f in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide))
    },
    **{name: _simple(f) for name, f in (("Tanh", np.tanh), ("Exp", np.exp), ("Sqrt", np.sqrt), ("Neg", np.negative))},
    "Relu": _simple(ACTIVATIONS["relu"]),
    "Sigmoid": _simple(_sigmoid),
    "Softplus": _simple(ACTIVATIONS["softplus"]),
    "Elu": lambda x, attributes: _elu(attributes.get("alpha", 1.0))(x),
    "LeakyRelu": lambda x, attributes: _leaky(attributes.get("alpha", 0.01))(x),
    "Clip": _simple(_clip),
    "Concat": _simple(lambda *parts: np.concatenate([np.ravel(p) for p in parts])),
    **dict.fromkeys(
        ("Identity", "Flatten", "Squeeze", "Unsqueeze", "Reshape", "Cast", "Dropout"), _simple(lambda x, *_: x)
    ),
}
"""Operations of ONNX on vectors; those that only change leading axes do nothing."""


def _read_onnx(path: str | Path, kind: Any) -> Network:
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise MissingError("ONNX files need onnx: pip install 'legged[rl]'") from error
    try:
        model = onnx.load(str(path))
    except Exception as error:  # of protobuf, whose types differ between versions
        raise DefinitionError(f"{path} is not an ONNX file: {error}") from error
    graph = model.graph
    constants: dict[str, Any] = {x.name: numpy_helper.to_array(x).astype(float) for x in graph.initializer}
    steps = []
    for node in graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Constant":
            constants[node.output[0]] = np.asarray(numpy_helper.to_array(attributes["value"]), dtype=float)
            continue
        if node.op_type not in _OPERATIONS:
            known = ", ".join(sorted(_OPERATIONS))
            raise DefinitionError(f"{path}: the operation {node.op_type} is not supported; supported are {known}")
        function = _OPERATIONS[node.op_type]
        names = tuple(name or "_absent" for name in node.input)
        steps.append((tuple(node.output), _bound(function, attributes), names))
    constants["_absent"] = None
    inputs = {}
    for x in graph.input:
        if x.name in constants:
            continue
        sizes = [d.dim_value for d in x.type.tensor_type.shape.dim]
        known = [n for n in sizes if n > 1] or [1]
        if len(known) != 1:
            raise DefinitionError(f"{path}: input {x.name!r} of shape {sizes} is not a vector")
        inputs[x.name] = known[0]
    return kind(steps, constants, inputs, tuple(x.name for x in graph.output))


def _bound(function: Callable[..., Any], attributes: Mapping[str, Any]) -> Callable[..., Any]:
    return lambda *arrays: function(*arrays, attributes=attributes)
