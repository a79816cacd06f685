"""The service behind reminders, tasks and watches (`context.services.schedule`), in the person's language."""

import asyncio
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import blake2b
from zoneinfo import ZoneInfo

from app.calendar.changes import read_change
from app.calendar.grammar import KINDS
from app.calendar.rules import shortest_gap
from app.calendar.words import Reading, When, read_when
from app.i18n import lazy, say
from app.i18n import said as translated
from app.people import Person
from app.schedule.alarm import Reminders, next_time, quiet_until
from app.schedule.wording import city_of, local_text, quoted_text, run_text, shown_text, when_text
from app.search.words import WORDS, any_word, content, words
from app.store import people, schedules
from app.store.database import Connection, Database
from app.store.outbox import WINDOW_SECONDS
from app.store.schedules import Kind, LastRun, Schedule
from app.text import fold
from app.tools import ToolContext, ToolResult
from app.tools.authoring import holds_more
from app.tools.result import Refused

MOST_ACTIVE = 200
MOST_TASKS = 20  # tasks and watches: each of their times costs a turn
MOST_TEXT = 1000
SHORTEST_REPEAT = 900.0  # seconds between two times of one reminder
_MOST_LISTED = 50
_MOST_NAMED = 10
# a reminder told within so many seconds is the one that "in 10 minutes more" means
_SNOOZED_WITHIN = 24 * 3600.0
_LINKING = any_word("linking")
_LEADING = re.compile(rf"^(?:\W*\b(?!por\b)(?:{_LINKING}|on)\b(?=\s))+\s*|^[\s,.:;–—-]+", re.IGNORECASE)
_TRAILING = re.compile(rf"(?:\s+{_LINKING})+\W*$", re.IGNORECASE)
_LONGEST_WANTED = 300  # characters of a description; the rest is not looked for
_LAST = re.compile(f"{any_word('the_last')}?")
_NUMBER = re.compile(
    r"(?:el |o |the |my |mi |meu )?(?:reminder|recordatorio|lembrete|numero|number|n)?\s*#?\s*(\d{1,6})"
)


