"""Runs: inputs, contents, early ends, saving and loading."""

import csv
import dataclasses
import importlib
import io
import re
import sys
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import legged
import robots
from legged.errors import (
    FileError,
    LeggedError,
    MissingError,
    NotFiniteError,
    ShapeError,
    SimulationError,
    TraceError,
    UnknownNameError,
)
from legged.ground import (
    BristleFriction,
    Flat,
    Ground,
    HeightMap,
    KelvinVoigt,
    Slope,
    Stairs,
    paper_ground,
    realistic_ground,
)
from legged.ground.ground import contact_wrenches
from legged.simulation import Fall, Push, Run, RungeKutta4, SemiImplicitEuler, simulate
from legged.simulation.plots import animate, joints_figure, save_figures, snapshot
from legged.simulation.results import run_files
from legged.simulation.results.stick_figure import drawing_of, ground_lines, ground_surface
from legged.simulation.results.summary import joint_error


@pytest.fixture(scope="module")
def robot():
    return robots.spatial_quadruped()


def standing(robot, height=0.6):
    q = robot.neutral()
    q[6] = height
    return q


class Servo:
    """Holds the joints, with an integrator of the error as memory and references that switch at 0.1 s and 0.2 s."""

    def __init__(self, kp=200.0, ki=50.0, kd=8.0):
        self.gains = kp, ki, kd

    def start(self, robot, ground, q, v):
        self.nq, self.nv = robot.base.nq, robot.base.nv
        return np.zeros(robot.nj)

    def reference(self, t, phase):
        n = 12
        return np.full(n, 0.02) * phase, np.zeros(n), np.zeros(n)

    def torque(self, t, phase, q, v, wrenches, memory):
        kp, ki, kd = self.gains
        error = self.reference(t, phase)[0] - q[self.nq :]
        return kp * error + ki * memory - kd * v[self.nv :]

    def rate(self, t, phase, q, v, wrenches, memory):
        return self.reference(t, phase)[0] - q[self.nq :]

    def switches(self, until):
        return [0.1, 0.2]


@pytest.fixture(scope="module")
def run(robot):
    return simulate(robot, Servo(), until=0.3, q=standing(robot), ground=realistic_ground(robot))


def test_run_has_everything_at_every_sample(robot, run):
    n = 31
    assert len(run) == n
    np.testing.assert_allclose(run.times, np.linspace(0.0, 0.3, n))
    assert run.q.shape == (n, robot.nq)
    assert run.v.shape == run.vdot.shape == run.tau.shape == (n, robot.nv)
    assert run.joints.reference.shape == run.memory.shape == run.joint_tau.shape == run.joint_positions.shape == (n, 12)
    assert run.contacts.points.shape == run.contacts.forces.shape == (n, 4, 3)
    assert run.contacts.memory.shape == (n, 8)
    assert run.base.rotation.shape == (n, 3, 3)
    assert run.backend == "compiled closed loop"
    assert run.duration == pytest.approx(0.3)
    assert dataclasses.replace(run, times=run.times + 2.0).duration == pytest.approx(0.3)
    assert run.ended == ""
    assert run.phases[[0, 9, 10, 20, 30]].tolist() == [0, 0, 1, 2, 2]
    for k in (0, 15, 30):
        points, _ = legged.point_motion(robot, run.q[k], run.v[k], [(c.link, c.position) for c in robot.contacts])
        np.testing.assert_allclose(run.contacts.points[k], points, atol=1e-12)
        assert run.energy.kinetic[k] == pytest.approx(legged.kinetic_energy(robot, run.q[k], run.v[k]))
    assert np.all(run.tau[:, :6] == 0.0)


def test_accelerations_are_those_of_torques_and_contact_forces(robot, run):
    for k in (0, 15, 30):
        wrenches = contact_wrenches(robot, run.q[k], run.contacts.forces[k])
        expected = legged.forward_dynamics(robot, run.q[k], run.v[k], run.tau[k], wrenches)
        np.testing.assert_allclose(run.vdot[k], expected, atol=1e-9 * (1.0 + np.abs(expected).max()))


