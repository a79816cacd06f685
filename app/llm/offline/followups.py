"""Messages that go on with what was said: an answer, a picked line, "it", another time, another place."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.calendar.grammar import pieces
from app.llm.model import CALLED
from app.llm.offline.arithmetic import NUMERALS, is_arithmetic
from app.llm.offline.parameters import Kind, Offer, Parameter
from app.llm.offline.planner import Plan, Planner, Step
from app.llm.offline.replies import hours_asked, lost_text, pick_question, questions
from app.llm.offline.slots import convert
from app.llm.offline.templates import IT, SAME
from app.llm.smalltalk import Talk, small_talk
from app.messages import JSON
from app.search.words import ALL_STOP_WORDS, fold, spaced, spans, words

RECEIPT = "✓"  # begins what a tool says that changed something
_POLITE = (Talk.THANKS, Talk.NOD, Talk.WARMTH, Talk.SORRY, Talk.ANSWER, Talk.NEVER_MIND)


@dataclass(frozen=True)
class Exchange:
    """A message of the person and our answer."""

    said: str = ""
    answer: str = ""

    @property
    def is_receipt(self) -> bool:
        return self.answer.startswith(RECEIPT)


def exchanges(messages: Sequence[Mapping[str, JSON]]) -> list[Exchange]:
    """Return what was said and answered, the newest last, without what waits for its answer."""
    found: list[Exchange] = []
    said = ""
    for message in messages:
        if message.get("role") == "user":
            said = content_of(message).partition(CALLED)[0]
        elif message.get("role") == "assistant" and not message.get("tool_calls"):
            found.append(Exchange(said, content_of(message)))
    return found


def with_a_subject(exchanged: Sequence[Exchange], language: str) -> list[Exchange]:
    """Leave out thanks and what was not understood: "cancel it" is about what came before them."""
    lost = lost_text((), language).split("\n")[0]
    return [
        one for one in exchanged if small_talk(one.said) not in _POLITE and not one.answer.startswith(lost)
    ]


def results_since_answer(messages: Sequence[Mapping[str, JSON]]) -> tuple[list[str], int]:
    """Return the tool results of this turn, in the order of their calls, and its rounds of calls."""
    results: list[str] = []
    rounds = 0
    for message in messages:
        if message.get("role") == "tool":
            results.append(content_of(message))
        elif message.get("role") == "assistant":
            rounds = rounds + 1 if message.get("tool_calls") else 0
            results = results if rounds else []
    return results, rounds


def split_late(said: str, messages: Sequence[Mapping[str, JSON]]) -> tuple[str, str]:
    """Split what was said before the turn's first calls from what came in after them."""
    late: list[str] = []
    called = False
    for message in messages:
        if message.get("role") == "assistant":
            called = bool(message.get("tool_calls"))
            late = late if called else []
        elif message.get("role") == "user" and called:
            late.append(content_of(message))
    text = "\n".join(late).strip()
    return (said[: -len(text)], text) if text and said.endswith(text) else (said, "")


