"""Texts in a log: what is masked, in time in proportion to the text."""

import subprocess
import sys

from app.text import holds_secret, mask_text
from tests.world import ROOT


def test_masked_texts() -> None:
    for text, masked in [
        ("a eyJhbGciOiJI.eyJzdWIi.sfl-x b", "a … b"),
        ("x-eyJhbGciOiJI.eyJzdWIi.sfl", "x-…"),
        ("www.example-of-a-host.org", "www.example-of-a-host.org"),
        ("id a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4", "id …"),
        ("a-name-of-words-that-is-long-and-has-none", "a-name-of-words-that-is-long-and-has-none"),
        ("ana.maria+x@mail.example.com, yes", "…@…, yes"),
        ("ana@example", "ana@example"),
        ('{"to": "+52 1 55 1234 5678", "api_key": "x"}', '{"to": "…78", "api_key": "…"}'),
        ("Bearer abcdefgh12345 sk-abcdefghijklmnop1234", "Bearer … …"),
    ]:
        assert mask_text(text) == masked


UNITS = [*("1-", "eyJ-", "eyJaaaaaaaa.", "a@", "a@a.", "token ", "://a:", " /a")]


def test_no_text_keeps_the_server_busy() -> None:
    code = (
        "import sys\nfrom app.text import mask_text, without_paths\n"
        "for unit in sys.argv[1:]:\n"
        "    print(unit, flush=True)\n    mask_text(unit * 20_000)\n    without_paths(unit * 20_000)\n"
    )
    subprocess.run([sys.executable, "-c", code, *UNITS], cwd=ROOT, check=True, timeout=30)


def test_what_looks_like_a_secret_is_told_from_what_does_not() -> None:
    for text, is_secret in [
        ("install github, my token is ghp_abcdefghijklmnop0123", True),
        ("API_KEY=abc123", True),
        ("password: hunter2", True),
        ("install the server io.github.modelcontextprotocol/mcp-server-time", False),
        ("instalá el server de la hora, por favor", False),
        ("call +54 9 341 555-0001", False),
    ]:
        assert holds_secret(text) is is_secret
