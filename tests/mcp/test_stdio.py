"""Lines with limits, and the cause in a server's last words."""

import pytest

from app.mcp.stdio import LineSplitter, TooLong, find_cause, parse_message


@pytest.mark.parametrize(("pieces", "lines"), [
    ((b"one\ntwo\n",), [b"one", b"two"]),
    ((b"o", b"n", b"e\nt", b"wo\n"), [b"one", b"two"]),
    ((b"one\r\n\n",), [b"one\r", b""]),
    ((b"not ended",), []),
    ((b"x" * 100 + b"\n",), [b"x" * 100]),
    ((b"x" * 101 + b"\nnext\n",), [TooLong(None), b"next"]),
    ((b"x" * 60, b"x" * 60, b"\n", b"next\n"), [TooLong(None), b"next"]),
    ((b'{"jsonrpc":"2.0","id":7,"result":"' + b"x" * 100 + b'"}\n',), [TooLong(7)]),
    ((b'{"id": 7, "result":"' + b"x" * 100, b'"}\n'), [TooLong(7)]),
    ((b'{"result":"' + b"x" * 100, b'","jsonrpc":"2.0","id":8}\n'), [TooLong(8)]),
    ((b'{"result":{"id":3,"x":"' + b"x" * 100, b'"},"id": 9, "jsonrpc": "2.0"}\r\n'), [TooLong(9)]),
    ((b'{"result":{"text":"' + b"x" * 600 + b'","id":3}}\n',), [TooLong(None)]),
])  # fmt: skip
def test_bytes_are_split_into_lines_and_long_ones_left_out(
    pieces: tuple[bytes, ...], lines: list[bytes | TooLong]
) -> None:
    splitter = LineSplitter(limit=100)
    assert [line for piece in pieces for line in splitter.feed(piece)] == lines


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


@pytest.mark.parametrize(("said", "told"), [
    ("", ""),
    ("starting\nbye\n", "bye"),
    ("API_KEY is required\nusage: server [-h]\n", "API_KEY is required"),
    (PYTHON, "KeyError: 'API_KEY'"),
    (NODE, "Error: API_KEY missing"),
    ("error: " + "x" * 1000, "error: " + "x" * 293 + "…"),
])  # fmt: skip
def test_the_cause_is_found_in_the_last_lines(said: str, told: str) -> None:
    assert find_cause(said) == told
