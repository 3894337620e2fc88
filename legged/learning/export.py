"""Policies as ONNX files, with the names of the task and the robot that they belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from legged.errors import FileError, MissingError
from legged.learning.ppo import PPO, nn
from legged.output import output_file, replaced
from legged.version import __version__

_OPERATION_SET, _FORMAT = 17, 8
_METADATA = ("task", "robot", "legged")


def write_onnx(path: str | Path, learner: PPO, task: str = "") -> Path:
    """Write the policy without noise as an ONNX file, and return its path.

    The input `observation`, (1, k), single precision, in the units of the task, and the output `action`, (1, nj), are
    those of the group `actor`. `controllers.Network.of_onnx` reads the file.

    Args:
        path: The file, `.onnx`. learner: The learner. task: Name of the task, which the file holds as metadata.

    Raises:
        MissingError: onnx is not installed.
    """
    onnx = _onnx()
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    net, normal = learner.net, learner.net.actor_input
    constants: dict[str, Any] = {"mean": normal.mean, "deviation": normal.deviation()}
    nodes = [
        helper.make_node("Sub", ["observation", "mean"], ["centered"]),
        helper.make_node("Div", ["centered", "deviation"], ["x0"]),
    ]
    last = "x0"
    for k, part in enumerate(net.actor):
        result = "action" if k + 1 == len(net.actor) else f"x{k + 1}"
        if isinstance(part, nn.Linear):
            constants |= {f"W{k}": part.weight, f"b{k}": part.bias}
            nodes.append(helper.make_node("Gemm", [last, f"W{k}", f"b{k}"], [result], transB=1))
        else:
            nodes.append(helper.make_node("Elu", [last], [result], alpha=1.0))
        last = result
    arrays = {name: x.detach().numpy().astype(np.float32) for name, x in constants.items()}
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("observation", number, [1, len(arrays["mean"])])],
        [helper.make_tensor_value_info("action", number, [1, learner.env.single_action_space.shape[0]])],
        [onnx.numpy_helper.from_array(x, name) for name, x in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPERATION_SET)], ir_version=_FORMAT)
    values = (task, learner.env.task.robot.name, __version__)
    helper.set_model_props(model, dict(zip(_METADATA, values, strict=True)))
    onnx.checker.check_model(model)
    path = output_file(path, ".onnx")
    with replaced(path) as draft:
        onnx.save(model, str(draft))
    return path


def onnx_metadata(path: str | Path) -> dict[str, str]:
    """Return the names that `write_onnx` has written: "task", "robot" and the release "legged"; empty for other files.

    Raises:
        FileError: The file is missing, or no ONNX file. MissingError: onnx is not installed.
    """
    try:
        model = _onnx().load(str(path))
    except OSError as error:
        raise FileError(str(path), f"cannot be read: {error.strerror or error}") from error
    except MissingError:
        raise
    except Exception as error:  # of protobuf, whose types differ between versions
        raise FileError(str(path), f"is not an ONNX file: {error}") from error
    return {x.key: x.value for x in model.metadata_props if x.key in _METADATA}


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise MissingError("ONNX files need onnx: pip install 'legged[rl]'") from error
    return onnx