def test_accelerations_tell_the_push(robot):
    """What moves the base of a robot in free flight is the push alone."""
    push = Push("trunk", (robot.mass * 0.3, 0.0, 0.0), at=0.1, duration=0.1)  # [N s], [s], [s]
    run = simulate(robot, until=0.2, q=standing(robot), pushes=[push])
    for k in (5, 13, 15, 18):
        outside = legged.inverse_dynamics(robot, run.q[k], run.v[k], run.vdot[k])[3:6]
        np.testing.assert_allclose(run.base.rotation[k] @ outside, push.force(run.times[k]), atol=1e-8)


def test_the_joint_error_is_the_largest_difference_to_the_reference_and_zero_without_one(robot, run):
    errors = np.abs(run.joint_positions - run.joints.reference).max(axis=1)
    assert errors.max() > 0.0
    np.testing.assert_array_equal(joint_error(run), errors)
    free = simulate(robot, until=0.02, q=standing(robot, 2.0))
    assert joint_error(free).tolist() == [0.0] * len(free)


def test_joints_and_contacts_are_found_by_name(robot, run):
    knee, at = run.joint("leg2_knee"), robot.joint("leg2_knee")
    np.testing.assert_array_equal(knee.position, run.q[:, at.q.start])
    np.testing.assert_array_equal(knee.velocity, run.v[:, at.v.start])
    np.testing.assert_array_equal(knee.torque, run.tau[:, at.v.start])
    np.testing.assert_array_equal(knee.reference, run.joints.reference[:, at.q.start - 7])
    assert run.joint("leg3_hip").position.shape == run.joint("leg3_hip").reference.shape == (31, 2)
    foot = run.contact("leg4_foot")
    np.testing.assert_array_equal(foot.position, run.contacts.points[:, 3])
    np.testing.assert_array_equal(foot.force, run.contacts.forces[:, 3])
    with pytest.raises(UnknownNameError, match="did you mean 'leg1_knee'"):
        run.joint("leg1_kne")


def test_base_angles_give_back_the_rotation(robot):
    q = robot.neutral()
    rng = np.random.default_rng(1)
    q[:4] = rng.normal(size=4)
    q[:4] /= np.linalg.norm(q[:4])
    run = simulate(robot, until=0.02, q=q)
    from legged.rotations import euler_matrix

    for sequence in ("xyz", "zyx", "zxz"):
        turned = euler_matrix(sequence, run.base.angles(sequence)[1])
        np.testing.assert_allclose(turned, run.base.rotation[1], atol=1e-12)


