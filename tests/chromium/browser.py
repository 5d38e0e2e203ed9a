"""A real browser, to look at the pages that we write (Chrome DevTools Protocol over a pipe)."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from PIL import Image

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)


class BrowserMissing(Exception):
    """No browser is installed; `tools/setup services` does it."""


class Browser:
    """
    A tab of a browser, with the addresses that it requested and the errors that its console shows.

    `requests` holds the addresses, `complaints` the errors.
    """

    def __init__(self, asks: io.BufferedWriter, answers: io.BufferedReader) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._asks = asks
        self._answers = answers
        self._number = 0
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self._call(f"{domain}.enable")

    def open(self, page: Path | str, width: int = 1280, height: int = 2_000) -> None:
        """Load a file or an address, and wait until it is there."""
        self.resize(width, height)
        url = page if isinstance(page, str) else page.absolute().as_uri()
        self._call("Page.navigate", url=url)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)

    def scripts(self, *, run: bool) -> None:
        """Let scripts of pages run or not; what we evaluate always does."""
        self._call("Emulation.setScriptExecutionDisabled", value=not run)

    def press(self, key: str, text: str = "") -> None:
        """Press a key, such as Tab, or Enter with its text."""
        code = {"Tab": 9, "Enter": 13}[key]
        said = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        typed = {"text": text} if text else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", **said, **typed)
        self._call("Input.dispatchKeyEvent", type="keyUp", **said)

    def type(self, text: str) -> None:
        """Put text where the focus is, as a keyboard would."""
        self._call("Input.insertText", text=text)

    def prefer(self, scheme: str) -> None:
        """Be by day (`light`) or by night (`dark`)."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def evaluate(self, expression: str) -> Any:
        """
        Return JavaScript's value of an expression, or of its promise.

        The page's own policy does not keep us from asking.
        """
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self) -> Image.Image:
        data = self._call("Page.captureScreenshot", format="png")["data"]
        return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._asks.write(json.dumps(message).encode() + b"\0")
        self._asks.flush()
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser ended"
            message += byte
        read: dict[str, Any] = json.loads(message)
        self._note(read.get("method"), read.get("params", {}))
        return read

    def _note(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded":
            entry = params["entry"]
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}".strip())
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.complaints.append(str(params["args"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with all that it keeps in a folder. Raises `BrowserMissing`."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise BrowserMissing("no chromium: run tools/setup services, or install it")
    with ExitStack() as stack:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        asks = stack.enter_context(os.fdopen(ours_out, "wb"))
        answers = stack.enter_context(os.fdopen(ours_in, "rb"))
        # the browser reads from 3 and writes to 4
        redirected = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        flags = [*_FLAGS, f"--user-data-dir={folder / 'profile'}"]
        log = stack.enter_context((folder / "browser.log").open("wb"))
        process = subprocess.Popen(
            ["bash", "-c", redirected, program, *flags],
            pass_fds=(theirs_in, theirs_out),
            stderr=log,
            stdout=log,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        stack.callback(_end, process)
        yield Browser(asks, answers)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
