"""The built-in model: no key, no network. It knows tools only by their schemas, phrases and index entries."""

import asyncio
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from app.i18n import detect_language, say
from app.llm.model import ModelAnswer, ModelRequest, ToolCall
from app.llm.offline import followups, replies
from app.llm.offline.guard import is_undo
from app.llm.offline.planner import LONGEST_PLANNED, Plan, Planner, Step
from app.llm.offline.slots import ADDRESS, Kind, Reader, read_offer
from app.llm.results import found_nothing, is_done, is_not_meant, results_text
from app.llm.smalltalk import Talk, small_talk
from app.messages import JSON
from app.people import Person
from app.search.clauses import clauses_of
from app.search.index import ToolIndex
from app.search.phrases import can_fill, read_template
from app.search.words import ALL_STOP_WORDS, WORDS, content, says_something, spans, words
from app.store.journal import Tokens
from app.text import fold

MODEL_NAME = "offline"
MAX_PARALLEL = 4
_MAX_CATEGORIES = 6
_MAX_ROUNDS = 5
_FITTING_COVERAGE = 0.34
_NEARLY_AS_GOOD = 0.7
_NOBODY = Person(id="", realm="terminal")
_MOST_ASKED = 8
_MAX_BARE_WORDS = 3  # of a question without a word that asks: "the gate code?"
_LONGEST_QUESTION = 200
_DENIES = frozenset(("no", "nao", "not", "never", "nunca", "jamas", "why", "estoy", "estou", "im", "m"))
_QUESTION = re.compile(
    r"\W*(?:(?:y|e|and|oye|che|oi|hey|pf|por favor|please|dime|decime|me diz|me fala|tell me) )*"
    r"(?:(?:a|en|em|de|con|com|o|at|in) )?"
    r"(?:cual(?:es)?|quien(?:es)?|donde|qual|quais|quem|onde|what(?: is|'?s)?|whats|which|who(?:'?s)?"
    r"|where(?:'?s)?)\b"
)


class Catalog(Protocol):
    """Tells what is installed now."""

    @property
    def index(self) -> ToolIndex: ...

    def phrases(self) -> Mapping[str, tuple[str, ...]]: ...

    def read_only(self) -> Collection[str]: ...

    def summary(self, person: Person, language: str, *, offline: bool) -> Sequence[str]: ...

    def definitions(self, person: Person) -> Sequence[Mapping[str, JSON]]: ...