def leaves(record, prefix=""):
    """Yield (name, value) of the fields of a run and of its groups."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name == "model":
            yield "model", value and value.to_json()
        elif dataclasses.is_dataclass(value):
            yield from leaves(value, f"{field.name}.")
        else:
            yield prefix + field.name, value


def test_saved_run_comes_back_the_same(run, tmp_path):
    again = Run.load(run.save(tmp_path / "run"))
    for (name, one), (_, two) in zip(leaves(run), leaves(again), strict=True):
        assert type(one) is type(two), name
        np.testing.assert_array_equal(one, two, err_msg=name)
    assert again.energy_drift == run.energy_drift
    assert repr(again) == repr(run)


def test_files_of_the_previous_format_are_read():
    """The file holds 0.02 s of free fall of the planar biped, written before the arrays of a run were grouped."""
    run = Run.load(Path(__file__).parent / "data" / "run_format_1.npz")
    assert repr(run) == "<Run of 'planar biped': 0.02 s, 3 samples, compiled closed loop>"
    assert run.joints.names == ("a_hip", "a_knee", "a_ankle", "b_hip", "b_knee", "b_ankle")
    assert run.base.position[-1, 2] == pytest.approx(-0.5 * 9.81 * 0.02**2, rel=1e-4)  # [m], the base barely rotates
    assert run.contacts.points.shape == run.contacts.forces.shape == (3, len(run.contacts.names), 3)
    assert run.energy.drift < 1e-5  # [J]
    assert run.figure.robot_nodes.shape == run.figure.nodes.shape


def changed(run, folder, **arrays):
    """Return the path of a saved run with some arrays replaced, or removed for None."""
    path = run.save(folder / "run")
    with np.load(path) as file:
        stored = {name: file[name] for name in file.files} | arrays
    np.savez(path, **{name: array for name, array in stored.items() if array is not None})
    return path


def test_files_contain_the_fields_of_a_run_and_a_version(run, tmp_path):
    assert sorted(run_files.FIELDS) == sorted(name for name, _ in leaves(run))
    with np.load(run.save(tmp_path / "run")) as file:
        assert int(file["version"]) == run_files.VERSION
    assert repr(Run.load(changed(run, tmp_path, version=None))) == repr(run)  # before versions were written
    with pytest.raises(FileError, match="is a run of layout version 99; this version of the toolkit reads 1 to 7"):
        Run.load(changed(run, tmp_path, version=np.array(99)))


def test_files_of_version_1_are_read(run, tmp_path):
    """Written by hand with the names of version 1, which had no version."""
    with np.load(run.save(tmp_path / "run")) as file:
        stored = {old: file[new] for old, new in zip(run_files._VERSION_1.split(), run_files.FIELDS, strict=False)}
    assert {"engine", "steps", "body_q", "skeleton"} < set(stored)
    np.savez(tmp_path / "old.npz", **stored)
    again = Run.load(tmp_path / "old.npz")
    later = set(run_files._CONTACTS)
    assert again.model is None and again.ground.surface.shape == (0, 0, 3)
    for (name, one), (_, two) in zip(leaves(run), leaves(again), strict=True):
        if name in ("model", "ground.surface"):
            continue
        np.testing.assert_array_equal(np.full_like(one, np.nan) if name in later else one, two, err_msg=name)


def test_damaged_model_is_named(run, tmp_path):
    with pytest.raises(FileError, match="is a damaged run: its model cannot be read"):
        Run.load(changed(run, tmp_path, model=np.array('{"robot": {}}')))


def test_surface_of_the_ground_follows_the_terrain():
    nodes = np.array([[[0.0, -0.2, 0.4], [0.3, 0.2, 0.0]], [[1.0, -0.2, 0.4], [1.3, 0.2, 0.0]]])
    flat, slope = (ground_surface(legged.Rigid(terrain=t), nodes) for t in (Flat(0.2), Slope(0.1)))
    assert flat.shape == slope.shape == (2, 2, 3)
    assert (flat[..., 2] == 0.2).all() and np.ptp(slope[..., 2]) > 0.1
    stairs, heights = Stairs((0.5,), (0.1,)), HeightMap(np.random.default_rng(1).random((9, 9)), 0.25)
    for terrain in (stairs, heights):
        grid = ground_surface(legged.Rigid(terrain=terrain), nodes)
        np.testing.assert_allclose(grid[..., 2], terrain.height(grid[..., 0], grid[..., 1]), atol=1e-12)
        assert grid[..., :2].reshape(-1, 2).min(axis=0).max() < nodes[..., :2].reshape(-1, 2).min(axis=0).min()
    assert ground_surface(legged.Rigid(terrain=stairs), nodes).shape == (4, 2, 3)  # the ends of one ramp
    plateau = HeightMap(np.zeros((9, 9)), 0.25)
    assert max(ground_surface(legged.Rigid(terrain=plateau), 10.0 * nodes).shape) == 120
    assert ground_surface(None, nodes).size == 0


def test_tables_are_named_as_such(run, tmp_path):
    with pytest.raises(FileError, match=r"run\.csv: is a table .* load the \.npz file that run\.save wrote"):
        Run.load(run.to_csv(tmp_path / "run.csv"))


def test_loading_something_else_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=1)
    (tmp_path / "text.npz").write_text("no archive")
    np.save(tmp_path / "one.npy", np.zeros(3))
    for name, words in {
        "other.npz": "no saved run: it has no robot",
        "text.npz": "not a zip",
        "one.npy": "zip",
    }.items():
        with pytest.raises(FileError, match=words):
            Run.load(tmp_path / name)
    with pytest.raises(FileError, match="cannot be read"):
        Run.load(tmp_path / "missing.npz")


BAD = (
    ({"q": np.full((3, 18), np.nan)}, "'q' must have the shape"),
    ({"tau": None}, "it has no tau"),
    ({"robot": np.array(3)}, "'robot' must hold text entries"),
    ({"times": np.array(["a", "b"])}, "'times' must hold real entries"),
    ({"times": np.array([object()])}, "damaged run|more than the file has"),
    ({"figure.edges": np.full((12, 2), 99)}, "indices from 0 to"),
    ({"joints.q_range": np.full((8, 2), -1)}, "indices from 0 to"),
    ({"version": np.array([1.5])}, "its version is not a whole number"),
)


@pytest.mark.parametrize(("arrays", "words"), BAD)
def test_wrong_arrays_are_refused_by_name(arrays, words, run, tmp_path):
    path = changed(run, tmp_path, **arrays)
    with pytest.raises(FileError, match=words):
        Run.load(path)


def test_numbers_that_are_not_finite_are_refused_except_missing_accelerations(run, tmp_path):
    vdot = run.vdot.copy()
    vdot[0] = np.nan
    assert np.isnan(Run.load(changed(run, tmp_path, vdot=vdot)).vdot[0]).all()
    q = run.q.copy()
    q[0, 0] = np.nan
    with pytest.raises(FileError, match="'q' holds a number that is not finite"):
        Run.load(changed(run, tmp_path, q=q))


@pytest.mark.parametrize("shape", [(10**12,), (10**9, 10**9), (3,)])
def test_forged_headers_allocate_nothing(shape, run, tmp_path):
    path = run.save(tmp_path / "run")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["times.npy"] = header.getvalue() + bytes(16)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(FileError, match=r"announces|does not have"):
        Run.load(path)


def test_csv_holds_the_numbers_in_full(run, tmp_path):
    with run.to_csv(tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(run)
    assert float(rows[7]["t"]) == run.times[7]
    assert float(rows[7]["base_q[3]"]) == run.q[7, 3]
    assert float(rows[7]["leg2_knee_tau"]) == run.joint("leg2_knee").torque[7]
    assert float(rows[7]["leg3_hip_v[1]"]) == run.joint("leg3_hip").velocity[7, 1]
    assert float(rows[7]["leg2_knee_reference"]) == run.joint("leg2_knee").reference[7]
    assert float(rows[7]["base_angle_y"]) == run.base.angles()[7, 1]
    assert float(rows[7]["leg2_foot_fz"]) == run.contacts.forces[7, 1, 2]
    assert float(rows[7]["contact_work"]) == run.energy.contact_work[7]


def test_a_data_frame_has_the_columns_of_the_csv_file(run, tmp_path, monkeypatch):
    class Pandas:
        DataFrame = dict

    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    frame = run.to_pandas()
    with run.to_csv(tmp_path / "run.csv").open() as file:
        assert list(frame) == next(csv.reader(file))
    assert np.array_equal(frame["leg1_knee_q"], run.joint("leg1_knee").position)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingError, match="pip install pandas"):
        run.to_pandas()


@pytest.mark.parametrize("ending", ["", "_joint"])
def test_the_figure_of_29_joints_has_axes_of_a_readable_size(ending):
    names = {f"joint{k}": f"part{k}{ending}" for k in range(1, 30)}
    chain = robots.chain(29, base=legged.FixedBase()).edit().rename(joints=names).build()
    run = simulate(chain, until=0.002, integrator=SemiImplicitEuler(step=1e-3), sample=1e-3)
    figure = run.plot()["joints"]
    heights = [ax.get_position().height * figure.get_figheight() for ax in figure.axes]
    assert min(heights) > 1.0  # [inch]
    curves = [[line.get_label() for line in ax.lines] for ax in figure.axes]
    assert max(map(len, curves)) <= 8 and [name for part in curves for name in part] == list(names.values())


def test_pandas_reads_the_csv_file_as_the_data_frame(run, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = run.to_pandas()
    assert len(frame) == len(run) and (frame["t"] == run.times).all()
    read = pandas.read_csv(run.to_csv(tmp_path / "run.csv"))
    pandas.testing.assert_frame_equal(read, frame, rtol=1e-15, check_dtype=False)  # fast parsers round the last bit


def test_mp4_has_the_frames_of_the_run(run, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    frames, seconds = ffmpeg.count_frames_and_secs(str(animate(run, tmp_path / "run.mp4", fps=10.0)))
    assert (frames, seconds) == (4, pytest.approx(0.4))


def test_mp4_needs_ffmpeg(run, tmp_path, monkeypatch):
    monkeypatch.setattr("legged.simulation.plots.animation.FFMpegWriter.isAvailable", lambda: False)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingError, match="needs the program ffmpeg"):
        animate(run, tmp_path / "run.mp4")


def test_figures_and_animations_are_written(run, tmp_path):
    from PIL import Image

    paths = save_figures(run, tmp_path / "figures")
    assert {path.name for path in paths} == {"trunk.png", "joints.png", "energy.png", "contact.png"}
    assert save_figures(run, tmp_path / "more", "a_")[0].name == "a_trunk.png"
    with Image.open(animate(run, tmp_path / "run.gif", fps=10.0)) as movie:
        assert movie.n_frames == 4  # pyright: ignore[reportAttributeAccessIssue]
    page = animate(run, tmp_path / "run.html").read_text()
    assert '"title":"spatial quadruped"' in page
    assert "http" not in page.replace("http-equiv", "")
    colors = re.findall("#[0-9a-f]{6}", page.partition('"colors":[')[2].partition("]")[0])
    dark = run.figure.modules == 0  # the trunk
    assert {color for color, base in zip(colors, dark, strict=True) if base} == {"#1f3d66"}
    assert "#1f3d66" not in {color for color, base in zip(colors, dark, strict=True) if not base}
    snapshot(run, 0.1).savefig(tmp_path / "frame.png")
    joints_figure(run, ["leg1_knee"], title="one knee").savefig(tmp_path / "knee.png")
    with pytest.raises(LeggedError, match=r"a \.gif, an \.mp4 or an \.html"):
        animate(run, tmp_path / "run.mov")


@pytest.mark.parametrize("name", ["planar_biped", "hexapod", "spatial_quadruped", "planar_hopper", "chain"])
def test_stick_figure_is_in_one_piece_and_shows_every_link(name):
    robot = robots.chain(4) if name == "chain" else getattr(robots, name)()
    points, edges, modules, is_shape = drawing_of(robot)[:4]
    assert nx.is_connected(sticks(robot))
    assert {points[end][0] for end in edges[~is_shape].flat} == set(range(len(robot.links)))
    assert set(modules) == {module.index for module in robot.modules}


def sticks(robot):
    """Return the stick figure with all joints at zero as a graph of places."""
    drawing = drawing_of(robot)
    places = np.round(legged.point_positions(robot, robot.neutral(), drawing.points), 9) + 0.0
    return nx.Graph((tuple(places[a]), tuple(places[b])) for a, b in drawing.edges[~drawing.is_shape])


def humanoid():
    """Return a robot as humanoids in files: a light root, a trunk fixed to it, the waist at the trunk's origin."""
    root = legged.Link("root", legged.sphere_inertia(1e-6, 1.0))
    trunk = legged.Link(
        "trunk", legged.box_inertia(10.0, (0.2, 0.3, 0.4), (0.0, 0.0, 0.1)), shapes=[legged.Box((0.2, 0.3, 0.4))]
    )
    imu = legged.Link("imu", legged.point_mass(0.01, (0.001, 0.0, 0.0)))
    builder = legged.RobotBuilder("humanoid", root).add(legged.Fixed("weld"), trunk, to="root")
    builder.add(legged.Fixed("screws"), imu, to="trunk", at=(0.3, 0.0, 0.0))
    for name, at in {"torso": (0.0, 0.0, 0.0), "left": (0.0, 0.1, -0.1), "right": (0.0, -0.1, -0.1)}.items():
        limb = legged.Link(name, legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.3)))
        builder.add(legged.Revolute(f"to {name}", "y"), limb, to="trunk", at=at)
    return builder.build()


