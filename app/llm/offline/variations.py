"""A question that leaves out what was just asked: "and in Lima?", "y de 3000?", "e amanhã?", "entre tres"."""

import re
from collections.abc import Sequence
from dataclasses import replace

from app.calendar.grammar import fold
from app.llm.offline.arithmetic import NUMERALS, is_arithmetic
from app.llm.offline.followups import without_same
from app.llm.offline.offers import Kind, Offer, Parameter
from app.llm.offline.plan import Planner
from app.llm.offline.steps import Plan, Step, is_sure
from app.llm.smalltalk import small_talk
from app.messages import JSON
from app.search.words import words

_NO_PLAN = Plan()
_MOST_BACK = 5
_LONGEST = 7
_OPENING = re.compile(
    r"[\s¿¡]*(?:(?:y|e|and|ahora|agora|now|ok|bueno|then|entonces|entao|ah|oh|tambien|tambem|also)\b[\s,]*)+"
    r"(?:(?:si|se|if|que tal|what about|how about|what if|it s|fosse|fuera|fueran|son|sao)\b\s*)*"
    r"|[\s¿¡]*(?=(?:en|em|in)\s\S+(?:\s\S+)?\s*\?)"
    r"|[\s¿¡]*(?:que tal|what about|how about|what if|y si|e se)\b\s*"
)
_LEADING = re.compile(
    r"(?:(?:en|em|in|at|no|na|nos|nas|de|do|da|del|of|el|la|o|a|the|para|pra|pro|for|until|to|con|com|with|al|ao"
    r"|entre|between|por|by|dia)\s+)+"
)
_TO = re.compile(r"(?:para|pra|pro|for|until|till|to|al|ate|hasta|a)\s")
_GOES_ON = re.compile(
    r"(?:(?:y|e|and|ahora|agora|now|eso|esto|isso|that)\s+)*"
    r"((?:dividid[oa]|divided?|dividelo|divida|split(?: (?:it|that|this|the (?:bill|total)))?"
    r"|reparte(?:lo)?|rachad[oa])"
    r"\s+(?:entre|por|by|between|para|pra)|entre|menos|minus|mas|mais|plus|por|vezes"
    r"|times|[-+*/×÷])\s*(?=\S)"
)
_NUMBER = r"\d[\d.,]*\d|\d"
_SPELLED = rf"(?:{'|'.join(sorted(NUMERALS, key=len, reverse=True))})"
_ANY_NUMBER = re.compile(
    rf"(?:{_NUMBER}|\b{_SPELLED}\b)(?:(?: | y | e | and |-)(?:\d{{3}}\b|{_SPELLED}\b))*", re.IGNORECASE
)
_PERCENT = re.compile(rf"(?:{_NUMBER})\s*(?:%|por\s?ciento|por\s?cento|percent)", re.IGNORECASE)


def varied(
    planner: Planner, said: str, exchanged: Sequence[tuple[str, str]], plan: Plan = _NO_PLAN
) -> Step | None:
    """The question asked last, with what `said` names in its place; None where it is no such question.

    `exchanged`: what the person said and our answers, the newest last. Where `said` has a `plan` of its own
    it has to be for the same tool, and to name nothing but a moment, a percentage or what to go on with.
    """
    if not _is_short(said):
        return None
    step = _varied(planner, said, exchanged)
    step = without_same(step, planner) if step is not None else None
    if step is None or not _asks_by_itself(plan):
        return step
    is_same = {step.tool for step in plan.steps} == {step.tool}
    return step if is_same and _is_incomplete(planner, said) else None


def _asks_by_itself(plan: Plan) -> bool:
    return any(map(is_sure, plan.steps))


def _is_incomplete(planner: Planner, said: str) -> bool:
    rest, bare = _named(said)
    moment = planner.is_moment(rest) or planner.is_moment(bare)
    return moment or bool(_PERCENT.fullmatch(bare) or _GOES_ON.match(fold(said)))


def _varied(planner: Planner, said: str, exchanged: Sequence[tuple[str, str]]) -> Step | None:
    between: list[str] = [said]
    for before, _ in reversed(exchanged[-_MOST_BACK:]):
        if _is_short(before) and _is_incomplete(planner, before):
            between.append(before)
            continue
        steps = planner.plan(before).steps
        if len({step.tool for step in steps}) == 1 and is_sure(steps[-1]):
            found: Step | None = steps[-1]
            for one in reversed(between):
                found = _with(planner, found, one) if found is not None else None
            return found
        if steps or not _is_short(before) or small_talk(before) is not None:
            return None
        between.append(before)
    return None


def _is_short(said: str) -> bool:
    bare = fold(said)
    return len(words(said)) <= _LONGEST and bool(_OPENING.match(bare) or _GOES_ON.match(bare))