class OfflineModel:
    """A `Model` of templates; the results since the last answer tell what of `said` was called already."""

    def __init__(self, catalog: Catalog, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._catalog = catalog
        self._now = now
        self.failure = ""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        answer = self._classify if request.purpose == "classify" else self._answer
        return await asyncio.to_thread(answer, request)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _classify(self, request: ModelRequest) -> ModelAnswer:
        said, person = request.said[:LONGEST_PLANNED], request.person or _NOBODY
        language = detect_language(said, person.language) or person.language
        known = dict(request.categories)
        fragments = [said, *clauses_of(said)] if small_talk(said) is None else []
        planner = self._planner(self._catalog.definitions(person), person)
        planned = self._plan(replace(request, said=said), "", planner).steps if fragments else ()
        tools = sure = list(dict.fromkeys(step.tool for step in planned))
        if fragments and not planned:  # what cannot be done yet may be about what was done before
            done = [[call.tool for call in one.calls] for one in reversed(request.earlier)]
            tools = [*next(filter(None, done), ()), *(step.tool for step in planner.plan(said).steps)]
        ranked = [tool for fragment in fragments for tool in self._ranked(fragment)]
        found = dict.fromkeys(map(planner.category, (*tools, *ranked)))
        names = [category for category in found if category in known]
        meant = [tool.replace("_", " ") for tool in (tools or ranked)[: max(2, len(set(sure)))]]
        reading = {
            "categories": names[:_MAX_CATEGORIES],
            "phrases": [*meant, *fragments[:_MAX_CATEGORIES]] if names else [],
            "language": language,
        }
        return _reply(request, json.dumps(reading, ensure_ascii=False))

    def _looked_up(self, said: str, planner: Planner) -> Sequence[Step]:
        """Return searches of what the person has written down for what a question asks for."""
        is_other = followups.may_vary(said) or not _DENIES.isdisjoint(words(said))
        if is_other or len(said) > _LONGEST_QUESTION or re.search(ADDRESS, said):
            return ()
        telling = set(_telling(said))
        kept = [said[word.start : word.end] for word in spans(said) if word.text in telling]
        is_bare = said.rstrip().endswith("?") and len(kept) <= _MAX_BARE_WORDS
        if not kept or len(kept) > _MOST_ASKED or not (is_bare or _QUESTION.match(fold(said))):
            return ()
        phrases = self._catalog.phrases()
        steps: dict[str, Step] = {}
        for name, offer in planner.offers.items():
            for template in (read_template(name, phrase) for phrase in phrases.get(name, ())):
                parameter = offer.parameter(template.last_slot)
                is_asked = template.is_vague and not template.takes_all and planner.only_reads(name)
                if is_asked and parameter is not None and parameter.kind in (Kind.WORDS, Kind.TEXT):
                    steps[name] = Step(name, {parameter.name: " ".join(kept)}, is_guess=True)
        return list(steps.values())

    def _ranked(self, fragment: str) -> list[str]:
        hits = self._catalog.index.rank(fragment, limit=3) if says_something(fragment) else []
        fitting = (hit for hit in hits if hit.coverage >= _FITTING_COVERAGE)
        return [hit.id for hit in fitting if hit.score >= _NEARLY_AS_GOOD * hits[0].score]

    def _answer(self, request: ModelRequest) -> ModelAnswer:
        person = request.person or _NOBODY
        language, said = person.language, request.said
        planner = self._planner(request.tools, person)
        results, rounds, late = _so_far(request.messages)
        asks = bool(said.strip()) and small_talk(said) is None and not (request.waits and is_undo(said))
        plan = self._plan(request, late, planner) if planner.offers and asks else Plan()
        refusal = ""
        if plan.withheld and not plan.steps:
            refusal = replies.withheld_text(plan.unknown, language)
        elif plan.is_when_unclear and not plan.steps:
            refusal = replies.unclear_when_text(language)
        elif not plan.steps and is_undo(said):
            refusal = say(language, "I cannot undo that by myself. Tell me in a whole sentence what to do.")
        if refusal:
            return _reply(request, refusal)
        calls = [step for step in plan.steps if step.missing is None]
        if results and not is_done(results[-1]):  # a place that one does not know is none for another
            calls = [one for at, one in enumerate(calls) if at < len(results) or not one.says(calls[at - 1])]
        if pending := self._next_round(calls[len(results) :], rounds):
            return _reply(request, steps=pending, made=len(results))
        results = [
            one for at, one in enumerate(results) if at >= len(calls) or not _is_in_vain(calls[at], one)
        ]
        told = [results_text(results, language)] if results else []
        if plan.steps and plan.unknown:
            told.append(replies.unknown_text(plan.unknown, language))
        asked = next((step.missing for step in plan.steps if step.missing is not None), None)
        if asked is not None:
            told.append(replies.question(asked, language))
        if not told or (not results and asked is None):
            return _reply(request, self._without_tools(request, person))
        return _reply(request, "\n\n".join(told))

    def _next_round(self, calls: Sequence[Step], rounds: int) -> Sequence[Step]:
        """Return the calls that may run now, until a category comes again; all that are left in the last."""
        categories = [self._catalog.index.category(step.tool) for step in calls]
        alone = [at for at, step in enumerate(calls) if at and step.says(calls[at - 1])]
        again = [at for at, category in enumerate(categories) if category in categories[:at]]
        return calls if rounds >= _MAX_ROUNDS - 1 else calls[: min([*alone, *again, MAX_PARALLEL])]

    def _plan(self, request: ModelRequest, late: str, planner: Planner) -> Plan:
        """Return the steps of a message; a question is also looked up, unless it asks for something else."""
        late = late if request.said.endswith(late) else ""
        plan = followups.plan_after(planner, request.said.removesuffix(late), request.earlier)
        more = planner.plan(late)
        unknown, withheld = (*plan.unknown, *more.unknown), plan.withheld or more.withheld
        plan = replace(plan, steps=(*plan.steps, *more.steps), unknown=unknown, withheld=withheld)
        looked = {step.tool: step for step in self._looked_up(request.said, planner)}
        is_search = all(step.tool in looked and step.arguments for step in plan.steps)
        if withheld or plan.is_when_unclear or not is_search:
            return plan
        looked |= {step.tool: step for step in plan.steps}
        return replace(plan, steps=tuple(looked.values()), unknown=() if looked else unknown)

    def _planner(self, tools: Sequence[Mapping[str, JSON]], person: Person) -> Planner:
        """Return a planner for these tools but those that words cannot fill, or that lead to texts only."""
        catalog, phrases = self._catalog, self._catalog.phrases()
        offers = [
            offer
            for offer in map(read_offer, tools)
            if offer.name in catalog.index
            and can_fill(phrases.get(offer.name, ()), (one.name for one in offer.required))
        ]
        return Planner(offers, catalog.index, phrases, Reader(person, self._now), catalog.read_only())

    def _without_tools(self, request: ModelRequest, person: Person) -> str:
        language, said = person.language, request.said
        if not said.strip():
            return say(language, "I got your message, but for now I only understand written words.")
        if not words(said):
            return "🙂"
        talk = small_talk(said)
        if talk is Talk.ANSWER and request.waits:
            return say(language, "If that answers a question of mine, press one of its buttons.")
        did = [call for one in request.earlier[-1:] for call in one.calls if call.changed]
        if talk is Talk.NEVER_MIND and did:
            return say(language, "All right. What I did last stays as it is.")
        if talk is None and self._is_for_owners(person, said):
            return say(language, "Only the person who owns this assistant can ask me for that.")
        person = replace(person, role="member") if person.is_owner else person  # not how to administer
        abilities = self._catalog.summary(person, language, offline=True)
        return replies.talk_text(talk, person.name, abilities, language)

    def _is_for_owners(self, person: Person, said: str) -> bool:
        """Tell whether a message asks for a tool that an owner may use, and this person may not."""
        allowed = {tool["function"]["name"] for tool in self._catalog.definitions(person)}
        owner = replace(person, role="owner")
        planned = self._planner(self._catalog.definitions(owner), owner).plan(said)
        return any(step.tool not in allowed for step in planned.steps)


def _is_in_vain(step: Step, result: str) -> bool:
    """Tell whether a guess found nothing, or a tool that hardly was meant has nothing to work with."""
    phrase = step.phrase
    is_guess = step.is_guess or (phrase is not None and not WORDS["forgot"].isdisjoint(phrase.literals))
    is_vague = is_guess or (phrase is not None and (phrase.takes_all or phrase.is_vague))
    return (is_guess and found_nothing(result)) or (is_vague and is_not_meant(result))


def _so_far(messages: Sequence[Mapping[str, JSON]]) -> tuple[list[str], int, str]:
    """Return this turn's tool results, its rounds, and what the person wrote since its first calls."""
    own: list[Mapping[str, JSON]] = []
    for message in messages:
        if message.get("role") == "assistant" and not message.get("tool_calls"):
            own = []
        elif own or message.get("role") == "assistant":
            own.append(message)
    results = [_content_of(one) for one in own if one.get("role") == "tool"]
    late = "\n".join(_content_of(one) for one in own if one.get("role") == "user")
    return results, sum(one.get("role") == "assistant" for one in own), late.strip()


def _content_of(message: Mapping[str, JSON]) -> str:
    """Return the text of a message, whichever form it has."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _reply(request: ModelRequest, text: str = "", steps: Sequence[Step] = (), made: int = 0) -> ModelAnswer:
    """Return an answer; `made`: the calls of this turn so far. Four characters count as a token."""
    calls = tuple(
        ToolCall(f"call_{made + number}", step.tool, dict(step.arguments))
        for number, step in enumerate(steps, start=1)
    )
    written = sum(len(json.dumps(call.arguments, ensure_ascii=False)) + len(call.name) for call in calls)
    read = len(json.dumps([request.messages, request.tools], ensure_ascii=False, default=str))
    tokens = Tokens(prompt=read // 4, completion=max(1, (written + len(text)) // 4))
    return ModelAnswer(text=text, calls=calls, tokens=tokens, model=MODEL_NAME)


def _telling(said: str) -> list[str]:
    found = [word for word in content(words(said)) if word not in WORDS["questions"] | ALL_STOP_WORDS]
    return [word for word in found if word not in WORDS["values"]] or found
