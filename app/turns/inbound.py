"""Read an inbound message as a command, an answer to an open question or plain words, and answer commands."""

import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from app.errors import RecadoError
from app.i18n import say, word_tables
from app.messages import SAYS, Channel, Inbound
from app.people import Person
from app.schedule.alarm import read_hours
from app.schedule.wording import local_text
from app.store import approvals, audit, choices, handovers, ownership, people, skill_data
from app.store.approvals import BUTTON, Choice, ReplyTaken
from app.store.database import Connection
from app.store.inbox import ClassifiedMessage
from app.store.limits import usage
from app.store.outbox import Draft, count_since, put_reply
from app.store.skill_data import Fact, forget_fact
from app.store.statistics import day_of
from app.store.turn_state import drop_summary_line, summary_of
from app.text import fold, visible
from app.turns.state import TurnContext, TurnServices

_DECLINED = "|".join(word_tables()["declined"].split())
_DECLINES = re.compile("".join(word_tables()["declines"]).replace("{declined}", _DECLINED))
_SIGNS: dict[str, Choice] = {**dict.fromkeys("👍👌✅✔☑🆗🙆🫡", "yes"), **dict.fromkeys("👎❌✖🚫🛑🙅⛔", "no")}
_LONGEST_ANSWER = 40
NOTICES_AN_HOUR, GUESTS_NOTICES = 20, 1  # no limit on answers counts them
LONGEST_NUMBER = 3  # digits of an option's number

Command = Literal[
    "help", "stop", "new", "member", "block", "usage", "human", "bot", "memory", "quiet", "console"
]

# The answer comes in the person's language if it has the word, else in the first that has it.
_COMMANDS: Mapping[str, tuple[Command, str]] = {
    word: (command, languages)
    for command, by_languages in word_tables()["commands"].items()
    for languages, words in by_languages.items()
    for word in words.split()
}
_ABOUT_SOMEBODY = ("member", "block", "human", "bot")  # owners write whom they mean behind these
_WITH_WORDS = ("memory", "quiet")  # more may stand behind these
_OFF = ("off", "no", "não", "nao")
_FORGETS = re.compile(r"/\w+ +(?:delete|borrar|borra|apagar|apaga) +(s?)(\d{1,4})")
_CHANGES = {"member": people.allow, "block": people.block}
_LIKE_A_COMMAND = re.compile(r"/[^\W\d_]\w{0,30}")


def classify_inbound(message: Inbound) -> ClassifiedMessage:
    """Tell what a message is before anything is done about it."""
    if message.button.startswith(BUTTON):
        return ClassifiedMessage(message, "answer")
    is_typed = (message.kind == "text" and not message.forwarded) or message.button.startswith(SAYS)
    command = read_command(message.text) if is_typed else None
    answers = message.kind in ("text", "reaction") and read_answer(message.text) is not None
    return ClassifiedMessage(message, command or "message", answers)


def read_answer(text: str) -> Choice | None:
    """Return the choice that a whole message stands for, None when it says anything else or more."""
    if len(text) > _LONGEST_ANSWER or "?" in text or "¿" in text:
        return None
    if any(unicodedata.category(c) == "So" and c not in _SIGNS for c in text):  # 👍 beside 😡 is no answer
        return None
    words = _plain(text)
    tells = re.search(r"[éíó]\b", text.casefold())  # "no compré nada" tells of something
    in_words = _CHOICES.get(words) or ("no" if not tells and _DECLINES.fullmatch(words) else None)
    said = {_SIGNS[c] for c in text if c in _SIGNS} | ({in_words} if words else set())
    return said.pop() if len(said) == 1 else None


def named_option(text: str, options: Sequence[str]) -> int:
    """Return the number of the option that a whole message names, 0 for none: "2", "2.", or its words."""
    bare = " ".join(fold(text).split()).strip(" .,;:!)(¡\"'")
    if bare.isdecimal() and len(bare) <= LONGEST_NUMBER:
        return int(bare) if int(bare) <= len(options) else 0
    same = [number for number, option in enumerate(options, 1) if " ".join(fold(option).split()) == bare]
    return same[0] if len(same) == 1 else 0


def take_replies(
    conn: Connection, services: TurnServices, conversation: str, now: float
) -> tuple[str, float]:
    """Take answers to open questions out of the queue, before a turn could claim them as messages.

    Return the person who gets a notice, or "", and when to look again at words that may be one, or 0.
    """
    quiet, longest = services.settings.burst_quiet_seconds, services.settings.burst_max_seconds
    late: list[tuple[int, ReplyTaken | None]] = [
        (inbox, None) for inbox in choices.take_answers(conn, conversation, now, named_option)
    ]
    again = 0.0
    # the built-in model understands too little of what is said since a question was asked
    while taken := approvals.take_reply(
        conn, conversation, now, read_answer, quiet, longest, only_last=services.offline
    ):
        if isinstance(taken, float):
            again = taken
            break
        if taken.unclear or taken.closed:
            late.append((taken.inbox, taken))
    if not late:
        return "", again
    to = people.conversation_by_id(conn, conversation)
    language, channel = people.language(conn, to.person_id), services.channels.get(to.channel)
    most = GUESTS_NOTICES if services.limits.is_guest(conn, to.person_id) else NOTICES_AN_HOUR
    for inbox, reply in late:  # without a channel the conversation belongs to another realm
        if channel is not None and count_since(conn, to.person_id, "heard:", now - 3600) < most:
            put_reply(conn, to, f"heard:{inbox}", _notice(channel, language, reply), now)
    return to.person_id, again


