"""Messages that go on with what was said and done before: an answer, a picked line, "it", another place."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from app.calendar.grammar import KINDS, pieces
from app.llm.offline.guard import asks, holds_doubt, is_undo, takes_back
from app.llm.offline.planner import Plan, Planner, Step
from app.llm.offline.slots import NUMERALS, Kind, Parameter, convert
from app.llm.smalltalk import small_talk
from app.messages import JSON
from app.search.arithmetic import CALCULATED_ON, calculated_on
from app.search.phrases import EVERYTHING, IT, SAME
from app.search.words import WORDS, spans, words
from app.store.turn_state import Exchange, PastCall
from app.text import fold

_LONGEST_CHOICE = 8  # words of an answer that picks one of several
_LONGEST_PICK = 12
_LONGEST_NAME = 4
_ORDINALS: Mapping[str, int] = {
    word: place % 6  # 0: the last
    for place, name in enumerate(("first", "second", "third", "fourth", "fifth", "last"), start=1)
    for word in WORDS[name]
}
_NOTHING = Exchange("", "", 0.0)
_PRONOUN = {"en": "it", "es": "eso", "pt": "isso"}
_BETTER = {"en": ("better", "at"), "es": ("mejor", "a las"), "pt": ("melhor", "às")}
_BARE_HOUR = re.compile(r"^\W*(?:(?:to|para|pra|a|at) )?(\d{1,2})\W*$", re.IGNORECASE)
_AMOUNT = re.compile(r"(?is)(?!.*(?:\d(?:[:.]\d\d|\s?h|\s?[ap]\.?m)|\b(?:(?:a|para?) las?|[aà]s|at) \d)).*\d")
_BARE_NUMBER = re.compile(r"\W*(?:(?:el|la|lo|o|a|the|n[uú]mero|number)\s+)*#?(\d{1,5})\W*", re.IGNORECASE)


def plan_after(planner: Planner, said: str, earlier: Sequence[Exchange]) -> Plan:
    """Return what a message asks for, after what was said and done in earlier turns."""
    before = _subject(planner, earlier)
    last = before.calls[-1] if before.calls else None
    if is_undo(said):
        return _undone(planner, said, earlier)
    if last is not None:
        if (step := _with_hour(planner, said, last)) is not None:
            return Plan((step,))
        if before is earlier[-1]:
            said = _corrected(planner, said, last) or said
    if (picked := _picked_line(planner, said, earlier)) != Plan():
        return picked
    alone = plan = planner.plan(said)
    if earlier and before is not earlier[-1] and not WORDS["adding"].isdisjoint(words(said)):
        return replace(plan, steps=tuple(step for step in plan.steps if planner.only_reads(step.tool)))
    tools = [call.tool for call in before.calls] or [step.tool for step in planner.plan(before.said).steps]
    if tools or any(map(_pronouns, plan.steps)):
        beside = [step.tool for step in plan.steps if not _pronouns(step)]
        plan = planner.about([planner.category(tool) for tool in (*tools, *beside)]).plan(said)
    since = takewhile(lambda one: one is not before, reversed(earlier))  # "it" may be of these
    before_it = before if all(small_talk(one.said) is not None for one in since) else _NOTHING
    plan = _resolved(plan, planner, before_it)
    called = {call.tool for one in earlier for call in one.calls}
    used = called - {step.tool for step in plan.steps}
    is_either = any(step.tool in used and not planner.only_reads(step.tool) for step in alone.steps)
    again = {call.tool for one in earlier[-1:] for call in one.calls if call.changed and call.arguments}
    is_either |= any(step.tool in again and not step.arguments for step in plan.steps)  # "restore the note"
    if last is not None and last.changed and before is earlier[-1] and last.tool in planner.offers:
        is_either |= any(planner.may_go_on(last.tool, one) for one in plan.steps if one.tool not in called)
    if is_either or any(_is_of_other_list(planner, step, earlier) for step in plan.steps):
        return Plan(withheld=True)
    if last is not None and any(_lacks_day(planner, said, step, last) for step in plan.steps):
        return Plan(is_when_unclear=True)
    if last is not None and before_it is before and (step := _varied(planner, said, last, plan)) is not None:
        return Plan((step,))
    if any(one.missing is None for one in plan.steps) or not earlier or before is not earlier[-1]:
        return plan
    answered = _answered(planner, before, said, plan)
    return Plan((answered,)) if answered is not None else plan


def _is_of_other_list(planner: Planner, step: Step, earlier: Sequence[Exchange]) -> bool:
    """Tell whether a change is of a number alone ("cancel 3") after a list of others, or by a quote."""
    if [*earlier] == [_NOTHING]:  # an older message is quoted, which may name what is meant
        return not planner.only_reads(step.tool) and "when" not in step.arguments
    shown = _last(earlier, lambda call: call.changed or bool(call.follow_up.numbers))
    if shown is None or step.phrase is None or planner.only_reads(step.tool):
        return False
    is_number = any(_BARE_NUMBER.fullmatch(str(value)) for value in step.arguments.values())
    is_bare = is_number and len(step.phrase.telling - WORDS["values"]) == 1
    return is_bare and planner.category(shown.tool) != planner.category(step.tool)


def _lacks_day(planner: Planner, said: str, step: Step, last: PastCall) -> bool:
    """Tell whether "and … at 11" may be of the day that was named just before."""
    when = planner.reader.when(str(step.arguments.get("when", "")))
    is_added = words(said)[:1] in (["y"], ["e"], ["and"]) and last.changed
    before = planner.reader.when(str(last.arguments.get("when", "")))
    named_day = before.kinds - KINDS["hour"] - {"today", "span"}
    return is_added and bool(when.kinds and named_day) and when.kinds <= KINDS["hour"]


def may_vary(said: str) -> bool:
    """Tell whether a message begins like one that goes on with the last."""
    found = words(said)
    if not 0 < len(found) < _LONGEST_CHOICE:
        return False
    is_other_place = found[0] in ("en", "em", "in") and said.endswith("?") and len(found) <= _LONGEST_NAME
    is_other = found[0] in WORDS["goes_on"] or " ".join(found[:2]) in ("que tal", "what about", "how about")
    return is_other or is_other_place or CALCULATED_ON.match(fold(said)) is not None


def _last(earlier: Sequence[Exchange], fits: Callable[[PastCall], bool]) -> PastCall | None:
    return next((call for one in reversed(earlier) for call in reversed(one.calls) if fits(call)), None)


def _subject(planner: Planner, earlier: Sequence[Exchange]) -> Exchange:
    """Return the last turn in which we did something, or asked for what was missing."""
    for one in reversed(earlier):
        if one.calls:
            return one
        steps = planner.plan(one.said).steps if "?" in one.reply else ()
        if any(_without_same(step, planner).missing is not None for step in steps):
            return one
    return _NOTHING


def _undone(planner: Planner, said: str, earlier: Sequence[Exchange]) -> Plan:
    """Plan what undoes the last change, within its own category: a page may name words for it, too."""
    change = _last(earlier, lambda call: call.changed)
    if change is None:
        return Plan() if earlier else planner.plan(said)  # what a tool undoes may be of long ago
    since = list(takewhile(lambda one: change not in one.calls, reversed(earlier)))
    looks = all(planner.only_reads(call.tool) and call.ok for one in since for call in one.calls)
    if not looks or not all(one.calls or small_talk(one.said) for one in since):
        return Plan()  # what was refused since may be meant
    plan = planner.plan(change.follow_up.undo or said)
    is_own = [*map(planner.category, {one.tool for one in plan.steps})] == [planner.category(change.tool)]
    return plan if is_own else Plan()


def _corrected(planner: Planner, said: str, last: PastCall) -> str:
    """Return another moment for what was changed last as a message that says so: "better at 8"; else ""."""
    if not last.changed or asks(said):
        return ""
    start = next((word.start for word in spans(said) if word.text not in WORDS["corrects"]), len(said))
    alone = (one for one in planner.plan(said).steps if one.missing is None)
    if start == 0 and any(SAME not in one.arguments.values() for one in alone):  # "in 10 minutes more"
        return ""
    better, at = _BETTER[planner.reader.person.language]
    amount = _AMOUNT.match(" ".join(map(str, last.arguments.values())))  # "no, 20" is of minutes or days then
    rest = said[start:] if amount or not start else _BARE_HOUR.sub(rf"{at} \1", said[start:])
    return f"{better} {rest}" if planner.reader.is_moment(rest) else ""


def _answered(planner: Planner, before: Exchange, said: str, plan: Plan) -> Step | None:
    """Return the step that our last question was about, with `said` as its answer or as its pick."""
    for call in before.calls:
        if call.follow_up.choices:
            is_short = len(words(said)) <= _LONGEST_CHOICE
            name = _picked_name(call.follow_up.choices, said) if is_short else ""
            return planner.renamed(Step(call.tool, call.arguments), name)
    steps = [_without_same(step, planner) for step in planner.plan(before.said).steps]
    waiting = next((step for step in steps if step.missing is not None), None)
    others = (step for step in plan.steps if step.missing is not None or waiting is None)
    if waiting is None or any(others) or any(step.tool != waiting.tool for step in plan.steps):
        return None
    return planner.answered(waiting, said)


def _picked_name(names: Sequence[str], said: str) -> str:
    """Return the name that is spelled out or numbered."""
    spelled = [name for name in names if fold(name) in fold(said)]
    numbers = [str(NUMERALS.get(word, _ORDINALS.get(word, word))) for word in words(said)]
    numbered = [name for number, name in enumerate(names, start=1) if str(number) in numbers]
    return next((found[0] for found in (spelled, numbered) if len(found) == 1), "")


def _with_hour(planner: Planner, said: str, last: PastCall) -> Step | None:
    """Return the last call with the hour that `said` names where two were asked about: "17:00"."""
    offer = planner.offers.get(last.tool)
    if offer is None or not last.follow_up.hours or not re.search(r"\d", said):
        return None
    for one in offer.parameters:
        if one.kind is not Kind.WHEN or not isinstance(when := last.arguments.get(one.name), str):
            continue
        found = pieces(when, planner.reader.person.language)
        for clock in (piece for piece in found if piece.kind == "clock"):
            timed = f"{when[: clock.start]} {said} {when[clock.end :]}"
            if planner.reader.is_moment(timed) and planner.reader.when(timed).when is not None:
                return Step(last.tool, {**last.arguments, one.name: " ".join(timed.split())})
    return None


def _picked_line(planner: Planner, said: str, earlier: Sequence[Exchange]) -> Plan:
    """Return what `said` asks for with a line of the list shown last; no steps if it picks none."""
    shown = _last(earlier, lambda call: bool(call.follow_up.numbers))
    if shown is None:
        return Plan()
    numbers, ordinal = shown.follow_up.numbers, _ordinal_in(said)
    place, first, last = ordinal or (0, 0, 0)
    number = numbers[place - 1] if place <= len(numbers) else ""
    if str(place) in numbers and number != str(place) and (place > 1 or not shown.ok):
        return Plan(withheld=True)  # the second line, or number 2
    bare = _BARE_NUMBER.fullmatch(f"{said[:first]}{number}{said[last:]}" if ordinal else said)
    if bare is not None and bare[1] in numbers and not shown.ok and shown in earlier[-1].calls:
        step = planner.renamed(Step(shown.tool, shown.arguments), bare[1])
        return Plan((step,)) if step is not None else Plan()
    is_stale = shown not in earlier[-1].calls and (place == 0 or not shown.ok)
    if ordinal is None or is_stale:  # "the last one" may be what was added since
        return Plan()
    own = planner.about([planner.category(shown.tool)])
    for stand_in in (number or "1", _PRONOUN[own.reader.person.language]):
        wanted = (stand_in, [stand_in], IT, [IT])
        plan = own.plan(f"{said[:first]}{stand_in}{said[last:]}")
        about = [step for step in plan.steps if any(value in wanted for value in step.arguments.values())]
        is_own = {planner.category(step.tool) for step in plan.steps} == {planner.category(shown.tool)}
        if is_own and len(about) == len(plan.steps) and all(step.missing is None for step in about):
            if not number:
                return Plan(withheld=True)
            return Plan(tuple(_with_line(step, wanted, number, own) for step in about))
    return Plan()


def _ordinal_in(said: str) -> tuple[int, int, int] | None:
    """Return the place in a list that "the second one" names (0: the last), and where it begins and ends."""
    found = spans(said)
    if len(found) > _LONGEST_PICK:
        return None
    for at, word in enumerate(found):
        has_article = at > 0 and found[at - 1].text in WORDS["articles"]
        if word.text in _ORDINALS and (has_article or at == 0):
            first = at - 1 if has_article else at
            last = at + 1 if at + 1 < len(found) and found[at + 1].text in ("one", "item") else at
            return _ORDINALS[word.text], found[first].start, found[last].end
    return None


def _with_line(step: Step, stands_for: Sequence[JSON], number: str, planner: Planner) -> Step:
    arguments = {name: value for name, value in step.arguments.items() if value != SAME}
    for name, value in arguments.items():
        if value in stands_for:
            parameter = planner.offers[step.tool].parameter(name)
            is_list = parameter is not None and parameter.kind is Kind.LIST
            arguments[name] = [number] if is_list else number
    return replace(step, arguments=arguments)


def _varied(planner: Planner, said: str, last: PastCall, plan: Plan) -> Step | None:
    """Return the question asked last with what `said` names in its place: "and in Lima?", "split by 3"."""
    if not may_vary(said) or last.tool not in planner.offers or takes_back(said):
        return None
    if not planner.only_reads(last.tool) and (asks(said) or holds_doubt(said, spans(said))):
        return None
    step = _with_variation(planner, Step(last.tool, last.arguments), said)
    if step is None or not any(one.missing is None for one in plan.steps):
        return step
    rest, bare = _named(said)
    is_moment = any(map(planner.reader.is_moment, (rest, bare)))
    is_incomplete = is_moment or CALCULATED_ON.match(fold(said)) is not None
    return step if is_incomplete and {one.tool for one in plan.steps} == {step.tool} else None


def _with_variation(planner: Planner, step: Step, said: str) -> Step | None:
    offer = planner.offers[step.tool]
    if any(one.is_prose and one.name in step.arguments for one in offer.parameters):
        return None  # what was written down is no question
    expression = next((one for one in offer.parameters if one.kind is Kind.EXPRESSION), None)
    had = step.arguments.get(expression.name) if expression is not None else None
    if expression is not None and had is not None and CALCULATED_ON.match(fold(said)):
        more = calculated_on(str(had), said)
        return None if more is None else replace(step, arguments={**step.arguments, expression.name: more})
    rest, bare = _named(said)
    if not bare:
        return None
    varied = [  # "and on Saturday at 8" adds to what was set
        one for one in offer.parameters if one.kind is not Kind.WHEN or planner.only_reads(step.tool)
    ]
    for one in sorted(varied, key=lambda one: (one.kind is Kind.PLACE, one.name not in step.arguments)):
        value = _variant(planner, one, step.arguments.get(one.name), rest, bare)
        if value is not None:
            return replace(step, arguments={**step.arguments, one.name: value})
    return None


def _named(said: str) -> tuple[str, str]:
    """Return what follows the opening, with and without the small words before it."""
    found = spans(said)
    rest = next((word.start for word in found if word.text not in WORDS["goes_on_with"]), len(said))
    small = WORDS["goes_on_with"] | WORDS["little"] | WORDS["before_names"]
    bare = next((word.start for word in found if word.text not in small), len(said))
    return said[rest:].strip(" ?!.¿¡,"), said[bare:].strip(" ?!.¿¡,")


def _variant(planner: Planner, parameter: Parameter, had: JSON, rest: str, bare: str) -> JSON:
    """Return the parameter's value instead of what it `had`, None if these words are nothing for it."""
    is_moment = planner.reader.is_moment(bare)
    if parameter.kind is Kind.WHEN and not is_moment and planner.reader.is_moment(rest):
        return convert(rest, parameter, planner.reader)
    is_name = not re.search(r"\d", bare) and len(words(bare)) <= _LONGEST_NAME
    fits = {
        Kind.WHEN: is_moment or (isinstance(had, str) and is_name),  # "and for new year?"
        Kind.PLACE: is_name and not is_moment,
    }
    return convert(bare, parameter, planner.reader) if fits.get(parameter.kind) else None


