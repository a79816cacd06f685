"""Check an answer before it is sent: a guest's for what was made up, any for deeds that no tool did.

A small model fills in a price where it has none, and writes "I added it" without a call. What it says is
compared with what it was given, and with the calls of the turn.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from app.calendar.grammar import MONTHS, NUMBERS
from app.i18n import say, word_tables
from app.llm.model import PROMPTS
from app.text import fold
from app.turns.state import TurnContext

# Each language in its own spelling: without accents "anoté" would be "anote".
_DEEDS = {name: "|".join(words.split()) for name, words in word_tables()["deeds"].items()}
_SAYS = {name: "|".join(listed) for name, listed in word_tables()["tells_of_deeds"].items()}
_DONE = {**_DEEDS, **{name: _SAYS[name].format(**_DEEDS) for name in ("done_es", "done_pt", "done_en")}}
_DID = re.compile(rf"(?<!\w)(?:{_SAYS['did']}|{_SAYS['will']})(?!\w)|{_SAYS['at_once']}".format(**_DONE))
_STANDS = re.compile(rf"(?<!\w)(?:{_SAYS['is_done']})(?!\w)".format(**_DONE))
_NOT = re.compile(rf"\b(?:{_SAYS['not']})\b|n['’]t\b")
_IF = re.compile(rf"\b(?:{_SAYS['if']})\b")
_EARLIER = re.compile(rf"\b(?:{_SAYS['earlier']})\b")
_QUOTED = re.compile(r"“[^“”]*”|«[^«»]*»|\"[^\"\n]*\"|`[^`]*`")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*")

SMALL = 10  # so many things are counted rather than priced, unless a sign or a unit says otherwise
NOON = 12
EARLIEST = 8  # an hour before it, of which nothing more is said, may be one of the afternoon
_AFTER_TWENTY = "dos tres cuatro cinco seis siete ocho nueve"
_VALUES = {
    **{f"veinti{word}": 20 + NUMBERS[word] for word in _AFTER_TWENTY.split()},
    **{word: value for word, value in NUMBERS.items() if word not in ("a", "an")},
    **{word: value for value, words in word_tables()["amounts"].items() for word in words.split()},
}
_WORD = rf"(?:{'|'.join(sorted(_VALUES, key=len, reverse=True))})"
_SPELLED = re.compile(  # "at once" is no eleven
    r"(?<![\w.,])(?!(?<=\bat )once)(?:\d{1,3}(?:[.,]\d)? (?=mi|thou))?"
    rf"{_WORD}(?:(?: [ye] | and | a |[ -]){_WORD})*\b"
)
_NUMBER = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:[., ]\d{3}){1,4}(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?)(?!\d)")
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DATE = re.compile(
    rf"""\b(\d{{1,2}})(?:st|nd|rd|th|o|º|°)?\ (?:de\ |of\ )?({_MONTH})\b
    | \b({_MONTH})\ (\d{{1,2}})(?:st|nd|rd|th)?\b
    | \b(\d{{1,2}})[/-](\d{{1,2}})(?:[/-]\d{{2,4}})?\b
    | \b\d{{4}}-(\d{{2}})-(\d{{2}})\b""",
    re.VERBOSE,
)
_TIME = re.compile(
    r"""(?P<at>\b(?:las?|as|das|pelas|at|from|between|until|till|before|after|opens?|closes?)\ )?
    (?<![\d:,.$])(?P<hour>\d{1,2})(?!\d|[.,]\d{3})(?P<minute>[:.h]\d{2}\b)?
    (?:\s?(?P<pm>p\.?m\b\.?|(?:de\ la|da)\ (?:tarde|noche|noite)|in\ the\ (?:afternoon|evening))
      |\s?(?P<am>a\.?m\b\.?|(?:de\ la|da)\ (?:ma|madr)\w+|in\ the\ morning))?
    (?P<unit>\s?(?:hs?|hrs)\b)?
    (?P<to>\ ?(?:a|as|to|ate|until|till|hasta|[–—])\ (?:(?:las?|as)\ )?(?=\d))?""",
    re.VERBOSE,
)
_PHONE = re.compile(r"(?<![\w$/-])\+?\(?(?:\d[ ().–-]{0,3}){7,15}(?!\w)")
_LINK = re.compile(r"\bhttps?://[^\s)>\]]+|\bwww\.[^\s)>\]]+|\b[\w.+-]{1,64}@[\w-]{1,255}\.[\w.]+\b")
_AROUND = {name: "|".join(listed) for name, listed in word_tables()["around_figures"].items()}
_STREET = re.compile(rf"\b(?:{_AROUND['street']})\b\.?(?: (?:del?|d[aeo]s?|l[ao]s?))* (\w{{4,}})")
_MONEY_BEFORE = re.compile(r"(?:[$¢-¥֏؋฿₠-⃀]|\b(?:mxn|ars|clp|cop|brl|usd|eur|gbp|pen|q|bs)\.?) ?$")
_MONEY_AFTER = re.compile(rf" ?(?:[$¢-¥֏؋฿₠-⃀%]|(?:de )?(?:{_AROUND['money_after']})\w*)")
_COUNTED = re.compile(rf" ?(?:{_AROUND['counted']})\b")
_WITH_BREAKS = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?\n*")


@dataclass(frozen=True, slots=True)
class AnswerFault:
    """A fault of an answer: `correction` tells the model, `honest` is the answer that the person may get."""

    kind: Literal["made up", "not done"]
    correction: str
    honest: str


def find_fault(turn: TurnContext, answer: str) -> AnswerFault | None:
    """Return what is wrong with an answer of a model, None if nothing is. Takes time for a long answer."""
    return _made_up(turn, answer) or (None if turn.services.offline else _not_done(turn, answer))


def _made_up(turn: TurnContext, answer: str) -> AnswerFault | None:
    """Look for prices, dates and the like, in an answer to a guest, that stand nowhere."""
    if not turn.person.is_guest or turn.asks:
        return None
    if not (found := unsupported(answer, *turn.prompt.given)):
        return None
    unknown = say(
        turn.person.language, "That I do not know. If you like, say that you want to talk to a person."
    )
    return AnswerFault("made up", PROMPTS["made_up"] % " ".join(found), without(answer, found) or unknown)


def _not_done(turn: TurnContext, answer: str) -> AnswerFault | None:
    """Look for "I added it" and "I will remind you" in an answer before which no tool changed anything."""
    finished = turn.transcript.finished
    reading = turn.tools.read_only()
    if any(result.dry_run or (result.ok and call.name not in reading) for call, result in finished):
        return None
    earlier = any(call.changed for exchange in turn.state.exchanges for call in exchange.calls)
    has_read = earlier or any(result.ok for _, result in finished)
    if not (found := claimed(answer, read_something=has_read)):
        return None
    denial = say(turn.person.language, "I have not done that. Ask me for it again, in one short sentence.")
    honest = f"{without(answer, found)}\n\n{denial}".strip()
    return AnswerFault("not done", PROMPTS["not_done"] % " ".join(found), honest)


def claimed(answer: str, *, read_something: bool) -> list[str]:
    """Return the sentences that say that the assistant did something, or will.

    `read_something`: a tool told how things stand, so "it is booked" says no more than that.
    """
    sentences = filter(str.strip, _SENTENCE.findall(answer))
    return [one for one in sentences if _claims(one, read_something=read_something)]


def without(answer: str, sentences: list[str]) -> str:
    """Return an answer without these sentences."""
    for sentence in sentences:
        answer = answer.replace(sentence, "", 1)
    return re.sub(r"(?<![ \t])[ \t]+\n|\n{3,}", "\n\n", answer).strip()


def _claims(sentence: str, *, read_something: bool) -> bool:
    said = _QUOTED.sub("…", sentence.strip(" \t*_-•").casefold())
    if said.endswith("?") or "¿" in said or _EARLIER.search(said):
        return False
    patterns = (_DID,) if read_something else (_DID, _STANDS)
    negated, doubted = _NOT.search(said), _IF.search(said)
    first_not = negated.end() if negated else len(said) + 1
    first_if = doubted.end() if doubted else len(said) + 1
    found = (match for pattern in patterns for match in pattern.finditer(said))
    return any(one.end() < first_not and one.start() < first_if for one in found)


def unsupported(answer: str, given: Iterable[str], moment: str = "") -> list[str]:
    """Return the sentences of an answer that hold what stands in none of the texts that were given.

    `moment` is the line that tells the date and time: an answer may repeat these, but it is no price.
    """
    evidence = _Evidence("\n".join(given).replace("\\n", "\n"), moment)  # results are JSON
    return [one for one in _WITH_BREAKS.findall(answer) if one.strip() and not evidence.holds(_plain(one))]


class _Evidence:
    """The texts that an answer may be made of."""

    def __init__(self, given: str, moment: str) -> None:
        self._text, self._now = _plain(given), _plain(moment)
        self._prices = set(map(_value, _NUMBER.findall(self._text)))
        self._numbers = self._prices | set(map(_value, _NUMBER.findall(_TIME.sub(" ", self._now))))
        self._days = {_day(match) for match in _DATE.finditer(f"{self._text}\n{self._now}")}
        times = [match for match in _TIME.finditer(self._text) if _is_time(match)]
        self._hours = {hour for match in times for hour in _hours(match, EARLIEST)}
        self._clocks = {(hour, _minute(match)) for match in times for hour in _hours(match, EARLIEST)}
        self._digits = re.sub(r"[ ().–-]", "", self._text)

    def holds(self, said: str) -> bool:
        """Tell whether everything in a sentence stands in the texts; what is a date is no amount."""
        checks: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], bool]], ...] = (
            (_LINK, self._holds_words),
            (_STREET, self._holds_words),
            (_DATE, lambda match: _day(match) in self._days),
            (_PHONE, lambda match: re.sub(r"\D", "", match[0])[-7:] in self._digits),
            (_TIME, self._holds_time),
            (_NUMBER, self._holds_amount),
        )
        for pattern, is_held in checks:
            for match in pattern.finditer(said):
                if pattern is _TIME and not _is_time(match):
                    continue
                if not is_held(match):
                    return False
                said = f"{said[: match.start()]}{'_' * len(match[0])}{said[match.end() :]}"
        return True

    def _holds_words(self, match: "re.Match[str]") -> bool:
        return all(word in self._text for word in match.groups() or [match[0].rstrip(".,;:")])

    def _holds_time(self, match: "re.Match[str]") -> bool:
        if match["minute"] and f"{match['hour']}{match['minute']}" in self._now:
            return True
        if minute := _minute(match):
            return any((hour, minute) in self._clocks for hour in _hours(match, NOON))
        return not self._hours.isdisjoint(_hours(match, NOON))

    def _holds_amount(self, match: "re.Match[str]") -> bool:
        value, text, end = _value(match[0]), match.string, match.end()
        if _is_money(text, match.start(), end):
            return value in self._prices
        is_few = match[0].isdigit() and len(match[0]) < 3 and int(match[0]) <= SMALL
        return is_few or _COUNTED.match(text, end) is not None or value in self._numbers


def _plain(text: str) -> str:
    """Return a folded text without marks and invisible characters, its numbers written in digits."""
    seen = (c for c in fold(text) if c not in "*_~`\\" and unicodedata.category(c) not in ("Mn", "Cf"))
    plain = "".join(" " if c.isspace() and c != "\n" else c for c in seen)
    return _SPELLED.sub(_in_digits, plain)


def _in_digits(found: "re.Match[str]") -> str:
    total = group = 0.0
    for word in re.findall(r"[a-z]+|[\d.,]+", found[0]):
        value = _VALUES.get(word) or (float(word.replace(",", ".")) if word[0].isdigit() else 0)
        if value >= 1000:
            total, group = (total + group) * value if value > 1000 else total + (group or 1) * value, 0
        elif word == "hundred":
            group = (group or 1) * value
        elif value == 0.5 and total:  # a million and a half
            group = 500_000
        else:
            group += value
    number = round(total + group)
    return found[0] if number <= 1 else str(number)  # "un" is an article


def _value(number: str) -> str:
    """Return a number in one form: "1.250,00", "1,250" and "1250" are the same."""
    whole, _, cents = number.replace(" ", "").replace(",", ".").rpartition(".")
    if whole and len(cents) == 3:
        whole, cents = whole + cents, ""
    elif not whole:
        whole, cents = cents, ""
    return f"{whole.replace('.', '').lstrip('0') or 0}.{cents.rstrip('0')}".rstrip(".")


def _is_money(text: str, start: int, end: int) -> bool:
    before = text[max(start - 5, 0) : start]
    return bool(_MONEY_BEFORE.search(before) or _MONEY_AFTER.match(text, end))


def _is_time(match: "re.Match[str]") -> bool:
    """Tell a time from another small number: by its own signs, or by "at" unless it counts something."""
    is_too_late = int(match["hour"]) > 24 or _minute(match) > 59
    if is_too_late or _is_money(match.string, match.start("hour"), match.end()):
        return False
    if match["minute"] or match["pm"] or match["am"] or match["unit"]:
        return True
    return bool(match["at"] or match["to"]) and not _COUNTED.match(match.string, match.end())


def _minute(match: "re.Match[str]") -> int:
    return int((match["minute"] or ":0")[1:])


def _hours(match: "re.Match[str]", doubtful: int) -> set[int]:
    """Return the hours of the day that a time may be of; one before `doubtful` may be after noon."""
    hour = int(match["hour"])
    if match["pm"] or match["am"]:
        return {hour % 12 + (12 if match["pm"] else 0)}
    return {hour, hour + 12} if hour < doubtful else {hour}


def _day(match: "re.Match[str]") -> tuple[int, ...]:
    """Return day and month; of two numbers the larger may be either, so both orders are one."""
    return tuple(sorted(MONTHS.get(part) or int(part) for part in match.groups() if part))