def test_stick_figure_connects_joints_at_an_origin_and_draws_no_rod_for_light_links():
    figure = sticks(humanoid())
    assert nx.is_connected(figure)
    assert max(np.abs(place).max() for place in figure) < 0.31  # [m]: ends of limbs; a rod of the root has 1.1 m
    assert (0.3, 0.0, 0.0) not in figure


def test_nodes_of_shapes_follow_their_link():
    robot = humanoid()
    q = np.concatenate([legged.rotations.quaternion_exp(np.array([0.3, -0.2, 0.5])), [1.0, 2.0, 3.0], np.zeros(3)])
    drawing = drawing_of(robot)
    nodes = drawing.nodes(legged.point_positions(robot, q, drawing.points)[None], np.zeros((1, 0, 7)))[0]
    corners = legged.point_positions(robot, q, [("trunk", r) for r in legged.Box((0.2, 0.3, 0.4)).corners])
    np.testing.assert_allclose(nodes[drawing.edges[drawing.is_shape].min() :], corners, atol=1e-14)


def test_lines_on_stairs_bend_at_the_edges_of_the_treads():
    stairs = Stairs(edges=(0.31, 0.62), rises=(0.1, 0.05), ramp=0.01, heading=0.3)
    nodes = np.array([[[0.0, 0.0, 0.0], [1.0, 0.2, 0.5]]])
    lines, _ = ground_lines(realistic_ground(robots.planar_biped(), terrain=stairs), nodes)
    heights = lines[..., 2]
    along = np.cos(0.3) * lines[..., 0] + np.sin(0.3) * lines[..., 1]
    for place in along:
        if np.ptp(place) > 1.0:  # [m]: it crosses both edges, and has no point inside of a ramp
            assert all(np.abs(place - edge - side).min() < 1e-9 for edge in stairs.edges for side in (-0.005, 0.005))
    treads = [line[0] for line, place in zip(heights, along, strict=True) if np.ptp(place) < 1e-9]
    assert {round(height, 9) for height in treads} == {0.0, 0.1, 0.15}


