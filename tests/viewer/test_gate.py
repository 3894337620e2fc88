"""Who may open the viewer: names of the machine, origins of pages, and the token, by requests and in the browser."""

import contextlib
import http
import socket
import urllib.error
import urllib.request
import warnings

import pytest

import legged
import robots
from legged.errors import ArgumentError, MissingError, SimulationWarning
from legged.viewer import gate

viser = pytest.importorskip("viser", reason="viser, of the extra view, is not installed")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")


@pytest.fixture(scope="module")
def viewer():
    opened = legged.view(robots.chain(1), port=0, wait=False)
    yield opened
    opened.stop()


def status(address, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=20.0) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def connected(address, origin=None, **headers):
    """Return whether a socket of the page is accepted and sends the scene."""
    protocol = [f"viser-v{viser.__version__}"]
    try:
        with client.connect(
            address.replace("http", "ws", 1), origin=origin, subprotocols=protocol, additional_headers=headers
        ) as socket:
            return len(socket.recv(timeout=20.0)) > 0
    except exceptions.InvalidStatus as error:
        assert error.response.status_code == http.HTTPStatus.FORBIDDEN
        return False


def test_the_address_has_a_token_without_which_nothing_is_sent(viewer):
    root = viewer.address.rsplit("/", 2)[0]
    token = viewer.address.rsplit("/", 2)[1]
    assert len(token) >= 16 and viewer.address in viewer._repr_html_()
    assert status(viewer.address)[0] == 200 and connected(viewer.address)
    for address in (root, f"{root}/{token[:-1]}/", f"{root}/x{token}/", f"{root}/?{token}", f"{root}/%2e%2e/{token}/"):
        assert status(address)[0] == 403
        assert not connected(address)
    assert b"open the whole address that legged.view printed" in status(root)[1]
    with legged_viewer() as other:
        assert other != token  # each viewer has its own


class legged_viewer:
    def __enter__(self):
        self._viewer = legged.view(robots.chain(1), port=0, wait=False)
        return self._viewer.address.rsplit("/", 2)[1]

    def __exit__(self, *error):
        self._viewer.stop()


def test_pages_of_other_sites_are_refused(viewer):
    root = viewer.address.rsplit("/", 2)[0]
    for origin in ("http://evil.example", "null", f"{root}0", root.replace("localhost", "localhost.evil.example")):
        assert status(viewer.address, Origin=origin)[0] == 403
        assert not connected(viewer.address, origin)
    assert connected(viewer.address, root) and status(viewer.address, Origin=root)[0] == 200
    assert connected(viewer.address.replace("localhost", "127.0.0.1"), root.replace("localhost", "127.0.0.1"))


def test_names_that_lead_here_from_elsewhere_are_refused(viewer):
    """A site can direct its own name to this machine; its pages then have the same origin as the viewer."""
    for host in ("evil.example:8500", "evil.example", "localhost.evil.example:8500", "127.0.0.1.evil.example", "", "["):
        assert status(viewer.address, Host=host)[0] in (400, 403)
    for host in ("localhost:9999", "LOCALHOST:8500", "127.0.0.1:80", "[::1]:8500"):  # as of a tunnel
        assert status(viewer.address, Host=host)[0] == 200


def test_a_token_can_be_chosen_or_left_out():
    for token, end in (("secret", "/secret/"), ("", "")):
        viewer = legged.view(robots.chain(1), port=0, wait=False, token=token)
        try:
            assert viewer.address.removeprefix("http://localhost:").lstrip("0123456789") == end
            assert status(viewer.address)[0] == 200 and connected(viewer.address)
            assert not connected(viewer.address, "http://evil.example")
        finally:
            viewer.stop()
    with pytest.raises(ArgumentError, match="token must consist of letters, digits"):
        legged.view(robots.chain(1), token="a/b")


def test_other_machines_are_let_in_with_a_warning():
    with pytest.warns(SimulationWarning, match=r"listens at 0\.0\.0\.0, where other machines reach it"):
        viewer = legged.view(robots.chain(1), host="0.0.0.0", port=0, wait=False)
    try:
        assert status(viewer.address, Host="192.168.1.7:8560")[0] == 200
        assert status(viewer.address, Host="evil.example")[0] == 403
        assert status(viewer.address.rsplit("/", 2)[0], Host="192.168.1.7:8560")[0] == 403
    finally:
        viewer.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gate.check_host("127.0.0.1")


@pytest.mark.parametrize("host", ["198.51.100.7", "no such host", "x" * 300])
def test_hosts_of_other_machines_are_refused(host):
    with pytest.raises(ArgumentError, match=r"the viewer cannot listen at host .*; give 127\.0\.0\.1"):
        legged.view(robots.chain(1), host=host, wait=False)


def test_a_connection_that_outlives_its_viewer_is_closed_without_an_answer():
    """A browser that opened it in advance then connects to the viewer that listens at the same port afterwards."""
    first = legged.view(robots.chain(1), port=0, wait=False)
    port = first.server.get_port()
    with socket.create_connection(("127.0.0.1", port), timeout=20.0) as early:
        assert status(first.address)[0] == 200  # the server has accepted the earlier connection too
        first.stop()
        second = legged.view(robots.chain(1), port=port, wait=False)
        try:
            assert second.server.get_port() == port
            path = second.address.partition(f":{port}")[2]
            early.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            with contextlib.suppress(ConnectionResetError):
                assert early.recv(100) == b""
            assert status(second.address)[0] == 200
        finally:
            second.stop()


def test_a_server_that_cannot_be_guarded_is_refused():
    with (
        pytest.raises(MissingError, match="its requests cannot be checked in version"),
        gate.guarded(gate.Gate("127.0.0.1", "x")),
    ):
        pass
