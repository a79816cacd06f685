"""End turns: the reply's rows, the members closed and what the operator is told, in one transaction."""

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime

import structlog

from app.i18n import change_values, lazy, say
from app.llm.model import ModelError
from app.memory.summary import outgrows_window
from app.messages import Button, Link, Outgoing
from app.store import alerts, choices, outbox, turn_state, turns
from app.store.choices import option_id
from app.store.database import Connection
from app.store.outbox import Draft
from app.store.turns import Outcome, StickySelection
from app.text import Private, fold, mask_text
from app.turns.state import TurnContext

log = structlog.get_logger(__name__)

LONGEST_QUESTION = 1_024  # characters beside a button
LONGEST_REPLY = 16_000  # characters: four full WhatsApp messages


async def end(
    turn: TurnContext,
    text: str,
    outcome: Outcome,
    *,
    error: str = "",
    alert: tuple[str, str] | None = None,
    fresh: bool = False,
    source: str = "",
) -> None:
    """Send a text and write the end of a turn.

    `source` names a reply that is sent once for several turns; `fresh` starts the conversation anew.
    """
    state, files, sources, person = turn.state, turn.sent_along, turn.sources, turn.person
    id, where = state.id, state.conversation
    draft, kept, outgrown = None, None, False
    if outcome == "answered":
        kept = StickySelection(turn.offered, turn.routed.categories, turn.kept_skills)
        # of groups, guests and the built-in model's chats no summary is made
        folds = not (turn.services.offline or person.is_guest or turn.in_group)
        outgrown = folds and outgrows_window(state.exchanges)
    if kept is not None or not (outcome == "silent" or turn.may_be_silent):
        draft = await asyncio.to_thread(_draft, turn, text)  # a long text takes its time
    now = time.time()

    def write(conn: Connection) -> None:
        turns.end(
            conn, id, where, outcome, draft, now, error=error, sticky=kept, source=source, sources=sources
        )
        if draft is not None and (options := turn.asks.get("options")):
            choices.offer(conn, id, where, options, now)
        if outgrown:
            turn_state.request_summary(conn, where, person.timezone, now)
        for number, file in enumerate(files):  # each may fail alone
            message = Draft(file.text, (file,))
            outbox.put_reply(conn, where, f"turn:{id}:file:{number}", message, now, turn=id)
        if fresh:
            turns.new_conversation(conn, where.id, now)
        if alert is not None:
            alerts.raise_alert(conn, *alert, now)
            letter = {"turn": id, "attempts": state.attempts}
            alerts.add_dead_letter(conn, "turn", error, letter, now, person=person.id)
        elif outcome in ("answered", "silent"):
            alerts.close_alerts(conn, "model", now)

    await turn.services.store.tx(write, then=lambda _: turn.services.sender.wake(person.id))
    if outgrown:
        turn.services.look_again.set()


async def silent(turn: TurnContext) -> None:
    """End a watch that has nothing to tell: no message unless it did something."""
    text = _with_done(turn, "").strip()
    is_silent = not (text or turn.action_summaries or turn.sent_along)
    await end(turn, text, "silent" if is_silent else "answered")


async def model_failed(turn: TurnContext, error: ModelError) -> None:
    """Tell the person honestly and shortly, and the operator everything."""
    cause, person, language = change_values(error.told, mask_text), turn.person.id, turn.person.language
    said, status = Private(cause), error.status
    log.error("model failed", turn=turn.id, person=person, cause=error.cause, status=status, said=said)
    text = say(
        language,
        "I cannot reach my language model right now, so I cannot answer. Please try again in a while.",
    )
    if error.is_too_long:
        text = say(
            language, "That is too long for my language model. Please send less, or start anew with /new."
        )
    await end(turn, _with_done(turn, text), "failed", error=cause, alert=("model", cause))


async def over_budget(turn: TurnContext) -> None:
    """Say once an hour, and to each turn in which tools ran, that the day's tokens are used up."""
    text = say(
        turn.person.language,
        "You have used up today's allowance of the assistant. I can answer again tomorrow.",
    )
    hour = datetime.now(UTC).strftime("%Y-%m-%dT%H")
    source = "" if turn.transcript.rounds else f"budget:{turn.person.id}:{hour}"
    await end(turn, _with_done(turn, text), "refused", source=source)


async def abandoned(turn: TurnContext) -> None:
    """End a turn that failed three times: an honest reply, a dead letter, an alert."""
    reason = "it failed three times"
    log.error("turn given up", turn=turn.id, person=turn.person.id)
    text = say(
        turn.person.language,
        "Something went wrong on my side and I could not finish this. The person who runs me was told.",
    )
    alert = ("turn", lazy("a turn was given up: {reason}", reason=reason))
    await end(turn, _with_done(turn, text), "failed", error=reason, alert=alert)


def with_receipts(text: str, receipts: Iterable[str]) -> str:
    """Append to a reply the receipts that it leaves out, whatever dress it gave the others."""
    told = _letters(text)
    missing = [one for one in receipts if _letters(one) not in told]
    return "\n\n".join(filter(None, (text, "\n".join(missing))))


def cut_short(text: str, language: str) -> str:
    """Return the beginning of an answer with a line that says that it is cut."""
    cut = say(language, "(My answer was too long: I cut it here.)")
    return f"{text}…\n\n{cut}"


def _draft(turn: TurnContext, text: str) -> Draft:
    """Render the text and the receipts that it left out; an empty reply may only stand beside files."""
    language = turn.person.language
    if len(text) > LONGEST_REPLY:
        text = cut_short(text[:LONGEST_REPLY], language)
    text = with_receipts(text, turn.action_summaries)
    parts = _question(turn, text) or turn.channel.render(text)
    if not parts and not turn.sent_along:
        text = say(language, "I found nothing to say to that. Could you put it another way?")
        parts = turn.channel.render(text)
    return Draft(text, tuple(parts))


def _question(turn: TurnContext, text: str) -> list[Outgoing]:
    asked = turn.asks
    if asked.get("location"):
        return [Outgoing(text, asks_location=True)] if len(text) <= LONGEST_QUESTION else []
    if (link := asked.get("link")) and len(text) <= LONGEST_QUESTION:
        return [Outgoing(text, link=Link(link["title"], link["url"]))]
    options = [Button(option_id(turn.id, n), title) for n, title in enumerate(asked.get("options", ()), 1)]
    label = say(turn.person.language, "Options")
    return turn.channel.choose(text, options, label) if options else []


def _with_done(turn: TurnContext, text: str) -> str:
    """Add what foreign tools did before the turn failed: a person who is not told would ask for it again."""
    if not turn.done_by_others:
        return text
    tools = ", ".join(turn.done_by_others)
    return f"{text}\n\n" + say(turn.person.language, "This was done already: {tools}", tools=tools)


def _letters(text: str) -> str:
    """Reduce a text to letters and digits: a model adds stars, quotes and spaces, and changes no word."""
    return "".join(filter(str.isalnum, fold(text)))