# Engines.


@pytest.mark.parametrize("integrator", [None, SemiImplicitEuler(1e-3), RungeKutta4(1e-3)])
def test_compiled_and_piecewise_engines_give_the_same_run(robot, integrator):
    ground = paper_ground(robot)
    options = {"until": 0.25, "q": standing(robot), "ground": ground, "integrator": integrator}
    options["pushes"] = [Push("trunk", (0.5, 0.2, 0.0), at=0.05)]
    one, two = (simulate(robot, Servo(), compiled=c, **options) for c in (True, False))
    assert one.backend == "compiled closed loop"
    assert two.backend.startswith("compiled robot, controller in Python")
    np.testing.assert_allclose(one.q, two.q, atol=1e-9 if integrator else 1e-5)
    np.testing.assert_allclose(one.energy.contact_work, two.energy.contact_work, atol=1e-9 if integrator else 1e-5)


def test_controller_that_branches_runs_in_python_and_says_why(robot):
    def controller(t, q, v, wrenches):
        return -5.0 * v[6:] if t > 0.05 else np.zeros(12)

    run = simulate(robot, controller, until=0.1, q=standing(robot))
    assert "controller in Python" in run.backend
    assert "legged.where" in run.backend
    with pytest.raises(TraceError, match="cannot be compiled"):
        simulate(robot, controller, until=0.1, q=standing(robot), compiled=True)


