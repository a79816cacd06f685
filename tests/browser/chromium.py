"""A headless Chromium, spoken to in its own protocol."""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--remote-debugging-port=0", "--hide-scrollbars"),
)


class Page:
    """One tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._count = 0

    async def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        await self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await asyncio.wait_for(self._socket.recv(), 20))
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return dict(answer["result"])

    async def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = await self.command(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, script: str, seconds: float = 20) -> Any:
        """The first true value of an expression; the page's own frames pace the looking."""
        wait = (
            "new Promise((done) => { const stop = Date.now() + %d; const look = () => { const found = (%s);"
            " if (found || Date.now() > stop) done(found); else setTimeout(look, 50); }; look(); })"
        )
        found = await self.evaluate(wait % (seconds * 1000, script))
        assert found, f"in vain: {script}"
        return found

    async def press(self, key: str, *, code: int = 0, shift: bool = False) -> None:
        """A key by its name, with its Windows code where the browser acts on it."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            await self.command(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code="Space" if key == " " else key,
                windowsVirtualKeyCode=code,
                modifiers=8 if shift else 0,
                **({"text": text} if text and kind == "keyDown" else {}),
            )

    async def type(self, text: str) -> None:
        await self.command("Input.insertText", text=text)

    async def names(self, *roles: str) -> list[tuple[str, str]]:
        """Role and accessible name of everything a screen reader is offered, of these roles."""
        await self.command("Accessibility.enable")
        nodes = (await self.command("Accessibility.getFullAXTree"))["nodes"]
        shown = [node for node in nodes if not node["ignored"] and "role" in node]
        found = [(str(node["role"]["value"]), str(node.get("name", {}).get("value", ""))) for node in shown]
        return [one for one in found if one[0] in roles]

    async def choose_file(self, selector: str, path: Path) -> None:
        """Puts a file into an input, as the dialogue would."""
        root = (await self.command("DOM.getDocument"))["root"]["nodeId"]
        node = (await self.command("DOM.querySelector", nodeId=root, selector=selector))["nodeId"]
        await self.command("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    async def open(
        self, url: str, width: int, height: int, theme: str = "light", language: str = "es"
    ) -> None:
        await self.command("Emulation.setUserAgentOverride", userAgent="Chromium", acceptLanguage=language)
        await self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        await self.wear(theme)
        await self.command("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def wear(self, theme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": theme}]
        await self.command("Emulation.setEmulatedMedia", features=features)

    async def screenshot(self, path: Path) -> None:
        shot = await self.command("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """A tab of a fresh Chromium; ends it."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [PROGRAM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            async with connect(await _address(Path(profile)), max_size=None) as socket:
                yield Page(socket)
        finally:
            process.kill()
            process.wait(10)


async def _address(profile: Path) -> str:
    """The tab's debugging address, once the browser has written its port."""
    for _ in range(400):
        port = profile / "DevToolsActivePort"
        if port.exists() and (lines := port.read_text().splitlines()):
            async with httpx.AsyncClient(trust_env=False) as http:
                tabs = (await http.get(f"http://127.0.0.1:{lines[0]}/json")).json()
            return str(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
        await asyncio.sleep(0.05)
    raise AssertionError("Chromium did not start")
