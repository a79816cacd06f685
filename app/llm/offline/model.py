"""The built-in model: no key, no network. It knows tools only by their schemas, phrases and index entries."""

import asyncio
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Protocol

from app.i18n import detect_language, say
from app.llm.model import ModelAnswer, ModelRequest, ToolCall, Usage
from app.llm.offline import replies
from app.llm.offline.arithmetic import asked_calculation, is_calculation
from app.llm.offline.clauses import fragments_of
from app.llm.offline.followups import (
    LONGEST_CHOICE,
    Exchange,
    completed_answer,
    corrected,
    exchanges,
    may_vary,
    picked_line,
    picks_line,
    picks_none,
    points,
    resolved,
    results_since_answer,
    split_late,
    subject_of,
    varied,
    with_a_subject,
    with_hour,
    with_pronoun,
)
from app.llm.offline.lookups import answering_facts, found_nothing, lookup
from app.llm.offline.parameters import Kind, Offer, offer_of_document, read_offer
from app.llm.offline.planner import LONGEST_PLANNED, Plan, Planner, Step
from app.llm.offline.slots import Reader
from app.llm.offline.templates import align, read_template
from app.llm.smalltalk import Talk, small_talk
from app.people import Person
from app.search.index import Document, ToolIndex
from app.search.words import fold, says_something, words

MODEL_NAME = "offline"
MAX_PARALLEL = 4
_MAX_CATEGORIES = 6
_MAX_NAMED = 2
_MAX_ROUNDS = 5
_MAX_EXAMPLES = 3
_MAX_RECENT = 4
_THREADS = 2
_FITTING_COVERAGE = 0.34
_NEARLY_AS_GOOD = 0.7
_NOBODY = Person(id="", realm="terminal")
_UNDO = re.compile(
    r"\W*(?:(?:por favor|please|uy|ops|oops) )?(?:deshac\w*|deshaz\w*|desfaz\w*|desfac\w*|undo)"
    r"(?: (?:eso|esto|isso|isto|it|that|la instalacion|a instalacao|the install(?:ation)?))?\W*"
)

Phrases = Mapping[str, tuple[str, ...]]


