"""Shared by the tests of bundled skills: a folder's own functions, a person, rows that live in memory."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.people import Person
from app.skills.tools import run_module
from app.tools import ToolContext
from app.tools.source import find_tools

SKILLS = Path(__file__).parents[2] / "skills"


def functions(skill: str) -> dict[str, Callable[..., Any]]:
    """The tool functions of a bundled skill, as the loader takes them."""
    return functions_of(SKILLS / skill / "scripts" / "tools.py", skill)


def functions_of(path: Path, skill: str) -> dict[str, Callable[..., Any]]:
    module = run_module(path, skill)
    return {one.name: getattr(module, one.function) for one in find_tools(path.read_bytes())[0]}


def age_set_aside(context: ToolContext) -> None:
    """Let a week pass for what was removed and can be brought back."""
    for fields in context.store.rows.values():
        if "undo" in fields:
            fields["undo"]["removed"] -= 8 * 24 * 3600


def code(answer: Any) -> str:
    """Return the code of a failure."""
    return str(answer["error"]["code"])


def finished(result: Any) -> Any:
    """The result of a `def` or an `async def` tool."""
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


class Rows:
    """A person's rows of one skill, as `context.store` offers them to a `def` tool."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return self.rows.get(key, default)

    def put(self, key: str, value: Any) -> None:
        self.rows[key] = value

    def list(self, prefix: str = "", limit: int = 1000) -> dict[str, Any]:
        keys = sorted(key for key in self.rows if key.startswith(prefix))
        return {key: self.rows[key] for key in keys[: min(limit, 5000)]}

    def delete(self, key: str) -> bool:
        return self.rows.pop(key, None) is not None


def context(
    language: str = "es", country: str = "MX", timezone: str = "America/Mexico_City", store: Any = None
) -> ToolContext:
    person = Person("p1", "simulator", "Ana", language=language, country=country, timezone=timezone)
    return ToolContext(person=person, store=store)
