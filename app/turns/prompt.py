"""Build the prompt of a turn.

The system message and the tool list change only with the chosen tools. What changes with every message
(date, time, language, first contact, quotes) goes into the newest message, so that a provider's prompt cache
keeps hitting.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from zoneinfo import ZoneInfo

import orjson

from app.calendar.rules import shown_zone
from app.llm.model import PROMPTS, ToolCall
from app.memory.summary import summary_line
from app.messages import JSON
from app.people import Person
from app.search.words import terms
from app.skills import Skill
from app.store.limits import CHARACTERS_PER_TOKEN, GUESTS_CHARACTERS
from app.store.skill_data import Fact
from app.store.turn_state import Exchange, InboxMessage, TurnState
from app.text import fold
from app.tools.plain import dumps
from app.turns.actions import Round

# (messages of the history, characters of each message), step by step, for a model with a small window
SHORTER = ((6, 6_000), (0, 2_000))
HISTORY_TOKENS = 6_000
MESSAGE_CHARACTERS = 60_000
EARLIER_CHARACTERS = 15_000  # of an earlier message or answer
QUOTE_CHARACTERS = 2_000
FILE_CHARACTERS = 8_000  # of the first page of a document, escaped
SAID_CHARACTERS = 8_000  # that tools are chosen by
FACTS_BYTES = 1024
FACTS_SAID_CHARACTERS = 1000  # of a message that facts are compared with
_OWN_FACTS = "[What the person asked you to remember, as information: {facts}]"
_OUTSIDE_FACTS = "[Remembered out of text of others, perhaps not the person's own words: {facts}]"
_MOST_CALLS_SHOWN = 6
_NOTHING_SAID = "[They had written nothing]"
_BY_BUSINESS = "[A person of the business answered this themselves:]"
LATE_SECONDS = 120
SAYS_NOTHING = "NOTHING"  # the answer of a watch that found nothing to tell
FILES_ALONE = "[files]"  # for an answer without words: Anthropic's models take no empty message
LANGUAGE_NAMES = {"en": "English", "es": "Spanish", "pt": "Portuguese"}


Message = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of a model call, and the tools that go with it."""

    system: Message = field(default_factory=dict)
    earlier: Sequence[Message] = ()
    newest: Message = field(default_factory=dict)  # what the person sent now
    since: Sequence[Message] = ()
    tools: list[Message] = field(default_factory=list)  # their definitions
    steps: int = 0  # by which it is made shorter, for a model with a small window

    @property
    def messages(self) -> list[Message]:
        """Return the prompt as the model gets it."""
        if not self.steps:
            return [self.system, *self.earlier, self.newest, *self.since]
        history, longest = SHORTER[self.steps - 1]
        earlier = self.earlier[max(len(self.earlier) - history, 0) :]
        clipped = [
            {**one, "content": clip(one["content"], longest)} if isinstance(one["content"], str) else one
            for one in (*earlier, self.newest, *self.since)
        ]
        return [self.system, *clipped]

    @property
    def foreign_texts(self) -> list[str]:
        """Return every text that the model is given, but for our own instructions."""
        return [str(one.get("content") or "") for one in (*self.earlier, self.newest, *self.since)]

    @property
    def given(self) -> tuple[list[str], str]:
        """Return what was said and all results, of which answers are made, and our line with the time."""
        content = self.newest["content"]
        moment, _, said = (content if isinstance(content, str) else content[0]["text"]).partition("\n")
        results = (one for one in self.since if one["role"] == "tool")
        return [said, *(str(one.get("content") or "") for one in (*self.earlier, *results))], moment

    def tokens(self, tools: Sequence[JSON]) -> int:
        """Estimate the size of the prompt with these tools."""
        return len(orjson.dumps([self.messages, tools])) // CHARACTERS_PER_TOKEN


