"""What the built-in model would do about a message: which calls, or which question."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from app.calendar.changes import with_day_of
from app.calendar.words import Reading
from app.llm.offline.arithmetic import asked_calculation, is_calculation
from app.llm.offline.clauses import lines, places, sentences, splits
from app.llm.offline.moments import find_moment, is_moment, read
from app.llm.offline.offers import TAKES_THE_REST, Kind, Offer, Parameter
from app.llm.offline.parts import LONGEST_PLANNED, Part, belongs, halved, may_go_on
from app.llm.offline.slots import Reader, after_lead, convert, convert_several, find, is_file_name
from app.llm.offline.steps import Plan, Step
from app.llm.offline.templates import ALL, MOST_WORDS, Alignment, Template, align, read_template, trimmed
from app.llm.smalltalk import small_talk
from app.messages import JSON
from app.search.index import ToolIndex
from app.search.words import ALL_STOP_WORDS, fold, says_something, spans, stem, terms, without_slots, words

MOST_STEPS = 12
MOST_PARTS = 16
_MOST_SPLIT_WORDS = 60
"""Only while so many words were read are sentences still taken apart at every "and"."""
_ENOUGH_COVERED = 0.6
_CLEARLY_AHEAD = 1.15
_DEEPEST_SPLIT = 4
_DEFINITION = re.compile(r"\W*(?:o que|que|whats|what(?: is|'s)?) (?:es |is |e )?(?:una?|an?|uma?) ")
_TAKES_ANYTHING = TAKES_THE_REST | {Kind.PLACE, Kind.LIST}


class Planner:
    """Plans with the tools offered now; it knows them only by their schemas, phrases and index entries."""

    def __init__(
        self,
        offers: Sequence[Offer],
        index: ToolIndex,
        phrases: Mapping[str, Sequence[str]],
        reader: Reader,
        it_is_of: Sequence[str] | None = None,
    ) -> None:
        """`it_is_of`: the categories of what is talked about, the surest first; None: not known."""
        self._offers = {offer.name: offer for offer in offers}
        self._index = index
        self._reader = reader
        self._phrases = {name: tuple(phrases.get(name, ())) for name in self._offers}
        self._it_is_of = it_is_of or ()
        self.is_contested = False
        """Whether phrases of several categories fitted something alike."""
        self._known: dict[str, list[Step]] = {}
        self._learned: dict[str, Plan] = {}
        self._words_read = 0
        self._templates = [
            template
            for name, listed in self._phrases.items()
            for phrase in listed
            if not (template := read_template(name, phrase)).points
            or it_is_of is None
            or self._category(name) in it_is_of
        ]

    def _distance(self, tool: str) -> int:
        """How far a tool is from what is talked about."""
        category = self._category(tool)
        return self._it_is_of.index(category) if category in self._it_is_of else len(self._it_is_of)

    def _category(self, tool: str) -> str:
        document = self._index.document(tool)
        return document.category if document is not None else ""

    def plan(self, said: str) -> Plan:
        """The steps `said` asks for, in its order; what is too long to be read only continues a text."""
        if said in self._learned:
            return self._learned[said]
        head, rest = halved(said)
        found = lines(head)
        parts: list[Part] = []
        for at, line in enumerate(found):
            if len(parts) >= MOST_PARTS:
                parts.append(Part("\n".join(found[at:]), ()))
                break
            parts += self._line(line, MOST_PARTS - len(parts))
        return self._joined([*parts, Part(rest, (), "")] if rest.strip() else parts)

    def learn(self, said: str, plan: Plan) -> None:
        """What a message meant where it was written, after what stood before it."""
        self._learned[said] = plan

    def _joined(self, parts: Sequence[Part]) -> Plan:
        """The parts' steps, in which a part that asks for nothing goes on with the text before it."""
        steps: list[Step] = []
        unknown: list[str] = []
        opener: Part | None = None
        for at, part in enumerate(parts):
            is_last = at == len(parts) - 1
            if opener is not None and belongs(part, opener, is_last):
                more = self._continued(steps[-1] if opener.steps else None, opener, part)
                if more:
                    steps[len(steps) - bool(opener.steps) :] = more
                    opener = replace(opener, steps=more)
                    continue
            steps += part.steps
            opener = part if may_go_on(part) else None
            if not part.steps and small_talk(part.text) is None and says_something(part.text):
                unknown.append(part.text)
        return Plan(tuple(_distinct(steps))[:MOST_STEPS], tuple(unknown))

    def _continued(self, step: Step | None, opener: Part, part: Part) -> list[Step]:
        if step is None or step.missing is not None or not step.open:
            joined = self._clause(f"{opener.text} {part.text}")
            is_opened = step is None or step.missing is not None or (bool(joined) and bool(joined[-1].open))
            return joined if joined and joined[-1].missing is None and is_opened else []
        had = step.arguments[step.open]
        more: JSON = f"{had}{part.gap}{part.text}"
        if isinstance(had, list):
            parameter = self._offers[step.tool].parameter(step.open)
            added = convert(part.text, parameter, self._reader) if parameter and part.gap == "\n" else None
            if not isinstance(added, list):
                return []
            more = [*had, *added]
        return [replace(step, arguments={**step.arguments, step.open: more})]

    def commanded(self, said: str, described: str) -> Plan:
        """What fits best where the person said whose tools are to be used, however little it is like them.

        `described`: the same, with other words for it.
        """
        steps = self._by_phrase(said)
        hits = self._index.rank(described, among=self._offers.keys(), limit=1) if not steps else []
        chosen = [hit.id for hit in hits] or list(self._offers)[: len(self._offers) == 1]
        if not steps and chosen:
            offer = self._offers[chosen[0]]
            steps = [self._completed(offer, self._found(offer, said)[0], said)]
        return Plan(tuple(steps))

    def answered(self, step: Step, said: str) -> Step | None:
        """The step with what the person said for its missing parameter; None where it does not fit."""
        if step.missing is None:
            return None
        offer = self._offers[step.tool]
        value = convert(said, step.missing, self._reader)
        if value is None or (step.missing.kind is Kind.WHEN and not self._names_a_moment(said)):
            return None
        return self._completed(offer, {**step.arguments, step.missing.name: value}, "")

    def designated(self, step: Step, number: str) -> Step | None:
        """The step about what has this number; None where no single argument of it names a thing."""
        given = [one for one in self._offers[step.tool].parameters if one.name in step.arguments]
        listed = [one for one in given if one.kind is Kind.LIST]
        naming = listed or [one for one in given if one.kind is Kind.TEXT and not one.is_prose]
        if len(naming) != 1:
            return None
        value: JSON = [number] if listed else number
        return replace(step, arguments={**step.arguments, naming[0].name: value})

    def offer(self, tool: str) -> Offer:
        """The offer behind a step."""
        return self._offers[tool]

    def read(self, said: str, parameter: Parameter) -> JSON:
        """Words as the value the parameter wants; None where they cannot be that."""
        return convert(said, parameter, self._reader)

    @property
    def language(self) -> str:
        return self._reader.person.language

    def when(self, said: str) -> Reading:
        """What the words say of when."""
        return read(said, self._reader.person, self._reader.now())

    def is_moment(self, said: str) -> bool:
        """Whether these words are a moment and nothing else."""
        return is_moment(said, self._reader.person, self._reader.now())

    def _names_a_moment(self, said: str) -> bool:
        return bool(find_moment(said, self._reader.person, self._reader.now()))

    def narrowed(self, step: Step, choice: str) -> Step | None:
        """The step with its one place told more closely: "Córdoba" and "España" are "Córdoba, España"."""
        offer = self._offers[step.tool]
        given = [one for one in offer.parameters if one.kind is Kind.PLACE and one.name in step.arguments]
        if step.missing is not None or len(given) != 1:
            return None
        place = convert(f"{step.arguments[given[0].name]}, {trimmed(choice)}", given[0], self._reader)
        return replace(step, arguments={**step.arguments, given[0].name: place})

    def renamed(self, step: Step, name: str) -> Step | None:
        """The step with its one text replaced by the name that was picked for it; None without a name."""
        offer = self._offers[step.tool]
        given = [one for one in offer.parameters if one.kind is Kind.TEXT and one.name in step.arguments]
        if not name or len(given) != 1:
            return None
        return replace(step, arguments={**step.arguments, given[0].name: name}, guessed=False)

    def _line(self, line: str, most: int) -> list[Part]:
        parts = sentences(line)
        if len(parts) == 1:
            return [Part(line, self._clause(line))]
        apart = [Part(part, self._clause(part), " ") for part in parts[:most]]
        apart[0] = replace(apart[0], gap="\n")
        if len(parts) > most:
            apart.append(Part(" ".join(parts[most:]), (), " "))
        planned = [part for part in apart if part.steps and not part.steps[0].guessed]
        if len(planned) > 1 or (planned and (planned[0].text.endswith("?") or planned[0].steps[-1].open)):
            return apart
        # "what time is it in St. Louis" is one sentence: its second part means nothing by itself.
        whole = self._clause(line)
        return [Part(line, whole)] if whole and not (planned and whole[0].guessed) else apart

    def _clause(self, clause: str, depth: int = 0) -> list[Step]:
        if depth < _DEEPEST_SPLIT:
            for left, right in splits(clause):
                if self._words_read > _MOST_SPLIT_WORDS:
                    break
                first = self._best(left)
                if not _sure(first):
                    continue
                rest = self._clause(right, depth + 1)
                if not _sure(rest):
                    rest = self._alike(first[-1], right, depth + 1)
                if _sure(rest):
                    return [*first, *rest]
        return self._best(clause)

    def _alike(self, step: Step, clause: str, depth: int) -> list[Step]:
        """The same again for what begins with another moment: "… and in an hour call Ana"; on the day of the
        step where it names none."""
        if depth < _DEEPEST_SPLIT:
            for left, right in splits(clause):
                first = self._alike(step, left, _DEEPEST_SPLIT)
                rest = self._alike(first[-1], right, depth + 1) if first else []
                if rest:
                    return [*first, *rest]
        offer = self._offers[step.tool]
        given = [one for one in offer.parameters if one.name in step.arguments]
        moments = [one for one in given if one.kind is Kind.WHEN]
        found = find_moment(clause, self._reader.person, self._reader.now())
        if len(given) != 2 or len(moments) != 1 or not any(one.is_prose for one in given) or not found:
            return []
        values = convert_several(clause, given, self._reader) if clause.startswith(found[0]) else None
        if values is None or not all(values.values()):
            return []
        name, language = moments[0].name, self._reader.person.language
        when = with_day_of(str(values[name]), str(step.arguments[name]), language)
        return [replace(step, arguments={**values, name: when})]

    def _best(self, clause: str) -> list[Step]:
        if clause not in self._known:
            self._words_read += min(len(clause.split()), MOST_WORDS)
            sure = self._by_phrase(clause) or self._by_arithmetic(clause)
            self._known[clause] = sure or [replace(step, guessed=True) for step in self._by_index(clause)]
        return self._known[clause]

    # By example phrase

    def _by_phrase(self, clause: str) -> list[Step]:
        asking: list[Step] = []
        asked_at = 0.0
        aligned = self._nearest_first(align(clause, self._templates))
        for alignment in aligned:
            if asking and alignment.strength < asked_at and self._asks_rather(asking[0], alignment):
                break  # a question about what was said is better than an answer to what was not
            offer = self._offers[alignment.template.tool]
            arguments = self._from_slots(offer, alignment, clause)
            if arguments is None:
                continue
            step = self._completed(offer, arguments, "" if alignment.values else clause)
            if step.missing is None:
                step = replace(step, open=_open_slot(offer, alignment.template))
                return [
                    *self._one_for_each_place(offer, step),
                    *self._of_same_phrase(step, alignment, aligned, clause),
                ]
            if not asking:
                asking, asked_at = [step], alignment.strength
        return asking

    def _asks_rather(self, asking: Step, weaker: Alignment) -> bool:
        """ "Add to the shopping list" adds no "shopping list"."""
        is_list = asking.missing is not None and asking.missing.kind is Kind.LIST
        return is_list or weaker.template.tool != asking.tool

    def _nearest_first(self, aligned: list[Alignment]) -> list[Alignment]:
        """Of those as strong the ones of what is talked about first."""
        rivals = (one.template.tool for one in aligned if one.strength == aligned[0].strength)
        self.is_contested |= len(set(map(self._category, rivals))) > 1
        return sorted(aligned, key=lambda one: (-one.strength, self._distance(one.template.tool)))

    def _of_same_phrase(
        self, step: Step, alignment: Alignment, aligned: Sequence[Alignment], clause: str
    ) -> Iterator[Step]:
        """The other tools that the very phrase asks for with the same arguments: "I live in {place}" tells
        the weather and the clock."""
        phrase = fold(alignment.template.phrase)
        others = (one for one in aligned if one is not alignment and fold(one.template.phrase) == phrase)
        for tool in dict.fromkeys(one.template.tool for one in others if one.template.tool != step.tool):
            if self._from_slots(self._offers[tool], alignment, clause) == step.arguments:
                yield replace(step, tool=tool)

    def _from_slots(self, offer: Offer, alignment: Alignment, clause: str) -> dict[str, JSON] | None:
        arguments: dict[str, JSON] = {}
        taken: dict[tuple[str, ...], str] = {(name,): value for name, value in alignment.template.given}
        taken.update(alignment.values)
        taken.update({(name,): trimmed(clause) for name, value in alignment.template.given if value == ALL})
        for names, raw in taken.items():
            wanted = [parameter for name in names if (parameter := offer.parameter(name)) is not None]
            if any(self._takes_anything(one, raw, alignment.template) for one in wanted):
                return None
            if self._is_moment_of(offer, wanted, raw, taken) or self._is_text_of(offer, wanted, raw, taken):
                return None
            values = self._values(raw, wanted)
            if values is None:
                return None
            arguments |= values
        return arguments

    def _takes_anything(self, parameter: Parameter, raw: str, template: Template) -> bool:
        """Whether the parameter takes these words though nothing says that they are meant for it."""
        if parameter.kind is Kind.FILE and len(template.parts) <= 2:  # "remove milk" names none
            return not is_file_name(raw)
        if parameter.kind is Kind.WHEN and template.points and template.contents <= 1:  # "actually add milk"
            return not self._is_moment(raw)
        if template.contents:
            return False
        if parameter.kind is Kind.WHEN:
            return not self._is_moment(raw)
        return template.is_vague and not template.points and parameter.kind in _TAKES_ANYTHING

    def _is_moment(self, raw: str) -> bool:
        person, now = self._reader.person, self._reader.now()
        return any(is_moment(words, person, now) for words in (raw, f"in {raw}"))

    def _is_moment_of(
        self, offer: Offer, wanted: Sequence[Parameter], raw: str, taken: Mapping[tuple[str, ...], str]
    ) -> bool:
        """Whether a text is nothing but the moment that is wanted too: "remind me at 7" says not of what."""
        named = {name for names in taken for name in names}
        lacks = any(one.kind is Kind.WHEN and one.name not in named for one in offer.required)
        if not lacks or any(one.kind not in TAKES_THE_REST for one in wanted):
            return False
        return is_moment(raw, self._reader.person, self._reader.now())

    def _is_text_of(
        self, offer: Offer, wanted: Sequence[Parameter], raw: str, taken: Mapping[tuple[str, ...], str]
    ) -> bool:
        """Whether an optional moment is none, beside a text that goes on: "… for the bath"."""
        if not any(one.kind is Kind.WHEN and not one.required for one in wanted):
            return False
        named = {name for names in taken for name in names}
        return any(one.is_prose and one.name in named for one in offer.required) and not self._is_moment(raw)

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
                    return [
                        replace(step, arguments={**step.arguments, name: place}, beside=number > 0)
                        for number, place in enumerate(several)
                    ]
        return [step]

    # By arithmetic

    def _by_arithmetic(self, clause: str) -> list[Step]:
        asked = asked_calculation(clause)
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
        text = clause[:LONGEST_PLANNED]
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
        takes = TAKES_THE_REST | {Kind.LIST}
        wanting = [one for one in offer.required if one.name not in arguments and one.kind in takes]
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
        read = convert(value, wanting[0], self._reader) if wanting[0].kind is Kind.LIST else value
        given = {**arguments, wanting[0].name: read} if read else arguments
        step = self._completed(offer, given, "")
        return [replace(step, open=wanting[0].name) if value and wanting[0].is_prose else step]

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


def _open_slot(offer: Offer, template: Template) -> str:
    """The parameter whose slot ends the phrase and takes prose, or a list; "" where there is none."""
    name = template.last_slot
    parameter = offer.parameter(name)
    return name if parameter is not None and (parameter.is_prose or parameter.kind is Kind.LIST) else ""
