"""A line of a list that we told, picked by its place: "delete the second one", "apaga o último", "el 2"."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from app.llm.offline.offers import Offer
from app.llm.offline.plan import Planner
from app.llm.offline.steps import Plan, Step
from app.llm.offline.templates import SAME, align, read_template
from app.messages import JSON
from app.search.words import (
    ALL_STOP_WORDS,
    fold,
    holds,
    says_something,
    spaced,
    spans,
    stem,
    without_given,
    without_slots,
    words,
)

ORDINALS = {
    **dict.fromkeys(("primero", "primer", "primera", "primeiro", "primeira", "first"), 1),
    **dict.fromkeys(("segundo", "segunda", "second"), 2),
    **dict.fromkeys(("tercero", "tercer", "tercera", "terceiro", "terceira", "third"), 3),
    **dict.fromkeys(("cuarto", "cuarta", "quarto", "quarta", "fourth"), 4),
    **dict.fromkeys(("quinto", "quinta", "fifth"), 5),
    **dict.fromkeys(("ultimo", "ultima", "last"), 0),
}
"""Places in a list; 0 is the last."""
_LONGEST = 12
_ARTICLES = spaced("el la lo al the o a ao do da")
_ARTICLES_OF_NOUNS = spaced("el la o a the my mi meu minha esa essa that this número number")
_BEHIND = spaced("one item")
_OTHERS = spaced("otro otra outro outra other")
_ONE_ABOUT = re.compile(
    r"\b(?:(?:el|la|lo|o|a|aquel[ae]?)\s+d(?:e|el|a|o)\b|(?:the|that)\s+(?:\S+\s+){1,4}one\b)"
)
_GOING_ON = re.compile(
    r"\b(?:y|e|and|tambi[eé]n|tamb[eé]m|tbm|tb|too|also|as well|please|por favor|porfa|gracias)\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^#?(\d{1,5})(?:\.| ·) ", re.MULTILINE)
_LINES = re.compile(r"^#?(\d{1,5})(?:\.| ·) (.+)$", re.MULTILINE)
_TOOLS_OF_A_NOUN = 3
_OFTEN = 1 / 3
_SLOT = re.compile(r"\{\w+\}")
_PARTS = re.compile(r"\{[^{}]*\}|[^\s{}]+")
_MOST_BACK = 5
_BARE = re.compile(r"\W*(?:(?:el|la|o|a|the|n[uú]mero|number)\s+)*#?(\d{1,5})\W*", re.IGNORECASE)


def picked(
    planner: Planner,
    narrowed: Callable[[Sequence[Offer], Mapping[str, Sequence[str]]], Planner],
    said: str,
    exchanged: Sequence[tuple[str, str]],
    offers: Sequence[Offer],
    phrases: Mapping[str, Sequence[str]],
    category_of: Callable[[str], str],
) -> Plan:
    """What `said` asks for with one line of the list told last; no steps where it picks none.

    `narrowed` makes a planner of some offers and phrases; `exchanged`: what the person said and we answered.
    """
    told = exchanged[-_MOST_BACK:]
    at = next((at for at in range(len(told) - 1, -1, -1) if listed(told[at][1])), None)
    if at is None or len(words(said)) > _LONGEST:
        return Plan()
    before, answer = told[at]
    numbers = listed(answer)
    steps = planner.plan(before).steps
    if not steps or steps[-1].missing is not None:
        return Plan()
    own = [offer for offer in offers if category_of(offer.name) == category_of(steps[-1].tool)]
    bare_phrases = without_nouns(phrases, steps[-1].tool, [offer.name for offer in own])

    def with_line(text: str, number: str) -> tuple[Step, ...]:
        """What the words ask for with the line of this number."""
        steps = narrowed(own, bare_phrases).plan(text).steps if number else ()
        about = [_about(step, number, planner.offer(step.tool)) for step in steps]
        return tuple(step for step in about if step is not None) if all(about) else ()

    done = [step for text, _ in told[at + 1 :] for step in with_line(*with_number(text, numbers))]
    used = [value for step in done for value in step.arguments.values() if value in numbers]
    left = [number for number in numbers if number not in used]
    other = left[0] if len(numbers) - len(left) == len(left) == 1 else ""
    text, number = with_number(said, numbers, other)
    if done and number and not says_something(_GOING_ON.sub("", text).replace(number, "", 1)):
        return Plan((_with(done[-1], used[-1], number),))  # "and the second one too"
    bare = _BARE.fullmatch(text or said)
    if bare is not None:
        asks = at == len(told) - 1 and "?" in answer and bare[1] in numbers
        step = planner.designated(steps[-1], bare[1]) if asks else None
        return Plan((step,)) if step is not None else Plan()
    if number:
        return Plan(with_line(text, number))
    if named := _named(narrowed(own, bare_phrases).plan(said), answer):
        return named
    places = [str(place) for place in range(1, max(ORDINALS.values()) + 1)]
    return Plan(lacking=len(numbers)) if with_line(*with_number(said, places, places[0])) else Plan()


def _named(plan: Plan, answer: str) -> Plan | None:
    """The one step with the number of the one line that holds its words: "delete the one about the rent"."""
    if len(plan.steps) != 1 or plan.unknown or plan.steps[0].missing is not None or plan.steps[0].guessed:
        return None
    for name, value in plan.steps[0].arguments.items():
        wanted = {stem(word) for word in _telling(str(value)) if word not in _BEHIND}
        lines = [number for number, line in _LINES.findall(answer) if wanted and holds(line, wanted)]
        if len(lines) == 1:
            return Plan((replace(plan.steps[0], arguments={**plan.steps[0].arguments, name: lines[0]}),))
    return None


def _with(step: Step, number: str, other: str) -> Step:
    """The same step about another line."""
    given = {name: other if value == number else value for name, value in step.arguments.items()}
    return replace(step, arguments=given)


def _about(step: Step, number: str, offer: Offer) -> Step | None:
    """The step about what has this number; None where it is not sure, or about something else."""
    name = next((name for name, value in step.arguments.items() if _telling(str(value)) == [number]), "")
    parameter = offer.parameter(name)
    if parameter is None or parameter.is_prose or step.missing is not None or step.guessed:
        return None
    value: JSON = [number] if isinstance(step.arguments[name], list) else number
    given = {one: said for one, said in step.arguments.items() if said != SAME}
    return replace(step, arguments={**given, name: value})


def _telling(text: str) -> list[str]:
    return [word for word in words(text) if word not in ALL_STOP_WORDS]


def tools_by_place(
    said: str, phrases: Mapping[str, Sequence[str]], listing: str, own: Collection[str]
) -> list[str]:
    """The tools among its `own` category's that `said` asks for of a line of what `listing` lists."""
    text = with_number(said, ["1"] * len(ORDINALS))[0] or said
    if not is_of_a_line(said):
        return []
    bare = without_nouns(phrases, listing, own)
    templates = [read_template(tool, phrase) for tool, some in bare.items() for phrase in some]
    found = list(dict.fromkeys(one.template.tool for one in align(text, templates)))
    return [*found[:1], listing, *found[1:]] if found else []


