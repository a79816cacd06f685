"""What WhatsApp would show as formatted, by a plain reading of its rules: the tests' own yardstick."""

import re

JOINER = "\u2060"


def _is_edge(character: str) -> bool:
    return not (character.isalnum() or character == JOINER)


def formatted(text: str) -> list[tuple[str, str]]:
    """(mark, content) of everything that is shown formatted, code first."""
    found = [("```", code) for code in re.findall(r"```(.+?)```", text, re.DOTALL)]
    for line in re.sub(r"```.+?```", " ", text, flags=re.DOTALL).split("\n"):
        line = re.sub(r"https?://\S+|www\.\S+", "x", line)
        found += [("`", code) for code in re.findall(rf"(?<!{JOINER})`([^`]+)`", line)]
        line = re.sub(rf"(?<!{JOINER})`[^`]+`", "()", line)
        for mark in "*_~":
            found += [(mark, content) for content in _spans(line, mark)]
    return found


def _spans(line: str, mark: str) -> list[str]:
    spans, place = [], 0
    while (start := line.find(mark, place)) >= 0:
        place = start + 1
        before, after = line[start - 1 : start] or " ", line[start + 1 : start + 2] or " "
        if not _is_edge(before) or after.isspace() or after == mark or before == mark:
            continue
        for end in range(start + 2, len(line)):
            beyond = line[end + 1 : end + 2] or " "
            if line[end] == mark and not line[end - 1].isspace() and _is_edge(beyond) and beyond != mark:
                spans.append(line[start + 1 : end])
                place = end + 1
                break
    return spans


def plain(text: str) -> str:
    return text.replace(JOINER, "")