def content_of(message: Mapping[str, JSON]) -> str:
    """Return the text of a message, whichever form it has."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


LONGEST_CHOICE = 8  # words of an answer that picks one of several
_MOST_BACK = 5
_LONGEST_VARIATION = 7
_LONGEST_PICK = 12
_LONGEST_HOUR = 6
ORDINALS: Mapping[str, int] = {
    **dict.fromkeys(("primero", "primer", "primera", "primeiro", "primeira", "first"), 1),
    **dict.fromkeys(("segundo", "segunda", "second"), 2),
    **dict.fromkeys(("tercero", "tercer", "tercera", "terceiro", "terceira", "third"), 3),
    **dict.fromkeys(("cuarto", "cuarta", "quarto", "quarta", "fourth"), 4),
    **dict.fromkeys(("quinto", "quinta", "fifth"), 5),
    **dict.fromkeys(("ultimo", "ultima", "last"), 0),
}
_NUMERALS = {
    **dict.fromkeys(("uno", "one"), "1"),
    **dict.fromkeys(("dos", "dois", "two"), "2"),
    **dict.fromkeys(("tres", "three"), "3"),
    **dict.fromkeys(("cuatro", "quatro", "four"), "4"),
    **{word: str(place) for word, place in ORDINALS.items() if place},
}
_PRONOUN = {"en": "it", "es": "eso", "pt": "isso"}
_BETTER = {"en": "better", "es": "mejor", "pt": "melhor"}
_ARTICLES = spaced("el la lo al the o a ao do da")
_BARE_NUMBER = re.compile(r"\W*(?:(?:el|la|o|a|the|n[uú]mero|number)\s+)*#?(\d{1,5})\W*", re.IGNORECASE)
_NUMBERED = re.compile(r"^#?(\d{1,5})(?:\.| ·) ", re.MULTILINE)
_NONE = re.compile(
    r"\W*(?:no|nop|nope|nao|ningun[oa]?|nenhuma?|none|neither|nada|cancel[ae]?r?|deja(?:lo)?|deixa|olvidal[oa]"
    r"|esquece|never ?mind)(?: (?:de (?:ell[oa]s|es[oa]s|est[oa]s|los dos)|dess[ea]s|deles|of them|thanks"
    r"|gracias|obrigad[oa]|isso))*\W*"
)
# A text of others at the end of a receipt, quoted and said to be theirs.
_QUOTED_IN_RECEIPT = re.compile(r": [“«]([^“”«»]+)[”»] \([^()]+\)$")
_CORRECTION = re.compile(
    r"\W*(?:(?:no|nao|nope|perdon|perdona|desculpa|sorry|ay|ups|ops|oops|wait|espera|pera|digo|ah|ya"
    r"|que sea|que seja|era|eran|es|e|i mean|i meant|quise decir|quis dizer|quer dizer|na verdade|na vdd"
    r"|na real|en realidad|actually|rather|better|mejor|melhor|make it|make that|change it to|ponlo|cambialo"
    r"|muda|bota)\b\W*)+"
)
_VARIATION = re.compile(
    r"[\s¿¡]*(?:(?:y|e|and|ahora|agora|now|ok|bueno|then|entonces|entao|ah|oh|tambien|tambem|also)\b[\s,]*)+"
    r"(?:(?:si|se|if|que tal|what about|how about|what if|it s|fosse|fuera|fueran|son|sao)\b\s*)*"
    r"|[\s¿¡]*(?=(?:en|em|in)\s\S+(?:\s\S+)?\s*\?)"
    r"|[\s¿¡]*(?:que tal|what about|how about|what if|y si|e se)\b\s*"
)
_LEADING = re.compile(
    r"(?:(?:en|em|in|at|no|na|nos|nas|de|do|da|del|of|el|la|o|a|the|para|pra|pro|for|until|to|con|com|with|al|ao"
    r"|entre|between|por|by|dia)\s+)+"
)
_CALCULATED_ON = re.compile(
    r"(?:(?:y|e|and|ahora|agora|now|eso|esto|isso|that)\s+)*"
    r"((?:dividid[oa]|divided?|dividelo|divida|split(?: (?:it|that|this|the (?:bill|total)))?"
    r"|reparte(?:lo)?|rachad[oa])"
    r"\s+(?:entre|por|by|between|para|pra)|entre|menos|minus|mas|mais|plus|por|vezes"
    r"|times|[-+*/×÷])\s*(?=\S)"
)
_TOO = re.compile(
    r"^(?:(?:tamb[ií][eé]n|tamb[eé]m|also)\s+)+|\s+(?:tamb[ií][eé]n|tamb[eé]m|too|as well)$", re.IGNORECASE
)
_SIGNS = {
    **dict.fromkeys(("mas", "mais", "plus", "+"), "+"),
    **dict.fromkeys(("menos", "minus", "-"), "-"),
    **dict.fromkeys(("por", "vezes", "times", "*", "×"), "*"),
}
_NUMBER = r"\d[\d.,]*\d|\d"
_SPELLED = rf"(?:{'|'.join(sorted(NUMERALS, key=len, reverse=True))})"
_ANY_NUMBER = re.compile(
    rf"(?:{_NUMBER}|\b{_SPELLED}\b)(?:(?: | y | e | and |-)(?:\d{{3}}\b|{_SPELLED}\b))*", re.IGNORECASE
)
_PERCENT = re.compile(rf"(?:{_NUMBER})\s*(?:%|por\s?ciento|por\s?cento|percent)", re.IGNORECASE)
_HALF_OF_DAY = re.compile(r"\b([ap])\.? ?m\b\.?")
_BEFORE_NOON = spaced("am manana manha morning madrugada")
_AFTER_NOON = spaced("pm tarde noche noite afternoon evening night")
_WITH_HOUR = spaced(
    "a as las la los el os o the at in de da do del por en em na pela si sim yes ok mejor melhor one es e"
    " is it pues horas hs h opcion opcao option claro que digo quise decir mean meant i perdon desculpa sorry"
)


def subject_of(planner: Planner, exchanged: Sequence[Exchange]) -> Exchange:
    """Return the last exchange that asked for something.

    A receipt may have come later, once our question was answered; any other later receipt is of a tool that
    is not offered now, and then "it" is unknown.
    """
    later = ""
    for one in reversed(exchanged[-_MOST_BACK:]):
        if small_talk(one.said) is not None:
            continue
        if planner.plan(one.said).steps:
            is_known = not later or "?" in one.answer
            return Exchange(one.said, later or one.answer) if is_known else Exchange()
        later = later or (one.answer if one.is_receipt else "")
    return Exchange()


def points(plan: Plan) -> bool:
    """Tell whether a step of the plan is about "it"."""
    return any(_pointing(step) for step in plan.steps)


def resolved(plan: Plan, planner: Planner, before: Exchange) -> Plan:
    """Return the plan with what "it" stands for: what our receipt named, else what was said before.

    Steps whose "it" is of no other step of their tool's category are left out.
    """
    if not points(plan):
        return plan
    told = _named_in_receipt(before)
    said = [step for step in planner.plan(before.said).steps if told or IT not in step.arguments.values()]
    beside = [step for step in plan.steps if not _pointing(step)]
    earlier = {planner.category(step.tool): step for step in (*beside, *said)}
    if not told and len(numbers := listed(before.answer)) == 1:
        told = numbers[0]
    steps = (_resolved(step, earlier.get(planner.category(step.tool)), told, planner) for step in plan.steps)
    return replace(plan, steps=tuple(step for step in steps if step is not None))


def completed_answer(planner: Planner, before: Exchange, said: str, plan: Plan) -> Step | None:
    """Return the step that our last question was about, with `said` as its answer or as its pick."""
    language = planner.reader.person.language
    steps = planner.plan(before.said).steps
    if pick_question(language) in before.answer and len(words(said)) <= LONGEST_CHOICE:
        is_open = len(steps) == 1 and steps[0].missing is None
        return planner.renamed(steps[0], _picked_name(before.answer, said)) if is_open else None
    last_line = before.answer.strip().split("\n")[-1]
    if said.rstrip().endswith("?") or not any(last_line.startswith(one) for one in questions(language)):
        return None
    earlier = [_without_same(step, planner) for step in steps]
    waiting = next((step for step in earlier if step.missing is not None), None)
    asks_more = any(not step.guessed and waiting and step.tool != waiting.tool for step in plan.steps)
    return planner.answered(waiting, said) if waiting is not None and not asks_more else None


def picks_none(answer: str, said: str, language: str) -> bool:
    """Tell whether it is a no to the list that we asked about."""
    return pick_question(language) in answer and _NONE.fullmatch(fold(said)) is not None


def corrected(planner: Planner, said: str, exchanged: Sequence[Exchange]) -> str:
    """Return another moment for what was set last as a message that says so: "better at 8"; else ""."""
    if not exchanged or not exchanged[-1].is_receipt or said.rstrip().endswith("?"):
        return ""
    opening = _CORRECTION.match(fold(said))
    if opening is None and planner.plan(said).stands_alone:  # "in 10 minutes more", once it rang
        return ""
    rest = said[opening.end() :] if opening else said
    return f"{_BETTER[planner.reader.person.language]} {rest}" if planner.reader.is_moment(rest) else ""


def with_hour(before: Exchange, said: str, language: str) -> str:
    """Return the message before with the hour that `said` picks of the two we asked about, else ""."""
    asked = hours_asked(before.answer)
    at = _hour_picked(_HALF_OF_DAY.sub(r"\1m ", fold(said)), asked) if asked else None
    told = [piece for piece in pieces(before.said, language) if piece.kind == "clock"] if asked else []
    if at is None or len(told) != 1:
        return ""
    return f"{before.said[: told[0].start]} {asked[at]} {before.said[told[0].end :]}".strip()


# A line of a list


def listed(answer: str) -> list[str]:
    """Return the numbers of the lines of a list in our answer."""
    return _NUMBERED.findall(answer)


def picks_line(said: str) -> bool:
    """Tell whether a message is about a line by its place: "the second one"."""
    return _ordinal_in(said) is not None


def with_pronoun(said: str, language: str) -> str:
    """Return "delete the second one" as "delete it"."""
    ordinal = _ordinal_in(said)
    return f"{said[: ordinal[1]]}{_PRONOUN[language]}{said[ordinal[2] :]}" if ordinal else said


def picked_line(planner: Planner, said: str, exchanged: Sequence[Exchange]) -> Plan:
    """Return what `said` asks for with a line of the list shown last; no steps if it picks none."""
    shown = next((one for one in reversed(exchanged[-_MOST_BACK:]) if listed(one.answer)), None)
    steps = planner.plan(shown.said).steps if shown is not None else ()
    if shown is None or not steps or steps[-1].missing is not None:
        return Plan()
    if pick_question(planner.reader.person.language) in exchanged[-1].answer:
        return Plan()  # a name is picked
    numbers = listed(shown.answer)
    ordinal = _ordinal_in(said)
    place, first, last = ordinal or (0, 0, 0)
    number = numbers[place - 1] if place <= len(numbers) else ""
    text = f"{said[:first]}{number}{said[last:]}" if ordinal else said
    bare = _BARE_NUMBER.fullmatch(text)
    if bare is not None and bare[1] in numbers and shown == exchanged[-1] and "?" in shown.answer:
        return _designated(steps[-1], bare[1], planner)
    if ordinal is None:
        return Plan()
    own = planner.about([planner.category(steps[-1].tool)])
    for stand_in in (number or "1", _PRONOUN[own.reader.person.language]):
        wanted = (stand_in, [stand_in], IT, [IT])
        plan = own.plan(f"{said[:first]}{stand_in}{said[last:]}")
        about = [step for step in plan.steps if any(value in wanted for value in step.arguments.values())]
        if about and len(about) == len(plan.steps) and all(step.is_sure for step in about):
            if not number:
                return Plan(lacking=len(numbers))
            return Plan(tuple(_with_line(step, wanted, number, own) for step in about))
    return Plan()


def _designated(step: Step, number: str, planner: Planner) -> Plan:
    """Return the step about the line with this number, if one argument of it names a thing."""
    given = [one for one in planner.offers[step.tool].parameters if one.name in step.arguments]
    named = [one.name for one in given if one.kind is Kind.TEXT and not one.is_prose]
    return (
        Plan((replace(step, arguments={**step.arguments, named[0]: number}),)) if len(named) == 1 else Plan()
    )


def _ordinal_in(said: str) -> tuple[int, int, int] | None:
    """Return the place in a list that "the second one" names (0: the last), and where it begins and ends."""
    found = spans(said)
    if len(found) > _LONGEST_PICK:
        return None
    for at, word in enumerate(found):
        has_article = at > 0 and found[at - 1].text in _ARTICLES
        if word.text in ORDINALS and (has_article or at == 0):
            first = at - 1 if has_article else at
            last = at + 1 if at + 1 < len(found) and found[at + 1].text in ("one", "item") else at
            return ORDINALS[word.text], found[first].start, found[last].end
    return None


def _with_line(step: Step, stands_for: Sequence[JSON], number: str, planner: Planner) -> Step:
    arguments: dict[str, JSON] = {}
    for name, value in step.arguments.items():
        parameter = planner.offers[step.tool].parameter(name)
        if value in stands_for:
            value = [number] if parameter is not None and parameter.kind is Kind.LIST else number
        if value != SAME:
            arguments[name] = value
    return replace(step, arguments=arguments)


# The same question about something else


def varied(planner: Planner, said: str, exchanged: Sequence[Exchange], plan: Plan) -> Step | None:
    """Return the question asked last with what `said` names in its place: "and in Lima?", "split by 3".

    If `said` asks for something by itself it has to be for the same tool, and to name nothing but a moment,
    a percentage or what to calculate on with.
    """
    step = _varied(planner, said, exchanged) if _is_variation(said) else None
    step = _without_same(step, planner) if step is not None else None
    if step is None or not plan.is_sure:
        return step
    is_same_tool = {one.tool for one in plan.steps} == {step.tool}
    return step if is_same_tool and _is_incomplete(planner, said) else None


def may_vary(said: str) -> bool:
    """Tell whether a message begins like one that goes on with the last."""
    return _is_variation(said)


def _varied(planner: Planner, said: str, exchanged: Sequence[Exchange]) -> Step | None:
    between = [said]
    for before in reversed(exchanged[-_MOST_BACK:]):
        steps = planner.plan(before.said).steps
        is_link = _is_variation(before.said) and _is_incomplete(planner, before.said)
        if not is_link and len({step.tool for step in steps}) == 1 and steps[-1].is_sure:
            found: Step | None = steps[-1]
            for one in reversed(between):
                found = _with_variation(planner, found, one) if found is not None else None
            return found
        if not is_link and (steps or not _is_variation(before.said) or small_talk(before.said) is not None):
            return None
        between.append(before.said)
    return None


def _is_variation(said: str) -> bool:
    bare = fold(said)
    goes_on = bool(_VARIATION.match(bare) or _CALCULATED_ON.match(bare))
    return len(words(said)) <= _LONGEST_VARIATION and goes_on


def _is_incomplete(planner: Planner, said: str) -> bool:
    rest, bare = _named(said)
    is_moment = planner.reader.is_moment(rest) or planner.reader.is_moment(bare)
    return is_moment or bool(_PERCENT.fullmatch(bare) or _CALCULATED_ON.match(fold(said)))


def _with_variation(planner: Planner, step: Step, said: str) -> Step | None:
    offer = planner.offers[step.tool]
    if any(one.is_prose and one.name in step.arguments for one in offer.parameters):
        return None  # what was written down is no question
    if (more := _calculated_on(offer, step, said)) is not None:
        return more
    rest, bare = _named(said)
    if not bare:
        return None
    for parameter in sorted(
        offer.parameters, key=lambda one: (one.kind is Kind.PLACE, one.name not in step.arguments)
    ):
        value = _variant(planner, parameter, step.arguments.get(parameter.name), rest, bare)
        if value is not None:
            return replace(step, arguments={**step.arguments, parameter.name: value})
    return None


def _named(said: str) -> tuple[str, str]:
    """Return what follows the opening, with and without the small words before it."""
    opening = _VARIATION.match(fold(said))
    rest = said[opening.end() :].strip(" ?!.¿¡,") if opening else ""
    match = _LEADING.match(f"{fold(rest)} ")
    return rest, rest[match.end() :] if match else rest


def _variant(planner: Planner, parameter: Parameter, had: JSON, rest: str, bare: str) -> JSON:
    """Return the parameter's value instead of what it `had`, None if these words are nothing for it."""
    reader = planner.reader
    is_name = not re.search(r"\d", bare) and len(words(bare)) <= 4
    match parameter.kind:
        case Kind.EXPRESSION if isinstance(had, str):
            return _recalculated(had, bare)
        case Kind.QUANTITY if isinstance(had, str):
            is_number = re.fullmatch(_NUMBER, bare)
            return re.sub(_NUMBER, bare, had, count=1) if is_number else convert(bare, parameter, reader)
        case Kind.UNIT if had is not None and is_name:
            return convert(bare, parameter, reader)
        case Kind.LIST if had is not None and not reader.is_moment(rest):
            return convert(_TOO.sub("", rest), parameter, reader)
        case Kind.WHEN if reader.is_moment(bare) or reader.is_moment(rest):
            return convert(bare if reader.is_moment(bare) else rest, parameter, reader)
        case Kind.WHEN if isinstance(had, str) and is_name:  # "and for new year?"
            return convert(bare, parameter, reader)
        case Kind.PLACE if is_name and not reader.is_moment(bare):
            return convert(bare, parameter, reader)
        case _:
            return None