def build_prompt(
    turn: TurnState,
    person: Person,
    skills: Sequence[Skill],
    facts: Sequence[Fact],
    tools: list[Message],
    since: Sequence[Message] = (),
) -> Prompt:
    """Build the prompt of a model call; `since` are the messages after the person's."""
    earlier = history_messages(
        turn.exchanges, longest=GUESTS_CHARACTERS if person.is_guest else EARLIER_CHARACTERS
    )
    if earlier and (summary := summary_line(turn.summary)):
        # a message of its own would be the second of the same side in a row
        earlier[0] = {**earlier[0], "content": f"{summary}\n{earlier[0]['content']}"}
    newest = newest_message(turn, person, facts)
    return Prompt(system_message(person, skills), earlier, newest, since, tools)


def system_message(person: Person, skills: Sequence[Skill]) -> Message:
    """Tell the model who it is, who the person is, and the instructions of the skills in use."""
    role = "owner of this assistant" if person.is_owner else PROMPTS["member"]
    name = orjson.dumps(bare_name(person.name)).decode() if person.name else "unknown"
    who = f"The person's role: {role}\nThe person's name, as they wrote it themselves: {name}"
    lines = [PROMPTS["who"], who]
    for skill in skills:
        files = f"\nIts files: {', '.join(skill.files)}" if skill.files else ""
        lines.append(f"## Skill {skill.name}\n{skill.instructions or skill.description}{files}")
    return {"role": "system", "content": "\n\n".join(lines)}


def history_messages(
    exchanges: Sequence[Exchange], budget: int = HISTORY_TOKENS, longest: int = EARLIER_CHARACTERS
) -> list[Message]:
    """Return the newest earlier turns that fit into `budget` tokens, as messages of `longest` characters.

    The oldest leave in steps of half the budget, so that the beginning stays the same for many turns.
    """
    kept = [(f"{one.said}{_called(one)}", one) for one in exchanges]
    room = budget * CHARACTERS_PER_TOKEN
    excess = sum(len(said) + len(one.reply) for said, one in kept) - room
    left = ceil(excess / (room / 2)) * room / 2
    while left > 0 and len(kept) > 1:
        said, one = kept.pop(0)
        left -= len(said) + len(one.reply)
    messages: list[Message] = []
    for _, one in kept:
        said, reply = clip(one.said, longest) + _called(one), clip(one.reply, longest) or FILES_ALONE
        reply = f"{_BY_BUSINESS}\n{reply}" if one.by_business else reply
        messages.append({"role": "user", "content": said or _NOTHING_SAID})
        messages.append({"role": "assistant", "content": reply})
    return messages


def _called(exchange: Exchange) -> str:
    """Return a line about the calls behind an answer: without it a small model learns to write receipts."""
    calls = "; ".join(map(str, exchange.calls[:_MOST_CALLS_SHOWN]))
    return f"\n[You called: {calls}]" if calls else ""


def newest_message(turn: TurnState, person: Person, facts: Sequence[Fact] = ()) -> Message:
    """Return what the person sent, with everything that holds only now."""
    zone = ZoneInfo(person.timezone or "UTC")
    moment = datetime.fromtimestamp(turn.created_at, zone)
    language = LANGUAGE_NAMES.get(person.language, "English")
    header = [f"[{moment:%A %Y-%m-%d %H:%M}, {shown_zone(zone.key)}; language so far: {language}]"]
    if turn.first_contact:
        header.append(PROMPTS["first_contact"])
    if turn.conversation.group:
        header.append(PROMPTS["group"])
    if turn.open_questions:
        listed = "; ".join(turn.open_questions)
        header.append(f"[The person was asked whether this may run, and has not answered yet: {listed}]")
    header += fact_lines(facts)
    lines = [line for member in turn.members for line in _member_lines(member, turn)]
    most = GUESTS_CHARACTERS if person.is_guest else MESSAGE_CHARACTERS
    text = "\n".join([*header, clip("\n".join(lines), most)])
    attached = [member.payload.get("attachment") or {} for member in turn.members]
    return user_message(text, [path for one in attached for path in one.get("pictures") or ()])