def test_controller_that_hides_a_state_is_not_compiled(robot):
    class Counter:
        def __init__(self):
            self.calls = 0

        def __call__(self, t, q, v, wrenches):
            self.calls += 1
            return np.full(12, 1e-3 * self.calls)

    assert (
        "keep a state"
        in simulate(robot, Counter(), until=0.02, q=standing(robot), integrator=RungeKutta4(1e-3)).backend
    )


@pytest.mark.parametrize("integrator", [None, RungeKutta4(1e-2), SemiImplicitEuler(1e-2)])
def test_controller_in_python_may_use_the_step_as_an_index(robot, integrator):
    class Table(Servo):
        def torque(self, t, phase, q, v, wrenches, memory):
            return np.full(12, [0.0, 0.1, 0.2][phase])

    run = simulate(robot, Table(), until=0.3, integrator=integrator)
    np.testing.assert_array_equal(run.joint_tau[:, 0], 0.1 * run.phases)


def test_ground_that_cannot_be_traced_still_works(robot):
    class Trampoline(Ground):
        def forces(self, points, velocities, memory=None):
            forces = np.zeros((len(points), 3))
            for i, point in enumerate(points):
                if float(point[2]) < 0.0:
                    forces[i, 2] = -3e3 * float(point[2])
            return forces, memory

    ground = Trampoline(KelvinVoigt(1.0, 0.0), BristleFriction(0.5, 1.0, 1.0))
    run = simulate(robot, Servo(), until=0.1, q=standing(robot, 0.595), ground=ground)
    assert run.ground_force[-1, 2] > 10.0
    assert "controller in Python" in run.backend


