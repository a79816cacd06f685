"""One more like the last one, at another time: "y a las 10 llamar a mi mamá", "e às quintas também"."""

import re
from collections.abc import Sequence

from app.calendar.changes import as_often_as, with_day_of, with_hour_of
from app.calendar.grammar import fold
from app.llm.offline.answers import lost_text
from app.llm.offline.followups import follow_up
from app.llm.offline.hours import with_hour
from app.llm.offline.offers import Kind
from app.llm.offline.plan import Planner
from app.llm.offline.steps import Plan, Step, is_sure
from app.llm.offline.templates import IT, SAME
from app.llm.smalltalk import Talk, small_talk
from app.people import Person
from app.search.words import says_something, words

RECEIPT = "✓"
_MOST_BACK = 4
_LONGEST = 300
_MOST_WORDS = 6
"""Of what is to be told at the same time as something else."""
_OPENING = re.compile(
    r"\W*(?:(?:y|e|and|also|tambien|tambem|tb|tbm|tbn|ademas|luego|depois|then|ah|oh|ok|bueno)\b[\s,:]*)+"
)
_TOO = re.compile(
    r"\b(?:tambi[eé]n|tamb[eé]m|tb|tbm|tbn|also|too|as well|igual|lo mismo|o mesmo|the same)\b[\s,]*",
    re.IGNORECASE,
)
_LEADING = re.compile(
    r"^(?:(?:que|de|to|para|pra|recu[eé]rda(?:me|lo)?|me lembra|remind me|otro|outro|another(?: one)?)\b"
    r"[\s,:]*)+",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\W*(?:(?:no|nao|nope|perdon|perdona|desculpa|sorry|ay|ups|ops|oops|wait|espera|pera|digo|ah|ya"
    r"|que sea|que seja|era|eran|es|e|i mean|i meant|quise decir|quis dizer|quer dizer|na verdade|na vdd"
    r"|na real|en realidad|actually|rather|better|mejor|melhor|make it|make that|change it to|ponlo|cambialo"
    r"|muda|bota)\b\W*)+"
)
_NUMBER = re.compile(r"\W*(?:(?:en|em|in)\s+)?(\d{1,3})\W*")
_BETTER = {"en": "better", "es": "mejor", "pt": "melhor"}
_NO_ADDITION = re.compile(r"\W*(?:no|nao|nope|mejor|melhor|better|perdon|desculpa|sorry|actually)\b")


def may_add(said: str) -> bool:
    """Whether a message begins as one that adds to what was said."""
    return len(said) <= _LONGEST and _OPENING.match(fold(said)) is not None


def without_thanks(exchanged: Sequence[tuple[str, str]], language: str) -> list[tuple[str, str]]:
    """The exchanges that were about something: what is thanked for is still what "cancel it" means, also when
    something was not understood since."""
    lost = lost_text((), language).split("\n")[0]
    polite = (Talk.THANKS, Talk.NOD, Talk.WARMTH, Talk.SORRY, Talk.ANSWER, Talk.NEVER_MIND)
    return [
        (said, answer)
        for said, answer in exchanged
        if small_talk(said) not in polite and not answer.startswith(lost)
    ]


def learn_additions(planner: Planner, exchanged: Sequence[tuple[str, str]], person: Person) -> None:
    """Tells the planner what earlier messages meant that went on with the one before them: that answered our
    question, or asked for one more."""
    first = max(1, len(exchanged) - _MOST_BACK)
    for at in range(first, len(exchanged)):
        said, answer = exchanged[at]
        plan = planner.plan(said)
        if not answer.startswith(RECEIPT) or _asks_by_itself(plan):
            continue
        earlier = exchanged[:at]
        if timed := with_hour(*earlier[-1], said, person.language):
            planner.learn(said, planner.plan(timed))
        elif better := corrected(planner, said, earlier):
            planner.learn(said, planner.plan(better))
        elif step := another(planner, said, earlier):
            planner.learn(said, Plan((step,)))
        elif steps := follow_up(planner, *earlier[-1], said, person, plan):
            planner.learn(said, Plan(steps))


def _asks_by_itself(plan: Plan) -> bool:
    """Whether a step of it is sure wherever it stands: "add milk" is only where a list was talked about."""
    return any(is_sure(step) and SAME not in step.arguments.values() for step in plan.steps)


def as_correction(said: str, language: str) -> str:
    """A message of few words that begins with "no" and the like, as one that says "better"; else as it is."""
    no = _NO.match(fold(said))
    if no is None or len(words(said)) > _MOST_WORDS or not said[no.end() :].strip():
        return said
    return f"{_BETTER[language]} {said[no.end() :]}"


def corrected(planner: Planner, said: str, exchanged: Sequence[tuple[str, str]]) -> str:
    """A message that is only another moment for what was set last, as one that says so: "no, a las 8"."""
    if not exchanged or not exchanged[-1][1].startswith(RECEIPT) or said.rstrip().endswith("?"):
        return ""
    no = _NO.match(fold(said))
    if no is None and _asks_by_itself(planner.plan(said)):  # "in 10 minutes more" once it rang
        return ""
    rest = said[no.end() :] if no else said
    if no and (number := _NUMBER.fullmatch(rest)):
        rest = _so_many(planner, exchanged[-1][0], number[1])
    return f"{_BETTER[planner.language]} {rest}" if planner.is_moment(rest) else ""


def _so_many(planner: Planner, before: str, number: str) -> str:
    """ "In 3 days" for a 3 after "in 2 days"; "" where no such time was said."""
    found = planner.when(before)
    told = next((words for words in found.words if found.kinds == {"span"}), "")
    return re.sub(r"\d+", number, told, count=1)


def another(planner: Planner, said: str, exchanged: Sequence[tuple[str, str]]) -> Step | None:
    """What was set last, with the moment that `said` names, and its text where it has one.

    None where it names no moment, asks for something else, or nothing was set last.
    """
    rest = _added(planner, said)
    if not rest or _asks_by_itself(planner.plan(said)):
        return None
    changes: list[str] = []
    for before, answer in reversed(exchanged[-_MOST_BACK:]):
        steps = planner.plan(before).steps
        if not answer.startswith(RECEIPT) or not steps or not is_sure(steps[-1]):
            return None
        if (step := _at_another_time(planner, steps[-1], rest, changes)) is not None:
            return step
        if IT not in steps[-1].arguments.values():  # what was only changed was set before
            return None
        changes += [value for value in map(str, steps[-1].arguments.values()) if planner.is_moment(value)]
    return None


def _added(planner: Planner, said: str) -> str:
    """What is to be added: behind an "and", or what begins with a moment and goes on; else ""."""
    if len(said) > _LONGEST or said.rstrip().endswith("?") or _NO_ADDITION.match(fold(said)):
        return ""
    opening = _OPENING.match(fold(said))
    rest = said[opening.end() :] if opening else said
    reading = planner.when(rest)
    begins = (
        bool(reading.words) and rest.strip().startswith(reading.words[0]) and says_something(reading.rest)
    )
    return rest if opening or begins or _TOO.search(fold(rest)) else ""


def _at_another_time(planner: Planner, step: Step, rest: str, changes: Sequence[str]) -> Step | None:
    """`changes`: the moments that it was changed to since, the newest first."""
    given = [one for one in planner.offer(step.tool).parameters if one.name in step.arguments]
    texts = [one.name for one in given if one.is_prose]
    moments = [one.name for one in given if one.kind is Kind.WHEN]
    reading = planner.when(rest)
    if len(given) != 2 or len(texts) != 1 or len(moments) != 1:
        return None
    had, when = str(step.arguments[moments[0]]), " ".join(reading.words)
    for change in reversed(changes):
        had = with_hour_of(with_day_of(change, had, planner.language), had, planner.language)
    text = _LEADING.sub("", _TOO.sub("", reading.rest.strip(" ,.;:!"))).strip(" ,.;:!")
    if not reading.words:
        is_thing = _TOO.search(fold(rest)) and says_something(text) and len(words(text)) <= _MOST_WORDS
        return Step(step.tool, {texts[0]: text, moments[0]: had}) if is_thing else None
    if not says_something(text) or "day_of_month" in reading.kinds:
        when = as_often_as(when, had, planner.language)
    if not says_something(text):
        text, when = str(step.arguments[texts[0]]), with_hour_of(when, had, planner.language)
    return Step(step.tool, {texts[0]: text, moments[0]: _on_its_day(planner, when, had)})


def _on_its_day(planner: Planner, when: str, had: str) -> str:
    """An hour on the day of what was set before, unless it has passed there."""
    on_day = with_day_of(when, had, planner.language)
    before = planner.when(had).when
    if on_day == when and before is not None and not before.rule:
        on_day = with_day_of(when, f"{before.start:%Y-%m-%d}", planner.language)
    return when if planner.when(on_day).problem == "past" else on_day
