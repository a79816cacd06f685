"""The calls that a message asks for: each of its sentences fits a whole phrase, or is not understood."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from app.calendar.sentences import is_connective
from app.calendar.words import Reading
from app.llm.offline import guard
from app.llm.offline.slots import (
    TAKES_ANY_WORDS,
    Kind,
    NoTimeError,
    Offer,
    Parameter,
    Reader,
    UnclearTimeError,
    convert,
    convert_several,
    is_file_name,
)
from app.llm.smalltalk import Talk, small_talk
from app.messages import JSON
from app.search.arithmetic import asked_calculation, is_calculation
from app.search.clauses import lines, sentences, splits, tells_event
from app.search.index import ToolIndex
from app.search.phrases import (
    ALL,
    Fit,
    Sentence,
    Template,
    read_template,
    run_on,
    trimmed,
    unquoted,
    without_courtesies,
)
from app.search.words import ALL_STOP_WORDS, WORDS, says_something, spans, words
from app.text import fold

LONGEST_PLANNED = 2_000  # characters of a message that is read
_MAX_STEPS = 12
_MAX_PARTS = 16
_DEEPEST_SPLIT = 4
_MAX_READ = 60  # clauses that are read of one message
_HOUR = re.compile(r"(?:the one |one )?(?:(?:de|do|da) )?(?:l?as?|del|at|of) \d")
_OWN_REMINDER = re.compile(r"\b(?:el recordatorio|o lembrete|the reminder)\b")  # one that is set already
_SOON = {"weekday", "today", "tomorrow", "next_week", "next_month", "weekend"}  # gone, as a fact, soon
_BARE_ALARM = re.compile(r"(?:wake up|alarm|despertar|acordar) \D{0,6}(?:1[0-2]|[1-9])(?::\d\d)?")
_MOST_OF_FILE = 8  # words of a path
_AMOUNT = re.compile(r"\W*\d\S*(?: \S+)?")
_FEW_WORDS = 3  # say too little before "… remember that"


@dataclass(frozen=True)
class Step:
    """One call. `missing`: the required parameter to ask for first; `phrase`: what it was found by."""

    tool: str
    arguments: Mapping[str, JSON]
    missing: Parameter | None = None
    is_guess: bool = False  # a search for what a question may be about
    phrase: Template | None = field(default=None, compare=False)

    def says(self, other: "Step") -> bool:
        """Tell whether the same words ask for both, of two tools."""
        own, its = self.phrase, other.phrase
        return bool(own and its and own.phrase == its.phrase and self.arguments == other.arguments)


@dataclass(frozen=True)
class Plan:
    """The steps of a message, and its parts that no step is about.

    `withheld`: a change is asked for by no clear order, or of a line that the list shown last does not have;
    `is_when_unclear`: at a time that is not understood.
    """

    steps: tuple[Step, ...] = ()
    unknown: tuple[str, ...] = ()
    withheld: bool = False
    is_when_unclear: bool = False


@dataclass(frozen=True)
class _Part:
    """A line, a sentence or several, and what they ask for."""

    text: str
    steps: Sequence[Step]

    @property
    def is_open(self) -> bool:
        """Tell whether what follows may belong to its text."""
        return not self.steps or bool(self.steps[-1].phrase and self.steps[-1].phrase.last_slot)


class Planner:
    """Plans with the tools offered now, known only by their schemas, phrases and index entries.

    Tools that are not `read_only` follow only a sentence that fits one of their phrases to the word. `topic`:
    the categories of what is talked about, the surest first; "cancel it" then means one of these. None: any.
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
        self._known: dict[tuple[str, bool], list[Step]] = {}
        self._unclear: set[str] = set()  # clauses whose time is not understood as a whole
        self._templates = [
            template
            for name, listed in self._phrases.items()
            for phrase in listed
            if not (template := read_template(name, phrase)).points
            or topic is None
            or self.category(name) in topic
        ]
        changing = [one.literals for one in self._templates if one.tool not in read_only]
        first = {one[one[0] in WORDS["before_verbs"]] for one in changing if len(one) > 1}
        self._verbs = first - ALL_STOP_WORDS - WORDS["reports"]

    def about(self, topic: Sequence[str]) -> "Planner":
        """Return a planner for the same tools, with this topic."""
        offers = list(self.offers.values())
        return Planner(offers, self._index, self._phrases, self.reader, self._read_only, topic)

    def only_reads(self, tool: str) -> bool:
        return tool in self._read_only

    def category(self, tool: str) -> str:
        return self._index.category(tool)

    def plan(self, said: str) -> Plan:
        """Return the steps that `said` asks for, in order; none that change anything unless all is clear."""
        if len(said) > LONGEST_PLANNED:
            return Plan(withheld=True)
        parts = self._parts(said)
        steps = [step for part in parts for step in part.steps]
        unknown = [part.text for at, part in enumerate(parts) if _is_unclear(part, at)]
        steps = [step for at, step in enumerate(steps) if step not in steps[:at]][:_MAX_STEPS]
        if any(self.may_go_on(before.tool, step) for before, step in pairwise(steps)):
            return Plan(withheld=True)
        is_when_unclear = not self._unclear.isdisjoint(unknown)
        if not unknown:
            return Plan(tuple(steps))
        reads = tuple(step for step in steps if self.only_reads(step.tool))
        return Plan(reads, tuple(unknown), withheld=len(reads) < len(steps), is_when_unclear=is_when_unclear)

    def answered(self, step: Step, said: str) -> Step | None:
        """Return the step with the person's words for its missing parameter, None if they do not fit."""
        if step.missing is None or guard.asks(said) or guard.takes_back(said):
            return None
        text, offer = without_courtesies(said.strip()), self.offers[step.tool]
        if step.missing.kind is Kind.WHEN and not self._is_whole(text):
            return None
        value = convert(text, step.missing, self.reader)
        none = WORDS["no_answer"]  # "cancel", "I don't know", "delete that reminder"
        names_none = {*words(text)} <= ALL_STOP_WORDS | none or words(text)[0] in none
        if value is None or (names_none and step.missing.kind in TAKES_ANY_WORDS):
            return None
        try:
            is_meant = self._is_meant(offer, step.missing, value)
            arguments = self._with_time(offer, {**step.arguments, step.missing.name: value})
        except UnclearTimeError:
            return None
        return self.completed(offer, arguments) if is_meant else None

    def are_things(self, value: JSON) -> bool:
        """Tell whether a value is a list of things."""
        items = [str(one) for one in value] if isinstance(value, list) else []
        bars = (self.reader.is_moment, self.reader.names_day, is_file_name)
        is_barred = any(bar(text) for bar in bars for one in items for text in (one, f"in {one}"))
        return not is_barred and all(map(guard.is_thing, items))

    def renamed(self, step: Step, name: str) -> Step | None:
        """Return the step with its one text that names a thing replaced by `name`; None if it has none."""
        parameters = self.offers[step.tool].parameters if step.tool in self.offers else ()
        names = [one.name for one in parameters if one.kind is Kind.TEXT and not one.is_prose]
        named = [one for one in names if one in step.arguments]
        if not name or len(named) != 1:
            return None
        return replace(step, arguments={**step.arguments, named[0]: name})

    def completed(self, offer: Offer, arguments: Mapping[str, JSON]) -> Step:
        """Return the step, with the first required parameter that is not given."""
        missing = next((one for one in offer.required if one.name not in arguments), None)
        return Step(offer.name, dict(arguments), missing)

    def _parts(self, said: str) -> list[_Part]:
        """Return its sentences; one that fits nothing by itself goes on with the text before it."""
        found: list[_Part] = []
        pieces = [
            (" " if at else "\n", piece) for line in lines(said) for at, piece in enumerate(sentences(line))
        ]
        if len(pieces) > _MAX_PARTS:
            rest = "".join(f"{gap}{piece}" for gap, piece in pieces[_MAX_PARTS:])
            pieces = [*pieces[:_MAX_PARTS], (rest[0], rest[1:])]
        for gap, piece in pieces:
            steps = self._clause(piece.rstrip(";")) if not piece.endswith(":") else []
            goes_on = not steps and small_talk(piece) is None and not self._is_order(piece)
            if goes_on and found and found[-1].is_open:
                whole = f"{found[-1].text}{gap}{piece}"
                if joined := self._clause(whole):
                    found[-1] = _Part(whole, joined)
                    continue
            found.append(_Part(piece, steps))
        return found

    def may_go_on(self, before: str, step: Step) -> bool:
        """Tell whether a bare "add sugar" may belong to the text or the sum that the tool before it took."""
        is_bare = step.phrase is not None and (step.phrase.points or len(step.phrase.literals) == 1)
        is_of_things = any(one.kind is Kind.LIST for one in self.offers[step.tool].parameters)
        takes = self.offers[before].parameters
        return is_bare and is_of_things and any(one.is_prose or one.kind is Kind.EXPRESSION for one in takes)

    def _is_order(self, text: str) -> bool:
        """Tell whether a text begins like an order, understood or not."""
        said = Sentence(text)
        led = WORDS["leading"] | WORDS["before_verbs"]
        first = next((at for at, one in enumerate(said.words) if one.text not in led), 0)
        return bool(said.forms) and not said.forms[first].isdisjoint(self._verbs)

    def _clause(self, clause: str, depth: int = 0) -> list[Step]:
        """Return the steps of a sentence; an "and" parts it only where both sides are whole by themselves."""
        for left, right in splits(clause) if depth < _DEEPEST_SPLIT else ():
            if len(self._known) > _MAX_READ:
                break
            first = self._best(left, is_part=True)
            goes_on = not set(words(right)[:1]) - WORDS["reports"]  # "I got paid and bought shoes"
            if not _are_complete(first) or (self._is_prose(first[-1]) and goes_on):
                continue
            rest = self._clause(right, depth + 1)
            reads = self.only_reads(first[-1].tool)
            if _are_complete(rest) and (reads or not run_on(first[-1].phrase, rest[0].phrase)):
                return [*first, *rest]
        return self._best(clause, is_part=depth > 0)

    def _is_prose(self, step: Step) -> bool:
        name = step.phrase.last_slot if step.phrase is not None else ""
        parameter = self.offers[step.tool].parameter(name)
        return parameter is not None and parameter.is_prose

    def _best(self, clause: str, *, is_part: bool = False) -> list[Step]:
        """Return the steps of a clause; `is_part`: of a sentence, so that it must fit to the word."""
        clause = without_courtesies(clause.strip())
        if (clause, is_part) not in self._known:
            sure = self._by_phrase(clause, is_part)
            if not sure or not self.only_reads(sure[0].tool):  # "suma 2 + 3" puts nothing on a list
                sure = self._by_arithmetic(clause) or sure
            self._known[clause, is_part] = sure
        return self._known[clause, is_part]

    def _by_phrase(self, clause: str, is_part: bool) -> list[Step]:
        said = Sentence(clause)
        fits = [
            fit
            for one in self._templates
            for fit in said.fits(one, loosely=not is_part and self.only_reads(one.tool))
        ]
        fits.sort(key=self._rank)
        for _, group in groupby(fits, key=lambda fit: fit.literals):
            steps, is_refused = self._of_group(list(group), clause)
            if steps or is_refused:
                return steps
        return []

    def _rank(self, fit: Fit) -> tuple[int, int, bool, int, int]:
        category = self.category(fit.template.tool)
        from_topic = self._topic.index(category) if category in self._topic else len(self._topic)
        taken = sum(len(slot.words) for slot in fit.slots)
        return -fit.literals, from_topic, fit.template.points, fit.loose, taken

    def _of_group(self, fits: Sequence[Fit], clause: str) -> tuple[list[Step], bool]:
        """Return the steps of the first whose values fit, and whether an order among them is refused."""
        found: list[tuple[Fit, Step]] = []
        is_refused = is_unclear = False
        for fit in fits:
            try:
                step = self._step(fit, clause)
            except NoTimeError:
                continue
            except UnclearTimeError:
                is_unclear = True
                continue
            if step is not None:
                found.append((fit, step))
            elif not self.only_reads(fit.template.tool):
                is_refused = True
        complete = [one for one in found if one[1].missing is None]
        if is_unclear and not complete:
            self._unclear.add(clause)
            return [], True
        found = complete or found[:1]
        if not found:
            return [], is_refused
        best, first = found[0]
        phrase = fold(best.template.phrase)
        alike = [step for fit, step in found if fold(fit.template.phrase) == phrase]
        others = {step.tool for fit, step in found if self._rank(fit)[:4] == self._rank(best)[:4]}
        others -= {*self._read_only, *(step.tool for step in alike)}
        if others and not self.only_reads(first.tool) and not best.template.points:
            return [], True  # nobody can tell which is meant
        steps = {step.tool: step for step in reversed(alike)}
        for fit, step in found:  # "add bread" is of the list that was talked about, if one was
            bare = steps.get(step.tool)
            if fit.template.points and bare and bare.arguments.items() < step.arguments.items():
                steps[step.tool] = replace(step, phrase=bare.phrase)
        return [steps[tool] for tool in sorted(steps)], False

    def _step(self, fit: Fit, clause: str) -> Step | None:
        """Return the call with the values of the slots; None if the words are not meant for it."""
        offer = self.offers[fit.template.tool]
        changes = not self.only_reads(offer.name)
        rings = any(one.kind is Kind.WHEN for one in offer.parameters)
        kept = [one.name for one in offer.parameters if one.is_prose and not rings]
        is_own = rings and any(one.is_prose for one in offer.required) and _OWN_REMINDER.search(fold(clause))
        if is_own or (changes and guard.forbids(fit, clause, kept, self.reader.person.language)):
            return None
        filled = {name for slot in fit.slots for name in slot.names}
        takes_any = any(one.kind in TAKES_ANY_WORDS for one in offer.parameters if one.name in filled)
        if fit.template.is_vague and not fit.template.points and takes_any:
            return None
        arguments: dict[str, JSON] = {}
        for slot in fit.slots:
            wanted = [one for name in slot.names if (one := offer.parameter(name)) is not None]
            values = self._values(wanted, slot.text if changes else slot.text.rstrip(" ?!¿"))
            if values is None or not all(
                self._is_meant(offer, one, values[one.name], fit) for one in wanted if one.name in values
            ):
                return None
            arguments |= values
        for name, value in fit.template.given:
            if value == ALL:  # without a greeting
                led = (word.start for word in spans(clause) if word.text not in WORDS["leading"])
                arguments[name] = trimmed(clause[next(led, 0) :])
            elif (parameter := offer.parameter(name)) is not None:
                is_list = parameter.kind is Kind.LIST
                arguments[name] = [value] if is_list else convert(value, parameter, self.reader)
        if not changes and self._misses_time(offer, arguments, clause):
            return None
        step = self.completed(offer, self._with_time(offer, arguments))
        return replace(step, phrase=fit.template)

    def _values(self, wanted: Sequence[Parameter], raw: str) -> dict[str, JSON] | None:
        raw = raw if any(one.kind is Kind.LIST for one in wanted) else unquoted(raw)
        if len(wanted) > 1:
            return convert_several(raw, wanted, self.reader)
        value = convert(raw, wanted[0], self.reader) if wanted else None
        return None if value is None else {wanted[0].name: value}

    def _is_meant(self, offer: Offer, parameter: Parameter, value: JSON, fit: Fit | None = None) -> bool:
        """Tell whether a value can be what its parameter stands for."""
        changes, text = not self.only_reads(offer.name), value if isinstance(value, str) else ""
        literals = fit.template.literals if fit is not None else ()
        match parameter.kind:
            case Kind.WHEN if changes and not self._is_whole(text):
                is_alone = fit is not None and len(fit.slots) == 1 and not fit.template.given
                if (parameter.required and not is_alone) or self.reader.when(text).words:
                    raise UnclearTimeError
                raise NoTimeError
            case Kind.WHEN if not changes and fit is not None and fit.template.begins_in_slot:
                return self.reader.is_moment(text)
            case Kind.WHEN if parameter.name == "time":
                return bool(self.reader.when(text).words) or guard.tells_when(text)
            case Kind.LIST if changes:
                barred = WORDS["objects"] if len(literals) == 1 else frozenset()  # "add milk", no "user"
                barred |= frozenset() if WORDS["bought"].isdisjoint(literals) else WORDS["tails"]
                return self.are_things(value) and barred.isdisjoint(words(str(value)))
            case Kind.EXPRESSION:
                return is_calculation(text)
            case Kind.PLACE:
                return guard.is_place(text) if changes else guard.may_be_place(text)
            case Kind.FILE if fit is not None:
                own = [slot for slot in fit.slots if parameter.name in slot.names]
                is_short = all(len(slot.words) <= _MOST_OF_FILE for slot in own)
                is_named = not WORDS["name_files"].isdisjoint(literals)
                return is_short and (is_named or is_file_name(text))
            case Kind.TEXT if not WORDS["forgot"].isdisjoint(literals):
                return guard.is_name(text) and not tells_event(text)
            case Kind.TEXT | Kind.WORDS if changes and fit is not None and fit.template.takes_all:
                reading = self.reader.when(text)
                is_now = reading.kinds & _SOON or (reading.words and not self.reader.names_day(text))
                called = {"llamo", "chamo"}.intersection(literals)  # "me llamo la atención"
                is_led = called and not WORDS["little"].isdisjoint(words(text)[:1])
                return guard.is_remark(text) and not (is_now or is_led)
            case Kind.TEXT if changes and parameter.is_prose:
                is_order = not WORDS["tasks"].isdisjoint(words(text)[:3]) or guard.are_tasks(text)
                is_task = fit and (fit.template.points or WORDS["tasks"].intersection(literals))
                return not (is_task and is_order) and self._is_text(text, fit)
            case Kind.TEXT if parameter.is_label:
                is_list = any(one.kind is Kind.LIST for one in offer.parameters)
                ends = fit is not None and fit.template.last_slot == parameter.name
                in_quotes = fit is not None and fit.slots[-1].text != text
                is_last = is_list and ends and not in_quotes
                return guard.is_label(text, is_last=is_last) and not self.reader.when(text).words
            case Kind.TEXT if changes:
                is_of = not WORDS["of"].isdisjoint(literals) and text.isdigit()
                is_hour = is_of or _HOUR.match(fold(text)) is not None  # "el de las 2"
                is_two = any(self._is_order(right) or right.isdigit() for _, right in splits(text))
                lives = not WORDS["lives"].isdisjoint(words(text)[:1])
                is_two |= fit is not None and len(fit.slots) > 1 and (lives or self.reader.names_day(text))
                return guard.is_name(text) and not (is_hour or is_two) and not self.reader.is_moment(text)
        return True

    def _is_text(self, text: str, fit: Fit | None) -> bool:
        """Tell whether a text is one to keep, and holds no second order."""
        orders = (self._is_order(right) for _, right in splits(text))
        begins = fit is not None and fit.template.begins_in_slot and fit.slots[0].text == text
        is_alone = fit is None or len(fit.slots) == len(fit.slots[0].names) == 1
        is_reminder = fit is not None and not WORDS["reminding"].isdisjoint(fit.template.literals)
        reading = self.reader.when(text) if is_reminder else Reading()
        has_to = reading.words and WORDS["has_to"].intersection(words(text))
        told = is_reminder and WORDS["was_said"].intersection(words(text)[:3])  # "… what I told you"
        is_soon = reading.kinds & _SOON
        # "change it to 10 eggs"
        is_part = fit is not None and fit.template.points and _AMOUNT.fullmatch(text)
        if (begins and len(words(text)) < _FEW_WORDS) or told or is_soon or has_to or is_part:
            return False  # "remember that I have to call Ana at 5"
        return guard.is_text(text, is_alone=is_alone) and not self._is_whole(text) and not any(orders)

    def _with_time(self, offer: Offer, arguments: dict[str, JSON]) -> dict[str, JSON]:
        """Move an hour from the text to its moment ("tomorrow …: call Ana at 9"). Raises UnclearTimeError."""
        moment = next((one for one in offer.parameters if one.kind is Kind.WHEN), None)
        text = next((one.name for one in offer.required if one.is_prose and one.name in arguments), "")
        if moment is None or not text or self.only_reads(offer.name):
            return arguments
        said, when = str(arguments[text]), arguments.get(moment.name)
        if not isinstance(when, str):
            if moment.required and (guard.tells_when(said) or self.reader.holds_time(said, names_day=False)):
                raise UnclearTimeError
            return arguments
        is_bare = _BARE_ALARM.fullmatch(fold(f"{said} {when}"))
        if guard.tells_more(said) or guard.ENDS_OPEN.search(fold(said)) or is_bare:
            raise UnclearTimeError
        if not self.reader.holds_time(said, names_day=self.reader.names_day(when)):
            return arguments
        whole = self.reader.split_time(f"{when}: {said}")
        if whole is None:
            raise UnclearTimeError
        return {**arguments, text: whole[1], moment.name: whole[0]}

    def _misses_time(self, offer: Offer, arguments: Mapping[str, JSON], clause: str) -> bool:
        """Tell whether an answer would ignore words that say when, or take a day that was for one to come."""
        moments = [one.name for one in offer.parameters if one.kind is Kind.WHEN and one.name in arguments]
        read = [self.reader.when(str(arguments[name])) for name in moments]
        if not moments and "shift" in self.reader.when(clause).kinds:  # "an hour later" asks for no hour
            return True
        was = not WORDS["were"].isdisjoint(words(clause))
        return any(
            one.words and (not is_connective(re.sub(r"\d", "", one.rest)) or (was and one.when))
            for one in read
        )

    def _is_whole(self, when: str) -> bool:
        bare = when.removeprefix("de ").removeprefix("of ").removeprefix("for ")
        return self.reader.reads_whole(when) or self.reader.reads_whole(f"in {bare}")

    def _by_arithmetic(self, clause: str) -> list[Step]:
        asked = asked_calculation(clause)
        if not is_calculation(asked):
            return []
        offers = self.offers.values()
        wanting = [(offer, one) for offer in offers for one in offer.required if one.kind is Kind.EXPRESSION]
        if len(wanting) != 1:
            return []
        offer, parameter = wanting[0]
        value = convert(asked, parameter, self.reader)
        return [] if value is None else [self.completed(offer, {parameter.name: value})]


def _is_unclear(part: _Part, at: int) -> bool:
    """Tell whether a part that asks for nothing says something, or takes back what stands before it."""
    talk = small_talk(part.text)
    is_said = says_something(part.text) if talk is None else at > 0
    return not part.steps and is_said and talk in (None, Talk.NEVER_MIND, Talk.ANSWER)


def _are_complete(steps: Sequence[Step]) -> bool:
    return bool(steps) and all(step.missing is None for step in steps)
