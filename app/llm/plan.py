"""What the built-in model would do about a message: which calls, or which question."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.llm.arithmetic import is_calculation, without_question
from app.llm.clauses import lines, places, sentences, splits
from app.llm.slots import (
    TAKES_THE_REST,
    Kind,
    Offer,
    Parameter,
    Reader,
    after_lead,
    convert,
    convert_several,
    find,
)
from app.llm.templates import Alignment, align, read_template
from app.messages import JSON
from app.search.index import ToolIndex
from app.search.words import ALL_STOP_WORDS, fold, says_something, spans, stem, terms, without_slots, words

MOST_STEPS = 12
_LONGEST_CLAUSE = 4_000
_ENOUGH_COVERED = 0.6
_CLEARLY_AHEAD = 1.15
_DEEPEST_SPLIT = 4
_DEFINITION = re.compile(r"\W*(?:o que|que|whats|what(?: is|'s)?) (?:es |is |e )?(?:una?|an?|uma?) ")
_TAKES_ANYTHING = TAKES_THE_REST | {Kind.PLACE, Kind.LIST, Kind.FILE, Kind.WHEN}


@dataclass(frozen=True, slots=True)
class Step:
    """One call; `missing` is the required parameter that the person has to be asked for first.

    `guessed`: only the index found it, no example phrase; too little to take a sentence apart for.
    """

    tool: str
    arguments: Mapping[str, JSON]
    missing: Parameter | None = None
    guessed: bool = False


class Planner:
    """Plans with the tools offered now; it knows them only by their schemas, phrases and index entries."""

    def __init__(
        self, offers: Sequence[Offer], index: ToolIndex, phrases: Mapping[str, Sequence[str]], reader: Reader
    ) -> None:
        self._offers = {offer.name: offer for offer in offers}
        self._index = index
        self._reader = reader
        self._phrases = {name: tuple(phrases.get(name, ())) for name in self._offers}
        self._templates = [
            read_template(name, phrase) for name, listed in self._phrases.items() for phrase in listed
        ]

    def plan(self, said: str) -> list[Step]:
        """The steps `said` asks for, in its order; empty where it asks for nothing the tools can do."""
        steps: list[Step] = []
        waiting = ""
        for line in lines(said):
            if waiting and (joined := self._line(f"{waiting} {line}")) and joined[-1].missing is None:
                steps = [*steps[:-1], *joined]
                waiting = ""
                continue
            found = self._line(line)
            steps += found
            waiting = line if found and found[-1].missing is not None else ""
        return list(_distinct(steps))[:MOST_STEPS]

    def answered(self, step: Step, said: str) -> Step | None:
        """The step with what the person said for its missing parameter; None where it does not fit."""
        if step.missing is None:
            return None
        offer = self._offers[step.tool]
        value = convert(said, step.missing, self._reader)
        if value is None:
            return None
        return self._completed(offer, {**step.arguments, step.missing.name: value}, "")

    def _line(self, line: str) -> list[Step]:
        parts = sentences(line)
        found = [self._clause(part) for part in parts]
        planned = [place for place, steps in enumerate(found) if steps and not steps[0].guessed]
        apart = [step for steps in found for step in steps]
        if len(parts) == 1 or len(planned) > 1 or (planned and parts[planned[0]].endswith("?")):
            return apart
        # "note: buy milk. Call Ana." is one text: its second sentence means nothing by itself.
        return self._clause(line) or apart

    def _clause(self, clause: str, depth: int = 0) -> list[Step]:
        if depth < _DEEPEST_SPLIT:
            for left, right in splits(clause):
                first = self._best(left)
                if not _sure(first):
                    continue
                rest = self._clause(right, depth + 1)
                if _sure(rest):
                    return [*first, *rest]
        return self._best(clause)

    def _best(self, clause: str) -> list[Step]:
        sure = self._by_phrase(clause) or self._by_arithmetic(clause)
        return sure or [replace(step, guessed=True) for step in self._by_index(clause)]

    # By example phrase

    def _by_phrase(self, clause: str) -> list[Step]:
        asking: list[Step] = []
        for alignment in align(clause, self._templates):
            offer = self._offers[alignment.template.tool]
            arguments = self._from_slots(offer, alignment)
            if arguments is None:
                continue
            step = self._completed(offer, arguments, "" if alignment.values else clause)
            if step.missing is None:
                return self._one_for_each_place(offer, step)
            asking = asking or [step]
        return asking

    def _from_slots(self, offer: Offer, alignment: Alignment) -> dict[str, JSON] | None:
        arguments: dict[str, JSON] = {}
        for names, raw in alignment.values.items():
            wanted = [parameter for name in names if (parameter := offer.parameter(name)) is not None]
            if alignment.template.contents == 0 and any(one.kind in _TAKES_ANYTHING for one in wanted):
                return None
            values = self._values(raw, wanted)
            if values is None:
                return None
            arguments |= values
        return arguments

    def _values(self, raw: str, wanted: list[Parameter]) -> dict[str, JSON] | None:
        if len(wanted) != 1:
            return convert_several(raw, wanted, self._reader)
        value = convert(raw, wanted[0], self._reader)
        return None if value is None else {wanted[0].name: value}

    def _one_for_each_place(self, offer: Offer, step: Step) -> list[Step]:
        for name, value in step.arguments.items():
            parameter = offer.parameter(name)
            if parameter is not None and parameter.kind is Kind.PLACE and isinstance(value, str):
                several = places(value)
                if len(several) > 1:
                    return [replace(step, arguments={**step.arguments, name: place}) for place in several]
        return [step]

    # By arithmetic

    def _by_arithmetic(self, clause: str) -> list[Step]:
        asked = without_question(clause.strip(" ¿?=!.,"))
        if not is_calculation(asked):
            return []
        wanting = [
            (offer, parameter)
            for offer in self._offers.values()
            for parameter in offer.required
            if parameter.kind is Kind.EXPRESSION
        ]
        if len(wanting) != 1:
            return []
        offer, parameter = wanting[0]
        value = convert(asked, parameter, self._reader)
        return [] if value is None else [self._completed(offer, {parameter.name: value}, "")]

    # By the index

    def _by_index(self, clause: str) -> list[Step]:
        text = clause[:_LONGEST_CLAUSE]
        if not says_something(text) or _DEFINITION.match(fold(text)):
            return []
        hits = self._index.rank(text, among=self._offers.keys(), limit=2)
        if not hits or (len(hits) > 1 and hits[0].score < _CLEARLY_AHEAD * hits[1].score):
            return []
        offer = self._offers[hits[0].id]
        arguments, rest = self._found(offer, text)
        known = {stem(word) for word in rest} & self._own_words(offer)
        if not known or (len(known) < 2 and not known & set(terms(offer.name))):
            return []
        if self._index.coverage(offer.name, " ".join(rest)) >= _ENOUGH_COVERED:
            return [self._completed(offer, arguments, "")]
        return self._with_the_rest(offer, arguments, text)

    def _found(self, offer: Offer, text: str) -> tuple[dict[str, JSON], list[str]]:
        """What the text surely says of the parameters, and the meaningful words that are left."""
        arguments: dict[str, JSON] = {}
        used: set[str] = set()
        for parameter in sorted(offer.parameters, key=lambda one: not one.required):
            found = find(text, parameter, self._reader)
            if found is not None and not found.words <= used:
                arguments[parameter.name] = found.value
                used |= found.words
        rest = [word for word in words(text) if word not in used and word not in ALL_STOP_WORDS]
        return arguments, rest

    def _own_words(self, offer: Offer) -> set[str]:
        named = terms(offer.name)
        said = [term for phrase in self._phrases[offer.name] for term in terms(without_slots(phrase))]
        return {*named, *said}

    def _with_the_rest(self, offer: Offer, arguments: Mapping[str, JSON], text: str) -> list[Step]:
        """A command that starts with the tool's own verb: what follows it is the text it wants."""
        wanting = [one for one in offer.required if one.name not in arguments and one.kind in TAKES_THE_REST]
        verbs = {stem(phrase[0]) for phrase in map(words, self._phrases[offer.name]) if phrase}
        verbs |= set(terms(offer.name)[:1])
        found = [
            (place, word.text) for place, word in enumerate(spans(text)) if word.text not in ALL_STOP_WORDS
        ]
        if len(wanting) != 1 or not found or stem(found[0][1]) not in verbs:
            return []
        own = self._own_words(offer)
        lead = next((place for place, word in found if stem(word) not in own), None)
        value = "" if lead is None else after_lead(text, lead)
        given = {**arguments, wanting[0].name: value} if value else arguments
        return [self._completed(offer, given, "")]

    def _completed(self, offer: Offer, arguments: Mapping[str, JSON], text: str) -> Step:
        """The step with what `text` says of required parameters that are not there yet."""
        given = dict(arguments)
        for parameter in offer.required:
            if parameter.name in given:
                continue
            found = find(text, parameter, self._reader) if text else None
            if found is None:
                return Step(offer.name, given, parameter)
            given[parameter.name] = found.value
        return Step(offer.name, given)


def _sure(steps: Sequence[Step]) -> bool:
    return bool(steps) and all(step.missing is None and not step.guessed for step in steps)


def _distinct(steps: Sequence[Step]) -> Sequence[Step]:
    kept: list[Step] = []
    for step in steps:
        if step not in kept:
            kept.append(step)
    return kept
