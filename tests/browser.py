"""A real Chromium without a window, driven through the pipe of its DevTools protocol: no driver, port or package.

Messages are JSON with a NUL behind, written to the browser's file 3 and read from its file 4.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Nothing that a browser asks for on its own may be taken for a request of the page.
QUIET = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--metrics-recording-only",
    "--mute-audio",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@dataclass
class Opened:
    """What a browser saw when it opened a page."""

    browser: Browser
    session: str
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, which the tests may use and the page does not."""
        found = self.browser.call(
            "Runtime.evaluate", {"expression": expression, "returnByValue": True}, session=self.session
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def awaited(self, expression: str) -> Any:
        """The value that the promise of an expression comes to."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        found = self.browser.call("Runtime.evaluate", asked, session=self.session)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition: str, seconds: float = 60.0) -> None:
        """Wait until a condition holds, also while the page is exchanged for another."""
        end = time.monotonic() + seconds
        asked = {"expression": f"!!({condition})", "returnByValue": True}
        while time.monotonic() < end:
            try:
                found = self.browser.call("Runtime.evaluate", asked, session=self.session)
            except AssertionError as error:
                if "navigated or closed" not in str(error):
                    raise
                continue  # the question met the moment between two pages
            if found["result"].get("value") is True:
                return
            time.sleep(0.03)
        raise AssertionError(
            f"{condition} did not become true; the page says: {self.evaluate('document.body.innerText')}"
        )

    def go(self, address: str) -> None:
        """Go to an address and wait until it is drawn."""
        self.evaluate("window.left = true")
        self.browser.call("Page.navigate", {"url": address}, session=self.session)
        self.wait("!window.left && document.readyState === 'complete' && location.protocol.startsWith('http')")

    def type(self, text: str) -> None:
        self.browser.call("Input.insertText", {"text": text}, session=self.session)

    def resize(self, width: int, height: int = 900) -> None:
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.call("Emulation.setDeviceMetricsOverride", shape, session=self.session)

    def media(self, *, scheme: str = "light", kind: str = "screen") -> None:
        """Light or dark, on a screen or in print."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.call("Emulation.setEmulatedMedia", {"media": kind, "features": features}, session=self.session)

    def press(self, key: str, code: int) -> None:
        written = {"text": {"Enter": "\r", " ": " "}[key]} if key in ("Enter", " ") else {}
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code} | written
            self.browser.call("Input.dispatchKeyEvent", event, session=self.session)

    def names(self) -> list[tuple[str, str]]:
        """Role and name of all that a screen reader meets."""
        tree = self.browser.call("Accessibility.getFullAXTree", {}, session=self.session)
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in tree["nodes"]
            if not node["ignored"]
        ]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        shot = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.browser.call("Page.getLayoutMetrics", {}, session=self.session)["cssContentSize"]
            shot["clip"] = {**size, "x": 0, "y": 0, "scale": 1}  # type: ignore[assignment]
        data = self.browser.call("Page.captureScreenshot", shot, session=self.session)["data"]
        path.write_bytes(base64.b64decode(data))


class Browser:
    """One process of Chromium; every page that is opened is a tab of its own."""

    def __init__(self, command: str, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        flags = [*QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={profile}", "about:blank"]
        # The shell gives the two pipes the numbers at which Chromium looks for them.
        joined = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", joined, command, *flags],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._waiting = b""
        self._number = 0
        self._pages: dict[str, Opened] = {}

    def call(self, method: str, parameters: dict[str, Any], *, session: str | None = None) -> dict[str, Any]:
        """Ask the browser for something and wait for its answer."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            asked["sessionId"] = session
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                result: dict[str, Any] = message["result"]
                return result
            self._happened(message)

    def open(self, file: Path, *, width: int = 1000, scheme: str = "light") -> Opened:
        """Open a file and wait until it is drawn."""
        page = self.tab(width=width, scheme=scheme)
        self.call("Page.navigate", {"url": file.absolute().as_uri()}, session=page.session)
        while not page.evaluate("document.readyState === 'complete' && location.protocol === 'file:'"):
            pass
        return page

    def tab(self, *, width: int = 1000, scheme: str = "light") -> Opened:
        """Open an empty tab."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self._pages[session] = Opened(self, session)
        for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            self.call(f"{domain}.enable", {}, session=session)
        page.resize(width)
        page.media(scheme=scheme)
        return page

    def close(self) -> None:
        self.call("Browser.close", {})
        self._process.wait(20)
        os.close(self._write)
        os.close(self._read)

    def _happened(self, message: dict[str, Any]) -> None:
        page, about = self._pages.get(message.get("sessionId", "")), message.get("params", {})
        if page is None:
            return
        if message["method"] == "Network.requestWillBeSent":
            page.requests.append(about["request"]["url"])
        elif message["method"] == "Log.entryAdded":
            page.messages.append(about["entry"]["text"])
        elif message["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            page.messages.append(json.dumps(about))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            got = os.read(self._read, 1 << 20)
            assert got, "the browser went away"
            self._waiting += got
        line, _, self._waiting = self._waiting.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser, where there is one; ``make test`` installs it where it may."""
    command = next((found for name in NAMES if (found := shutil.which(name))), None)
    if command is None:
        pytest.skip("no Chromium here; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(command, Path(profile))
        try:
            yield browser
        finally:
            browser.close()