class Catalog(Protocol):
    """Tells what is installed now."""

    @property
    def index(self) -> ToolIndex: ...

    def phrases(self) -> Phrases:
        """Return the example phrases by tool name."""

    def read_only(self) -> Collection[str]:
        """Return the tools that change nothing."""

    def for_owners(self) -> Collection[str]:
        """Return the tools that only owners are offered."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class OfflineModel:
    """A `Model` of templates.

    A turn's `said` is all that its messages said, a line each, in later rounds
    too: the tool results after the last answer in `messages` tell what of it was called already.
    """

    def __init__(
        self,
        catalog: Catalog,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._catalog = catalog
        self._now = now
        self.failure = ""
        # a pool of its own: reading words keeps a processor busy and must not hold up files and lookups
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="offline")

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        answer = self._classify if request.purpose == "classify" else self._answer
        return await asyncio.get_running_loop().run_in_executor(self._threads, answer, request)

    async def warm(self) -> None:
        """Do nothing: all is loaded."""

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    # The classifier call

    def _classify(self, request: ModelRequest) -> ModelAnswer:
        said = request.said[:LONGEST_PLANNED]
        known = dict(request.categories)
        language = detect_language(said) or (request.person or _NOBODY).language
        fragments = fragments_of(said) if small_talk(said) is None else []
        tools = self._aligned(fragments)
        if fragments and len(words(said)) <= LONGEST_CHOICE:
            meant, topic = self._talked_about(with_pronoun(said, language), request.recent)
            goes_on = self._goes_on(said) or not tools
            best = (*meant[:1], *tools[:1]) if meant and not self._goes_on(said) else ()
            tools = [*best, *meant, *(topic if meant or goes_on else ()), *tools]
        ranked = [tool for fragment in fragments for tool in self._ranked(fragment)]
        if fragments and not tools:
            ranked += self._looking(said)
        found = dict.fromkeys(
            category for tool in (*tools, *ranked) if (category := self._category(tool)) in known
        )
        names = list(found) or _fitting_categories(fragments, request.categories)
        meant = [tool.replace("_", " ") for tool in (tools or ranked)[:_MAX_NAMED]]
        reading = {
            "categories": names[:_MAX_CATEGORIES],
            "phrases": [*meant, *fragments[:_MAX_CATEGORIES]] if names else [],
            "language": language,
        }
        return _written(request, json.dumps(reading, ensure_ascii=False))

    def _goes_on(self, said: str) -> bool:
        return may_vary(said) or picks_line(said) or _UNDO.fullmatch(fold(said)) is not None

    def _talked_about(self, said: str, recent: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the tools that "delete it" may mean after recent messages, and the tools of these."""
        topic: dict[str, None] = {}
        for before in reversed(recent[-_MAX_RECENT:]):
            topic |= dict.fromkeys(self._aligned(fragments_of(before))[:1] or self._looking(before))
            if topic and not self._goes_on(before):
                break
        categories = dict.fromkeys(self._category(tool) for tool in topic)
        pointing = self._aligned([said], pointing=True) if topic else []
        meant = [tool for one in categories for tool in pointing if self._category(tool) == one]
        return meant, list(topic)

    def _aligned(self, fragments: Sequence[str], *, pointing: bool = False) -> list[str]:
        """Return the tools that fit a fragment by phrase or arithmetic, the surest first."""
        templates = [
            template
            for tool, listed in self._catalog.phrases().items()
            for phrase in listed
            if (template := read_template(tool, phrase)).points or not pointing
        ]
        found: dict[str, None] = {}
        for fragment in fragments:
            aligned = [one for one in align(fragment, templates) if pointing or not one.template.is_vague]
            found |= dict.fromkeys(one.template.tool for one in aligned[: None if pointing else 2])
            if not pointing and is_calculation(asked_calculation(fragment)):
                found |= dict.fromkeys(
                    one.name
                    for one in self._documented()
                    if any(parameter.kind is Kind.EXPRESSION for parameter in one.parameters)
                )
        return list(found)

    def _looking(self, said: str) -> list[str]:
        return [step.tool for step in lookup(said, self._documented(), self._catalog.phrases()).steps]

    def _documented(self) -> list[Offer]:
        documents = map(self._catalog.index.document, self._catalog.phrases())
        return [offer_of_document(one.id, one.parameters) for one in documents if one is not None]

    def _ranked(self, fragment: str) -> list[str]:
        hits = self._catalog.index.rank(fragment, limit=3) if says_something(fragment) else []
        return [
            hit.id
            for hit in hits
            if hit.coverage >= _FITTING_COVERAGE and hit.score >= _NEARLY_AS_GOOD * hits[0].score
        ]

    def _category(self, tool: str) -> str:
        document = self._catalog.index.document(tool)
        return (document.category if document is not None else "") or tool

    # The answer

    def _answer(self, request: ModelRequest) -> ModelAnswer:
        person = request.person or _NOBODY
        language, said = person.language, request.said
        read = (read_offer(tool) for tool in request.tools)
        # tools that only lead to texts for a real model are not in the index
        offers = [offer for offer in read if offer is not None and offer.name in self._catalog.index]
        results, rounds = results_since_answer(request.messages)
        exchanged = exchanges(request.messages)
        if exchanged and picks_none(exchanged[-1].answer, said, language):
            return _written(request, say(language, "All right, none of them."))
        asks = bool(said.strip()) and small_talk(said) is None
        plan = self._plan(request, offers, person, exchanged) if offers and asks else Plan()
        if plan.lacking:
            return _written(request, replies.lacking_text(plan.lacking, language))
        if not plan.steps and _UNDO.fullmatch(fold(said)):
            return _written(request, say(language, "What should I undo? Tell me in a whole sentence."))
        facts = answering_facts(request.facts, said) if asks else []
        is_guess = all(step.guessed for step in plan.steps)
        if asks and is_guess and self._is_for_owners(person, said):
            return _written(
                request, say(language, "Only the person who owns this assistant can ask me for that.")
            )
        if facts and not results and is_guess:
            return _written(request, replies.facts_text(facts, language))
        looks = asks and not plan.steps
        if looks:
            plan = lookup(said, offers, self._catalog.phrases())
        calls = [step for step in plan.steps if step.missing is None]
        if pending := self._next_round(calls[len(results) :], rounds):
            return _called(request, pending, len(results))
        if results and facts and all(map(found_nothing, results)):
            return _written(request, replies.facts_text(facts, language))
        if looks and all(map(found_nothing, results)):
            results = []
        told = [replies.results_text(results, language)] if results else []
        if plan.steps and plan.unknown:
            told.append(replies.unknown_text(plan.unknown, language))
        asked = next((step.missing for step in plan.steps if step.missing is not None), None)
        if asked is not None:
            told.append(replies.question(asked, language))
        if not told or (not results and asked is None):
            return _written(request, self._without_tools(request, offers, person))
        return _written(request, "\n\n".join(told))

    def _next_round(self, calls: Sequence[Step], rounds: int) -> Sequence[Step]:
        """Return the calls that may run now: one of each category, for it may change what the next finds.

        The last round takes all that are left.
        """
        if rounds >= _MAX_ROUNDS - 1:
            return calls
        taken: set[str] = set()
        for at, step in enumerate(calls[:MAX_PARALLEL]):
            category = self._category(step.tool)
            if category in taken and not step.beside:
                return calls[:at]
            taken.add(category)
        return calls[:MAX_PARALLEL]

    def _plan(
        self, request: ModelRequest, offers: Sequence[Offer], person: Person, all_exchanged: list[Exchange]
    ) -> Plan:
        catalog = self._catalog
        reader = Reader(person, self._now)
        planner = Planner(offers, catalog.index, catalog.phrases(), reader, catalog.read_only())
        exchanged = with_a_subject(all_exchanged, person.language)
        before = exchanged[-1] if exchanged else Exchange()
        said, late = split_late(request.said, request.messages)
        if timed := with_hour(before, said, person.language):
            said, exchanged = timed, exchanged[:-1]
            before = exchanged[-1] if exchanged else Exchange()
        if _UNDO.fullmatch(fold(said)):
            undone = self._undone(planner, before)
            return undone if undone.steps else _of_last_receipt(planner, said, exchanged)
        said = corrected(planner, said, exchanged) or said
        if (picked := picked_line(planner, said, exchanged)) != Plan():
            return picked
        plan = planner.plan(said)
        subject = subject_of(planner, exchanged)
        topic = [planner.category(step.tool) for step in planner.plan(subject.said).steps]
        if topic or points(plan):
            plan = planner.about([*topic, *_categories_beside(planner, plan)]).plan(said)
        plan = resolved(plan, planner, subject)
        if late:
            more = planner.plan(late)
            return Plan((*plan.steps, *more.steps), (*plan.unknown, *more.unknown))
        if (step := varied(planner, said, exchanged, plan)) is not None:
            return Plan((step,))
        if plan.is_sure:
            return plan
        answered = completed_answer(planner, before, said, plan)
        return Plan((answered,)) if answered is not None else plan

    def _undone(self, planner: Planner, before: Exchange) -> Plan:
        """Plan what our receipt says to undo it by, within its own category: a page may say such words."""
        plan = planner.plan(replies.undo_words(before.answer))
        done = {planner.category(step.tool) for step in planner.plan(before.said).steps}
        is_other = done and any(planner.category(step.tool) not in done for step in plan.steps)
        return Plan() if is_other else plan

    def _without_tools(self, request: ModelRequest, offers: Sequence[Offer], person: Person) -> str:
        language, said = person.language, request.said
        if not words(said):
            text = "I got your message, but the built-in offline model only understands written words."
            return "🙂" if said.strip() else say(language, text)
        talk = small_talk(said)
        if talk is Talk.ANSWER and request.waits:
            return say(language, "If that answers a question of mine, press one of its buttons.")
        examples = self._examples(offers, language)
        if talk is not None:
            return replies.talk_text(talk, person.name, examples, language)
        return replies.lost_text(examples, language)

    def _is_for_owners(self, person: Person, said: str) -> bool:
        """Tell whether the message fits best a tool of the owner's, and comes from somebody else."""
        wanted = self._aligned(fragments_of(said))[:1]
        return not person.is_owner and bool(set(wanted) & set(self._catalog.for_owners()))

    def _examples(self, offers: Sequence[Offer], language: str) -> list[str]:
        """Return one example of each category, of tools that take free text first."""
        found: dict[str, str] = {}
        for offer in sorted(offers, key=lambda one: (not any(p.is_prose for p in one.required), one.name)):
            if example := replies.example_of(offer, self._catalog.phrases().get(offer.name, ()), language):
                found.setdefault(self._category(offer.name), example)
        return list(found.values())[:_MAX_EXAMPLES]


