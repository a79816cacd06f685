"""What differs in tools that are held back, in a person's language: the old and the new text, quoted."""

import json
from collections.abc import Iterator, Mapping

from app.i18n import say
from app.installs.skill_card_text import kind_names
from app.installs.skill_cards import quoted
from app.mcp.adapter import findings
from app.mcp.definitions import HeldBack, ServerState
from app.mcp.pins import Difference, Part, differences
from app.messages import JSON


def approval_text(language: str, state: ServerState) -> str:
    """Every tool of the server that is held back, with each difference, and what is conspicuous in it."""
    lines = [
        say(
            language,
            "The server {name} has new or changed tools. I use none of them before your yes:",
            name=quoted(state.name),
        )
    ]
    for one in state.held_back:
        lines += _tool(language, one)
    return "\n".join(lines)


def approval_question(language: str, name: str) -> str:
    """The last line, which names the server."""
    return say(language, "Approve these tools of {name}?", name=name)


def _tool(language: str, held: HeldBack) -> Iterator[str]:
    name = quoted(held.tool)
    if held.before is None:
        yield "- " + say(language, "new: {tool}", tool=name)
    else:
        yield "- " + say(language, "changed: {tool}", tool=name)
    for one in differences(held.before, held.after):
        yield from _difference(language, one)
    if found := findings(held.after):
        names = kind_names(language)
        yield "   " + say(language, "Worth a look before you say yes:")
        yield from (f"   - {names[one.kind]}: {quoted(one.excerpt)}" for one in found)


def _difference(language: str, one: Difference) -> Iterator[str]:
    label = _labels(language)[one.part]
    yield f"   {label} {quoted(one.name)}:" if one.name else f"   {label}:"
    if one.before is not None:
        yield "   " + say(language, "before: {text}", text=_value(one.before))
        if one.after is None:
            yield "   " + say(language, "now gone")
    if one.after is not None:
        now = _value(one.after)
        yield f"   {now}" if one.before is None else "   " + say(language, "now: {text}", text=now)


def _value(value: JSON) -> str:
    """A text as it is, anything else as JSON, on one line with nothing invisible."""
    return quoted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _labels(language: str) -> Mapping[Part, str]:
    return {
        "title": say(language, "title"),
        "description": say(language, "description"),
        "annotation": say(language, "what it says of its own danger"),
        "parameter": say(language, "parameter"),
        "parameters": say(language, "all parameters"),
        "result": say(language, "result"),
    }