def _calculated_on(offer: Offer, step: Step, said: str) -> Step | None:
    """Return the calculation before, calculated on: "entre 3"."""
    expression = next((one for one in offer.parameters if one.kind is Kind.EXPRESSION), None)
    match = _CALCULATED_ON.match(fold(said))
    if expression is None or match is None or expression.name not in step.arguments:
        return None
    rest = said[match.end() :].strip(" ?!.")
    told = re.match(rf"(?:{_NUMBER}|[^\W\d]+)(?:\s*%)?", rest)
    if told is None or not is_arithmetic(told.group()) or re.search(r"[\d+*/×÷^]", rest[told.end() :]):
        return None
    sign = _SIGNS.get(match[1].split(" ")[0], "/")
    whole = f"({step.arguments[expression.name]}) {sign} {told.group()}"
    return replace(step, arguments={**step.arguments, expression.name: whole})


def _recalculated(had: str, bare: str) -> str | None:
    """Return the expression with another percentage, or another last number."""
    if not is_arithmetic(bare):
        return None
    if _PERCENT.fullmatch(bare):
        return _PERCENT.sub(lambda _: bare, had, count=1) if _PERCENT.search(had) else None
    numbers = list(_ANY_NUMBER.finditer(fold(had)))
    return f"{had[: numbers[-1].start()]}{bare}{had[numbers[-1].end() :]}" if numbers else None


