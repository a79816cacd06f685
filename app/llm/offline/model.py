"""The built-in model: no key, no network. It knows no tool by name, only schemas, phrases and the index."""

import asyncio
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from app.i18n import detect_language
from app.llm.model import ModelAnswer, ModelRequest, ToolCall, Usage
from app.llm.offline.again import another, as_correction, corrected, learn_additions, may_add, without_thanks
from app.llm.offline.answers import (
    Ability,
    about_text,
    facts_text,
    lacking_text,
    lost_text,
    no_list_text,
    none_picked_text,
    not_undone_text,
    owners_text,
    pick_question,
    question,
    reminder_text,
    removal_text,
    results_text,
    talk_text,
    unclear_answer_text,
    unknown_text,
    wordless_text,
)
from app.llm.offline.arithmetic import asked_calculation, is_calculation
from app.llm.offline.examples import example_of
from app.llm.offline.followups import (
    LONGEST_CHOICE,
    before_last_exchange,
    exchanges,
    follow_up,
    last_exchange,
    picks_none,
    points,
    resolved,
    subject,
    talked_about,
)
from app.llm.offline.fragments import fragments_of
from app.llm.offline.hours import with_hour
from app.llm.offline.lists import ORDINALS, is_of_a_line, listed, picked, tools_by_place, with_number
from app.llm.offline.lookups import answering, elsewhere, found_nothing, lookup, queries_of
from app.llm.offline.moments import read
from app.llm.offline.named_server import NamedServer, named_server
from app.llm.offline.offers import Kind, Offer, offer_of, read_offer
from app.llm.offline.parts import LONGEST_PLANNED
from app.llm.offline.plan import Planner
from app.llm.offline.rounds import parted, results_of, rounds_of
from app.llm.offline.slots import Reader
from app.llm.offline.steps import Plan, Step, is_sure
from app.llm.offline.templates import align, read_template
from app.llm.offline.undoing import is_past_undoing, is_undo, undoing
from app.llm.offline.variations import varied
from app.llm.smalltalk import Talk, small_talk
from app.people import Person
from app.search.index import Document, ToolIndex
from app.search.words import fold, says_something, words

MODEL_NAME = "offline"
MOST_PARALLEL = 4
_MOST_CATEGORIES = 6
_MOST_NAMED = 2
_MOST_OF_SERVERS = 40
_MOST_SAID = LONGEST_PLANNED
_MOST_ROUNDS = 5
_MOST_BACK = 5
_THREADS = 2
_FITTING_COVERAGE = 0.34
_NEARLY_AS_GOOD = 0.7
_MOST_EXAMPLES = 3
_NOBODY = Person(id="", realm="terminal")