def _with(planner: Planner, step: Step, said: str) -> Step | None:
    offer = planner.offer(step.tool)
    if any(one.is_prose and one.name in step.arguments for one in offer.parameters):
        return None  # what was written down is no question
    if (more := _worked_on(offer, step, said)) is not None:
        return more
    rest, bare = _named(said)
    if not bare:
        return None
    for parameter in sorted(
        offer.parameters, key=lambda one: (one.kind is Kind.PLACE, one.name not in step.arguments)
    ):
        value = _value(planner, parameter, step.arguments.get(parameter.name), rest, bare)
        if value is not None:
            return replace(step, arguments={**step.arguments, parameter.name: value})
    return None


def _named(said: str) -> tuple[str, str]:
    """What follows the opening, with and without the small words before it."""
    opening = _OPENING.match(fold(said))
    rest = said[opening.end() :].strip(" ?!.¿¡,") if opening else ""
    match = _LEADING.match(f"{fold(rest)} ")
    return rest, rest[match.end() :] if match else rest


def _worked_on(offer: Offer, step: Step, said: str) -> Step | None:
    """What was calculated, calculated on: "entre 3"."""
    expression = next((one for one in offer.parameters if one.kind is Kind.EXPRESSION), None)
    match = _GOES_ON.match(fold(said))
    if expression is None or match is None or expression.name not in step.arguments:
        return None
    rest = said[match.end() :].strip(" ?!.")
    told = re.match(rf"(?:{_NUMBER}|[^\W\d]+)(?:\s*%)?", rest)
    if told is None or not is_arithmetic(told.group()) or re.search(r"[\d+*/×÷^]", rest[told.end() :]):
        return None
    whole = (
        f"({step.arguments[expression.name]}) {_SIGNS.get(match[1].split(' ')[0], match[1])} {told.group()}"
    )
    return replace(step, arguments={**step.arguments, expression.name: whole})


_SIGNS = {
    **dict.fromkeys(
        ("dividido", "dividida", "divided", "divide", "dividelo", "divida", "split", "entre", "/", "÷"), "/"
    ),
    **dict.fromkeys(("mas", "mais", "plus", "+"), "+"),
    **dict.fromkeys(("menos", "minus", "-"), "-"),
    **dict.fromkeys(("por", "vezes", "times", "*", "×"), "*"),
}


def _value(planner: Planner, parameter: Parameter, had: JSON, rest: str, bare: str) -> JSON:
    """What the parameter is instead of what it `had`; None where these words are nothing for it."""
    match parameter.kind:
        case Kind.EXPRESSION if isinstance(had, str):
            return _recalculated(had, bare)
        case Kind.QUANTITY if isinstance(had, str):
            number = re.fullmatch(_NUMBER, bare)
            return re.sub(_NUMBER, bare, had, count=1) if number else planner.read(bare, parameter)
        case Kind.UNIT if had is not None and not re.search(r"\d", bare):
            return planner.read(bare, parameter)
        case Kind.LIST if had is not None and not planner.is_moment(rest):
            return planner.read(_TOO.sub("", rest), parameter)
        case Kind.WHEN if planner.is_moment(rest) or planner.is_moment(bare):
            return planner.read(bare if planner.is_moment(bare) else rest, parameter)
        case Kind.WHEN if isinstance(had, str) and _is_another_day(planner, had, rest, bare):
            return planner.read(bare, parameter)
        case Kind.PLACE if _is_name(bare) and not planner.is_moment(bare):
            return planner.read(bare, parameter)
        case _:
            return None


_TOO = re.compile(
    r"^(?:(?:tamb[ií][eé]n|tamb[eé]m|also|falta[nm]?|mais|m[aá]s)\s+)+"
    r"|\s+(?:tamb[ií][eé]n|tamb[eé]m|too|as well)$",
    re.IGNORECASE,
)
"""What is said beside the things that are added to a list."""


def _is_another_day(planner: Planner, had: str, rest: str, bare: str) -> bool:
    """Whether a day is named by a name: "para año nuevo", or after another such name."""
    return bool(_TO.match(f"{fold(rest)} ")) or (_is_name(bare) and not planner.is_moment(had))


def _is_name(text: str) -> bool:
    return not re.search(r"\d", text) and len(words(text)) <= 4


def _recalculated(had: str, bare: str) -> str | None:
    """The expression with another percentage, or another last number."""
    if not is_arithmetic(bare):
        return None
    if _PERCENT.fullmatch(bare):
        return _PERCENT.sub(lambda _: bare, had, count=1) if _PERCENT.search(had) else None
    numbers = list(_ANY_NUMBER.finditer(fold(had)))
    if not numbers:
        return None
    last = numbers[-1]
    return f"{had[: last.start()]}{bare}{had[last.end() :]}"