def _of_last_receipt(planner: Planner, said: str, exchanged: Sequence[Exchange]) -> Plan:
    """Return the plan of an "undo" if it is about what was done last, as far as that is known."""
    plan = planner.plan(said)
    last = next((one for one in reversed(exchanged) if one.is_receipt), None)
    if last is not None and fold(said).strip() in fold(last.answer):
        return plan  # the receipt names these words
    done = {planner.category(step.tool) for step in planner.plan(last.said).steps} if last else set()
    is_other = last is not None and any(planner.category(step.tool) not in done for step in plan.steps)
    return Plan() if is_other else plan


def _categories_beside(planner: Planner, plan: Plan) -> list[str]:
    """Return the categories of what a plan asks for without pointing at "it"."""
    return [planner.category(step.tool) for step in plan.steps if not points(Plan((step,)))]


def _fitting_categories(fragments: Sequence[str], categories: Sequence[tuple[str, str]]) -> list[str]:
    """Return categories whose own name or description was said: skills without tools."""
    index = ToolIndex(Document(name, name, description) for name, description in categories)
    found: dict[str, None] = {}
    for fragment in fragments:
        if says_something(fragment):
            found |= dict.fromkeys(hit.id for hit in index.rank(fragment, limit=2) if hit.coverage >= 0.5)
    return list(found)


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
    """Estimate four characters a token."""
    read = len(json.dumps([request.messages, request.tools], ensure_ascii=False, default=str))
    return Usage(prompt=read // 4, completion=max(1, written // 4))
