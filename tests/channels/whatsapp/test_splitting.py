import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.channels.whatsapp import split_message

SPLITS = [
    ("", 40, []),
    (" \n\t\n ", 40, []),
    ("short", 40, ["short"]),
    ("a" * 40, 40, ["a" * 40]),
    (
        "First paragraph here.\n\nSecond paragraph here.",
        40,
        ["First paragraph here.", "Second paragraph here."],
    ),
    (
        "A line of some words\nanother line of some words",
        40,
        ["A line of some words", "another line of some words"],
    ),
    (
        "One sentence is here. Another one follows it now.",
        40,
        ["One sentence is here.", "Another one follows it now."],
    ),
    ("word " * 12, 40, ["word word word word word word", "word word word word word word"]),
    (
        "- one two three four five six\n  - inner item here",
        40,
        ["- one two three four five six", "  - inner item here"],
    ),
]


def test_cuts_fall_where_a_reader_would_make_them() -> None:
    for text, limit, parts in SPLITS:
        assert split_message(text, limit) == parts


def test_a_fence_is_closed_and_reopened() -> None:
    code = "\n".join(f"    line_{number} = {number}" for number in range(200))
    parts = split_message(f"Look:\n```\n{code}\n```\nDone.", 500)
    assert all(len(part) <= 500 and part.count("```") == 2 for part in parts[1:-1])
    kept = [line for part in parts for line in part.split("\n") if line.startswith("    line_")]
    assert "\n".join(kept) == code
    assert parts[0].startswith("Look:")
    assert parts[-1].endswith("Done.")


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        split_message("x", 0)


TEXTS = st.lists(
    st.sampled_from(
        [
            *("*bold text*", "_it_", "~s t~", "`co de`", "```\nx = 1\n\ny\n```", "word"),
            *("a longer sentence.", "\n", "\n\n", " ", "- item\n", "*", "_", "```", "😀", "x" * 45),
            *("*" + "b c " * 20 + "d*", "> quoted\n"),
        ]
    ),
    max_size=60,
).map("".join)


@given(TEXTS, st.integers(1, 120))
@settings(max_examples=200, deadline=None)
@example("```" + "\n" * 60 + "```", 33)
def test_no_part_is_empty_or_too_long_and_no_word_is_lost(text: str, limit: int) -> None:
    parts = split_message(text, limit)
    assert all(part.strip() and len(part) <= limit for part in parts)
    assert bool(parts) == bool(text.strip())
    assert re.sub(r"[\s*_~`]", "", "".join(parts)) == re.sub(r"[\s*_~`]", "", text)


CODE = st.lists(
    st.sampled_from(["x = 1", "    y = [2, 3]", "", "z" * 50, "a *b* c"]), min_size=1, max_size=30
)


@given(st.lists(CODE, max_size=4), st.integers(40, 150))
@settings(max_examples=100, deadline=None)
def test_every_part_closes_the_fences_it_opens(blocks: list[list[str]], limit: int) -> None:
    text = "\n\nSome words.\n".join(
        "```\n" + "\n".join(["first", *code, "last"]) + "\n```" for code in blocks
    )
    parts = split_message(text, limit)
    assert all(part.count("```") % 2 == 0 and not re.search(r"```\s*```", part) for part in parts)
    kept = re.sub(r"\s|```", "", "".join(parts))
    assert kept == re.sub(r"\s|```", "", text)


def test_a_million_characters_are_split_quickly() -> None:
    for text in [
        *("x" * 1_000_000, "*a " * 330_000, "`" * 1_000_000, "*" + "bold " * 200_000 + "x*"),
        *("\n```\na\n```\n" * 90_000, "\u0301" * 1_000_000, "a" + "\n" * 999_998 + "b"),
    ]:
        begun = time.perf_counter()
        parts = split_message(text)
        assert time.perf_counter() - begun < 5
        assert all(part.strip() and len(part) <= 4096 for part in parts)
