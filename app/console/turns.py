"""The page of a turn: where its time went, what the model was shown, why each tool was offered."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response

from app.console.site import Site, language_of
from app.i18n import say
from app.messages import JSON
from app.settings import TokenPrice
from app.store import journal, people
from app.store.database import Connection
from app.store.journal import CallTrace, Step

LEAST_WIDTH = 0.4  # percent of the whole, so that a quick step can be seen
PART_SHOWN = 20_000  # characters of a part of a prompt


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a prompt: whose it is, how long, and its text."""

    role: str
    characters: int
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A step with its place in the picture, in percent, and what a click on it shows."""

    step: Step
    title: str
    left: float
    width: float
    cost: float | None
    parts: Sequence[Part]
    arguments: str
    result: str
    reasons: Sequence[Mapping[str, JSON]]


def add_turns(site: Site) -> None:
    """Add the page of a turn, and running it again."""
    router = site.router
    prices = {one.model: one.price for one in site.settings.models if one.price is not None}

    @router.get("/console/turns/{id}")
    async def turn(request: Request, id: str) -> Response:
        """Show where the time of a turn went, and what each step was."""
        language = language_of(request)

        def rows(conn: Connection) -> dict[str, Any]:
            head = journal.turn_head(conn, id)
            trace = journal.turn_trace(conn, id)
            steps = journal.steps(conn, head, trace, time.time())
            name, _ = people.shown_as(conn, head.person_id)
            payloads = {row["key"]: row["payload"] for row in trace.journal}
            return {"head": head, "name": name, "bars": _bars(language, steps, payloads, prices)}

        return await site.page(request, "turn.html", lambda: site.store.read(rows))

    @router.post("/console/turns/{id}/replay")
    async def replay(request: Request, id: str) -> Response:
        """Run a turn again as a dry run, and show what it would do now."""
        done = await site.assistant.replay(id)
        return site.render(request, "replay.html", turn=id, done=done)


def _bars(
    language: str, steps: Sequence[Step], payloads: Mapping[str, JSON], prices: Mapping[str, TokenPrice]
) -> list[Bar]:
    first = min((step.start for step in steps), default=0.0)
    whole = max(max((step.end for step in steps), default=0.0) - first, 0.001)
    return [
        Bar(
            step,
            _title(language, step),
            left=min(100 * (step.start - first) / whole, 100 - LEAST_WIDTH),
            width=max(100 * (step.end - step.start) / whole, LEAST_WIDTH),
            cost=_cost(step.call, prices),
            parts=[_part(part) for part in step.call.prompt] if step.call is not None else [],
            arguments=_arguments(step, payloads),
            result=_result(step, payloads.get(step.key)),
            reasons=payloads[step.key].get("reasons", []) if step.kind == "route" else [],
        )
        for step in steps
    ]


def _title(language: str, step: Step) -> str:
    titles = {
        "wait": say(language, "Waiting for its turn"),
        "route": say(language, "Choosing the tools"),
        "model": say(language, "Asking the model"),
        "tool": say(language, "Tool"),
        "question": say(language, "Asking the person"),
        "send": say(language, "Sending"),
    }
    return f"{titles[step.kind]} {step.name}".strip()


def _cost(call: CallTrace | None, prices: Mapping[str, TokenPrice]) -> float | None:
    price = prices.get(call.model) if call is not None else None
    return price.of(call.prompt_tokens, call.completion_tokens) if call is not None and price else None


def _part(part: JSON) -> Part:
    """Return a message of a prompt, or the list of tools, as it can be read."""
    is_message = isinstance(part, dict) and isinstance(part.get("role"), str)
    role = part["role"] if is_message else next(iter(part), "") if isinstance(part, dict) else ""
    text = part.get("content") if is_message and len(part) == 2 else None
    text = text if isinstance(text, str) else json.dumps(part, ensure_ascii=False, indent=1)
    return Part(str(role), len(text), text[:PART_SHOWN])


def _arguments(step: Step, payloads: Mapping[str, JSON]) -> str:
    """Return the arguments of a tool's call, "" for another step."""
    number, _, id = step.key.removeprefix("tool:").partition(":")
    asked = payloads.get(f"llm:{number}", {}).get("calls", []) if step.kind == "tool" else []
    found = next((call["arguments"] for call in asked if call["id"] == id), "")
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=1)


def _result(step: Step, row: JSON) -> str:
    if row is None:
        return ""
    if step.kind == "tool":
        return str(row.get("result", ""))[:PART_SHOWN]
    if step.kind == "route":
        return ", ".join(row.get("categories", ()))
    called = "\n".join(f"{call['name']} {call['arguments']}" for call in row.get("calls", ()))
    return "\n".join(filter(None, (row.get("text", ""), called)))