class ScheduleService:
    """Sets, lists, changes, snoozes and cancels the reminders, tasks and watches of the person who asks."""

    def __init__(self, store: Database, reminders: Reminders) -> None:
        self._store = store
        self._reminders = reminders

    async def set(self, text: str, when: str, context: ToolContext, kind: Kind = "reminder") -> ToolResult:
        """Set a reminder. Its id is a hash of the call's key: a repeated call sets no second one."""
        person = _asker(context)
        said, more = await self._read(person, when), await self._read(person, text)
        if said.problem == "missing" and more.when is not None:  # a model may leave the time in the text
            said, text = more, more.rest
        elif _is_hour_of(more, said, text):
            said, text = await self._read(person, f"{when} {more.words[0]}"), more.rest
        text = _clean(text)
        if _lacks_day(said):
            raise refusal(person.language, "UNCLEAR_TIME")
        _check_text(person, text)
        at, now = await asyncio.to_thread(_checked, person, said, kind), time.time()

        def keep(conn: Connection) -> Schedule:
            if kind != "reminder":
                _check_may_run(conn, person, text, context)
            conversation = people.conversation(conn, person.id, context.channel, "", now)
            return _add(conn, _new(kind, conversation.id, person, text, at, context), person, now)

        kept = await self._store.tx(keep)
        self._reminders.look()
        shown, notes = await self._receipt(kept, person, context, now)
        undo = say(person.language, "cancel reminder {number}", number=kept.number)
        receipt = _set_text(kept, person.language, shown["when"]) + notes
        return _success(kept, receipt, undo=undo)

    async def list(self, context: ToolContext) -> ToolResult:
        """List the person's reminders, the next first."""
        person = _asker(context)
        found, runs = await self._store.read(lambda conn: _with_runs(conn, person.id))
        if not found:
            return _none(say(person.language, "You have no reminders."))
        shown = found[:_MOST_LISTED]
        lines = await asyncio.to_thread(_lines, shown, person, runs)
        told = {"shown": len(shown), "count": len(found), "lines": lines}
        summary = say(person.language, "Your reminders ({shown} of {count}):\n{lines}", **told)
        data = {"count": len(found), "reminders": [_fields(one) for one in shown], "summary": summary}
        return ToolResult.success(data, **_outside(shown, runs.values()))

    async def change(
        self, reminder: str, text: str, when: str, context: ToolContext, *, paused: bool | None = None
    ) -> ToolResult:
        """Change the time or the text of a reminder, pause it, or let it go on."""
        person, text = _asker(context), _clean(text)
        now = time.time()
        named = await self._on_one(reminder, context, lambda _, found: found)
        _check_text(person, text or "…")
        at: When | None = None
        if when.strip():
            said = await self._read_change(person, when, named)
            at = await asyncio.to_thread(_checked, person, said, named.kind)

        def change(conn: Connection, found: Schedule) -> Schedule:
            if found.runs_turn and (text or at):
                _check_may_run(conn, person, text, context)
            changed = _changed(found, text, at, person, context)
            if paused is not None:
                changed = replace(_moved_on(changed, now), paused_at=now if paused else None)
            schedules.change(conn, changed, now)
            return changed

        changed = await self._on_one(reminder, context, change)
        if paused:
            quoted = quoted_text(changed, person.language)
            told = say(person.language, "✓ Paused, until you want it again: {text}", text=quoted)
            return _success(changed, told)
        shown, notes = await self._receipt(changed, person, context, now)
        told = say(person.language, "✓ Reminder now {when}: {text}", **shown) + notes
        return _success(changed, told)

    async def snooze(self, when: str, reminder: str, context: ToolContext) -> ToolResult:
        """Tell a reminder again later: the one quoted or named, else the one told last."""
        person = _asker(context)
        words = when.strip() or "10 min"
        said = await self._read(person, words)
        if said.when is None:  # "10 minutes" without an "in"
            said = await self._read(person, f"in {words}")
        if said.when is not None and said.when.rule:
            raise refusal(person.language, "UNCLEAR_TIME")
        later, now = await asyncio.to_thread(_checked, person, said), time.time()

        def snooze(conn: Connection, found: Schedule) -> Schedule:
            if found.runs_turn:
                _check_may_run(conn, person, "", context)
            if found.rule:  # it goes on as before; this time alone comes once more
                again = _new(found.kind, found.conversation_id, person, found.text, later, context)
                return _add(conn, replace(again, taint=_tainted(found, context)), person, now)
            changed = replace(_changed(found, "", later, person, context), paused_at=None)
            schedules.change(conn, changed, now)
            return changed

        snoozed = await self._on_one(reminder, context, snooze, partial(_to_snooze, now=now))
        shown, notes = await self._receipt(snoozed, person, context, now)
        return _success(snoozed, say(person.language, "✓ Once more {when}: {text}", **shown) + notes)

    async def cancel(self, reminder: str, context: ToolContext) -> ToolResult:
        """Cancel one reminder."""
        language, key, now = _asker(context).language, context.idempotency_key, time.time()

        def cancel(conn: Connection, found: Schedule) -> Schedule:
            schedules.cancel(conn, found.person_id, found.id, key, now)
            return found

        ended = await self._on_one(reminder, context, cancel)
        said = say(language, "✓ Reminder cancelled: {text}", text=shown_text(ended, language))
        undo, told = _undo(language)
        return _success(ended, f"{said}. {told}", undo=undo)

    async def cancel_all(self, context: ToolContext) -> ToolResult:
        """Cancel all reminders."""
        person = _asker(context)
        key, now = context.idempotency_key, time.time()

        def write(conn: Connection) -> Sequence[Schedule]:
            found = schedules.active(conn, person.id)
            return [one for one in found if schedules.cancel(conn, person.id, one.id, key, now)]

        ended = await self._store.tx(write)
        if not ended:
            return _none(say(person.language, "You have no reminders."))
        self._reminders.look()
        lines = _texts(ended, person.language)
        shown = {"count": len(ended), "lines": lines}
        said = say(person.language, "✓ Reminders cancelled ({count}):\n{lines}", **shown)
        undo, told = _undo(person.language)
        data = {"count": len(ended), "summary": f"{said}\n{told}"}
        return ToolResult.success(data, undo=undo, **_outside(ended))

    async def restore(self, context: ToolContext) -> ToolResult:
        """Set again what was cancelled last, one or all."""
        person = _asker(context)
        key, now = context.idempotency_key, time.time()

        def write(conn: Connection) -> Sequence[Schedule]:
            if schedules.is_scheduled_turn(conn, context.conversation):
                raise refusal(person.language, "IN_A_TASK")
            restored = schedules.restore(conn, person.id, key, now)
            tasks = [one for one in schedules.active(conn, person.id) if one.runs_turn]
            back = []
            for one in restored:
                if one.runs_turn and len(tasks) > MOST_TASKS:
                    schedules.cancel(conn, person.id, one.id, key, now)
                else:
                    back.append(replace(_moved_on(one, now), taint=_tainted(one, context)))
                    schedules.change(conn, back[-1], now)
            return back

        back = await self._store.tx(write)
        if not back:
            return _none(say(person.language, "There is no cancelled reminder that could be set again."))
        self._reminders.look()
        lines = _texts(back, person.language)
        said = say(person.language, "✓ Reminders set again ({count}):\n{lines}", count=len(back), lines=lines)
        return ToolResult.success({"count": len(back), "summary": said}, **_outside(back))

    async def _on_one(
        self,
        reminder: str,
        context: ToolContext,
        act: Callable[[Connection, Schedule], Schedule],
        find: Callable[[Connection, str, str, ToolContext], Sequence[Schedule]] | None = None,
    ) -> Schedule:
        """Act on the one reminder that is meant, once for each call; return it as it is then."""
        person, key = _asker(context), context.idempotency_key

        def write(conn: Connection) -> Schedule | tuple[Sequence[Schedule], ...]:
            if (done := schedules.changed_by(conn, person.id, key)) is not None:
                return done
            found = (find or _meant)(conn, person.id, reminder, context)
            is_clear = len(found) == 1 and not _names_part(found[0], reminder)
            others = schedules.active(conn, person.id) if not found and reminder else ()
            return act(conn, found[0]) if is_clear else (found, others)

        done = await self._store.tx(write)
        if isinstance(done, tuple):
            raise await asyncio.to_thread(_not_one, person, reminder, *done)
        self._reminders.look()
        return done

    async def _read(self, person: Person, when: str) -> Reading:
        """Read a time in a thread, because a library may load for the first time."""
        zone = ZoneInfo(person.timezone)
        return await asyncio.to_thread(read_when, when, zone, time.time(), person.language, person.country)

    async def _read_change(self, person: Person, when: str, schedule: Schedule) -> Reading:
        """Read a new time; what the words leave open stays as the reminder has it."""
        had = When(schedule.due_at, datetime.fromisoformat(schedule.start), schedule.rule)
        zone, now = ZoneInfo(person.timezone), time.time()
        return await asyncio.to_thread(read_change, when, had, zone, now, person.language, person.country)

    async def _receipt(
        self, kept: Schedule, person: Person, context: ToolContext, now: float
    ) -> tuple[dict[str, str], str]:
        """Return the time and text that a receipt names, and the notes below it."""
        key, language = context.idempotency_key, person.language
        # only the first receipt does, if the zone was guessed
        names_zone = await self._store.tx(lambda conn: people.is_first_zone_note(conn, person.id, key))
        quiet = await self._store.read(lambda conn: people.quiet_hours(conn, person.id))
        when = await asyncio.to_thread(when_text, kept, now, language, person.timezone)
        notes = ""
        if names_zone:
            city = await asyncio.to_thread(city_of, kept.zone, language)
            when = say(language, "{when}, {city} time", when=when, city=city)
            notes = "\n" + say(language, "If that is not your time, tell me where you live.")
        if kept.runs_turn and quiet_until(quiet, ZoneInfo(person.timezone), kept.due_at) is not None:
            notes += "\n" + say(
                language, "Your quiet hours are {hours}: it waits for their end.", hours=quiet
            )
        is_far = bool(kept.rule) or kept.due_at >= now + WINDOW_SECONDS
        reaches = self._reminders.has_template and not kept.runs_turn
        if is_far and context.channel != "terminal" and not reaches:
            notes += "\n" + say(
                language,
                "WhatsApp lets me write only within 24 hours of your last message. "
                "If you have not written by then, I tell you as soon as you write.",
            )
        return {"when": when, "text": shown_text(kept, language)}, notes