# What goes wrong, in words.


def test_fall_ends_the_run_and_keeps_it():
    robot = robots.planar_biped()
    q = robot.neutral()
    q[:3] = 0.15, 0.0, 1.25
    with pytest.raises(
        SimulationError, match=r"the trunk (leaned over|fell below).* at t = \d\.\d+ s; the run"
    ) as error:
        simulate(robot, lambda t, q, v, w: -5.0 * v[3:], until=5.0, q=q, ground=realistic_ground(robot))
    run = error.value.run
    assert isinstance(run, Run)
    assert 0.1 < run.duration < 5.0
    assert run.ended and run.ended in str(error.value)
    assert run.energy_drift < 1e-3
    assert run.q.shape == (len(run), robot.nq)


def test_fall_can_be_anything_or_nothing(robot):
    options = {"until": 0.2, "q": standing(robot, 1.0), "ground": realistic_ground(robot)}
    with pytest.raises(SimulationError, match=r"too fast at t = 0\.110 s"):
        simulate(robot, fall=lambda t, q, v: "too fast" if v[5] < -1.0 else None, **options)
    with pytest.raises(SimulationError, match=r"the trunk fell below 0\.95 m at t = 0\.110 s"):
        simulate(robot, fall=Fall(height=0.95), **options)
    assert simulate(robot, fall=False, **options).duration == pytest.approx(0.2)
    with pytest.raises(SimulationError, match=r"fell below 0\.95 m at t = 0\.110 s"):  # without ground from z = 0
        simulate(robot, fall=Fall(height=0.95), **{**options, "ground": None})


