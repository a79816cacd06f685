"""The built-in model: no key, no network. It knows no tool by name, only schemas, phrases and the index."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from app.llm.answers import (
    Ability,
    about_text,
    lost_text,
    question,
    questions,
    results_text,
    talk_text,
    wordless_text,
)
from app.llm.arithmetic import is_calculation, without_question
from app.llm.clauses import lines, sentences, splits
from app.llm.model import ModelAnswer, ModelRequest, ToolCall, Usage
from app.llm.plan import Planner, Step
from app.llm.slots import Kind, Offer, Parameter, Reader, read_offer
from app.llm.smalltalk import Talk, small_talk
from app.llm.templates import align, read_template
from app.messages import JSON
from app.people import Person
from app.search.index import Document, ToolIndex
from app.search.words import guess_language, says_something, words

MODEL_NAME = "offline"
MOST_PARALLEL = 4
_MOST_CATEGORIES = 6
_MOST_FRAGMENTS = 12
_MOST_SAID = 8_000
_FITTING_COVERAGE = 0.34
_NEARLY_AS_GOOD = 0.7
_MOST_EXAMPLES = 5
_NOBODY = Person(id="", realm="terminal")

Phrases = Mapping[str, tuple[str, ...]]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class OfflineModel:
    """Fulfils `Model`. `index` and `phrases` (tool name → example phrases) give what is installed now.

    A turn's `said` is everything its messages said, a line each, also in later rounds: what of it was
    called already is told by the tool results that follow the last answer in `messages`.
    """

    def __init__(
        self,
        index: Callable[[], ToolIndex],
        phrases: Callable[[], Phrases],
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._index = index
        self._phrases = phrases
        self._now = now
        self.failure = ""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answers in a thread: reading dates takes long enough to hold up the loop."""
        answer = self._classify if request.purpose == "classify" else self._answer
        return await asyncio.to_thread(answer, request)

    async def warm(self) -> None:
        """Needs nothing beforehand."""

    async def close(self) -> None:
        """Holds nothing open."""

    def _classify(self, request: ModelRequest) -> ModelAnswer:
        person = request.person or _NOBODY
        said = request.said[:_MOST_SAID]
        known = dict(request.categories)
        fragments = _fragments(said) if small_talk(said) is None else []
        names = dict.fromkeys(
            document.category
            for tool in self._fitting(fragments)
            if (document := self._index().document(tool)) is not None and document.category in known
        )
        found = list(names) or _fitting_categories(fragments, request.categories)
        reading = {
            "categories": found[:_MOST_CATEGORIES],
            "phrases": fragments[:_MOST_CATEGORIES] if found else [],
            "language": guess_language(said) or person.language,
        }
        return _written(request, json.dumps(reading, ensure_ascii=False))

    def _fitting(self, fragments: Sequence[str]) -> list[str]:
        """Tools that fit some fragment by phrase, arithmetic or index, the surest first."""
        templates = [
            read_template(tool, phrase) for tool, listed in self._phrases().items() for phrase in listed
        ]
        found: dict[str, None] = {}
        for fragment in fragments:
            aligned = [one for one in align(fragment, templates) if one.template.contents]
            found |= dict.fromkeys(one.template.tool for one in aligned[:2])
            if is_calculation(without_question(fragment.strip(" ¿?=!.,"))):
                found |= dict.fromkeys(self._calculating())
        for fragment in fragments:
            found |= dict.fromkeys(self._ranked(fragment))
        return list(found)

    def _calculating(self) -> list[str]:
        documents = (self._index().document(tool) for tool in self._phrases())
        return [one.id for one in documents if one is not None and _takes_expression(one)]

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
        said = request.said[:_MOST_SAID]
        offers = [offer for tool in request.tools if (offer := read_offer(tool)) is not None]
        results = _results(request.messages)
        steps = self._steps(request, said, offers, person)
        calls = [step for step in steps if step.missing is None]
        asked = [step for step in steps if step.missing is not None]
        pending = calls[len(results) : len(results) + MOST_PARALLEL]
        if pending and (not results or len(calls) > MOST_PARALLEL or _last_is_new(request.messages)):
            return _called(request, pending, len(results))
        questions_ = [question(step.missing, person.language) for step in asked[:1] if step.missing]
        if results:
            text = results_text(results, person.language)
            return _written(request, "\n\n".join([text, *questions_]))
        if questions_:
            return _written(request, questions_[0])
        return _written(request, self._without_tools(said, offers, person))

    def _steps(self, request: ModelRequest, said: str, offers: Sequence[Offer], person: Person) -> list[Step]:
        if not offers or not said.strip():
            return []
        if small_talk(said) is not None:
            return []
        planner = Planner(offers, self._index(), self._phrases(), Reader(person, self._now))
        steps = planner.plan(said)
        if any(step.missing is None for step in steps):
            return steps
        return _answered(planner, request.messages, said, person) or steps

    def _without_tools(self, said: str, offers: Sequence[Offer], person: Person) -> str:
        language = person.language
        if not words(said):
            return "🙂" if said.strip() else wordless_text(language)
        abilities = _abilities(offers, self._phrases(), language)
        talk = small_talk(said)
        if talk is Talk.ABOUT:
            return about_text(abilities, language)
        if talk is not None:
            return talk_text(talk, person.name, abilities, language)
        return lost_text(abilities, language)


