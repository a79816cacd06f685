"""A registry and a package index on this machine, so that servers can be installed in a chat quickly."""

import base64
import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

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


def wheel(folder: Path, package: str, scenario: dict[str, Any], start: str = "") -> None:
    """A package of the stand-in that behaves as the scenario says, for `pip --find-links`; or one that does
    what the lines of `start` do."""
    module = package.replace("-", "_")
    about = f"{module}-1.0.0.dist-info"
    start = start or (
        "import json\nfrom .server import Server\n\n\n"
        f"def main():\n    Server(json.loads({json.dumps(scenario)!r})).run()\n"
    )
    files = {
        f"{module}/__init__.py": start,
        f"{module}/server.py": Path(mcp_server.__file__).read_text("utf-8"),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{package} = {module}:main\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in files.items())
    with zipfile.ZipFile(folder / f"{module}-1.0.0-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{about}/RECORD": f"{record}{about}/RECORD,,\n"}.items():
            archive.writestr(path, text)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
