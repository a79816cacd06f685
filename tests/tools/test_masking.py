"""Masking takes time in proportion to the text, whatever the text is."""

import subprocess
import sys

import pytest

from app.tools.masking import mask_text
from tests.world import ROOT


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("a eyJhbGciOiJI.eyJzdWIi.sfl-x b", "a … b"),
        ("x-eyJhbGciOiJI.eyJzdWIi.sfl", "x-…"),
        ("www.example-of-a-host.org", "www.example-of-a-host.org"),
        ("id a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4", "id …"),
        ("a-name-of-words-that-is-long-and-has-none", "a-name-of-words-that-is-long-and-has-none"),
        ("ana.maria+x@mail.example.com, yes", "…@…, yes"),
        ("ana@example", "ana@example"),
    ],
)
def test_masked_texts(text: str, masked: str) -> None:
    assert mask_text(text) == masked


UNITS = [
    "1-",
    "a-",
    "-a",
    "eyJ-",
    "eyJaaaaaaaa.",
    "a.",
    "a@",
    "a@a.",
    "1 ",
    "token",
    "token ",
    "://a:",
    "/a",
    " /a",
]


@pytest.mark.parametrize("unit", UNITS)
def test_no_text_keeps_the_server_busy(unit: str) -> None:
    code = (
        "import sys; from app.tools.masking import mask_text, without_paths; "
        "text = sys.argv[1] * 200_000; mask_text(text); without_paths(text)"
    )
    subprocess.run([sys.executable, "-c", code, unit], cwd=ROOT, check=True, timeout=30)
