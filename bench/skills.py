"""What skills cost: a thousand folders loaded and looked at, and a call that goes to a worker process."""

import math
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import yaml

from app.skills import SkillLoader, Workers
from app.skills.folder import KNOWN_FILES
from app.tools import ConfirmationPolicy, ExecutionEngine, Tool, ToolRegistry, ToolResult
from bench.measure import Plan, Row, absolute, ratio
from bench.process import Release

FOLDERS = 1_000
CALLS = 200

TOOLS = """import math


def area_of_circle_{n}(radius: float, digits: int = 2) -> dict:
    \"\"\"The area of a circle.

    Args:
        radius: in metres.
        digits: how many digits to keep.
    \"\"\"
    return {{"area": round(math.pi * radius**2, digits)}}
"""


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    return [*_folders(folder / "many", plan.rounds), *await _calls(folder / "one", plan)]


def _folders(folder: Path, rounds: int) -> list[Row]:
    """As many of them in the short form too: the goals are for a thousand."""
    front = make_folders(folder, FOLDERS)
    paths = [f"{folder}/skill-{n}/{name}" for n in range(FOLDERS) for name in KNOWN_FILES]
    reads: list[float] = []
    loads: list[float] = []
    stats: list[float] = []
    looks: list[float] = []
    for _ in range(rounds):
        loader = SkillLoader(folder, folder / "none")
        reads.append(milliseconds(lambda: [yaml.load(text, Loader=yaml.CSafeLoader) for text in front]))
        loads.append(milliseconds(loader.refresh))
        stats.append(milliseconds(lambda: [os.stat(path) for path in paths if os.path.exists(path)]))
        looks.append(milliseconds(loader.refresh))
    loading, look = f"loading {FOLDERS:,} skill folders with a tool each", "a look at them, nothing new"
    return [
        ratio(loading, loads, reads, "ms", named="PyYAML alone"),
        absolute(loading, loads, "ms", 1000),
        ratio(look, looks, stats, "ms", named="os.stat alone"),
        absolute(look, looks, "ms", 20),
    ]


async def _calls(folder: Path, plan: Plan) -> list[Row]:
    """The same function in a worker and, as an `async def`, in this process, through one engine."""
    make_folders(folder, 1)
    first: list[float] = []
    warm: list[float] = []
    here: list[float] = []
    for _ in range(plan.rounds):
        workers = Workers()
        loader = SkillLoader(folder, folder / "none", workers)
        loader.refresh()
        away, near = _callers(loader.tools[0], Tool.from_function(area_of_circle))
        first.append(await _milliseconds(away, 1))
        await near()
        warm.append(await _milliseconds(away, plan.of(CALLS)))
        here.append(await _milliseconds(near, plan.of(CALLS)))
        await workers.close()
    extra = [away - near for away, near in zip(warm, here, strict=True)]
    return [
        absolute("the first call of a skill that has no worker yet", first, "ms", 300),
        absolute("what a worker adds to a call, warm", extra, "ms", 3),
        ratio("a call in a warm worker", warm, here, "ms", named="in the server"),
    ]


async def area_of_circle(radius: float, digits: int = 2) -> dict[str, float]:
    """The area of a circle."""
    return {"area": round(math.pi * radius**2, digits)}


def _callers(*tools: Tool) -> list[Callable[[], Awaitable[ToolResult]]]:
    registry = ToolRegistry()
    for tool in tools:
        registry.register(tool)
    engine = ExecutionEngine(registry, ConfirmationPolicy("yolo"))
    return [partial(engine.execute_tool_call, tool.name, {"radius": 2}) for tool in tools]


async def _milliseconds(call: Callable[[], Awaitable[ToolResult]], times: int) -> float:
    """Of one call, the mean of so many after one another. Raises RuntimeError where one fails."""
    started = time.perf_counter()
    for _ in range(times):
        result = await call()
        if not result.ok:
            raise RuntimeError(f"a call failed: {result.error}")
    return (time.perf_counter() - started) * 1000 / times


def make_folders(root: Path, count: int) -> list[str]:
    """Writes the folders, each with a tool; their frontmatters."""
    front = [f"name: skill-{n}\ndescription: What number {n} does, in a sentence.\n" for n in range(count)]
    for n, text in enumerate(front):
        folder = root / f"skill-{n}"
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\n{text}---\n\nHow to use it.\n", "utf-8")
        (folder / "scripts" / "tools.py").write_text(TOOLS.format(n=n), "utf-8")
    return front


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
