"""The calls that a message asks for, found by example phrases, arithmetic and the index of tools."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.calendar.sentences import is_connective
from app.llm.offline.plan import Plan, Step
from app.llm.offline.slots import (
    TAKES_THE_REST,
    Kind,
    Offer,
    Parameter,
    Reader,
    UnclearTimeError,
    asked_calculation,
    convert,
    convert_several,
    find,
    is_calculation,
    is_file_name,
)
from app.llm.smalltalk import small_talk
from app.messages import JSON
from app.search import orders
from app.search.clauses import lines, places, sentences, splits
from app.search.index import ToolIndex
from app.search.phrases import (
    ALL,
    MAX_WORDS,
    Alignment,
    Template,
    align,
    is_thing,
    read_template,
    says_more,
    trimmed,
    unquoted,
)
from app.search.words import (
    ALL_STOP_WORDS,
    WORDS,
    says_something,
    stem,
    terms,
    words,
)
from app.text import fold

LONGEST_PLANNED = 2_000  # characters; the rest of a longer message only continues a text
_MAX_STEPS = 12
_NO_THINGS = frozenset(("me", "us", "it", "this", "that", "them", "eso", "esto", "isso", "isto", "nos"))
_MAX_PARTS = 16
_MAX_SPLIT_WORDS = 240  # once so many words were read no sentence is split at an "and"
_ENOUGH_COVERED = 0.6
_CLEARLY_AHEAD = 1.15
_DEEPEST_SPLIT = 4
_INTERJECTION = re.compile(r"^\W*(?:no|não|nao|nope|sí|si|sim|yes)\s*[,.;:!]\s*(?=\S)", re.IGNORECASE)
_WIDEST_BLANK = " " * 20
_LONG_BLANK = re.compile(rf"[ \t]{{{len(_WIDEST_BLANK)},}}")  # the patterns below would try each start of it
_DEFINITION = re.compile(r"\W*(?:o que|que|whats|what(?: is|'s)?) (?:es |is |e )?(?:una?|an?|uma?) ")
_ANOTHER_DAY = re.compile(
    r"\W*(?:me )?(?:(?:that|the same) day|the (?:day|night) before|(?:ese|el mismo|esse|nesse|no mesmo) dia"
    r"|(?:na|a) vespera|(?:el dia|la noche|um dia|na noite) (?:antes|anterior))\W*"
)
_NAMES_FILES = frozenset(("archivo", "arquivo", "file", "carpeta", "pasta", "folder", "directory"))
_TELLS = re.compile(
    r"\W*(?:\d|(?:e|es|is|are|son|sao|tem|tiene|has) "
    r"|bought|got|paid|took|forgot|had|have|need|compr[eo]i?|ya|ja|[a-z]+ \d)"
)
_OF_TIME = frozenset(("week", "fortnight", "semana", "quincena", "quinzena", "mes", "month", "year", "ano"))
_MAY_BE_SKIPPED = ALL_STOP_WORDS | WORDS["courtesies"]  # beside an order, that means nothing else
_TAKES_ANYTHING = TAKES_THE_REST | {Kind.PLACE, Kind.LIST}


@dataclass(frozen=True)
class _Part:
    """A line or a sentence, what it asks for by itself, and what stood between it and the part before."""

    text: str
    steps: Sequence[Step]
    gap: str = "\n"

    @property
    def may_go_on(self) -> bool:
        if not self.steps:
            return self.text.endswith(":")
        return bool(self.steps[-1].open) or self.steps[-1].missing is not None or self.text.endswith(":")

    def belongs_to(self, opener: "_Part", *, is_last: bool) -> bool:
        """Tell whether it continues the text that `opener` began, as all that asks for nothing does."""
        asks = bool(self.steps) and not self.steps[0].guessed
        is_question = self.text.endswith("?")
        if opener.text.endswith(":"):
            return not (asks and is_question)
        if asks or (self.steps and is_question):
            return False
        return not (is_last and small_talk(self.text) is not None)


class Planner:
    """Plans with the tools offered now, known only by their schemas, phrases and index entries.

    Tools that are not `read_only` follow only an order that fits one of their phrases. `topic`: the
    categories of what is talked about, the surest first; "cancel it" then means one of these. None: any.
    """

    def __init__(
        self,
        offers: Sequence[Offer],
        index: ToolIndex,
        phrases: Mapping[str, Sequence[str]],
        reader: Reader,
        read_only: Collection[str] = (),
        topic: Sequence[str] | None = None,
    ) -> None:
        self.offers = {offer.name: offer for offer in offers}
        self.reader = reader
        self._index = index
        self._phrases = {name: tuple(phrases.get(name, ())) for name in self.offers}
        self._read_only = read_only
        self._topic = topic or ()
        self._known: dict[str, list[Step]] = {}
        self._unclear: set[str] = set()  # clauses whose time is not understood as a whole
        self._words_read = 0
        self._said = ""
        self._templates = [
            template
            for name, listed in self._phrases.items()
            for phrase in listed
            if not (template := read_template(name, phrase)).points
            or topic is None
            or self.category(name) in topic
        ]

    def about(self, topic: Sequence[str]) -> "Planner":
        """Return a planner for the same tools, with this topic."""
        return Planner(
            list(self.offers.values()), self._index, self._phrases, self.reader, self._read_only, topic
        )

    def only_reads(self, tool: str) -> bool:
        return tool in self._read_only

    def category(self, tool: str) -> str:
        return self._index.category(tool)

    def plan(self, said: str) -> Plan:
        """Return the steps that `said` asks for, in its order."""
        if orders.calls_off(said) or orders.ends_in_no(said):
            return Plan()
        said = _INTERJECTION.sub("", _LONG_BLANK.sub(_WIDEST_BLANK, said))
        cut = said.rfind(" ", 0, LONGEST_PLANNED) if len(said) > LONGEST_PLANNED else len(said)
        cut = cut if cut > 0 else LONGEST_PLANNED
        found = lines(said[:cut])
        self._said = said.strip()
        parts: list[_Part] = []
        for at, line in enumerate(found):
            if len(parts) >= _MAX_PARTS:
                parts.append(_Part("\n".join(found[at:]), ()))
                break
            parts += self._line(line, _MAX_PARTS - len(parts))
        if rest := said[cut:].rstrip():
            parts.append(_Part(rest, (), ""))
        plan = self._joined(parts)
        plan = replace(plan, is_when_unclear=not self._unclear.isdisjoint(plan.unknown))
        if not plan.unknown and not orders.is_withdrawn(said[:cut]):
            return plan
        reads = tuple(step for step in plan.steps if step.tool in self._read_only)
        return replace(plan, steps=reads, withheld=len(reads) < len(plan.steps))

    def answered(self, step: Step, said: str) -> Step | None:
        """Return the step with the person's words for its missing parameter, None if they do not fit."""
        if (
            step.missing is None
            or orders.opens_with_reversal(said)
            or orders.is_withdrawn(said[:LONGEST_PLANNED])
        ):
            return None
        if step.missing.kind is Kind.WHEN:
            reading = self.reader.when(said)
            if not reading.words or set(words(reading.rest)) - ALL_STOP_WORDS - WORDS["courtesies"]:
                return None
        value = convert(said, step.missing, self.reader)
        if value is None or not self.is_plain(value):
            return None
        return self.completed(self.offers[step.tool], {**step.arguments, step.missing.name: value})

    def is_plain(self, value: JSON) -> bool:
        """Tell whether a value is no list, or a list of plain things that nobody has to call a list."""
        items = [str(item) for item in value] if isinstance(value, list) else []
        return all(orders.is_plain_thing(item) and not self._is_moment(item) for item in items)

    def renamed(self, step: Step, name: str) -> Step | None:
        """Return the step with its one text that names a thing replaced by `name`; None if it has none."""
        offer = self.offers.get(step.tool)
        parameters = offer.parameters if offer is not None else ()
        names = [one.name for one in parameters if one.kind is Kind.TEXT and not one.is_prose]
        named = [one for one in names if one in step.arguments]
        if not name or len(named) != 1:
            return None
        return replace(step, arguments={**step.arguments, named[0]: name}, guessed=False)

    def completed(self, offer: Offer, arguments: Mapping[str, JSON], text: str = "") -> Step:
        """Return the step with what `text` says of required parameters that are not there yet."""
        given = dict(arguments)
        for parameter in offer.required:
            if parameter.name in given:
                continue
            found = find(text, parameter, self.reader) if text else None
            if found is None:
                return Step(offer.name, given, parameter)
            given[parameter.name] = found.value
        return Step(offer.name, given)

    def _joined(self, parts: Sequence[_Part]) -> Plan:
        """Join the parts' steps; a part that asks for nothing continues the text before it."""
        steps: list[Step] = []
        unknown: list[str] = []
        opener: _Part | None = None
        for at, part in enumerate(parts):
            if opener is not None and part.belongs_to(opener, is_last=at == len(parts) - 1):
                more = self._continued(steps[-1] if opener.steps else None, opener, part)
                if more:
                    if opener.text in unknown:  # it begins the text that goes on here
                        unknown.remove(opener.text)
                    steps[len(steps) - bool(opener.steps) :] = more
                    opener = replace(opener, steps=more)
                    continue
            steps += [step for step in part.steps if step not in steps]
            opener = part if part.may_go_on else None
            if not part.steps and small_talk(part.text) is None and says_something(part.text):
                unknown.append(part.text)
        return Plan(tuple(steps)[:_MAX_STEPS], tuple(unknown))

    def _continued(self, step: Step | None, opener: _Part, part: _Part) -> list[Step]:
        if step is None or step.missing is not None or not step.open:
            joined = self._clause(f"{opener.text} {part.text}")
            is_opened = step is None or step.missing is not None or (bool(joined) and bool(joined[-1].open))
            return joined if joined and joined[-1].missing is None and is_opened else []
        had = step.arguments[step.open]
        more: JSON = f"{had}{part.gap}{part.text}"
        if isinstance(had, list):
            parameter = self.offers[step.tool].parameter(step.open)
            added = convert(part.text, parameter, self.reader) if parameter and part.gap == "\n" else None
            if not isinstance(added, list):
                return []
            more = [*had, *added]
        return [replace(step, arguments={**step.arguments, step.open: more})]

    def _line(self, line: str, most: int) -> list[_Part]:
        parts = sentences(line)
        if len(parts) == 1:
            return [_Part(line, self._clause(line))]
        apart = [_Part(part, self._clause(part), " ") for part in parts[:most]]
        apart[0] = replace(apart[0], gap="\n")
        if len(parts) > most:
            apart.append(_Part(" ".join(parts[most:]), (), " "))
        planned = [part for part in apart if part.steps and not part.steps[0].guessed]
        if len(planned) > 1 or (planned and (planned[0].text.endswith("?") or planned[0].steps[-1].open)):
            return apart
        # "what time is it in St. Louis" is one sentence: its second part means nothing by itself.
        whole = self._clause(line)
        return [_Part(line, whole)] if whole and not (planned and whole[0].guessed) else apart

    def _clause(self, clause: str, depth: int = 0) -> list[Step]:
        if depth < _DEEPEST_SPLIT:
            for left, right in splits(clause):
                if self._words_read > _MAX_SPLIT_WORDS:
                    break
                first = self._best(left)
                if not _are_sure(first):
                    continue
                is_list = isinstance(first[-1].arguments.get(first[-1].open), list)
                if first[-1].open and _TELLS.match(fold(right)):
                    continue  # "note I got paid and bought shoes" is one note
                if is_list and ":" in left and clause[len(left) :].startswith(","):
                    continue  # "new list sizes: shoes 9, waist 32"
                rest = self._clause(right, depth + 1)
                if _are_sure(rest) and not (is_list and self._splits_a_list(right, first[-1], rest[0])):
                    return [*first, *rest]
        return self._best(clause)

    def _splits_a_list(self, right: str, step: Step, rest: Step) -> bool:
        """Tell whether a split tears off a list's last thing, as "da to the list" ("give"), "2 kg … list"."""
        said, is_vague = words(right), rest.phrase is not None and rest.phrase.is_vague
        closings = (one.closing for one in self._templates if one.tool == step.tool != rest.tool)
        return any(
            said[-1] == one[-1] and (is_vague or said[1:2] == [one[0]]) for one in closings if len(one) > 1
        )

    def _best(self, clause: str) -> list[Step]:
        if clause != self._said and (orders.is_undo(clause) or orders.is_again(clause)):
            return []  # beside another order nobody can tell of what
        if clause not in self._known:
            self._words_read += min(len(clause.split()), MAX_WORDS)
            sure = self._by_phrase(clause)
            if not sure or sure[0].tool not in self._read_only:  # "suma 2 + 3" puts nothing on a list
                sure = self._by_arithmetic(clause) or sure
            guesses = [] if sure or clause in self._unclear else self._by_index(clause)
            self._known[clause] = sure or [replace(step, guessed=True) for step in guesses]
        return self._known[clause]

    # By example phrase

    def _by_phrase(self, clause: str) -> list[Step]:
        asking: list[Step] = []
        asked_at, unclear = 0.0, ""
        aligned = sorted(
            align(clause, self._templates),
            key=lambda one: (-one.strength, self._distance(one.template.tool)),
        )
        for alignment in aligned:
            if asking and alignment.strength < asked_at:
                is_list = asking[0].missing is not None and asking[0].missing.kind is Kind.LIST
                if is_list or alignment.template.tool != asking[0].tool:
                    break  # better asked than answered: "add to the shopping list" adds no "shopping list"
            offer = self.offers[alignment.template.tool]
            if unclear and offer.name != unclear:
                break  # "remind me before lunch" asks for nothing else
            names_things = not any(one.is_prose for one in offer.parameters)
            if offer.name not in self._read_only and (
                orders.is_no_order(clause, alignment.template, names_things=names_things)
                or is_thing(clause, alignment.template)
                or alignment.template.is_loose(clause)
                or not _MAY_BE_SKIPPED.issuperset(alignment.skipped)
                or (_takes(offer, Kind.PLACE) and orders.lives_elsewhere(clause))
                or (not _takes(offer, Kind.WHEN) and orders.asks_to_ring(clause))
                or (alignment.template.takes_all and orders.holds_more(clause))
                or (alignment.template.points and orders.means_all(clause, alignment.template))
                or (not alignment.values and says_more(clause, alignment.template))
            ):
                continue
            try:
                arguments = self._from_slots(offer, alignment, clause)
            except UnclearTimeError:
                self._unclear.add(clause)
                unclear = unclear or offer.name
                continue
            if arguments is None:
                continue
            told = (arguments.get(name) for names in alignment.values for name in names)
            if alignment.template.points and not all(map(self.is_plain, told)):
                continue
            if offer.name in self._read_only and self._is_misunderstood(offer, arguments, alignment, clause):
                continue
            if orders.points_away(clause) and self._lacks_place(offer, arguments):
                continue
            step = self.completed(offer, arguments, "" if alignment.values else clause)
            if step.missing is None:
                step = replace(step, open=_open_slot(offer, alignment.template), phrase=alignment.template)
                steps = [
                    *self._one_for_each_place(offer, step),
                    *self._of_same_phrase(step, alignment, aligned, clause),
                ]
                return sorted(steps, key=lambda one: one.tool)
            if step.missing.kind is Kind.LIST and not _NO_THINGS.isdisjoint(alignment.skipped):
                continue  # "add me to the list"
            if not asking:
                asking, asked_at = [step], alignment.strength
        return asking

    def _distance(self, tool: str) -> int:
        """Return how far a tool is from what is talked about."""
        category = self.category(tool)
        return self._topic.index(category) if category in self._topic else len(self._topic)

    def _of_same_phrase(
        self, step: Step, alignment: Alignment, aligned: Sequence[Alignment], clause: str
    ) -> Iterator[Step]:
        """Yield the other tools with this phrase: "I live in {place}" tells the weather and the clock."""
        phrase = fold(alignment.template.phrase)
        others = (one for one in aligned if one is not alignment and fold(one.template.phrase) == phrase)
        for tool in dict.fromkeys(one.template.tool for one in others if one.template.tool != step.tool):
            if self._from_slots(self.offers[tool], alignment, clause) == step.arguments:
                yield replace(step, tool=tool)

    def _from_slots(self, offer: Offer, alignment: Alignment, clause: str) -> dict[str, JSON] | None:
        """Return the arguments, None if a slot's words are not what its parameter wants."""
        template = alignment.template
        taken: dict[tuple[str, ...], str] = {(name,): value for name, value in template.given}
        taken |= alignment.values
        taken |= {(name,): trimmed(clause) for name, value in template.given if value == ALL}
        named = {name for names in taken for name in names}
        arguments: dict[str, JSON] = {}
        for names, raw in taken.items():
            wanted = [parameter for name in names if (parameter := offer.parameter(name)) is not None]
            if not any(one.kind is Kind.LIST for one in wanted):
                raw = unquoted(raw)
            if any(self._takes_anything(one, raw, template) for one in wanted):
                return None
            if self._is_misread(offer, wanted, raw, named):
                return None
            if len(wanted) == 1:
                value = convert(raw, wanted[0], self.reader)
                values = None if value is None else {wanted[0].name: value}
            else:
                values = convert_several(raw, wanted, self.reader)
            if values is None or self._says_nothing(offer, wanted, values):
                return None
            if names in alignment.values and self._is_no_text(offer, wanted, values):
                return None
            arguments |= values
        return self._with_time(offer, arguments)

    def _says_nothing(self, offer: Offer, wanted: Sequence[Parameter], values: Mapping[str, JSON]) -> bool:
        """Tell whether what is to be told at a time is only small words: "remind me at 7"."""
        if not any(one.kind is Kind.WHEN for one in offer.required):
            return False
        texts = [str(values.get(one.name)) for one in wanted if one.is_prose]
        return any(
            ALL_STOP_WORDS.issuperset(words(text)) or _ANOTHER_DAY.fullmatch(fold(text)) for text in texts
        )

    def _is_no_text(self, offer: Offer, wanted: Sequence[Parameter], values: Mapping[str, JSON]) -> bool:
        """Tell whether the words of a change are no text or place to keep: a question, a moment, a remark."""
        if offer.name in self._read_only:
            return False
        tells_when = any(one.kind is Kind.WHEN for one in offer.required)
        for parameter in wanted:
            value = values.get(parameter.name)
            if not isinstance(value, str):
                continue
            if parameter.kind is Kind.PLACE and orders.is_no_place(value):
                return True
            is_placed = not tells_when and orders.is_elsewhere(value)
            if parameter.kind is Kind.TEXT and orders.holds_request(value):
                return True
            if parameter.kind is Kind.TEXT and not parameter.is_prose and self.reader.when(value).words:
                return True
            if parameter.is_prose and (orders.asks(value) or is_placed or self.reader.is_moment(value)):
                return True
        return False

    def _with_time(self, offer: Offer, arguments: dict[str, JSON]) -> dict[str, JSON]:
        """Move an hour or an end from the text to its moment: "tomorrow …: call Ana at 9".

        Raises UnclearTimeError if the text may say more of when, or the moment is not understood as a whole.
        """
        moment = next((one for one in offer.parameters if one.kind is Kind.WHEN), None)
        changes = offer.name not in self._read_only
        if changes and moment is None and orders.asks_to_be_reminded(self._said):
            told = [
                str(arguments[one.name]) for one in offer.required if one.is_prose and one.name in arguments
            ]
            if any(self.reader.holds_time(one, names_day=True) for one in told):
                raise UnclearTimeError  # a fact does not ring
        given = arguments.get(moment.name) if moment is not None else None
        if changes and isinstance(given, str) and not self._is_whole(given):
            raise UnclearTimeError
        text = next((one.name for one in offer.required if one.is_prose and one.name in arguments), "")
        if moment is None or not text:
            return arguments
        said, when = str(arguments[text]), arguments.get(moment.name)
        if not isinstance(when, str):
            if moment.required and self.reader.holds_time(said, names_day=False):
                raise UnclearTimeError
            return arguments
        if not self.reader.holds_time(said, names_day=self.reader.names_day(when)):
            return arguments
        whole = self.reader.split_time(f"{when} {said}")
        if whole is None:
            raise UnclearTimeError
        return {**arguments, text: whole[1], moment.name: whole[0]}

    def _takes_anything(self, parameter: Parameter, raw: str, template: Template) -> bool:
        """Tell whether the parameter takes these words though nothing says that they are meant for it."""
        if parameter.kind is Kind.FILE and _NAMES_FILES.isdisjoint(template.telling):  # "remove milk"
            return not is_file_name(raw.partition(":")[0])
        says_little = not template.telling or (template.points and len(template.telling) <= 1)
        if parameter.kind is Kind.WHEN and (says_little or template.begins_in_a_slot):
            return not self._is_moment(raw)  # "actually add milk" names no time
        return template.is_vague and not template.points and parameter.kind in _TAKES_ANYTHING

    def _is_misread(
        self, offer: Offer, wanted: Sequence[Parameter], raw: str, named: Collection[str]
    ) -> bool:
        """Tell whether a text is the moment that is missing ("remind me at 7" says not of what), or an
        optional moment is part of a text ("… for the bath")."""
        lacks_moment = any(one.kind is Kind.WHEN and one.name not in named for one in offer.required)
        if lacks_moment and all(one.kind in TAKES_THE_REST for one in wanted) and self.reader.is_moment(raw):
            return True
        takes_moment = any(one.kind is Kind.WHEN and not one.required for one in wanted)
        has_text = any(one.is_prose and one.name in named for one in offer.required)
        return takes_moment and has_text and not self._is_moment(raw)

    def _is_misunderstood(
        self, offer: Offer, arguments: Mapping[str, JSON], alignment: Alignment, clause: str
    ) -> bool:
        """Tell whether the answer would ignore words of the question."""
        moments = [one.name for one in offer.parameters if one.kind is Kind.WHEN and one.name in arguments]
        read = [self.reader.when(str(arguments[name])) for name in moments]
        if any(
            one.words and not is_connective(re.sub(r"\d", "", one.rest)) for one in read
        ) or orders.counts_weeks(clause):
            return True
        if self._means_the_past(offer, arguments, clause):
            return True
        skipped = set(alignment.skipped) - _MAY_BE_SKIPPED
        return len(skipped) > 2 or not _OF_TIME.isdisjoint(skipped) or orders.says_to_forget(clause)

    def _means_the_past(self, offer: Offer, arguments: Mapping[str, JSON], clause: str) -> bool:
        """Tell whether a day that was is asked for, and its words would be read as one to come."""
        days = [
            str(arguments[one.name])
            for one in offer.required
            if one.kind is Kind.WHEN and one.name in arguments
        ]
        return orders.tells_of_the_past(clause) and any(self.reader.when(day).when for day in days)

    def _lacks_place(self, offer: Offer, arguments: Mapping[str, JSON]) -> bool:
        places = [one.name for one in offer.parameters if one.kind is Kind.PLACE]
        return bool(places) and not any(name in arguments for name in places)

    def _is_whole(self, when: str) -> bool:
        bare = when.removeprefix("de ").removeprefix("of ")
        return self.reader.reads_whole(when) or self.reader.reads_whole(f"in {bare}")

    def _is_moment(self, raw: str) -> bool:
        return self.reader.is_moment(raw) or self.reader.is_moment(f"in {raw}")

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
            for offer in self.offers.values()
            for parameter in offer.required
            if parameter.kind is Kind.EXPRESSION
        ]
        if len(wanting) != 1:
            return []
        offer, parameter = wanting[0]
        value = convert(asked, parameter, self.reader)
        return [] if value is None else [self.completed(offer, {parameter.name: value})]

    # By the index

    def _by_index(self, clause: str) -> list[Step]:
        """Guess a tool that changes nothing, if most words of the clause are its own."""
        text = clause[:LONGEST_PLANNED]
        if not says_something(text) or _DEFINITION.match(fold(text)) or orders.opens_with_reversal(text):
            return []
        if orders.counts_weeks(text):
            return []
        reading = self.offers.keys() & set(self._read_only)
        hits = self._index.rank(text, among=reading, limit=2)
        if not hits or (len(hits) > 1 and hits[0].score < _CLEARLY_AHEAD * hits[1].score):
            return []
        offer = self.offers[hits[0].id]
        found = {one.name: value for one in offer.parameters if (value := find(text, one, self.reader))}
        taken = {word for value in found.values() for word in value.words}
        rest = [word for word in words(text) if word not in taken and word not in ALL_STOP_WORDS]
        own = {*terms(offer.name), *(term for one in self._phrases[offer.name] for term in terms(one))}
        known = own.intersection(map(stem, rest))
        is_named = len(known) > 1 or not known.isdisjoint(terms(offer.name))
        if not is_named or self._index.coverage(offer.name, " ".join(rest)) < _ENOUGH_COVERED:
            return []
        if not found and re.search(r"\d", text):
            return []  # a number that no parameter takes
        if any(one.kind is Kind.TEXT and one.name not in found for one in offer.parameters):
            return []  # it may be named: "sort the shopping list"
        if len({str(value.value) for value in found.values()}) < len(found):
            return []  # one day is not both ends of a time
        step = self.completed(offer, {name: value.value for name, value in found.items()})
        is_past = self._means_the_past(offer, step.arguments, clause)
        return [step] if step.missing is None and not is_past else []


def _takes(offer: Offer, kind: Kind) -> bool:
    return any(one.kind is kind for one in offer.parameters)


def _are_sure(steps: Sequence[Step]) -> bool:
    return bool(steps) and all(step.is_sure for step in steps)


def _open_slot(offer: Offer, template: Template) -> str:
    """Return the parameter whose slot ends the phrase and takes prose, or a list; "" if there is none."""
    name = template.last_slot
    parameter = offer.parameter(name)
    return name if parameter is not None and (parameter.is_prose or parameter.kind is Kind.LIST) else ""
