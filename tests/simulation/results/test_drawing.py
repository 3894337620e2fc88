"""Figures, animations and stick figures of runs."""

import pickle
import re
import sys

import networkx as nx
import numpy as np
import pytest

import legged
import robots
from legged.errors import (
    LeggedError,
    MissingError,
)
from legged.ground import (
    Flat,
    HeightMap,
    Slope,
    Stairs,
    realistic_ground,
)
from legged.simulation import SemiImplicitEuler, simulate
from legged.simulation.plots import animate, joints_figure, save_figures, snapshot
from legged.simulation.plots.figures import contact_figure
from legged.simulation.results.stick_figure import drawing_of, ground_lines, ground_surface
from tests.simulation.servo import standing


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
    lines, normal = ground_lines(None, nodes)
    assert not lines.size and normal.tolist() == [0.0, 0.0, 1.0]


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


def test_mp4_has_the_frames_of_the_run(run, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    frames, seconds = ffmpeg.count_frames_and_secs(str(animate(run, tmp_path / "run.mp4", fps=10.0)))
    assert (frames, seconds) == (4, pytest.approx(0.4))


def test_mp4_needs_ffmpeg(run, tmp_path, monkeypatch):
    monkeypatch.setattr("legged.simulation.plots.animation.FFMpegWriter.isAvailable", lambda: False)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingError, match="needs the program ffmpeg"):
        animate(run, tmp_path / "run.mp4")


def test_axes_of_contact_forces_without_their_peaks_say_so():
    robot = robots.planar_hopper()
    rest = robot.state(base_position=(0, 0, 5.0)).q
    run = simulate(
        robot, ground=realistic_ground(robot), q=rest, until=0.7, sample=1e-3, integrator=SemiImplicitEuler(1e-3)
    )
    run.contacts.forces[...] = 1.0
    assert not any(ax.texts for ax in contact_figure(run).axes)
    run.contacts.forces[0, 0] = 1e3
    assert all(ax.texts[0].get_text() == "without peaks" for ax in contact_figure(run).axes)


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
        animate(run, tmp_path / "new" / "run.mov")
    assert not (tmp_path / "new").exists()


def test_animations_need_positive_rates_and_samples(run, tmp_path):
    for options in ({"fps": 0.0}, {"speed": 0.0}, {"speed": -1.0}, {"fps": np.nan}):
        with pytest.raises(LeggedError, match=next(iter(options))):
            animate(run, tmp_path / "run.html", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["planar_biped", "hexapod", "spatial_quadruped", "planar_hopper", "chain"])
def test_stick_figure_is_in_one_piece_and_shows_every_link(name):
    robot = robots.chain(4) if name == "chain" else getattr(robots, name)()
    drawing = drawing_of(robot)
    links = [link for link, places in drawing.sticks for _ in places]
    assert nx.is_connected(sticks(robot))
    assert {links[end] for end in drawing.edges[~drawing.is_shape].flat} == set(range(len(robot.links)))
    assert set(drawing.modules) == {module.index for module in robot.modules}


def sticks(robot):
    """Return the stick figure with all joints at zero as a graph of places."""
    drawing = drawing_of(robot)
    rotations, origins = legged.link_poses(robot, robot.neutral())
    places = np.round(drawing.nodes(rotations[None], origins[None], np.zeros((1, 0, 7)))[0], 9) + 0.0
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


def test_pictures_are_computed_when_they_are_read_and_stored_without_the_ground(robot):
    class Local(Flat):
        """A terrain that cannot be pickled, as one of a user's script."""

    options = {"q": standing(robot), "until": 2e-3, "sample": 1e-3, "integrator": SemiImplicitEuler(1e-4)}
    run = simulate(robot, ground=realistic_ground(robot, terrain=Local()), **options)
    assert not {"figure", "ground"} & vars(run.picture).keys()
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.figure.nodes, run.figure.nodes)
    np.testing.assert_array_equal(again.ground.lines, run.ground.lines)
    assert len(run.figure.nodes) == 3 and not hasattr(again.picture, "surface")


def test_nodes_of_shapes_follow_their_link():
    robot = humanoid()
    q = np.concatenate([legged.rotations.quaternion_exp(np.array([0.3, -0.2, 0.5])), [1.0, 2.0, 3.0], np.zeros(3)])
    drawing = drawing_of(robot)
    rotations, origins = legged.link_poses(robot, q)
    nodes = drawing.nodes(rotations[None], origins[None], np.zeros((1, 0, 7)))[0]
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
