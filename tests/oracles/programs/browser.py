"""Chromium without a window, driven by the DevTools protocol: open a page, evaluate expressions, click, take pictures.

It records the messages of the console, uncaught errors and the requests of a page.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # needed by root in containers
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--hide-scrollbars",
)


class Browser:
    """A running browser with one page.

    Attributes:
        problems: Errors and warnings of the console, and uncaught errors.
        requests: Addresses that the page has asked for.
    """

    def __init__(self, width: int = 1200, height: int = 760):
        program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
        if program is None:
            pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
        client = pytest.importorskip("websockets.sync.client", reason="websockets, of the extra view, is not installed")
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        profile = [f"--user-data-dir={self._folder.name}", f"--window-size={width},{height}", "about:blank"]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([program, *_OPTIONS, *profile], **quiet)
        port_file = Path(self._folder.name) / "DevToolsActivePort"
        self._wait(lambda: port_file.is_file() and port_file.read_text().count("\n") == 1, 120.0, "the browser")
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60.0) as answer:
            target = next(page for page in json.load(answer) if page["type"] == "page")
        self._socket: Any = client.connect(target["webSocketDebuggerUrl"], max_size=None)
        self._number = 0
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def close(self) -> None:
        """End the browser."""
        self._socket.close()
        self._process.terminate()
        self._process.wait(10.0)
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a command of the DevTools protocol."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=60.0))
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message)

    def open(self, address: str, ready: str = "true", timeout: float = 120.0) -> None:
        """Open an address and wait until an expression holds."""
        self.call("Page.navigate", url=address)
        self.wait(ready, timeout)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str, timeout: float = 120.0) -> None:
        """Wait until an expression holds in the page."""
        expression = f"Boolean({condition})"
        self._wait(lambda: self._holds(expression), timeout, f"{condition!r}; problems: {self.problems}")

    def click(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Click on an element, at fractions of its width and height."""
        target = f"document.querySelector({selector!r})"
        self.evaluate(f"{target}.scrollIntoView({{block: 'center'}})")
        box = self.evaluate(f"JSON.parse(JSON.stringify({target}.getBoundingClientRect()))")
        at = {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"], "button": "left", "clickCount": 1}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **at)

    def picture(self, path: Path | None = None) -> bytes:
        """Return a picture of the page as PNG, and write it to a file if one is given."""
        content = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(content)
        return content

    def _holds(self, expression: str) -> bool:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value") is True

    def _wait(self, condition: Any, timeout: float, what: str) -> None:
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, f"waited {timeout} s for {what}"
            time.sleep(0.05)

    def _note(self, message: dict[str, Any]) -> None:
        kind, content = message.get("method"), message.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.requests.append(content["request"]["url"])
        elif kind == "Runtime.exceptionThrown":
            self.problems.append(str(content["exceptionDetails"].get("exception", content["exceptionDetails"])))
        elif kind == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning", "assert"):
            self.problems.append(str([value.get("value") for value in content["args"]]))
        elif kind == "Log.entryAdded" and content["entry"]["level"] == "error":
            self.problems.append(content["entry"]["text"])
