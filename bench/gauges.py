"""The benchmark's skill: twenty tools that do nothing but, if asked to, take a while."""

from pathlib import Path

SKILL = "gauges"
COUNT = 20

_MANIFEST = f"""---
name: {SKILL}
description: Reads the gauges of a place.
---
Read the gauges that the person asks for, all at once.
"""
_TOOL = '''

async def read_gauge_{n:02}(place: str, wait: float = 0.0) -> dict:
    """Reads gauge {n} of a place.

    Args:
        place: Name of the place.
        wait: Seconds that the gauge takes.
    """
    if wait:
        await asyncio.sleep(wait)
    return {{"gauge": {n}, "place": place, "value": 21.5}}
'''


def write_skill(folder: Path) -> None:
    """Writes the skill folder."""
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(_MANIFEST, "utf-8")
    (folder / "scripts" / "tools.py").write_text(tools_source(), "utf-8")


def tools_source() -> str:
    """The Python file with the tools."""
    return '"""Gauges."""\n\nimport asyncio\n' + "".join(_TOOL.format(n=n) for n in range(COUNT))