Phrases = Mapping[str, tuple[str, ...]]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class OfflineModel:
    """Fulfils `Model`. `index` and `phrases` (tool name → example phrases) give what is installed now, and
    `for_owners` names the tools among it that nobody else is offered.

    A turn's `said` is everything its messages said, a line each, also in later rounds: what of it was
    called already is told by the tool results that follow the last answer in `messages`.
    """

    def __init__(
        self,
        index: Callable[[], ToolIndex],
        phrases: Callable[[], Phrases],
        now: Callable[[], datetime] = _utc_now,
        for_owners: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._index = index
        self._phrases = phrases
        self._for_owners = for_owners
        self._now = now
        self.failure = ""
        # A pool of its own: reading words is work for the processor and must not hold up files and lookups.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="offline")

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answers in a thread: reading dates takes long enough to hold up the loop."""
        answer = self._classify if request.purpose == "classify" else self._answer
        return await asyncio.get_running_loop().run_in_executor(self._threads, answer, request)

    async def warm(self) -> None:
        """Needs nothing beforehand."""

    async def close(self) -> None:
        """Ends its threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _classify(self, request: ModelRequest) -> ModelAnswer:
        person = request.person or _NOBODY
        said = request.said[:_MOST_SAID]
        known = dict(request.categories)
        fragments = fragments_of(said) if small_talk(said) is None else []
        aligned = self._aligned(fragments)
        named = named_server(said)
        if named is not None and (tools := self._of_server(named)):
            aligned, fragments = [*tools, *aligned], [named.wanted, *fragments]
        elif fragments and (
            placed := self._meant_before(as_correction(said, person.language), request.recent)
        ):
            aligned = [*placed, *aligned]
        elif fragments and request.recent and not aligned:
            before, meant_before = self._meant_by_last(request.recent)
            if not meant_before and may_add(said) and read(said, person, self._now()).words:
                fragments = []  # it adds to what the conversation has been about
            elif may_add(said) or len(words(said)) <= LONGEST_CHOICE:  # an answer to what was asked, maybe
                aligned, fragments = meant_before, [*fragments, *before]
        elif is_undo(said):
            done = [fragment for text in reversed(request.recent) for fragment in fragments_of(text)]
            aligned = [*self._aligned(done), *aligned]
        looking = self._looking(said) if fragments and not aligned else []
        names = dict.fromkeys(
            document.category
            for tool in dict.fromkeys([*aligned, *self._ranked_by(fragments)])
            if (document := self._index().document(tool)) is not None and document.category in known
        )
        found = list(names) or _fitting_categories(fragments, request.categories)
        found += [
            one for one in (self._category(tool) for tool in looking) if one in known and one not in found
        ]
        meant = map(_as_words, (aligned or looking)[:_MOST_NAMED])
        reading = {
            "categories": found[:_MOST_CATEGORIES],
            "phrases": [*meant, *fragments[:_MOST_CATEGORIES]] if found else [],
            "language": detect_language(said) or person.language,
        }
        return _written(request, json.dumps(reading, ensure_ascii=False))

    def _meant_by_last(self, recent: Sequence[str]) -> tuple[list[str], list[str]]:
        """The fragments and the tools of the last message that asked for something by itself, else of the
        last one."""
        spoken = [fragments_of(text) for text in reversed(recent)]
        found = ((one, tools) for one in spoken if (tools := self._aligned(one)))
        return next(found, (spoken[0], []))

    def _meant_before(self, said: str, recent: Sequence[str]) -> list[str]:
        """Tools of what was talked about before that "delete the second one", or "delete it", asks for."""
        phrases = self._phrases()
        templates = (read_template(tool, phrase) for tool, some in phrases.items() for phrase in some)
        pointing = [one for one in templates if one.points]
        about = [one.template.tool for part in fragments_of(said) for one in align(part, pointing)]
        if not about and not is_of_a_line(said):
            return []
        for text in reversed(recent):
            if is_of_a_line(text):
                continue  # that, too, was about a line of what was told before it
            if earlier := (self._aligned(fragments_of(text)) or self._looking(text))[:1]:
                category = self._category(earlier[0])
                own = [tool for tool in phrases if self._category(tool) == category]
                if found := tools_by_place(said, phrases, earlier[0], own):
                    return found
                if meant := [tool for tool in about if tool in own]:
                    return [meant[0], earlier[0]]
        return []

    def _aligned(self, fragments: Sequence[str]) -> list[str]:
        """Tools that fit some fragment by phrase or arithmetic, the surest first."""
        templates = [
            read_template(tool, phrase) for tool, listed in self._phrases().items() for phrase in listed
        ]
        found: dict[str, None] = {}
        for fragment in fragments:
            aligned = [one for one in align(fragment, templates) if not one.template.is_vague]
            found |= dict.fromkeys(one.template.tool for one in aligned[:2])
            if is_calculation(asked_calculation(fragment)):
                found |= dict.fromkeys(self._calculating())
        return list(found)

    def _looking(self, said: str) -> list[str]:
        """Tools that look for what a question asks for, whatever that is."""
        known = (self._index().document(tool) for tool in self._phrases())
        offers = [offer_of(one.id, one.parameters) for one in known if one is not None]
        return [step.tool for step in lookup(said, offers, self._phrases()).steps]

    def _of_server(self, named: NamedServer) -> list[str]:
        """The server's tools that fit best; any of them where none does."""
        wanted = f"{self._described(named.wanted)} mcp {named.name}"
        hits = self._index().rank(wanted, limit=_MOST_OF_SERVERS)
        named = named if any(named.has(hit.id) for hit in hits) else replace(named, name="")
        return [hit.id for hit in hits if named.has(hit.id)]

    def _described(self, wanted: str) -> str:
        """With the name of a tool that the words lead to: a server's for the same is described alike."""
        return " ".join([wanted, *self._aligned([wanted])[:1]])

    def _calculating(self) -> list[str]:
        documents = (self._index().document(tool) for tool in self._phrases())
        return [one.id for one in documents if one is not None and _takes_expression(one)]

    def _ranked_by(self, fragments: Sequence[str]) -> list[str]:
        return [tool for fragment in fragments for tool in self._ranked(fragment)]

    def _ranked(self, fragment: str) -> list[str]:
        if not says_something(fragment):
            return []
        hits = self._index().rank(fragment, limit=3)
        best = hits[0].score if hits else 0.0
        return [
            hit.id
            for hit in hits
            if hit.coverage >= _FITTING_COVERAGE and hit.score >= _NEARLY_AS_GOOD * best
        ]

    def _answer(self, request: ModelRequest) -> ModelAnswer:
        person = request.person or _NOBODY
        said = request.said
        found = (read_offer(tool) for tool in request.tools)
        # What only leads to texts for a model that reads them is not in the index, and nothing to be called.
        offers = [offer for offer in found if offer is not None and offer.name in self._index()]
        results = results_of(request.messages)
        _, answer = last_exchange(request.messages)
        if picks_none(answer, said, person.language):
            return _written(request, none_picked_text(person.language))
        if self._is_past_undoing(request, said, offers, person):
            return _written(request, not_undone_text(person.language))
        plan = self._plan(request, said, offers, person)
        if plan.lacking:
            return _written(request, lacking_text(plan.lacking, person.language))
        known = answering(request.facts, said) if small_talk(said) is None and not results else []
        if known and all(step.guessed for step in plan.steps):
            return _written(request, facts_text(known, person.language))
        looks = not plan.steps and small_talk(said) is None
        if looks:
            plan = lookup(said, offers, self._phrases())
        elif len(results) == 1 and found_nothing(results[0]):
            plan = elsewhere(plan, offers, self._phrases())
        calls = [step for step in plan.steps if step.missing is None]
        pending = self._next_round(calls[len(results) :], rounds_of(request.messages))
        if pending:
            return _called(request, pending, len(results))
        if results and all(map(found_nothing, results)):
            if facts := answering(request.facts, said, queries_of(plan)):
                return _written(request, facts_text(facts, person.language))
            results = [] if looks else results[: len(plan.steps)]
        elif len(results) > len(plan.steps):
            results = [one for one in results if not found_nothing(one)]
        asked = [step.missing for step in plan.steps if step.missing is not None]
        told = [question(asked[0], person.language)] if asked else []
        if not results and not told:
            return _written(request, self._without_tools(request, said, offers, person))
        if plan.steps and plan.unknown:
            told.insert(0, unknown_text(plan.unknown, person.language))
        text = [results_text(results, person.language)] if results else []
        return _written(request, "\n\n".join([*text, *told]))

    def _next_round(self, calls: Sequence[Step], rounds: int) -> Sequence[Step]:
        """The calls that may run now, in order: one of each category, for it may change what the next finds.

        The last round takes all that are left.
        """
        fits = 0
        taken: set[str] = set()
        for step in calls[:MOST_PARALLEL]:
            category = self._category(step.tool)
            if category in taken and not step.beside:
                break
            taken.add(category)
            fits += 1
        return calls[:fits] if rounds < _MOST_ROUNDS - 1 else calls

    def _category(self, tool: str) -> str:
        document = self._index().document(tool)
        return (document.category if document is not None else "") or tool

    def _plan(self, request: ModelRequest, said: str, offers: Sequence[Offer], person: Person) -> Plan:
        if not offers or not said.strip() or small_talk(said) is not None:
            return Plan()
        planner = self._planner(offers, self._phrases(), person)
        exchanged = without_thanks(exchanges(request.messages), person.language)
        learn_additions(planner, exchanged, person)
        for asked, told in exchanged[-_MOST_BACK:]:
            if listed(told) and not planner.plan(asked).steps:
                planner.learn(asked, lookup(asked, offers, self._phrases()))
        topic = before, answer = exchanged[-1] if exchanged else ("", "")
        if again := with_hour(before, answer, said, person.language):
            earlier = before_last_exchange(request.messages)
            return self._plan(replace(request, messages=earlier), again, offers, person)
        named = named_server(said)
        if named is not None and (own := _of_named(named, offers)):
            theirs = self._planner(own, self._phrases(), person)
            commanded = theirs.commanded(named.wanted, self._described(named.wanted))
            if commanded.steps and not any(step.open for step in planner.plan(said).steps):
                return commanded
        if is_undo(said) and (undone := undoing(planner, before, answer, self._category)).steps:
            return undone
        said = corrected(planner, said, exchanged) or said
        early, late = parted(said, request.messages)
        if (
            not late
            and pick_question(person.language) not in answer
            and (plan := self._picked(planner, said, exchanged, offers, person)) != Plan()
        ):
            return plan
        plan = planner.plan(early)
        if late:
            more = planner.plan(late)
            plan = Plan((*plan.steps, *more.steps), (*plan.unknown, *more.unknown))
        elif points(plan) or planner.is_contested:
            topic = subject(planner, exchanged)
            about = talked_about(planner, topic[0], plan, self._category)
            plan = self._planner(offers, self._phrases(), person, about).plan(said)
        if answer == reminder_text(person.language) and not any(map(is_sure, plan.steps)):
            plan = planner.plan(f"{before} {said}")  # "remind me tomorrow", and then of what
        plan = resolved(plan, planner, *topic, self._category)
        if (step := varied(planner, said, exchanged, plan)) is not None and not late:
            return Plan((step,))
        if any(map(is_sure, plan.steps)):
            return plan
        if not late and (step := another(planner, said, exchanged)) is not None:
            return Plan((step,))
        answered = follow_up(planner, before, answer, said, person, plan)
        return Plan(answered) if answered else plan

    def _planner(
        self,
        offers: Sequence[Offer],
        phrases: Mapping[str, Sequence[str]],
        person: Person,
        it_is_of: Sequence[str] | None = None,
    ) -> Planner:
        return Planner(offers, self._index(), phrases, Reader(person, self._now), it_is_of)

    def _picked(
        self,
        planner: Planner,
        said: str,
        exchanged: Sequence[tuple[str, str]],
        offers: Sequence[Offer],
        person: Person,
    ) -> Plan:
        def narrowed(own: Sequence[Offer], phrases: Mapping[str, Sequence[str]]) -> Planner:
            return self._planner(own, phrases, person)

        return picked(planner, narrowed, said, exchanged, offers, self._phrases(), self._category)

    def _is_past_undoing(
        self, request: ModelRequest, said: str, offers: Sequence[Offer], person: Person
    ) -> bool:
        before, answer = last_exchange(request.messages)
        planner = self._planner(offers, self._phrases(), person)
        return is_past_undoing(planner, said, before, answer, self._category)

    def _abilities(self, offers: Sequence[Offer], language: str) -> list[Ability]:
        """One tool of each category by an example; without any, a few by their descriptions."""
        phrases = self._phrases()
        spoken: dict[str, Ability] = {}
        takes_words = sorted(offers, key=lambda one: (not any(p.is_prose for p in one.required), one.name))
        for offer in takes_words:
            example = example_of(offer, phrases.get(offer.name, ()), language)
            if example:
                spoken.setdefault(self._category(offer.name), Ability(example=example))
        described = [one.description.split("\n")[0].split(". ")[0] for one in offers if one.description]
        return (list(spoken.values()) or [Ability(description=text) for text in described])[:_MOST_EXAMPLES]

    def _without_tools(
        self, request: ModelRequest, said: str, offers: Sequence[Offer], person: Person
    ) -> str:
        language = person.language
        if not words(said):
            return "🙂" if said.strip() else wordless_text(language)
        if _REMINDER.match(fold(said)):
            return reminder_text(language)
        abilities = self._abilities(offers, language)
        talk = small_talk(said)
        if talk is Talk.ABOUT:
            return about_text(abilities, language)
        if talk is Talk.ANSWER and request.waits:
            return unclear_answer_text(language)
        if talk is not None:
            return talk_text(talk, person.name, abilities, language)
        if told := answering(request.facts, said):
            return facts_text(told, language)
        if removal := _REMOVAL.fullmatch(said.strip()):
            is_line = with_number(removal[1], ["1"] * len(ORDINALS))[0] == "1"
            return no_list_text(language) if is_line else removal_text(removal[1], language)
        if not person.is_owner and set(self._aligned(fragments_of(said))[:1]) & set(self._for_owners()):
            return owners_text(language)
        return lost_text(abilities, language)


def _as_words(tool: str) -> str:
    """A name that is found by its words: so what a message was aligned to is offered with its category."""
    return tool.replace("_", " ")


def _of_named(named: NamedServer, offers: Sequence[Offer]) -> Sequence[Offer]:
    """The server's among these; any server's where its name is no server's."""
    own = [offer for offer in offers if named.has(offer.name)]
    return own or [offer for offer in offers if replace(named, name="").has(offer.name)]


def _fitting_categories(fragments: Sequence[str], categories: Sequence[tuple[str, str]]) -> list[str]:
    """Categories whose own name or description is what was said; for skills without tools."""
    index = ToolIndex(Document(name, name, description) for name, description in categories)
    found: dict[str, None] = {}
    for fragment in fragments:
        if says_something(fragment):
            hits = index.rank(fragment, limit=2)
            found |= dict.fromkeys(hit.id for hit in hits if hit.coverage >= 0.5)
    return list(found)


def _takes_expression(document: Document) -> bool:
    offer = offer_of(document.id, document.parameters)
    return any(one.kind is Kind.EXPRESSION for one in offer.parameters)


_REMINDER = re.compile(
    r"\W*(?:please |por favor |hola |oi |hi |hey )*(?:me )?"
    r"(?:recuerda|recorda|recuerde|acorda|acuerda|lembr|avis[ae]|remind|wake me"
    r"|(?:set|pon|pone|poneme|ponme|coloca|bota|cria|crea|create)\w* (?:an |a |una? |uma? )?"
    r"(?:alarm|reminder|recordatorio|lembrete|despertador))"
)


_REMOVAL = re.compile(
    r"(?:please |por favor )?(?:remove|delete|erase|borr[aá]r?|elimin[aá]r?|quit[aá]r?|sac[aá]"
    r"|apag(?:a|ue|ar)|delet(?:a|ar)|exclu[ia]r?|tir[ae]r?)"
    r" (?:(?:the|my|el|la|los|las|lo de|mi|o|a|os|as|meu|minha) )?"
    r"((?!(?:it|that|this|them|eso|esto|isso|isto|all|everything|todo|tudo|otr[oa]|outr[oa]|other)\b)"
    r"\S(?:.{0,60}?\S)?)[.!]?",
    re.IGNORECASE,
)
"""Something is to be removed, and not said of which kind it is."""


def _called(request: ModelRequest, steps: Sequence[Step], made: int) -> ModelAnswer:
    calls = tuple(
        ToolCall(f"call_{made + number}", step.tool, dict(step.arguments))
        for number, step in enumerate(steps, start=1)
    )
    written = sum(len(json.dumps(call.arguments, ensure_ascii=False)) + len(call.name) for call in calls)
    return ModelAnswer(calls=calls, usage=_usage(request, written), model=MODEL_NAME)


def _written(request: ModelRequest, text: str) -> ModelAnswer:
    return ModelAnswer(text=text, usage=_usage(request, len(text)), model=MODEL_NAME)


def _usage(request: ModelRequest, written: int) -> Usage:
    """An estimate: four characters are about one token."""
    read = len(json.dumps([request.messages, request.tools], ensure_ascii=False, default=str))
    return Usage(prompt=read // 4, completion=max(1, written // 4))
