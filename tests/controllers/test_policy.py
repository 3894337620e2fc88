"""Policies: networks beside onnxruntime, in simulations, and as C."""

import ctypes
import itertools
import subprocess

import numpy as np
import pytest

import legged
import robots
from controllers import Network, Policy
from legged import environments
from legged.errors import ArgumentError, DefinitionError, ShapeError

ROBOT = robots.spatial_quadruped()
RANDOM = np.random.default_rng(0)


def layers(*sizes):
    return [(RANDOM.normal(size=(b, a)) / np.sqrt(a), RANDOM.normal(size=b)) for a, b in itertools.pairwise(sizes)]


def single(constants):
    return {name: x.astype(np.float32) for name, x in constants.items()}


def onnx_file(path, nodes, constants, inputs, outputs):
    onnx = pytest.importorskip("onnx", reason="onnx, of the extra rl, is not installed")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info(name, number, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, number, shape) for name, shape in outputs.items()],
        [onnx.numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def dense_file(path, activation, **attributes):
    onnx = pytest.importorskip("onnx", reason="onnx, of the extra rl, is not installed")
    (W_1, b_1), (W_2, b_2) = layers(9, 16, 4)
    nodes = [
        onnx.helper.make_node("Sub", ["x", "mean"], ["y"]),
        onnx.helper.make_node("Gemm", ["y", "W_1", "b_1"], ["z"], transB=1),
        onnx.helper.make_node(activation, ["z"], ["a"], **attributes),
        onnx.helper.make_node("MatMul", ["a", "W_2"], ["m"]),
        onnx.helper.make_node("Add", ["m", "b_2"], ["action"]),
    ]
    constants = {"mean": np.ones((1, 9)), "W_1": W_1, "b_1": b_1, "W_2": W_2.T, "b_2": b_2}
    return onnx_file(path, nodes, single(constants), {"x": [1, 9]}, {"action": [1, 4]})


def recurrent_file(path, cell):
    onnx = pytest.importorskip("onnx", reason="onnx, of the extra rl, is not installed")
    gates = {"LSTM": 4, "GRU": 3}[cell]
    constants = {
        "W": RANDOM.normal(size=(1, gates * 8, 6)),
        "R": RANDOM.normal(size=(1, gates * 8, 8)),
        "B": RANDOM.normal(size=(1, gates * 16)),
        "W_o": RANDOM.normal(size=(8, 3)),
    }
    states = ["h", "c"] if cell == "LSTM" else ["h"]
    following = [f"{name}_next" for name in states]
    options = {"hidden_size": 8} | ({"linear_before_reset": 1} if cell == "GRU" else {})
    nodes = [
        onnx.helper.make_node(cell, ["x", "W", "R", "B", "", *states], ["y", *following], **options),
        onnx.helper.make_node("Squeeze", ["y", "axes"], ["flat"]),
        onnx.helper.make_node("MatMul", ["flat", "W_o"], ["action"]),
    ]
    shapes = {name: [1, 1, 8] for name in states}
    outputs = {"action": [1, 3], **{key: [1, 1, 8] for key in following}}
    return onnx_file(path, nodes, {**single(constants), "axes": np.array([1])}, {"x": [1, 1, 6], **shapes}, outputs)


@pytest.mark.parametrize(
    "activation, attributes",
    [
        ("Relu", {}),
        ("Elu", {"alpha": 0.7}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("Tanh", {}),
        ("Sigmoid", {}),
        ("Softplus", {}),
    ],
)
def test_dense_networks_are_those_of_onnxruntime(tmp_path, activation, attributes):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime, of the extra rl, is not installed")
    path = dense_file(tmp_path / "policy.onnx", activation, **attributes)
    network, session = Network.of_onnx(path), runtime.InferenceSession(str(path))
    kernel = legged.compile(lambda x: network(x)[0], x=(9,))
    for x in 3.0 * RANDOM.normal(size=(20, 9)).astype(np.float32):
        (expected,) = session.run(None, {"x": x[None]})
        # Single precision of the reference, over two layers.
        np.testing.assert_allclose(network(x.astype(float))[0], expected[0], atol=2e-6, rtol=2e-6)
        np.testing.assert_allclose(kernel(x.astype(float)), network(x.astype(float))[0], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_recurrent_networks_are_those_of_onnxruntime(tmp_path, cell):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime, of the extra rl, is not installed")
    path = recurrent_file(tmp_path / "policy.onnx", cell)
    network, session = Network.of_onnx(path), runtime.InferenceSession(str(path))
    names = ["h", "c"] if cell == "LSTM" else ["h"]
    assert (network.observed, network.memory) == (6, 8 * len(names))
    states, own = {name: np.zeros((1, 1, 8), np.float32) for name in names}, np.zeros(network.memory)
    for x in RANDOM.normal(size=(30, 6)).astype(np.float32):
        expected, *following = session.run(None, {"x": x[None, None], **states})
        states = dict(zip(names, following, strict=True))
        action, own = network(x.astype(float), own)
        np.testing.assert_allclose(action, expected.ravel(), atol=2e-5)  # rounding of the states in single precision


def test_a_network_of_layers_and_the_same_of_torch_agree():
    torch = pytest.importorskip("torch", reason="torch, of the extra train, is not installed")
    module = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.SiLU(), torch.nn.Linear(7, 2)).double()
    network, x = Network.of_torch(module), RANDOM.normal(size=5)
    np.testing.assert_allclose(network(x)[0], module(torch.from_numpy(x)).detach().numpy(), rtol=1e-13)
    own = Network.of_layers(
        [(p.weight.detach().numpy(), p.bias.detach().numpy()) for p in module if hasattr(p, "weight")], "silu"
    )
    np.testing.assert_allclose(own(x)[0], network(x)[0], rtol=1e-13)


def remembering(task):
    """A task whose actor observes a mean, and through another part of the memory the number of control steps."""
    pair = np.array([1.0, 2.0])
    return task.changed(
        observations={
            "actor": {
                **task.observations["actor"],
                "mean": environments.Observation(environments.terms.last_mean_velocity_error, scale=5.0),
                "sum": environments.Observation(lambda s: s.memory["sum"]),
            }
        },
        memory={
            "unread": environments.Memory(lambda s: 0.0, lambda s: s.feet.forces[0, 2]),
            "steps": environments.Memory(lambda s: 3.0, lambda s: s.memory["steps"] + 1.0, 3.0),
            "sum": environments.Memory(lambda s: pair, lambda s: s.memory["sum"] + 0.01 * s.memory["steps"], pair),
            "mean_velocity_error": environments.Memory(
                lambda s: np.zeros(3), environments.terms.mean_velocity_error(0.3), np.zeros(3)
            ),
        },
    )


@pytest.mark.parametrize("remembers", [False, True])
def test_a_policy_moves_the_robot_as_in_its_environment(remembers, tmp_path):
    task = environments.velocity(
        ROBOT, disturbance=None, variations=dict.fromkeys(environments.velocity(ROBOT).variations)
    )
    exact = {name: environments.Observation(term.function) for name, term in task.observations["actor"].items()}
    task = task.changed(observations={"actor": exact})
    task = remembering(task) if remembers else task
    size = 55 if remembers else 50
    network = Network.of_layers(layers(size, 16, ROBOT.nj), "elu")
    env = environments.make(task, num_envs=2, dtype="float64")
    observation, _ = env.reset(seed=2)
    q, v, command = env.q[0], env.v[0], env.commands[0]
    law = Policy(network, task, command)
    run = legged.simulate(
        ROBOT,
        law,
        ground=task.ground,
        q=q,
        v=v,
        until=0.3,
        integrator=legged.TimeStepping(task.time_step),
        fall=False,
    )
    assert run.backend == "compiled closed loop"
    action, memory = np.zeros((2, ROBOT.nj)), task.actor_memory
    kernel, (_, kept) = law.kernel(ROBOT), law.start(ROBOT, None, q, v)
    for k in range(15):
        sensed = (env.q[0], env.v[0], action[0], 0.0 * action[0], command, k)
        memory = task.remembered(*sensed, memory) if k else memory
        seen = task.observed(*sensed, memory)
        np.testing.assert_allclose(seen, observation[0], atol=2e-5)  # actions in single precision
        kept, _ = kernel(k * task.period, env.q[0], env.v[0], kept, command)
        np.testing.assert_allclose(kept[2 * ROBOT.nj :], memory, rtol=1e-12)
        action[0] = network(seen)[0].astype(np.float32)
        observation, *_ = env.step(action)
    # Actions are rounded to single precision in the environment's arrays.
    np.testing.assert_allclose(run.q[-1], env.q[0], atol=2e-4)


def test_a_policy_is_exported_as_one_c_file_that_controls_as_onnxruntime(tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime, of the extra rl, is not installed")
    onnx = pytest.importorskip("onnx", reason="onnx, of the extra rl, is not installed")
    task = environments.velocity(ROBOT)
    (W, b), (U, c) = layers(50, 16, ROBOT.nj)
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "W", "b"], ["z"], transB=1),
        onnx.helper.make_node("Elu", ["z"], ["a"]),
        onnx.helper.make_node("Gemm", ["a", "U", "c"], ["action"], transB=1),
    ]
    constants = single({"W": W, "b": b, "U": U, "c": c})
    path = onnx_file(tmp_path / "p.onnx", nodes, constants, {"x": [1, 50]}, {"action": [1, ROBOT.nj]})
    law, session = Policy(Network.of_onnx(path), task), runtime.InferenceSession(str(path))
    kernel, (source, _) = law.kernel(ROBOT), law.to_c(ROBOT, tmp_path / "policy")
    library = tmp_path / "policy.so"
    flags = ["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-std=c99"]
    subprocess.run(["gcc", *flags, "-o", library, source, "-lm"], check=True)
    function, nj = ctypes.CDLL(str(library)).policy, ROBOT.nj
    command, memory, expected = np.array([0.5, 0.0, 0.1]), np.zeros(2 * nj), np.zeros(2 * nj)
    for k in range(25):  # at 500 Hz: an action in every tenth call
        q = np.concatenate([[1.0, 0.0, 0.0, 0.0], RANDOM.normal(size=3), task.posture + 0.3 * RANDOM.normal(size=nj)])
        given = [np.array(k * 0.002), q, RANDOM.normal(size=ROBOT.nv), memory.copy(), command]
        torque = np.empty(nj)
        results = [memory, torque]
        assert function(*(ctypes.c_void_p(x.ctypes.data) for x in (*given, *results))) == 0
        for x, y in zip(results, kernel(*given), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
        if k % 10 == 0:
            seen = task.observed(*given[1:3], expected[:nj], expected[nj:], command, k // 10).astype(np.float32)
            expected = np.concatenate([session.run(None, {"x": seen[None]})[0][0], expected[:nj]])
        np.testing.assert_allclose(memory, expected, atol=2e-5)  # single precision of the reference, over two layers
        np.testing.assert_allclose(torque, task.kp * (task.targets(memory[:nj]) - q[7:]) - task.kd * given[2][6:])


def test_what_does_not_fit_is_refused(tmp_path):
    task = environments.velocity(ROBOT)
    for network, given, words in ((None, task, "network must be"), (np.tanh, ROBOT, "task has no period")):
        with pytest.raises(ArgumentError, match=words):
            Policy(network, given)
    with pytest.raises(ShapeError, match="layer 1"):
        Network.of_layers([layers(4, 5)[0], layers(6, 2)[0]])
    with pytest.raises(ShapeError, match="observation of 47"):
        Policy(Network.of_layers(layers(47, 8, ROBOT.nj)), task).start(
            ROBOT, None, *Policy(np.tanh, task).initial_state(ROBOT)
        )
    with pytest.raises(ShapeError, match="actions"):
        Policy(Network.of_layers(layers(50, 8, 3)), task).start(
            ROBOT, None, *Policy(np.tanh, task).initial_state(ROBOT)
        )
    pytest.importorskip("onnx", reason="onnx, of the extra rl, is not installed")
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(DefinitionError, match=r"broken\.onnx"):
        Network.of_onnx(tmp_path / "broken.onnx")
    blind = remembering(task).changed(
        memory={"steps": environments.Memory(lambda s: 0.0, lambda s: s.feet.forces[0, 2])}
    )
    with pytest.raises(DefinitionError, match="does not measure feet"):
        Policy(np.tanh, blind).start(ROBOT, None, *Policy(np.tanh, task).initial_state(ROBOT))
    seeing = task.changed(observations={"actor": {"forces": environments.Observation(environments.terms.foot_forces)}})
    with pytest.raises(DefinitionError, match="does not measure feet"):
        seeing.observed(*Policy(np.tanh, task).initial_state(ROBOT), np.zeros(12), np.zeros(12), np.zeros(3), 0.0)