def user_message(text: str, pictures: Sequence[str] = ()) -> Message:
    """Return a user message; its pictures are named by their paths among the person's files."""
    if not pictures:
        return {"role": "user", "content": text}
    parts: list[JSON] = [{"type": "text", "text": text}]
    return {"role": "user", "content": [*parts, *({"type": "picture", "path": path} for path in pictures)]}


def correction_message(text: str) -> Message:
    """Ask for an answer anew, told what was wrong with it."""
    return {"role": "user", "content": f"[A check of your answer, not seen by the person: {text}]"}


def round_messages(one: Round) -> list[Message]:
    """Return a round as chat messages: what the model said, and the results of its calls."""
    if not one.calls:
        return [{"role": "assistant", "content": one.text}] if one.text else []
    asked: Message = {
        "role": "assistant",
        "content": one.text or None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call)},
                **call.attached,
            }
            for call in one.calls
        ],
        **one.attached,
    }
    answers = [
        {"role": "tool", "tool_call_id": call.id, "content": result.text} for call, result in one.finished
    ]
    pictures = [path for _, result in one.finished for path in result.pictures]
    shown = [user_message("[The pictures that the tool results name:]", pictures)] if pictures else []
    return [asked, *answers, *shown]


def arguments_text(call: ToolCall) -> str:
    """Return the arguments as a JSON object: some servers refuse a history that holds anything else."""
    if isinstance(call.arguments, dict):
        return dumps(call.arguments).decode()
    try:
        value = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return orjson.dumps({"invalid_json": call.arguments[:2000]}).decode()
    return call.arguments if isinstance(value, dict) else dumps({"value": value}).decode()


def said_by(members: Sequence[InboxMessage]) -> str:
    """Return the person's own words in a burst; what they forwarded is somebody else's."""
    own = [member.text for member in members if member.text and not member.payload.get("forwarded")]
    return clip("\n".join(own), SAID_CHARACTERS)


def remembered(facts: Sequence[Fact], said: str) -> tuple[Fact, ...]:
    """Return the facts that share the most words with what was said, then the newest, as many as fit.

    `facts` come newest first. One made of text of others comes only with a word of its own in what was said:
    it puts the whole turn under the rules for such text.
    """
    if not facts:
        return ()
    asked = frozenset(terms(said[:FACTS_SAID_CHARACTERS]))  # stems: they begin related words
    texts = [f" {fold(fact.text)}" for fact in facts]
    shared = [sum(f" {stem}" in text for stem in asked) for text in texts]
    left, shown = FACTS_BYTES - len(_OWN_FACTS) - len(_OUTSIDE_FACTS), list[Fact]()
    ranked = sorted(zip(shared, facts, strict=True), key=lambda one: -one[0])  # the newest stay first
    for words, fact in ranked:
        size = len(orjson.dumps(fact.text)) + len("; ")
        if size <= left and (words or not fact.outside):
            shown.append(fact)
            left -= size
    return tuple(shown)


def fact_lines(facts: Sequence[Fact]) -> list[str]:
    """Return the facts as the prompt holds them, the person's own and the others on a line each."""
    lines = []
    for line, outside in ((_OWN_FACTS, False), (_OUTSIDE_FACTS, True)):
        if kept := [orjson.dumps(one.text).decode() for one in facts if one.outside == outside]:
            lines.append(line.format(facts="; ".join(kept)))
    return lines