def _notice(channel: Channel, language: str, found: ReplyTaken | None) -> Draft:
    if found is None or found.closed:
        text = say(language, "That question is over. Write to me if you want something else.")
        return Draft(text, tuple(channel.render(text)))
    lines = [say(language, "I have asked you several things. Which one do you mean?"), ""]
    lines += [f"• {one.title}" for one in found.unclear]
    how = say(language, "Press a button of that question, or answer it with a quote.")
    text = "\n".join(lines)
    return Draft(text, tuple(channel.ask(text, how, ())))


def _plain(text: str) -> str:
    """Return lower case without accents and punctuation, one space between words; "siii" becomes "si"."""
    bare = text.casefold()
    if not bare.isascii():
        bare = "".join(c for c in unicodedata.normalize("NFD", bare) if not unicodedata.combining(c))
    return re.sub(r"([a-z])\1{2,}", r"\1", " ".join(re.findall(r"[^\W_]+", bare.replace("'", ""))))


_CHOICES: dict[str, Choice] = {
    _plain(phrase): choice
    for choice, phrases in word_tables()["answers"].items()
    for phrase in phrases.split(",")
}


def read_command(text: str) -> Command | None:
    """Return the command that a whole message is, else None; an unknown command asks for help."""
    word = _word(text)
    first, _, rest = word.partition(" ")
    command, _ = _COMMANDS.get(first, (None, ""))
    if command in _ABOUT_SOMEBODY:
        return command if rest.strip() else "help"
    if command is not None and (not rest or command in _WITH_WORDS):
        return command
    return "help" if _LIKE_A_COMMAND.fullmatch(word) else None


async def command_answer(turn: TurnContext, command: str, written: str) -> str:
    """Answer a command."""
    services = turn.services
    is_owners_own = turn.person.is_owner and not turn.in_group
    if command in _ABOUT_SOMEBODY and is_owners_own:
        return await _about_somebody(turn, command, written)
    if command == "usage" and is_owners_own:
        month = day_of(time.time())[:7]
        used = await services.store.tx(lambda conn: usage(conn, services.limits.rates, month))
        return say(
            turn.person.language,
            "This month: {messages} messages ({cost} {currency}; {unpriced} without a known price), "
            "{tokens} tokens.",
            **{name: used[name] for name in ("messages", "currency", "unpriced", "tokens")},
            cost=f"{used['cost']:.2f}",
        )
    if command == "console" and is_owners_own:
        code = await services.store.tx(lambda conn: ownership.make_link(conn, turn.person.id, time.time()))
        address = f"{services.settings.reached_at}/console/enter?code={code}"
        return say(
            turn.person.language,
            "Your console, once and within ten minutes:\n{address}\nWhoever has this link can do "
            "everything: pass it on to nobody.",
            address=address,
        )
    known, spoken = _COMMANDS.get(_word(written).partition(" ")[0], (None, ""))
    languages, own = spoken.split(), turn.person.language
    language = own if not languages or own in languages else languages[0]
    if command == "memory":
        return await _memory(turn, language, written)
    if command == "quiet":
        return await _quiet_hours(turn, language, written)
    if command == "new":
        return say(
            language, "Let's start afresh: I no longer look at what we said before. Your notes and data stay."
        )
    if command == "stop":
        return say(language, "Stopped. Tell me when you need something else.")
    await turn.tools.refresh()
    unknown = "" if known == "help" else written.strip()
    return help_text(turn, language, unknown)


async def _memory(turn: TurnContext, language: str, written: str) -> str:
    """Show what is kept about the person and of this conversation, or forget one of the facts."""
    if turn.in_group:
        return say(language, "What I remember of you is shown in our private chat only.")
    store, person, conversation = turn.services.store, turn.person.id, turn.state.conversation.id
    if found := _FORGETS.fullmatch(_word(written)):
        forget, place = (drop_summary_line, conversation) if found[1] else (forget_fact, person)
        text = await store.tx(lambda conn: forget(conn, place, int(found[2])))
        if text is None:
            number = f"{found[1]}{found[2]}"
            return say(language, "There is no number {number} among what I remember.", number=number)
        return say(language, "✓ Forgotten: {text}", text=text)
    facts = await store.read(lambda conn: skill_data.facts(conn, person))
    parts = await store.read(lambda conn: summary_of(conn, conversation))
    lines = [f"{one.number}. {visible(one.text)}{_origin(one, turn.person, language)}" for one in facts]
    summary = [line for part in parts.values() for line in part]
    told = [f"s{number}. {visible(line)}" for number, line in enumerate(summary, 1)]
    if not lines and not told:
        return say(language, "I remember nothing about you yet.")
    hint = say(
        language,
        "To delete one: /memory delete {number}. Tell me if something is wrong.",
        number=facts[0].number if facts else "s1",
    )
    heads = (say(language, "What I remember about you:"), say(language, "Of this conversation, in short:"))
    blocks = ["\n".join((head, *listed)) for head, listed in zip(heads, (lines, told), strict=True) if listed]
    return "\n\n".join((*blocks, hint))