def _fragments(said: str) -> list[str]:
    """The message, its sentences, and the halves that an "and" joins: each may be about something else."""
    found: dict[str, None] = {}
    for line in lines(said):
        for sentence in sentences(line):
            parts = [part for pair in splits(sentence) for part in pair]
            found |= dict.fromkeys([sentence, *parts])
    return list(found)[:_MOST_FRAGMENTS]


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
    return any(
        Parameter(name, {"type": "string", "description": text}, True).kind is Kind.EXPRESSION
        for name, text in document.parameters.items()
    )


def _results(messages: Sequence[Mapping[str, JSON]]) -> list[str]:
    """The tool results since the last answer, in the order of their calls."""
    results: list[str] = []
    for message in messages:
        if message.get("role") == "assistant" and not message.get("tool_calls"):
            results = []
        elif message.get("role") == "tool":
            results.append(_content(message))
    return results


def _last_is_new(messages: Sequence[Mapping[str, JSON]]) -> bool:
    """Whether the person wrote after the last tool result, within the turn."""
    return bool(messages) and messages[-1].get("role") == "user"


def _content(message: Mapping[str, JSON]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _answered(
    planner: Planner, messages: Sequence[Mapping[str, JSON]], said: str, person: Person
) -> list[Step]:
    """The step that our own last question was about, with `said` as its answer."""
    spoken = [message for message in messages if message.get("role") in {"user", "assistant"}]
    asked = next((at for at in range(len(spoken) - 1, -1, -1) if spoken[at].get("role") == "assistant"), None)
    if not asked:
        return []
    last_line = _content(spoken[asked]).strip().split("\n")[-1]
    if not any(last_line.startswith(known) for known in questions(person.language)):
        return []
    open_steps = [step for step in planner.plan(_content(spoken[asked - 1])) if step.missing is not None]
    filled = planner.answered(open_steps[0], said) if open_steps else None
    return [filled] if filled is not None else []


def _abilities(offers: Sequence[Offer], phrases: Phrases, language: str) -> list[Ability]:
    """A few tools with an example in the person's language, then, if there is room, with a description."""
    spoken: list[Ability] = []
    described: list[Ability] = []
    for offer in offers:
        example = _example(phrases.get(offer.name, ()), language)
        if example:
            spoken.append(Ability(example=example))
        elif offer.description:
            described.append(Ability(description=offer.description.split("\n")[0].split(". ")[0]))
    return (spoken or described)[:_MOST_EXAMPLES]


def _example(listed: Sequence[str], language: str) -> str:
    fitting = [phrase for phrase in listed if guess_language(re.sub(r"\{\w+\}", "", phrase)) == language]
    chosen = next((phrase for phrase in fitting if "{" in phrase), fitting[0] if fitting else "")
    return re.sub(r"\{\w+\}", "…", chosen)


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