def _to_snooze(
    conn: Connection, person: str, reminder: str, context: ToolContext, now: float
) -> Sequence[Schedule]:
    """Return the reminder to tell again: quoted, named, or the one told last."""
    quoted = schedules.quoted(conn, context.conversation)
    if quoted is not None and quoted.person_id == person:
        return [quoted]
    if not _LAST.fullmatch(_folded(reminder[:_LONGEST_WANTED])):
        return _meant(conn, person, reminder, context)
    told = schedules.last_fired(conn, person, now - _SNOOZED_WITHIN)
    if told is None or told.told_at is None:
        return []
    newer = schedules.active(conn, person, since=told.told_at)  # may be meant, too
    return [told, *(one for one in newer if one.id != told.id)]


def _meant(conn: Connection, person: str, wanted: str, context: ToolContext) -> Sequence[Schedule]:
    """Return the active reminders that a person means: quoted, by number, by words, or the only one."""
    found = schedules.active(conn, person)
    quoted = schedules.quoted(conn, context.conversation)
    if quoted is not None and any(one.id == quoted.id for one in found):
        return [one for one in found if one.id == quoted.id]
    key = _folded(_TRAILING.sub("", _clean(wanted[:_LONGEST_WANTED])))
    if number := _NUMBER.fullmatch(key):
        return [one for one in found if one.number == int(number[1])]
    words = _telling(key)
    if _LAST.fullmatch(key) or not words:
        return found
    folded = ((one, _folded(one.text)) for one in found)
    return [one for one, text in folded if all(word in text for word in words)]