def _member_lines(member: InboxMessage, turn: TurnState) -> list[str]:
    wamid, quote = str(member.payload.get("quoted") or ""), ""
    if quoted := turn.quoted.get(wamid):
        whose = "an earlier message of their own" if quoted.by_person else "your earlier message"
        quote = f"[In reply to {whose}: {orjson.dumps(clip(quoted.text, QUOTE_CHARACTERS)).decode()}]"
    elif wamid and member.kind != "edit":
        quote = "[In reply to a message whose text is not known here]"
    described, said = _describe(member, turn.created_at), clip(member.text, MESSAGE_CHARACTERS)
    if said and member.payload.get("forwarded"):
        described = described if (member.payload.get("attachment") or {}).get("path") else ""
        said = f"[Forwarded, somebody else's words: {_data(member.text)}]"
    return [line for line in (quote, described, said) if line]


def _describe(member: InboxMessage, now: float) -> str:
    """Name what came besides text, honestly; `now` is when the turn began."""
    details = member.payload.get("details") or {}
    attachment = member.payload.get("attachment") or {}
    kind = member.kind
    if kind == "interactive" and details.get("type") == "nfm_reply":
        return f"[The person filled in a form: {_data(details.get('response'))}]"
    if kind == "scheduled":
        return _scheduled(details, waited=now - member.at)
    if kind in ("text", "interactive", "button"):
        return ""
    if kind == "edit":
        return "[The person corrected an earlier message; it now reads:]"
    if kind in ("location", "contacts", "order", "referral"):
        return f"[The person sent a {kind.rstrip('s')}: {_data(details)}]"
    if kind in PROMPTS["unreadable"] or not attachment:
        sort = PROMPTS["unreadable"].get(
            kind, f"a message of the kind {kind!r} (it cannot be read here: say so)"
        )
        return f"[The person sent {sort}]"
    return _describe_file(kind, member.text, attachment)


def _scheduled(details: JSON, waited: float) -> str:
    """Say that the text that follows is to be done now, though nobody wrote; it `waited` so many seconds."""
    doubt = " Others' words may be in it." if details.get("taint") else ""
    late = details.get("late", 0) + waited
    if details["schedule"] == "task" and late > LATE_SECONDS:
        doubt += f" It was due {late // 60:.0f} minutes ago: say so."
    told: str = PROMPTS[details["schedule"]]
    return told.format(number=details["number"], doubt=doubt, nothing=SAYS_NOTHING)


def _describe_file(kind: str, text: str, attachment: JSON) -> str:
    """Say what a file is, where it is kept, and what it says or why that is not known."""
    voice, state = bool(attachment.get("voice")), attachment.get("state")
    if state == "read" and voice:
        return "[A voice note of the person, transcribed:]" if text else ""
    sort = "a voice note" if voice else PROMPTS["sorts"].get(kind, "a file")
    named = f", named {_data(attachment['filename'])}" if attachment.get("filename") else ""
    kept = f", kept as {_data(attachment['path'])}" if attachment.get("path") else ""
    reason = attachment.get("reason") or ("unheard" if kind in ("audio", "voice") and state != "read" else "")
    if reason:
        pages = ", whose first pages are shown as pictures" if attachment.get("pictures") else ""
        reasons = PROMPTS["why_not"]
        why = "" if pages else f" ({reasons.get(str(reason), reasons['damaged'])})"
        return f"[The person sent {sort}{named}{kept}{pages}{why}]"
    if "text" not in attachment:
        return f"[The person sent {sort}{named}{kept}]"
    pages = attachment.get("pages", 1)
    rest = "" if pages == 1 else f"; page 1 of {pages} follows, the others can be read by that name"
    words = _data(str(attachment["text"]), FILE_CHARACTERS)
    return f"[The person sent {sort}{named}{kept}{rest}. It says: {words}]"


def _data(value: JSON, limit: int = 4_000) -> str:
    return clip(orjson.dumps(value, default=str).decode(), limit)


def clip(text: str, limit: int) -> str:
    """Return the text, its middle left out when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def bare_name(text: str) -> str:
    """Return a name without anything that a name does not need, at most 60 characters: it came unasked."""
    kept = (c if c.isalnum() or c in "'’.-" or unicodedata.category(c)[0] == "M" else " " for c in text[:400])
    return " ".join("".join(kept).split())[:60]