# Resolving


def _resolved(step: Step, earlier: Step | None, told: str, planner: Planner) -> Step | None:
    pointing = _pointing(step)
    if not pointing:
        return step
    if earlier is None:
        return None
    offer = planner.offers[step.tool]
    arguments = dict(step.arguments)
    for name in pointing:
        had = None if name in _pointing(earlier) else earlier.arguments.get(name)
        parameter = offer.parameter(name)
        if arguments.pop(name) == SAME:
            arguments |= {name: had} if had is not None else {}
        elif parameter is not None and parameter.kind is Kind.LIST:
            arguments[name] = convert(told, parameter, planner.reader) or had or [IT]
        else:
            arguments[name] = told or had or IT
    return _asking(replace(step, arguments=arguments), planner)


def _without_same(step: Step, planner: Planner) -> Step:
    given = {name: value for name, value in step.arguments.items() if value != SAME}
    return _asking(replace(step, arguments=given), planner) if len(given) < len(step.arguments) else step


def _asking(step: Step, planner: Planner) -> Step:
    required = planner.offers[step.tool].required
    return replace(step, missing=next((one for one in required if one.name not in step.arguments), None))


def _pointing(step: Step) -> list[str]:
    return [name for name, value in step.arguments.items() if value in (IT, SAME, [IT])]