def _names_part(one: Schedule, wanted: str) -> bool:
    """Return True if words name one of several things of a reminder: "light" of "light and water"."""
    key = _folded(wanted[:_LONGEST_WANTED])
    words = _telling(key)
    is_whole = _LAST.fullmatch(key) or _NUMBER.fullmatch(key) or not words
    return not is_whole and holds_more(one.text, " ".join(words))


def _telling(key: str) -> list[str]:
    return [word for word in key.split() if word not in WORDS["names_reminder"]]


def _folded(text: str) -> str:
    return " ".join(re.sub(r"[^\w#]+", " ", fold(unicodedata.normalize("NFC", text))).split())


def _clean(text: str) -> str:
    """Return a reminder's text without the words that led to it or to its time."""
    return _LEADING.sub("", text.replace("\x00", "").strip()).strip(" \t\n,:;–—-")


def _is_hour_of(more: Reading, said: Reading, text: str) -> bool:
    """Return True if a text ends with the hour of a day said before: "tomorrow remind me to … at 9"."""
    if more.kinds != {"clock"} or len(more.words) != 1 or said.kinds & {"clock", "span", "iso", "cron"}:
        return False
    return bool(said.words) and text.rstrip(" .!?").endswith(more.words[0])


def _lacks_day(said: Reading) -> bool:
    """Return True for a week, a month or a year whose day nobody named: "next month", "every week"."""
    is_each = said.when is not None and re.match("FREQ=(?:WEEKLY|MONTHLY|YEARLY);INTERVAL=1;", said.when.rule)
    is_wide = said.kinds & {"next_week", "next_month", "weekend"} or (is_each and "every" in said.kinds)
    return bool(is_wide) and not said.kinds & KINDS["named_day"]


def _check_text(person: Person, text: str) -> None:
    if not text or WORDS["lacks_object"].issuperset(words(text) or [text]):
        raise refusal(person.language, "EMPTY_TEXT")
    if len(text) > MOST_TEXT:
        raise refusal(person.language, "TOO_LONG")


def _checked(person: Person, said: Reading, kind: Kind = "reminder") -> When:
    """Return the time that was said. Raises Refused if no reminder can be set so."""
    language, zone, when = person.language, ZoneInfo(person.timezone), said.when
    if said.problem == "ambiguous":
        today = datetime.fromtimestamp(time.time(), zone).date()
        first, second = (local_text(one, today, language) for one in said.choices)
        asked = say(
            language, "Do you mean {first} or {second}? I changed nothing yet.", first=first, second=second
        )
        hint = say(language, "Say it again with the hour as 08:00 or 20:00.")
        hours = [moment[-len("00:00") :] for moment in (first, second)]
        raise Refused(ToolResult.failure("AMBIGUOUS_TIME", asked, hint, hours=hours))
    if when is None:
        code = {"past": "TIME_IS_PAST", "missing": "NO_TIME"}.get(said.problem, "UNCLEAR_TIME")
        raise refusal(language, code)
    if when.rule and shortest_gap(when.rule, when.start, zone, when.due) < SHORTEST_REPEAT:
        raise refusal(language, "TOO_OFTEN")
    if kind == "watch" and not when.rule:
        raise refusal(language, "NO_PERIOD")
    return when


