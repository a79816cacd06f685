"""What CI runs once more, and what it does not forgive."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.world import ROOT

pytestmark = pytest.mark.slow

SCRIPT = (ROOT / ".ci" / "run").read_text("utf-8")
TWICE = SCRIPT[SCRIPT.index("left() {") : SCRIPT.index("timeout 400 make check")]
ONCE = """
from pathlib import Path
def is_first():
    there = Path("seen").exists()
    Path("seen").touch()
    return not there
"""
ANOTHER = "def test_another(): pass"


def ends_with(folder: Path, tests: dict[str, str], limit: int = 60) -> int:
    """The status of `twice` for these files of tests."""
    for name, text in tests.items():
        (folder / name).write_text(text)
    program = folder / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = f'twice {limit} 80 "not slow" .venv/bin/python -m pytest -q'
    script = f"set -euo pipefail\nstarted=$(date +%s)\n{TWICE}\n{run}\n"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, stdout=subprocess.DEVNULL, timeout=90
    )
    return done.returncode


@pytest.mark.parametrize(
    ("tests", "status"),
    [
        ({"test_one.py": f"{ONCE}def test_it(): assert not is_first()", "test_two.py": ANOTHER}, 0),
        ({"test_one.py": "def test_it(): assert False", "test_two.py": ANOTHER}, 1),
        ({"test_one.py": f"{ONCE}assert not is_first()\ndef test_it(): pass", "test_two.py": ANOTHER}, 1),
    ],
)
def test_what_failed_is_run_again_unless_nothing_ran(
    tests: dict[str, str], status: int, tmp_path: Path
) -> None:
    assert ends_with(tmp_path, tests) == status


def test_a_run_that_was_cut_off_is_not_made_good_by_what_failed_in_an_earlier_one(tmp_path: Path) -> None:
    kept = tmp_path / ".pytest_cache" / "v" / "cache" / "lastfailed"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"test_one.py::test_it": true}')
    slow = "import time\ndef test_it(): pass\ndef test_slow(): time.sleep(60)"
    assert ends_with(tmp_path, {"test_one.py": slow}, limit=5) != 0
