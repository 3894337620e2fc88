"""Pages without a browser: packed arrays, size, contents, embedding, errors, and the bundle of the page's program."""

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import skip_without_page_program

import legged
import robots
from legged.errors import ArgumentError, FileError
from legged.simulation.plots import joints_figure
from legged.simulation.results.run_table import run_table
from legged.table import Table
from legged.viewer.curves import decimated, plots_of_run
from legged.viewer.motion import motion_of_run
from legged.viewer.page import Packer, framed, page_of
from legged.viewer.scene import scene_of_run

WEB = Path(legged.__file__).parent / "viewer/web"


def unpacked(entries, text):
    """Return the arrays of a packer, read as src/data.js does."""
    block, arrays_of_entries = zlib.decompress(base64.b64decode(text)), []
    for entry in entries:
        shape, start, kind = entry["shape"], entry["start"], entry["kind"]
        count = int(np.prod(shape))
        if kind != "quantized":
            arrays_of_entries.append(np.frombuffer(block, kind, count, start).reshape(shape))
            continue
        coded = np.frombuffer(block, np.uint16, count, start).reshape(-1, shape[0])
        codes = np.cumsum(coded, axis=1, dtype=np.uint16).T
        values = np.array(entry["low"]) + codes * np.array(entry["step"])
        arrays_of_entries.append(np.where(codes == 65535, np.nan, values).reshape(shape))
    return arrays_of_entries


def data_of(page):
    data = json.loads(re.search(r'id="page">(.*?)</script>', page, re.DOTALL)[1])
    text = re.search(r'id="arrays">(.*?)</script>', page, re.DOTALL)[1]
    return data, unpacked(data["arrays"], text)


def test_packed_arrays_return_within_the_tolerance():
    rng, packer = np.random.default_rng(1), Packer()
    values = rng.normal(size=(500, 4, 3)).cumsum(axis=0)
    values[7, 1], values[9:, 2, 0] = np.nan, 3.0
    wide, whole = 1e5 * rng.normal(size=(5, 2)), rng.integers(-1, 9, (6, 2))
    numbers = [packer.add(values, 1e-3), packer.add(wide, 1e-4), packer.add(whole, 1.0), packer.add(abs(whole))]
    arrays = unpacked(packer.entries, packer.text())
    kinds = [packer.entries[k]["kind"] for k in numbers]
    assert kinds == ["quantized", "float32", "int16", "uint32"]
    assert (np.isnan(arrays[0]) == np.isnan(values)).all()
    assert np.nanmax(abs(arrays[0] - values)) < 1e-3
    np.testing.assert_allclose(arrays[1], wide, rtol=1e-7)  # 32 bits
    assert (arrays[2] == whole).all() and (arrays[3] == abs(whole)).all()


def test_empty_and_constant_arrays_are_packed():
    packer = Packer()
    for values in (np.zeros((0, 3)), np.zeros((4, 0, 3)), np.full((3, 2), 7.5), np.full((3, 1), np.nan)):
        packer.add(values, 1e-3)
    arrays = unpacked(packer.entries, packer.text())
    assert [x.shape for x in arrays] == [(0, 3), (4, 0, 3), (3, 2), (3, 1)]
    assert (arrays[2] == 7.5).all() and np.isnan(arrays[3]).all()


def test_page_holds_the_motion_of_the_run(trot):
    data, arrays = data_of(page_of([trot]))
    (run,), motion = data["runs"], motion_of_run(scene_of_run(trot), trot)
    packed = {name: arrays[number] for name, number in run["motion"].items()}
    np.testing.assert_allclose(packed["times"], trot.times, atol=1e-6)
    np.testing.assert_allclose(packed["base"][:, None] + packed["positions"], motion.positions, atol=2e-4)
    alike = abs((packed["rotations"] * motion.rotations).sum(axis=2))
    np.testing.assert_allclose(alike, 1.0, atol=1e-4)  # twice the error of an entry
    assert (abs(np.diff(packed["rotations"], axis=0)) < 0.3).all()  # no quaternion changes its sign
    np.testing.assert_allclose(packed["forces"], trot.contacts.forces, atol=1e-3 * abs(trot.contacts.forces).max())
    assert (packed["support"] == motion.support).all()
    assert len(data["plots"]) >= 8
    drift = dict(data["tables"][0]["rows"])["energy drift"]
    assert drift.startswith(f"{trot.energy_drift:.1e} J") and drift.endswith("it does not matter")


def test_page_of_a_long_run_is_bounded(trot):
    data, arrays = data_of(page_of([trot], most=20))
    assert len(arrays[data["runs"][0]["motion"]["times"]]) == 20
    times, values = np.arange(1e5), np.zeros((100_000, 2))
    values[54_321, 1] = 7.0
    short, kept = decimated(times, values)
    assert len(short) <= 4000 and kept.max() == 7.0 and (np.diff(short) > 0.0).all()
    assert abs(short[kept[:, 1].argmax()] - 54_321) < 60


def test_runs_beside_each_other_share_meshes_and_axes(trot, walk):
    data, _ = data_of(page_of([trot, trot], ["one", "two"], beside=1.0))
    assert [run["offset"] for run in data["runs"]] == [[0, 0, 0], [0, -1, 0]]
    assert data["runs"][1]["opacity"] == 1.0
    assert [ground["offset"] for ground in data["grounds"]] == [[0, 0, 0], [0, -1, 0]]
    assert data["plots"][0]["labels"] == ["one: x", "one: y", "one: z", "two: x", "two: y", "two: z"]
    assert data_of(page_of([trot, walk]))[0]["runs"][1]["opacity"] < 1.0


