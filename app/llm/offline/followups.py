"""A message that goes on with what we said: it answers our question, or picks from what we listed."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import orjson

from app.llm.offline.answers import pick_question, questions
from app.llm.offline.lists import ORDINALS, listed
from app.llm.offline.offers import Kind
from app.llm.offline.plan import Planner
from app.llm.offline.steps import Plan, Step
from app.llm.offline.templates import IT, SAME
from app.llm.smalltalk import small_talk
from app.messages import JSON
from app.people import Person
from app.search.words import ALL_STOP_WORDS, fold, spans, words

_MOST_BACK = 3
LONGEST_CHOICE = 8
"""Words of an answer that picks one of several."""
_NONE = re.compile(
    r"\W*(?:no|nop|nope|nao|ningun[oa]?|nenhuma?|none|neither|nada|cancel[ae]?r?|deja(?:lo)?|deixa|olvidal[oa]"
    r"|esquece|never ?mind)(?: (?:de (?:ell[oa]s|es[oa]s|est[oa]s|los dos)|dess[ea]s|deles|of them|thanks"
    r"|gracias|obrigad[oa]|isso))*\W*"
)
_NUMERALS = {
    **dict.fromkeys(("uno", "one"), "1"),
    **dict.fromkeys(("dos", "dois", "two"), "2"),
    **dict.fromkeys(("tres", "three"), "3"),
    **dict.fromkeys(("cuatro", "quatro", "four"), "4"),
    **{word: str(place) for word, place in ORDINALS.items() if place},
}


def follow_up(
    planner: Planner, before: str, answer: str, said: str, person: Person, plan: Plan
) -> tuple[Step, ...]:
    """The steps that `said` completes, after what the person said `before` and our `answer` to it; `plan` is
    what it asks for by itself."""
    one = _answered(planner, before, answer, said, person, plan) or _picked(
        planner, before, answer, said, person
    )
    return (one,) if one is not None else _chosen(planner, before, answer, said)


def resolved(
    plan: Plan, planner: Planner, before: str, answer: str, category_of: Callable[[str], str]
) -> Plan:
    """The plan with what "it" stands for: what our receipt named, else what was said `before`.

    Without the steps whose "it" is of no other step of their tool's category.
    """
    if not points(plan):
        return plan
    receipt = _receipt_of(answer)
    said = [step for step in planner.plan(before).steps if receipt or not _names(step, IT)]
    beside = [step for step in plan.steps if not _pointing(step)]
    earlier = {category_of(step.tool): step for step in (*beside, *said)}
    told = receipt or _only_line(answer)
    steps = (_resolved(step, earlier.get(category_of(step.tool)), told, planner) for step in plan.steps)
    return replace(plan, steps=tuple(step for step in steps if step is not None))


def _resolved(step: Step, earlier: Step | None, told: str, planner: Planner) -> Step | None:
    pointing = _pointing(step)
    if not pointing:
        return step
    if earlier is None:
        return None
    offer = planner.offer(step.tool)
    arguments = dict(step.arguments)
    for name in pointing:
        had = None if name in _pointing(earlier) else earlier.arguments.get(name)
        parameter = offer.parameter(name)
        if arguments.pop(name) == SAME:
            arguments |= {name: had} if had is not None else {}
        elif parameter is not None and parameter.kind is Kind.LIST:
            arguments[name] = planner.read(told, parameter) or had or [IT]
        else:
            arguments[name] = told or had or IT
    return _asking(replace(step, arguments=arguments), planner)


def without_same(step: Step, planner: Planner) -> Step:
    """The step without what it says to be the same as before."""
    given = {name: value for name, value in step.arguments.items() if value != SAME}
    return _asking(replace(step, arguments=given), planner) if len(given) < len(step.arguments) else step


def _asking(step: Step, planner: Planner) -> Step:
    """The step with the first of what it still needs, by its arguments as they are now."""
    required = planner.offer(step.tool).required
    return replace(step, missing=next((one for one in required if one.name not in step.arguments), None))


def _pointing(step: Step) -> list[str]:
    """The arguments that stand for what was talked about."""
    return [name for name, value in step.arguments.items() if value in (IT, SAME, [IT])]


def _names(step: Step, value: str) -> bool:
    return any(given in (value, [value]) for given in step.arguments.values())


def _receipt_of(answer: str) -> str:
    """What a receipt of ours is about, "" for any other answer."""
    told = answer.split("\n")[0]
    if not told.startswith("✓"):
        return ""
    quoted = _WITH_WARNING.search(told)
    named = quoted[1] if quoted else told.rpartition(": ")[2]
    return named.removesuffix("…")


_WITH_WARNING = re.compile(r": [“«]([^“”«»]+)[”»] \([^()]+\)$")
"""A text of others at the end of a receipt, quoted and said to be theirs."""


def _only_line(answer: str) -> str:
    """The number of the one line that a list of ours has, "" for any other answer."""
    numbers = listed(answer)
    return numbers[0] if len(numbers) == 1 else ""


def picks_none(answer: str, said: str, language: str) -> bool:
    """Whether it is a no to the list that we asked about."""
    return pick_question(language) in answer and _NONE.fullmatch(fold(said)) is not None


def points(plan: Plan) -> bool:
    """Whether a step of it is about "it"."""
    return any(map(_pointing, plan.steps))


def subject(planner: Planner, exchanged: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """What the last exchange was about that asked for something, and our answer; empty where none did.

    A receipt may have come later, once our question was answered; any other that came later is of something
    that is not offered now, and then nobody can tell what "it" is.
    """
    later = ""
    for said, answer in reversed(exchanged[-_MOST_BACK:]):
        if small_talk(said) is not None:
            continue
        if planner.plan(said).steps:
            return (said, later or answer) if not later or "?" in answer else ("", "")
        later = later or (answer if _receipt_of(answer) else "")
    return "", ""


def talked_about(
    planner: Planner, before: str, plan: Plan, category_of: Callable[[str], str]
) -> tuple[str, ...]:
    """The categories of what was said `before`, then those of what a plan asks for without pointing."""
    beside = (step for step in plan.steps if not _pointing(step))
    steps = (*planner.plan(before).steps, *beside)
    return tuple(dict.fromkeys(category_of(step.tool) for step in steps))


def exchanges(messages: Sequence[Mapping[str, JSON]]) -> list[tuple[str, str]]:
    """What the person said and what we answered, the newest last, without what waits for its answer."""
    found: list[tuple[str, str]] = []
    said = ""
    for message in messages:
        if message.get("role") == "user":
            said = content_of(message)
        elif message.get("role") == "assistant" and not message.get("tool_calls"):
            found.append((said, content_of(message)))
    return found


def before_last_exchange(messages: Sequence[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """The messages up to the last one that we answered, and what the person says now."""
    places = [at for at, one in enumerate(messages) if one.get("role") == "user"]
    answered = next(
        (at for at in range(len(messages) - 1, -1, -1) if _is_answer(messages[at])), len(messages)
    )
    asked = next((at for at in reversed(places) if at < answered), len(messages))
    return [*messages[:asked], *messages[answered + 1 :]]


def _is_answer(message: Mapping[str, JSON]) -> bool:
    return message.get("role") == "assistant" and not message.get("tool_calls")


def last_exchange(messages: Sequence[Mapping[str, JSON]]) -> tuple[str, str]:
    """What the person said before our last answer, and the answer; empty where there was none."""
    found = exchanges(messages)
    return found[-1] if found else ("", "")


def content_of(message: Mapping[str, JSON]) -> str:
    """The text of a message, whichever form it has."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _answered(
    planner: Planner, before: str, answer: str, said: str, person: Person, plan: Plan
) -> Step | None:
    """The step that our own last question was about, with `said` as its answer, unless it asks for more."""
    last_line = answer.strip().split("\n")[-1]
    if not any(last_line.startswith(known) for known in questions(person.language)):
        return None
    earlier = [without_same(step, planner) for step in planner.plan(before).steps]
    waiting = next((step for step in earlier if step.missing is not None), None)
    if waiting is None or said.rstrip().endswith("?"):
        return None
    if any(not step.guessed and step.tool != waiting.tool for step in plan.steps):
        return None
    return planner.answered(waiting, said)