def _resolved(plan: Plan, planner: Planner, before: Exchange) -> Plan:
    """Return the plan with what "it" stands for; where a part stays unknown, nothing is changed."""
    if not any(map(_pronouns, plan.steps)):
        return plan
    past = {planner.category(call.tool): call for call in before.calls if call.ok}
    said = {planner.category(step.tool): step for step in planner.plan(before.said).steps if not before.calls}
    beside = {planner.category(step.tool): step for step in plan.steps if not _pronouns(step)}
    steps: list[tuple[Step, Step]] = []  # as planned, and what it stands for
    for step in plan.steps:
        category = planner.category(step.tool)
        if not _pronouns(step):
            steps.append((step, step))
        elif (call := past.get(category)) is not None:
            single = call.follow_up.numbers[:1] if len(call.follow_up.numbers) == 1 else ()
            told = call.follow_up.about or "".join(single)
            steps.append((step, _with_it(step, call, told, planner)))
        elif (other := beside.get(category) or said.get(category)) is not None:
            steps.append((step, _with_it(step, other, "", planner)))
        elif (bare := _without_same(step, planner)).missing or (step.phrase and not step.phrase.points):
            steps.append((step, bare))
    steps = [(planned, step) for planned, step in steps if not _pronouns(step)]
    told_by = {fold(one.phrase.phrase) for one, _ in steps if one.phrase}
    is_part = any(one.phrase and fold(one.phrase.phrase) not in told_by for one in plan.steps)
    kept = tuple(step for _, step in steps if not is_part or planner.only_reads(step.tool))
    return replace(plan, steps=kept, withheld=plan.withheld or len(kept) < len(steps))