def test_height_counts_from_the_ground_below(robot):
    """On a slope, the height limit is relative to the ground below the robot."""
    ground = realistic_ground(robot, terrain=Slope(-0.5))
    v = np.zeros(robot.nv)
    v[3] = 3.0
    run = simulate(robot, until=0.25, q=standing(robot, 1.0), v=v, ground=ground, fall=Fall(height=0.95))
    assert run.base.position[-1, 2] < 0.7


def test_diverging_solution_ends_in_words(robot):
    """Springs far too stiff for the step."""
    with pytest.raises(SimulationError, match=r"diverged at t = .*; the run up to there is in error\.run") as error:
        simulate(
            robot,
            lambda t, q, v, w: -1e6 * q[7:],
            until=1.0,
            q=standing(robot) + np.r_[np.zeros(7), 0.1 * np.ones(12)],
            integrator=SemiImplicitEuler(1e-2),
        )
    assert np.isfinite(error.value.run.q).all()


def test_wrong_arguments_are_refused(robot):
    with pytest.raises(ShapeError, match=r"q must be \(19,\)"):
        simulate(robot, until=0.1, q=np.zeros(3))
    with pytest.raises(ShapeError, match="must have norm 1"):
        simulate(robot, until=0.1, q=np.zeros(19))
    with pytest.raises(NotFiniteError, match="v must be finite"):
        simulate(robot, until=0.1, v=np.full(18, np.nan))
    with pytest.raises(NotFiniteError, match="until must be a positive"):
        simulate(robot, until=0.0)
    with pytest.raises(
        ShapeError, match=r"must return \(12,\) joint torques or \(18,\) generalized forces, got shape \(5,\)"
    ):
        simulate(robot, lambda t, q, v, w: np.zeros(5), until=0.1)
    with pytest.raises(TypeError, match="controller must be an object with torque"):
        simulate(robot, 3.0, until=0.1)
    with pytest.raises(UnknownNameError, match="no link named 'trunc'"):
        simulate(robot, until=0.1, pushes=[Push("trunc", (1, 0, 0), at=0.0)])


def test_last_sample_is_at_the_end(robot):
    run = simulate(robot, until=0.105, sample=0.01)
    assert run.times[-1] == 0.105
    assert len(run) == 12
    assert simulate(robot, until=0.1, sample=1.0).times.tolist() == [0.0, 0.1]


def test_any_robot_runs_with_and_without_joints():
    brick = legged.RobotBuilder(
        "brick", legged.Link("brick", legged.box_inertia(2.0, (0.3, 0.2, 0.1)), {"c": (0, 0, -0.05)})
    ).build()
    q = brick.neutral()
    q[6] = 0.2
    run = simulate(brick, until=0.5, q=q, ground=realistic_ground(brick), fall=False)
    assert run.contacts.forces[..., 2].max() > 0.0
    assert run.joints.names == ()
    assert run.joint_tau.shape == (51, 0)
    arm = robots.chain(3, base=legged.FixedBase())
    assert simulate(arm, until=0.2).energy_drift < 1e-4


def test_initial_state_comes_from_the_controller(robot):
    class Placed(Servo):
        def initial_state(self, robot):
            return standing(robot, 0.9), np.r_[np.zeros(5), 1.0, np.zeros(12)]

    run = simulate(robot, Placed(), until=0.02)
    assert run.base.position[0, 2] == 0.9
    assert run.v[0, 5] == 1.0
    assert simulate(robot, Placed(), until=0.02, v=np.zeros(18)).v[0, 5] == 0.0


def test_progress_shows_on_stderr_when_asked(robot, capsys, monkeypatch):
    monkeypatch.setattr(importlib.import_module("legged.simulation.simulate"), "PROGRESS_DELAY", 0.0)
    simulate(robot, until=0.05, progress=True)
    assert "spatial quadruped" in capsys.readouterr().err
    simulate(robot, until=0.05)
    assert capsys.readouterr().err == ""