def _new(
    kind: Kind, conversation: str, person: Person, text: str, when: When, context: ToolContext
) -> Schedule:
    """Return the schedule that a call makes; its id is a hash, which reveals nothing of the call's key."""
    return Schedule(
        id=f"rem_{blake2b(context.idempotency_key.encode(), digest_size=12).hexdigest()}",
        person_id=person.id,
        conversation_id=conversation,
        number=0,
        text=text,
        rule=when.rule,
        start=when.start.isoformat(),
        zone=person.timezone,
        due_at=when.due,
        taint="\n".join(context.sources),
        changed_by=context.idempotency_key,
        kind=kind,
    )


def _moved_on(schedule: Schedule, now: float) -> Schedule:
    """Return a repeated reminder with its next time after now; others as they are."""
    is_due = schedule.due_at <= now
    return replace(schedule, due_at=next_time(schedule, now) or schedule.due_at) if is_due else schedule


def _add(conn: Connection, schedule: Schedule, person: Person, now: float) -> Schedule:
    most = MOST_TASKS if schedule.runs_turn else MOST_ACTIVE
    if (added := schedules.add(conn, schedule, most, now)) is None:
        raise refusal(person.language, "TOO_MANY")
    return added


def _check_may_run(conn: Connection, person: Person, text: str, context: ToolContext) -> None:
    """Refuse what a task or a watch sets, and a text that the person did not write word for word.

    Where the turn holds no text of others, all of it is theirs.
    """
    if schedules.is_scheduled_turn(conn, context.conversation):
        raise refusal(person.language, "IN_A_TASK")
    said = {word for own in context.own_words for word in words(own)}
    if context.sources and not said.issuperset(content(words(text))):
        raise refusal(person.language, "NOT_THEIR_WORDS")


def _tainted(schedule: Schedule, context: ToolContext, text: str = "") -> str:
    """Return where its text of others came from, this turn's too if it runs turns or has a new text."""
    new = context.sources if text or schedule.runs_turn else ()
    return "\n".join(dict.fromkeys((*schedule.taint.splitlines(), *new)))


def _changed(
    schedule: Schedule, text: str, when: When | None, person: Person, context: ToolContext
) -> Schedule:
    taint = _tainted(schedule, context, text)
    changed = replace(schedule, text=text or schedule.text, taint=taint, changed_by=context.idempotency_key)
    if when is None:
        return changed
    return replace(
        changed, rule=when.rule, start=when.start.isoformat(), zone=person.timezone, due_at=when.due
    )


def _set_text(kept: Schedule, language: str, when: str) -> str:
    told = {"when": when, "text": quoted_text(kept, language)}
    if kept.kind == "task":
        return say(language, "✓ I will do this {when}: {text}", **told)
    if kept.kind == "watch":
        return say(language, "✓ I look {when}, and write only if there is something to tell: {text}", **told)
    return say(language, "✓ Reminder {when}: {text}", **told)


def _with_runs(conn: Connection, person: str) -> tuple[list[Schedule], dict[str, LastRun]]:
    """Return a person's schedules, and the newest run of those that run turns."""
    found = schedules.active(conn, person)
    runs = {one.id: schedules.last_run(conn, one.id) for one in found[:_MOST_LISTED] if one.runs_turn}
    return found, {id: run for id, run in runs.items() if run is not None}


def _lines(found: Sequence[Schedule], person: Person, runs: Mapping[str, LastRun] | None = None) -> str:
    now, language, zone = time.time(), person.language, person.timezone
    lines = []
    for one in found:
        lines.append(f"#{one.number} · {when_text(one, now, language, zone)}: {shown_text(one, language)}")
        if runs and one.id in runs:
            lines.append(f"  {run_text(runs[one.id], now, language, zone)}")
    return "\n".join(lines)


def _texts(found: Sequence[Schedule], language: str) -> str:
    return "\n".join(shown_text(one, language) for one in found[:_MOST_LISTED])


def _undo(language: str) -> tuple[str, str]:
    """Return the words that set cancelled reminders again, and the sentence that tells them."""
    words = say(language, "set my reminders again")
    return words, say(language, "Undo: “{words}”", words=words)