def pictures_of(page):
    """Return the pictures of modules on a page as texts of SVG files."""
    return [base64.b64decode(text).decode() for text in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)]


def test_page_has_the_picture_of_the_modules_of_each_robot(trot, walk):
    (picture,) = pictures_of(page_of([trot, trot]))
    assert picture.startswith("<?xml") and "leg1_thigh" in picture  # names are comments beside their outlines
    assert len(pictures_of(page_of([trot, walk]))) == 2
    without = replace(trot, model=None)
    assert "Kinematic modules" not in page_of([without])


def test_page_names_no_address_and_saves_under_its_suffix(trot, tmp_path):
    path = trot.save_html(tmp_path / "new" / "trot")
    assert path == tmp_path / "new" / "trot.html"
    page = path.read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert len(page) < 1e6
    with pytest.raises(FileError, match="no name of a file"):
        legged.save_html(trot, "")
    with pytest.raises(FileError, match=r"suffix of another format; .* name it 'trot\.html'"):
        trot.save_html(tmp_path / "trot.npz")
    with pytest.raises(ArgumentError, match="samples must be 2 or more, got 1"):
        trot.save_html(tmp_path / "trot", samples=1)
    with pytest.raises(ArgumentError, match="a page shows runs"):
        legged.save_html([], tmp_path / "trot")


def test_run_shows_itself_in_a_notebook(trot):
    frame = trot._repr_html_()
    assert frame.startswith("<iframe srcdoc=") and frame.count("<") == 2  # the page is escaped
    assert framed("<p>") == '<iframe srcdoc="&lt;p&gt;" style="width: 100%; height: 560px; border: 0"></iframe>'


def test_robots_counts_and_tables_show_themselves_in_a_notebook():
    robot = robots.planar_biped()
    shown = robot._repr_html_()
    assert shown.count("<tr>") == 1 + len(robot.joints) and "planar biped: 7 links" in shown
    counts = legged.count(legged.inverse_dynamics, robot)
    assert f'<td style="text-align: right">{counts.multiplications}</td>' in counts._repr_html_()
    table = Table("a < b", ("", ""), (("x", "<1>"),), notes=("note",))
    cells = '<tr><td>x</td><td style="text-align: right">&lt;1&gt;</td></tr>'
    assert table._repr_html_() == f"<table><caption>a &lt; b</caption><tr></tr>{cells}</table><p>note</p>"


def test_curves_have_the_values_of_the_run(trot):
    plots = {plot.title: plot for plot in plots_of_run(trot)}
    forces = plots["vertical contact forces [N]"]
    assert forces.labels == (*trot.contacts.names, "total")
    np.testing.assert_array_equal(forces.values[:, -1], trot.ground_force[:, 2])
    knees = plots["knee [rad]"]
    names = [name for name in trot.joints.names if name.endswith("knee")]
    assert knees.labels == (*names, *(f"reference {name}" for name in names))
    np.testing.assert_array_equal(knees.values[:, 0], trot.joint(names[0]).position)


class Reference:
    """A controller without forces whose reference is 0.1 m and 0.2 rad."""

    def torque(self, t, phase, q, v, wrenches, memory):
        return 0.0 * q

    def reference(self, t, phase):
        return np.array([0.1, 0.2]), np.zeros(2), np.zeros(2)


def test_curves_of_sliding_joints_are_in_meters():
    body = legged.Inertia(1.0, (0.0, 0.0, -0.2), np.eye(3))
    builder = legged.RobotBuilder("crane", legged.Link("rail"), base=legged.FixedBase())
    builder.add(legged.Prismatic("slide", "x"), legged.Link("cart", body), to="rail")
    builder.add(legged.Revolute("hinge", "y"), legged.Link("bob", body), to="cart")
    run = legged.simulate(builder.build(), Reference(), until=0.02)
    titles = [plot.title for plot in plots_of_run(run)]
    assert {"slide [m]", "slide, force [N]", "hinge [rad]", "hinge, torque [N m]"} <= set(titles)
    axes = joints_figure(run).axes
    assert [ax.get_ylabel() for ax in axes] == ["slide [m]", "hinge [degree]"]
    assert dict(run_table(run).rows)["largest joint error"] == "0.1 m, 11 degrees"
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), run.joint("slide").position)


def test_each_run_needs_a_name(trot):
    with pytest.raises(ArgumentError, match="names must have one entry per run, 1, got 2"):
        page_of([trot], ["a", "b"])


def test_bundle_is_made_of_the_sources():
    skip_without_page_program()
    sources = sorted((WEB / "src").iterdir(), key=lambda path: path.name)
    content = b"".join(path.read_bytes() for path in (*sources, WEB / "package.json"))
    for name in ("replay.js", "replay.css"):
        digest = re.search(r"sources ([0-9a-f]{64})", (WEB / name).read_text(encoding="utf-8"))[1]
        assert digest == hashlib.sha256(content).hexdigest(), "run `make replay-page`"
        assert (WEB / name).stat().st_size < 1e6
