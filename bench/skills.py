"""What a thousand skill folders cost: loading them, and the look that every turn takes at them."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from app.skills import SkillLoader
from app.skills.loader import KNOWN_FILES
from bench.measure import Plan, Row, ratio
from bench.process import Release

FOLDERS = 1_000


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    count = plan.of(FOLDERS)
    front = make_folders(folder, count)
    paths = [f"{folder}/skill-{n}/{name}" for n in range(count) for name in KNOWN_FILES]
    reads: list[float] = []
    loads: list[float] = []
    stats: list[float] = []
    looks: list[float] = []
    for _ in range(plan.rounds):
        loader = SkillLoader(folder, folder / "none")
        reads.append(milliseconds(lambda: [yaml.load(text, Loader=yaml.CSafeLoader) for text in front]))
        loads.append(milliseconds(loader.refresh))
        stats.append(milliseconds(lambda: [os.stat(path) for path in paths if os.path.exists(path)]))
        looks.append(milliseconds(loader.refresh))
    return [
        ratio(f"loading {count:,} skill folders", loads, reads, "ms", named="PyYAML alone"),
        ratio("a look at them, nothing new", looks, stats, "ms", named="os.stat alone"),
    ]


def make_folders(root: Path, count: int) -> list[str]:
    """Writes the folders; their frontmatters."""
    front = [f"name: skill-{n}\ndescription: What number {n} does, in a sentence.\n" for n in range(count)]
    for n, text in enumerate(front):
        folder = root / f"skill-{n}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\n{text}---\n\nHow to use it.\n", "utf-8")
    return front


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