def _with_it(step: Step, had: Step | PastCall, told: str, planner: Planner) -> Step:
    offer, changed = planner.offers[step.tool], planner.offers.get(had.tool)
    # what a change is of may be gone since, as a list that was deleted
    gone = [one.name for one in changed.required] if changed and not planner.only_reads(had.tool) else []
    arguments = dict(step.arguments)
    for name in _pronouns(step):
        before = had.arguments.get(name)
        before = None if before in (IT, SAME, [IT], EVERYTHING) else before
        parameter = offer.parameter(name)
        if before and parameter and parameter.is_label and isinstance(had, PastCall):
            before = had.follow_up.within or before  # "compras" may be called "Mercado"
        if arguments.pop(name) == SAME:
            arguments |= {name: before} if before is not None and name not in gone else {}
        elif parameter is not None and parameter.kind is Kind.LIST:
            arguments[name] = before or convert(told, parameter, planner.reader) or [IT]
        else:
            arguments[name] = told or before or IT
    return planner.completed(offer, arguments)


def _without_same(step: Step, planner: Planner) -> Step:
    given = {name: value for name, value in step.arguments.items() if value != SAME}
    return planner.completed(planner.offers[step.tool], given) if len(given) < len(step.arguments) else step


def _pronouns(step: Step) -> list[str]:
    return [name for name, value in step.arguments.items() if value in (IT, SAME, [IT])]
