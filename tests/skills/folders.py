"""Skill folders for tests, and the engine that calls what is in them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app.skills import SkillLoader, Workers
from app.tools import ToolContext, ToolResult
from tests.tools.engines import engine_of


def write(
    folder: Path,
    code: str = "",
    *,
    front: str = "",
    body: str = "Body.",
    name: str = "",
    about: str = "",
    files: Mapping[str, str] | None = None,
) -> Path:
    (folder / "scripts").mkdir(parents=True, exist_ok=True)
    described = about or f"What {folder.name} does."
    manifest = f"---\nname: {name or folder.name}\ndescription: {described}\n{front}---\n{body}\n"
    for path, text in {"SKILL.md": manifest, "scripts/tools.py": code, **(files or {})}.items():
        if text:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
    return folder


class House:
    """A folder of skills, a loader over it, workers, and an engine."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.root = root
        self.told: list[tuple[str, str]] = []
        self.workers = Workers(reporter=self, **options)
        self.loader = SkillLoader(root, root / "none", self.workers)
        self._engine = engine_of()
        self._registry = self._engine.registry

    async def skill_failed(self, folder: Path, reason: str) -> None:
        self.told.append((folder.name, reason))

    def drop(self, name: str, code: str, *, beside: str = "", **front: str) -> Path:
        """Writes or changes a skill, with a module beside.py where it has a text; it counts from then on."""
        lines = "".join(f"  {key.replace('_', '-')}: {value!r}\n" for key, value in front.items())
        files = {"scripts/beside.py": beside}
        folder = write(self.root / name, code, front=f"metadata:\n{lines}" if lines else "", files=files)
        self.look()
        return folder

    def look(self) -> None:
        """What happens before each turn."""
        self.loader.refresh()
        self._registry.clear()
        for tool in self.loader.tools:
            self._registry.register(tool)

    def limit(self, name: str, seconds: float) -> None:
        """How long a tool may take, until the next look."""
        self._registry.register(self._registry.get(name).replace(timeout=seconds), allow_override=True)

    async def call(self, name: str, context: ToolContext | None = None, /, **args: Any) -> ToolResult:
        return await self._engine.execute_tool_call(name, args, context)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be noticed does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids: list[int]) -> Callable[[], bool]:
    return lambda: not any(map(alive, pids))