def is_of_a_line(said: str) -> bool:
    """Whether it is about "the second one", "lo del banco" or "the mom one"."""
    return bool(with_number(said, ["1"] * len(ORDINALS))[1]) or _ONE_ABOUT.search(fold(said)) is not None


def listed(answer: str) -> list[str]:
    """The numbers of the lines of a list."""
    return _NUMBERED.findall(answer)


def with_number(said: str, numbers: Sequence[str], other: str = "") -> tuple[str, str]:
    """`said` with the number of the line that "the second one" is, and the number; "" twice without one.

    `other`: the number of the one that "the other one" is, where there is one.
    """
    found = spans(said)
    if len(found) > _LONGEST:
        return "", ""
    for at, word in enumerate(found):
        has_article = at > 0 and found[at - 1].text in _ARTICLES
        is_other = bool(other) and word.text in _OTHERS
        place = numbers.index(other) + 1 if is_other else ORDINALS.get(word.text)
        if place is None or not (has_article or at == 0) or place > len(numbers):
            continue
        first = at - 1 if has_article else at
        after = at + 1 if at + 1 < len(found) and found[at + 1].text in _BEHIND else at
        number = numbers[place - 1]  # the last for 0
        return f"{said[: found[first].start]}{number}{said[found[after].end :]}", number
    return "", ""


def without_nouns(
    phrases: Mapping[str, Sequence[str]], listing: str, own: Collection[str]
) -> dict[str, list[str]]:
    """The phrases of a category's tools without the words for what `listing` lists: "delete the {note}"."""
    tools = {tool: [_literals(phrase) for phrase in phrases.get(tool, ())] for tool in own}
    spread = Counter(word for found in tools.values() for word in {word for one in found for word in one})
    counted = Counter(word for one in tools.get(listing, ()) for word in set(one))
    told = {word: count for word, count in counted.items() if spread[word] >= _TOOLS_OF_A_NOUN}
    most = max(told.values(), default=0)
    nouns = {word for word, count in told.items() if count >= most * _OFTEN}
    bare: dict[str, list[str]] = {}
    for tool in own:
        for phrase in phrases.get(tool, ()):
            parts: list[str] = []
            for part in _PARTS.findall(phrase):
                if part.startswith("{") or not _stems(part) & nouns:
                    parts.append(part)
                elif parts and parts[-1].lower() in _ARTICLES_OF_NOUNS:
                    parts.pop()
            kept = " ".join(parts)
            if _SLOT.search(kept) and _literals(kept):
                bare.setdefault(tool, []).append(kept)
    return bare


def _literals(phrase: str) -> set[str]:
    return _stems(without_slots(without_given(phrase)))


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text) if word not in ALL_STOP_WORDS}
