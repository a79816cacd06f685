"""How turns end: the reply's rows, the members closed and what the operator is told, in one transaction."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from sqlite3 import Connection

import structlog

from app.i18n import say
from app.llm.errors import ModelError
from app.store import alerts, journal, learned_phrases, outbox, turns
from app.store.database import Database
from app.store.outbox import Draft
from app.store.turns import Outcome, StickySelection
from app.tools.masking import mask_text
from app.turns.actions import answer_key
from app.turns.receipts import with_receipts
from app.turns.routing_feedback import Lesson, lesson_of
from app.turns.state import TurnContext

log = structlog.get_logger(__name__)

LONGEST_REPLY = 16_000
"""Characters; four full WhatsApp messages."""
QUICK = 2_000
"""Characters that are rendered within a millisecond or two; longer texts are rendered off the loop."""


_NOTHING = Lesson()


class TurnFinalizer:
    """Each way a turn ends. `on_reply(person)` is told after the commit that there is something to send."""

    def __init__(self, store: Database, on_reply: Callable[[str], None]) -> None:
        self._store = store
        self._on_reply = on_reply

    async def answered(self, run: TurnContext, text: str) -> None:
        """The model's answer; a plain sentence where it found none, or none that can be shown."""
        kept = StickySelection(run.offered, run.routed.categories, run.kept_skills)
        after = answer_key(len(run.transcript.rounds) - 1)
        await self._end(run, "answered", text, kept=kept, after=after, lesson=lesson_of(run))

    async def command_answered(self, run: TurnContext, text: str, *, fresh: bool) -> None:
        """A command's answer; `fresh` starts the conversation anew."""
        await self._end(run, "command", text, fresh=fresh)

    async def model_failed(self, run: TurnContext, error: ModelError) -> None:
        """The person is told honestly and shortly, the operator everything."""
        cause = mask_text(str(error))
        log.error("model failed", turn=run.opened.id, person=run.person.id, error=cause)
        text = _with_done(run, _too_long(run) if error.is_too_long else _unreachable(run))
        await self._end(run, "failed", text, error=cause, alert=("model", cause))

    async def over_budget(self, run: TurnContext) -> None:
        """Said once an hour, and to each turn in which tools ran: the day's tokens are used up."""
        text = say(
            run.person.language,
            "You have used up today's allowance of the assistant. I can answer again tomorrow.",
        )
        hour = datetime.now(UTC).strftime("%Y-%m-%dT%H")
        source = "" if run.transcript.rounds else f"budget:{run.person.id}:{hour}"
        await self._end(run, "refused", _with_done(run, text), source=source)

    async def abandoned(self, run: TurnContext, reason: str) -> None:
        """A turn that cannot be finished: an honest reply, a dead letter, an alert."""
        log.error("turn given up", turn=run.opened.id, person=run.person.id, reason=reason)
        text = say(
            run.person.language,
            "Something went wrong on my side and I could not finish this. The person who runs me was told.",
        )
        alert = ("turn", f"a turn was given up: {reason}")
        await self._end(run, "failed", _with_done(run, text), error=reason, alert=alert)

    async def _end(
        self,
        run: TurnContext,
        outcome: Outcome,
        text: str,
        *,
        error: str = "",
        alert: tuple[str, str] | None = None,
        kept: StickySelection | None = None,
        fresh: bool = False,
        source: str = "",
        after: str = "",
        lesson: Lesson = _NOTHING,
    ) -> None:
        opened, files, sources = run.opened, run.returned, run.sources
        draft = _draft(run, text) if len(text) <= QUICK else await asyncio.to_thread(_draft, run, text)
        now = time.time()

        def write(conn: Connection) -> None:
            if after:
                journal.require(conn, opened.id, after)
            conversation = opened.conversation
            turns.end(
                conn,
                opened.id,
                conversation,
                outcome,
                draft,
                now,
                error=error,
                sticky=kept,
                source=source,
                sources=sources,
            )
            learned_phrases.learn(conn, run.person.id, lesson.tools, lesson.stems, now)
            outbox.put_files(conn, conversation, opened.id, files, now)
            if fresh:
                turns.new_conversation(conn, conversation.id, now)
            if alert is not None:
                alerts.raise_alert(conn, *alert, now)
            if outcome == "failed":
                letter = {"turn": opened.id, "attempts": opened.attempts}
                alerts.add_dead_letter(conn, "turn", error, letter, now, person=run.person.id)
            elif outcome == "answered":
                alerts.close_alerts(conn, "model", now)

        run.keep_trace(self._store)
        await self._store.tx(write, then=lambda _: self._on_reply(run.person.id))


def _draft(run: TurnContext, text: str) -> Draft:
    """The text and the receipts it left out, as their channel shows them; nothing only beside files."""
    text = with_receipts(_bounded(text, run.person.language), run.receipts)
    parts = run.channel.render(text)
    if not parts and not run.returned:
        text = say(run.person.language, "I found nothing to say to that. Could you put it another way?")
        parts = run.channel.render(text)
    last = run.opened.members[-1:]
    if parts and last and last[0].waited:  # others were said meanwhile: it shows what it answers
        parts[0] = replace(parts[0], quoted=last[0].wamid)
    return Draft(text, tuple(parts))


def _with_done(run: TurnContext, text: str) -> str:
    """What was done before a turn ended as nobody wanted: who is not told would ask for it again."""
    if not run.done:
        return text
    done = say(run.person.language, "This was done already: {tools}", tools=", ".join(run.done))
    return f"{text}\n\n{done}"


def _too_long(run: TurnContext) -> str:
    return say(
        run.person.language,
        "That is too long for my language model. Please send less, or start anew with /new.",
    )


def _unreachable(run: TurnContext) -> str:
    return say(
        run.person.language,
        "I cannot reach my language model right now, so I cannot answer. Please try again in a while.",
    )


def _bounded(text: str, language: str) -> str:
    """A reply that a person can read: a longer one is cut, and says so."""
    if len(text) <= LONGEST_REPLY:
        return text
    return cut_short(text[:LONGEST_REPLY], language)


def cut_short(text: str, language: str) -> str:
    """The beginning of an answer, which says that it is no more."""
    cut = say(language, "(My answer was too long: I cut it here.)")
    return f"{text}…\n\n{cut}"
