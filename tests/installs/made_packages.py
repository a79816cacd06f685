"""Packages made for a test, a registry of npm that has them, and entries of the MCP registry for them.

A folder of wheels is an index of Python packages.
"""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.standins import mcp_server
from tests.standins.mcp_server import tool
from tests.standins.registry import OFFICIAL

HIGH_TIDE = tool(
    "high_tide",
    "Says when the tide is high at a harbour.",
    {"place": {"type": "string", "description": "A harbour."}},
    annotations={"readOnlyHint": True},
)
GROW = tool("grow", "Changes a tool.", {"name": {"type": "string"}, "description": {"type": "string"}})
CLOCK = {
    "tools": [HIGH_TIDE],
    "answers": {"high_tide": {"content": [{"type": "text", "text": "high at noon"}]}},
}
SERVER_JS = """
const answer = (id, result) => process.stdout.write(JSON.stringify({jsonrpc: "2.0", id, result}) + "\\n")
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const {id, method} = JSON.parse(line), serverInfo = {name: "x", version: "1"}
  if (method === "initialize")
    answer(id, {protocolVersion: "2025-06-18", capabilities: {tools: {}}, serverInfo})
})
"""
SERVER_PY = """
import json, sys

def main():
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") == "initialize":
            about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            result = about | {"serverInfo": {"name": "x", "version": "1"}}
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0.0",
    *,
    code: str = SERVER_PY,
    scripts: Mapping[str, str] | None = None,
    requires: tuple[str, ...] = (),
    padding: int = 0,
    also: Mapping[str, str] | None = None,
) -> None:
    """A wheel whose module `name` holds the code; by default its script is called as the package is.

    `padding`: MiB of nothing in it; `also`: more files of the module.
    """
    module = name.replace("-", "_")
    about = f"{module}-{version}.dist-info"
    lines = "".join(f"Requires-Dist: {one}\n" for one in requires)
    starts = {name: f"{module}:main"} if scripts is None else scripts
    entry = "".join(f"{script} = {target}\n" for script, target in starts.items())
    files = {
        f"{module}/__init__.py": code,
        **{f"{module}/{path}": text for path, text in (also or {}).items()},
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{entry}",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in {**files, f"{about}/RECORD": record}.items():
            wheel.writestr(path, text)
        if padding:
            with wheel.open(f"{module}/padding", "w", force_zip64=True) as file:
                for _ in range(padding):
                    file.write(bytes(1024**2))


def stand_in_wheel(folder: Path, package: str, scenario: dict[str, Any], start: str = "") -> None:
    """A package of the stand-in server that plays the scenario, or one that runs the lines of `start`."""
    code = start or (
        "import json\nfrom .server import Server\n\n\n"
        f"def main():\n    Server(json.loads({json.dumps(scenario)!r})).run()\n"
    )
    make_wheel(folder, package, code=code, also={"server.py": Path(mcp_server.__file__).read_text("utf-8")})


def entry(name: str, package: str, description: str, **more: Any) -> dict[str, Any]:
    """A server with a Python package, as the registry lists it."""
    packages = [
        {
            "registryType": "pypi",
            "identifier": package,
            "version": "1.0.0",
            "transport": {"type": "stdio"},
            **more,
        }
    ]
    server = {"name": name, "description": description, "version": "1.0.0", "packages": packages}
    at = "2026-11-01T10:00:00Z"
    official = {"status": "active", "publishedAt": at, "updatedAt": at, "isLatest": True}
    return {"server": server, "_meta": {OFFICIAL: official}}


def make_sdist(folder: Path, name: str, version: str, setup: str) -> Path:
    """A source archive, which runs its setup.py when it is built."""
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in {"setup.py": setup, "PKG-INFO": f"Name: {name}\nVersion: {version}\n"}.items():
            _add(archive, f"{name}-{version}/{file}", text.encode())
    return path


class NpmRegistry:
    """A registry of npm on this machine; stop it."""

    def __init__(self) -> None:
        self._documents: dict[str, dict[str, Any]] = {}
        self._archives: dict[str, bytes] = {}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry._answer(self)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def add(
        self, name: str, version: str = "1.0.0", *, files: Mapping[str, str] | None = None, **manifest: Any
    ) -> None:
        """A package with these files beside its package.json, which has the keys of `manifest`."""
        described = {"name": name, "version": version, "bin": "index.js", **manifest}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            inside = files or {"index.js": SERVER_JS}
            for path, text in {"package.json": json.dumps(described), **inside}.items():
                _add(archive, f"package/{path}", text.encode())
        content = packed.getvalue()
        place = f"/-/{hashlib.sha256(content).hexdigest()}.tgz"
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"
        listed = {**described, "dist": {"tarball": f"{self.url}{place}", "integrity": integrity}}
        document = self._documents.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}})
        document["versions"][version] = listed
        document["dist-tags"]["latest"] = version
        self._archives[place] = content

    def replace_archives(self, content: bytes) -> None:
        """Whatever is fetched from now on is this."""
        self._archives = dict.fromkeys(self._archives, content)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path = unquote(request.path)
        document = self._documents.get(path.lstrip("/"))
        content = self._archives.get(path) or (json.dumps(document).encode() if document else b"")
        request.send_response(200 if content else 404)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)


def _add(archive: tarfile.TarFile, path: str, content: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