def _picked(planner: Planner, before: str, answer: str, said: str, person: Person) -> Step | None:
    """The step whose answer was a numbered list of names, with the one that `said` picks."""
    if pick_question(person.language) not in answer or len(words(said)) > LONGEST_CHOICE:
        return None
    steps = planner.plan(before).steps
    if len(steps) != 1 or steps[0].missing is not None:
        return None
    listed = dict(re.findall(r"^(\d{1,2})\. (\S+)", answer, re.MULTILINE))
    numbers = (_NUMERALS.get(word, word) for word in words(said))
    name = next((listed[number] for number in numbers if number in listed), "")
    return planner.renamed(steps[0], _named(said, list(listed.values())) or name)


def _named(said: str, names: Sequence[str]) -> str:
    """The name that is spelled out, or has a word of those said that no other of them has; "" for none."""
    spelled = [name for name in names if fold(name) in fold(said)]
    known = Counter(word for name in names for word in set(words(name)))
    told = [name for name in names if any(known[word] == 1 for word in {*words(name)} & {*words(said)})]
    return next((found[0] for found in (spelled, told) if len(found) == 1), "")


def _chosen(planner: Planner, before: str, answer: str, said: str) -> tuple[Step, ...]:
    """The step whose answer asked which of several places is meant, with the one that `said` names; several
    where one phrase asked for them all."""
    found = spans(said)
    offered = {fold(name) for name in re.findall(r"[^\W\d_]+", answer) if name[0].isupper()} - ALL_STOP_WORDS
    named = next((word.start for word in found if word.text in offered), None)
    if "?" not in answer or named is None or len(found) > LONGEST_CHOICE:
        return ()
    steps = planner.plan(before).steps
    if len({orjson.dumps(step.arguments) for step in steps}) != 1:
        return ()
    narrowed = (planner.narrowed(step, said[named:]) for step in steps)
    return tuple(step for step in narrowed if step is not None)