def _named_in_receipt(before: Exchange) -> str:
    told = before.answer.split("\n")[0]
    if not before.is_receipt:
        return ""
    quoted = _QUOTED_IN_RECEIPT.search(told)
    return (quoted[1] if quoted else told.rpartition(": ")[2]).removesuffix("…")


def _picked_name(answer: str, said: str) -> str:
    """Return the name of a numbered list that is spelled out, told by a word of its own, or numbered."""
    names = dict(re.findall(r"^(\d{1,2})\. (\S+)", answer, re.MULTILINE))
    spelled = [name for name in names.values() if fold(name) in fold(said)]
    known = Counter(word for name in names.values() for word in set(words(name)))
    told = [
        name
        for name in names.values()
        if any(known[word] == 1 for word in {*words(name)} & {*words(said)} - ALL_STOP_WORDS)
    ]
    numbered = [names[one] for word in words(said) if (one := _NUMERALS.get(word, word)) in names][:1]
    return next((found[0] for found in (spelled, told, numbered) if len(found) == 1), "")


def _hour_picked(said: str, asked: Sequence[str]) -> int | None:
    """Return the place of the hour among the two asked about."""
    hours = [int(one.partition(":")[0]) for one in asked]
    found = words(re.sub(r":\d\d", "", said))
    known = _WITH_HOUR | _BEFORE_NOON | _AFTER_NOON
    if len(found) > _LONGEST_HOUR:
        return None
    if not all(word in known or word in ORDINALS or word.isdecimal() for word in found):
        return None
    named = next((int(word) for word in found if word.isdecimal()), None)
    if named is not None and named % 12 not in {hour % 12 for hour in hours}:
        return None
    if set(found) & _AFTER_NOON:
        return hours.index(max(hours))
    if set(found) & _BEFORE_NOON:
        return hours.index(min(hours))
    if named is not None:
        return hours.index(named) if named > 12 or re.search(r"\b0\d", said) else None
    place = next((ORDINALS[word] for word in found if word in ORDINALS), None)
    return {1: 0, 2: 1, 0: 1}.get(place) if place is not None else None