def _fields(schedule: Schedule) -> dict[str, object]:
    due = datetime.fromtimestamp(schedule.next_at, ZoneInfo(schedule.zone))
    fields: dict[str, object] = {
        "number": schedule.number,
        "kind": schedule.kind,
        "text": schedule.text,
        "due": due.isoformat(timespec="seconds"),
    }
    if schedule.rule:
        fields["repeats"] = schedule.rule
    if schedule.paused_at is not None:
        fields["paused"] = True
    return fields


def _none(summary: str) -> ToolResult:
    return ToolResult.success({"count": 0, "reminders": [], "summary": summary})


def _success(schedule: Schedule, summary: str, **meta: str) -> ToolResult:
    return ToolResult.success({**_fields(schedule), "summary": summary}, **meta, **_outside([schedule]))


def _outside(shown: Iterable[Schedule], runs: Iterable[LastRun] = ()) -> dict[str, bool]:
    """Return the mark of a result that shows text of others."""
    return {"outside": True} if any(one.taint for one in shown) or any(one.outside for one in runs) else {}


def _not_one(person: Person, wanted: str, found: Sequence[Schedule], others: Sequence[Schedule]) -> Refused:
    """Refuse words that name no single reminder, and list those `found`, or all `others` if none was."""
    if not found and not others:
        return refusal(person.language, "NO_REMINDERS" if wanted else "NOTHING_TOLD")
    language, shown = person.language, (found or others)[:_MOST_NAMED]
    lines = _lines(shown, person) + ("\n…" if len(found or others) > _MOST_NAMED else "")
    if found:
        code, told = "AMBIGUOUS", say(language, "Reminders that may be meant:\n{lines}", lines=lines)
    else:
        code = "REMINDER_NOT_FOUND"
        told = say(
            language,
            "I found no reminder with the words “{reminder}”. Your reminders:\n{lines}",
            reminder=wanted[:80],
            lines=lines,
        )
    hint, numbers = say(language, "Which one? Say its number."), [one.number for one in shown]
    return Refused(ToolResult.failure(code, told, hint, numbers=numbers, **_outside(shown)))


def _asker(context: ToolContext) -> Person:
    if context.person is None:
        raise LookupError("reminders belong to a person, and there is none here")
    return context.person


def refusal(language: str, code: str) -> Refused:
    """Return the refusal of a code, in the person's language."""
    message, hint = _REFUSALS[code]
    return Refused(ToolResult.failure(code, translated(message, language), translated(hint, language)))


_WHEN_SAID = lazy("Say it as “tomorrow at 9”, “in 20 minutes” or “every Monday at 8”.")
_REFUSALS: Mapping[str, tuple[str, str]] = {
    "EMPTY_TEXT": (
        lazy("What the reminder is about is missing."),
        lazy("Say what to remind you of, and when."),
    ),
    "TOO_LONG": (
        lazy("The reminder is too long: at most {most} characters.", most=MOST_TEXT),
        lazy("Keep the long text as a note, and remind yourself of the note."),
    ),
    "TOO_MANY": (
        lazy("You already have as many reminders, or tasks and watches, as there can be."),
        lazy("Cancel one that you no longer need."),
    ),
    "TOO_OFTEN": (
        lazy("A reminder comes every {minutes} minutes at most.", minutes=round(SHORTEST_REPEAT / 60)),
        lazy("Name a longer time between two, such as every hour."),
    ),
    "IN_A_TASK": (lazy("A task or a watch sets no other one."), lazy("Ask me for it yourself.")),
    "NOT_THEIR_WORDS": (
        lazy("I set no task out of others' words."),
        lazy("Tell me in your own words what to do, and when."),
    ),
    "NO_PERIOD": (lazy("How often to look is missing."), lazy("Say it as “every hour” or “every day at 8”.")),
    "NO_TIME": (lazy("When to remind you is missing."), _WHEN_SAID),
    "UNCLEAR_TIME": (lazy("I do not understand when."), _WHEN_SAID),
    "TIME_IS_PAST": (
        lazy("That time is over already, so I set nothing."),
        lazy("Name a time to come, with the day."),
    ),
    "NO_REMINDERS": (lazy("You have no reminders."), ""),
    "NOTHING_TOLD": (
        lazy("There is no reminder that came just now."),
        lazy("Say which one, by its number in the list."),
    ),
}
