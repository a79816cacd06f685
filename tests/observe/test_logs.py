"""What reaches the log, and what does not."""

import subprocess
import sys

import pytest

from tests.world import ROOT

RENDERS = """
import logging
from app.ops import logs
logs.configure("DEBUG", False, [])
from app.channels.whatsapp.formatting import render_whatsapp
render_whatsapp("# Groceries\\n\\n- **milk** and `bread`\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |")
logging.getLogger("app").debug("the end")
"""


@pytest.mark.slow
def test_at_debug_libraries_do_not_write_a_line_for_each_of_their_steps() -> None:
    """The last 500 lines are what an owner can ask for."""
    done = subprocess.run(
        [sys.executable, "-c", RENDERS], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    (line,) = done.stderr.splitlines()
    assert "the end" in line
