"""What a thousand skill folders cost: loading them, and the look that every turn takes at them.

    python -m bench.skills

Each figure stands beside a baseline of the same run: PyYAML reading the same frontmatters, and
`os.stat` of the same files.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from app.skills import SkillLoader
from app.skills.loader import KNOWN_FILES

FOLDERS = 1000
RUNS = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        front = make_folders(root)
        loads, reads, looks, stats = [], [], [], []
        for _ in range(RUNS):  # interleaved, so that a busy moment meets all four
            loader = SkillLoader(root, root / "none")
            loads.append(seconds(loader.refresh))
            reads.append(seconds(lambda: [yaml.load(text, Loader=yaml.CSafeLoader) for text in front]))
            looks.append(seconds(loader.refresh))
            stats.append(seconds(lambda: stat_all(root)))
    row("load 1,000 folders", loads, "PyYAML alone", reads)
    row("look again, nothing new", looks, "os.stat alone", stats)


def make_folders(root: Path) -> list[str]:
    front = [f"name: skill-{n}\ndescription: What number {n} does, in a sentence.\n" for n in range(FOLDERS)]
    for n, text in enumerate(front):
        folder = root / f"skill-{n}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\n{text}---\n\nHow to use it.\n", "utf-8")
    return front


def stat_all(root: Path) -> None:
    for n in range(FOLDERS):
        for name in KNOWN_FILES:
            path = f"{root}/skill-{n}/{name}"
            if os.path.exists(path):
                os.stat(path)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def row(what: str, measured: list[float], baseline_name: str, baseline: list[float]) -> None:
    ours, theirs = statistics.median(measured), statistics.median(baseline)
    beside = f"{baseline_name:14} {theirs * 1000:8.1f} ms   {ours / theirs:5.1f}×"
    print(f"{what:26} {ours * 1000:8.1f} ms   {beside}")


if __name__ == "__main__":
    main()
