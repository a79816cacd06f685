"""Messages as servers write them, and the cause in a server's last words."""

import pytest

from app.mcp.stdio import find_cause, parse_message


def test_half_an_emoji_is_read_and_what_is_no_json_refused() -> None:
    assert parse_message(b'{"half": "\\ud83d"}') == {"half": "?"}
    for line in (b"Listening on stdio", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match=r"nested|Expecting|decode|expected"):
            parse_message(line)


PYTHON = """\
Traceback (most recent call last):
  File "server.py", line 3, in <module>
    raise SystemExit
KeyError: 'API_KEY'
"""
NODE = """\
file:///srv/index.js:10
    throw new Error("API_KEY missing");
          ^

Error: API_KEY missing
    at Object.<anonymous> (file:///srv/index.js:10:11)
    at node:internal/modules/cjs/loader:1105:14

Node.js v20.1.0
"""


def test_the_cause_is_found_in_the_last_lines() -> None:
    for said, told in [
        ("", ""),
        ("starting\nbye\n", "bye"),
        ("API_KEY is required\nusage: server [-h]\n", "API_KEY is required"),
        (PYTHON, "KeyError: 'API_KEY'"),
        (NODE, "Error: API_KEY missing"),
        ("error: " + "x" * 1000, "error: " + "x" * 293 + "…"),
    ]:
        assert find_cause(said) == told