async def _quiet_hours(turn: TurnContext, language: str, written: str) -> str:
    store, person = turn.services.store, turn.person.id
    wanted = written.strip().partition(" ")[2].strip().casefold()
    how = say(language, "To change that: /quiet 22-7, or /quiet off.")
    if not wanted:
        hours = await store.read(lambda conn: people.quiet_hours(conn, person))
        if not hours:
            return say(language, "You have no quiet hours: tasks and watches run at any time.") + f"\n{how}"
        shown = say(
            language, "Your quiet hours are {hours}. Reminders still come at their time.", hours=hours
        )
        return f"{shown}\n{how}"
    new = "" if wanted in _OFF else read_hours(wanted)
    if new is None:
        return say(language, "I do not understand these hours.") + f"\n{how}"
    await store.tx(lambda conn: people.set_quiet_hours(conn, person, new))
    if not new:
        return say(language, "✓ No quiet hours: tasks and watches run at any time.")
    return say(language, "✓ Quiet from {hours}: tasks and watches wait for the end of it.", hours=new)


def _origin(fact: Fact, person: Person, language: str) -> str:
    zone = ZoneInfo(person.timezone)
    day = local_text(datetime.fromtimestamp(fact.at, zone), datetime.now(zone).date(), language)
    foreign = say(language, "perhaps from text of others")
    return f" ({day}, {foreign})" if fact.outside else f" ({day})"


async def _about_somebody(turn: TurnContext, command: str, written: str) -> str:
    """Do what an owner orders about somebody: who may write, and who answers them."""
    owner, services, now = turn.person, turn.services, time.time()
    language, who = owner.language, written.strip().partition(" ")[2].strip()
    hours = services.settings.handover_hours

    def change_person(conn: Connection) -> None:
        person = _CHANGES[command](conn, owner.realm, who, now)
        if person == owner.id:
            raise RecadoError("an owner does not shut themselves out")
        audit.record(conn, owner.id, command, person, now)

    def hand_over(conn: Connection) -> None:
        found = people.conversations_of(conn, owner.realm, who)
        if not found or found[0].person_id == owner.id:
            raise RecadoError("nobody to hand over")
        for one in found:
            if command == "human":
                handovers.begin(conn, one, now + hours * 3600, now, told=True)
            else:
                handovers.give_back(conn, one.id, now)
            audit.record(conn, owner.id, command, one.id, now)

    try:
        await services.store.tx(change_person if command in _CHANGES else hand_over)
    except RecadoError:
        if command not in _CHANGES:
            return say(language, "{who} is in no conversation with me.", who=who)
        return say(
            language, "{who} is nobody whom I can change. Write a number with its country code.", who=who
        )
    services.look_again.set()  # what a guest wrote may have waited for a limit
    if command == "member":
        return say(language, "{who} is a member now.", who=who)
    if command == "block":
        return say(language, "{who} is blocked: I answer them no more.", who=who)
    if command == "bot":
        return say(language, "I answer {who} again.", who=who)
    return say(
        language,
        "You answer {who}: I am silent there until you send me /bot {who}, or {hours} hours after you wrote.",
        who=who,
        hours=f"{hours:g}",
    )


def help_text(turn: TurnContext, language: str, unknown: str) -> str:
    """List what the assistant can do and its commands; `unknown` is a command that it does not know."""
    offline = turn.services.offline
    lines = [say(language, "I do not know {command}.", command=unknown), ""] if unknown else []
    lines.append(say(language, "I am your assistant. Write to me in your own words."))
    if abilities := turn.tools.summary(turn.person, language, offline=offline):
        lines += ["", say(language, "For example:"), *(f"- {ability}" for ability in abilities)]
    lines += [
        "",
        say(language, "Commands:"),
        say(language, "- /help: this list"),
        say(language, "- /stop: I stop what I am doing"),
        say(language, "- /new: a fresh conversation"),
        say(language, "- /memory: what I remember about you"),
        say(language, "- /quiet 22-7: hours in which I do nothing by myself"),
    ]
    if turn.person.is_owner:
        lines.append(say(language, "- /console: a link to your pages"))
    if offline:
        lines += ["", say(language, "I am in my simple built-in mode: I understand short requests only.")]
    if offline and turn.person.is_owner:
        lines.append(
            say(
                language,
                "To connect a real model (Ollama, for example), set OPENAI_BASE_URL and LLM_MODEL "
                "and restart.",
            )
        )
    return "\n".join(lines)


def _word(text: str) -> str:
    return text.strip().strip("¡!.").casefold()
