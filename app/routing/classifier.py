"""The classifier: one cheap model call for the categories of a message; whatever comes back, a turn goes on.

No call is made if the message clearly goes on with the conversation.
"""

import asyncio
from dataclasses import dataclass, field, replace
from itertools import accumulate, zip_longest

from app.llm.model import PROMPTS, Model, ModelAnswer, ModelRequest
from app.llm.smalltalk import asks_nothing
from app.messages import JSON
from app.people import Person
from app.routing.intent import Intent, read_intent
from app.routing.selector import KNOWS_BETTER, KNOWS_ENOUGH
from app.search.clauses import asks_of_state
from app.search.index import Hit, ToolIndex
from app.search.words import says_something, words
from app.store.turn_state import Exchange
from app.text import on_one_line

Categories = tuple[tuple[str, str], ...]  # name and description of each

MOST_SHOWN = 40
LISTED_BYTES = 1_800  # of categories in one prompt: with the rest of it three kilobytes
_LONGEST_DESCRIPTIONS = (160, 100, 60)
_SHORTLIST_DEPTH = 200
_LONGEST_SAID = 4_000
_LONGEST_LINE = 300
_MOST_EARLIER = 2  # messages before this one that the prompt holds

_LISTED = "Categories:\n"

_ON_FROM_BEFORE = frozenset(("y", "e", "and", "also", "tambien"))
_LONGEST_ADDITION = 5
_LONGEST_ANSWER = 5
_IS_OWN_WISH = 0.65  # score of a tool of which a message is nearly a phrase: "mis notas" answers no question


@dataclass(frozen=True, slots=True)
class IntentRequest:
    """A message to classify.

    `categories`: all that exist for this person; `earlier`: the last few turns of the conversation; `asked`:
    its last line asks the person something; `sticky`: the categories it has used; `timeout`: seconds the
    model may take.
    """

    said: str
    person: Person
    categories: Categories
    earlier: tuple[Exchange, ...] = ()
    asked: bool = False
    sticky: tuple[str, ...] = ()
    timeout: float = 20.0


@dataclass(frozen=True, slots=True)
class Classified:
    """The intent with the prompt (empty if no call was made), the answer, and the problem ("" if none)."""

    intent: Intent
    prompt: list[dict[str, JSON]] = field(default_factory=list)
    answer: ModelAnswer | None = None
    problem: str = ""


_EMPTY = ToolIndex()


async def classify_intent(
    model: Model, request: IntentRequest, index: ToolIndex = _EMPTY, skills: ToolIndex = _EMPTY
) -> Classified:
    """Ask the model once; a malformed, empty, late or missing answer falls back. Never raises.

    `index` (of tools) and `skills` shortlist the categories if there are too many to show.
    """
    if not request.categories or not request.said.strip():
        return Classified(_sticky(request, Intent(source="index")))
    if _goes_on(request, index, skills):
        return Classified(Intent(_known(request), source="continued"))
    shown = _shortlist(request, index, skills)
    prompt = _prompt(request, shown)
    answer, problem = await _answer(model, request, prompt, shown)
    intent = None
    if answer is not None:
        intent = read_intent(answer.text, [name for name, _ in request.categories])
        problem = f"unreadable answer of {len(answer.text)} characters" if intent is None else ""
    if intent is None:
        _, best = _better(request, index, skills)
        intent = Intent((best,) if best else (), source="index")
    return Classified(intent if intent.categories else _sticky(request, intent), prompt, answer, problem)


def _sticky(request: IntentRequest, intent: Intent) -> Intent:
    """Return the intent with the conversation's categories, if it has any."""
    known = _known(request)
    return replace(intent, categories=known, source="sticky") if known else intent


async def _answer(
    model: Model, request: IntentRequest, prompt: list[dict[str, JSON]], shown: Categories
) -> tuple[ModelAnswer | None, str]:
    """Return the model's answer, or why there is none."""
    call = ModelRequest(
        "classify",
        prompt,
        said=request.said,
        person=request.person,
        categories=shown,
        earlier=request.earlier,
    )
    try:
        async with asyncio.timeout(request.timeout):
            return await model.complete(call), ""
    except TimeoutError:
        return None, f"no answer within {request.timeout:g} s"
    except Exception as error:
        # A turn must go on without its classifier, whatever broke; the caller logs the problem.
        return None, f"{type(error).__name__}: {error}"


def _goes_on(request: IntentRequest, index: ToolIndex, skills: ToolIndex) -> bool:
    """Return whether a message clearly goes on with the conversation.

    Such as thanks, "vale", "and on Sunday?", a word or two in answer to a question; unless other categories
    or their tools know more of its words.
    """
    known = _known(request)
    if asks_nothing(request.said):
        return bool(known or (request.earlier and not request.asked))
    if not known or not says_something(request.said):
        return bool(known)
    said = words(request.said)
    adds = said[0] in _ON_FROM_BEFORE and len(said) <= _LONGEST_ADDITION
    answers = request.asked and len(said) <= _LONGEST_ANSWER and not asks_of_state(request.said)
    best, category = next(iter(_fitting_tools(request, index)), (None, ""))
    if best is not None and best.score >= _IS_OWN_WISH and category not in known:
        return adds
    return (adds or answers) and not _better(request, index, skills)[0]


def _better(request: IntentRequest, index: ToolIndex, skills: ToolIndex) -> tuple[bool, str | None]:
    """Tell whether others clearly know more of the words than the conversation's categories.

    Return with it the best of these others that knows enough of them.
    """
    known, usable = _known(request), {name for name, _ in request.categories}
    ranked = [*_fitting_tools(request, index), *_fitting_skills(request, skills)]
    own = max((hit.coverage for hit, name in ranked if name in known), default=0.0)
    others = [(hit, name) for hit, name in ranked if name in usable and name not in known]
    if max((hit.coverage for hit, _ in others), default=0.0) < own + KNOWS_BETTER:
        return False, None
    return True, next((name for hit, name in others if hit.coverage >= KNOWS_ENOUGH), None)


def _known(request: IntentRequest) -> tuple[str, ...]:
    """Return the conversation's categories that still exist."""
    usable = {name for name, _ in request.categories}
    return tuple(name for name in request.sticky if name in usable)


def _fitting_tools(request: IntentRequest, index: ToolIndex) -> list[tuple[Hit, str]]:
    """Return the tools that fit the message, best first, with their categories."""
    hits = index.rank(request.said, limit=_SHORTLIST_DEPTH)
    return [(hit, one.category) for hit in hits if (one := index.document(hit.id)) is not None]


def _fitting_skills(request: IntentRequest, skills: ToolIndex) -> list[tuple[Hit, str]]:
    """Return the skills that fit the message, best first; each is a category."""
    return [(hit, hit.id) for hit in skills.rank(request.said, limit=_SHORTLIST_DEPTH)]


def _shortlist(request: IntentRequest, index: ToolIndex, skills: ToolIndex) -> Categories:
    """Return the categories that a prompt has room for, sorted by name.

    If not all have room: the sticky ones, then those that fit best, by turns by their tools and on their own.
    """
    if _listed(request.categories) is not None:
        return tuple(sorted(request.categories))
    described = dict(request.categories)
    by_tools = dict.fromkeys(name for _, name in _fitting_tools(request, index))
    by_themselves = (name for _, name in _fitting_skills(request, skills))
    by_fit = (name for pair in zip_longest(by_tools, by_themselves) for name in pair)
    wanted = dict.fromkeys((*request.sticky, *by_fit, *sorted(described)))
    names = [name for name in wanted if name in described][:MOST_SHOWN]
    sizes = accumulate(_size(_line(name, described[name], min(_LONGEST_DESCRIPTIONS))) for name in names)
    room = sum(size <= LISTED_BYTES for size in sizes)
    return tuple(sorted((name, described[name]) for name in names[:room]))


def _prompt(request: IntentRequest, shown: Categories) -> list[dict[str, JSON]]:
    """Return the messages of the call.

    A list of all categories is in the first message, a shortlist in the last: the first changes only with the
    categories, so that a provider's prompt cache keeps hitting.
    """
    listed = _LISTED + (_listed(shown) or "")
    earlier = "\n".join(on_one_line(one.said, _LONGEST_LINE) for one in request.earlier[-_MOST_EARLIER:])
    parts = [f"Earlier in the conversation:\n{earlier}"] if earlier else []
    parts.append(f"Message:\n{request.said[:_LONGEST_SAID]}")
    first = PROMPTS["classify"]
    if len(shown) == len(request.categories):
        first += f"\n{listed}"
    else:
        parts.insert(0, listed)
    return [{"role": "system", "content": first}, {"role": "user", "content": "\n\n".join(parts)}]


def _listed(categories: Categories) -> str | None:
    """Return the categories, a line each, as long as there is room; None if short lines have none either."""
    for longest in _LONGEST_DESCRIPTIONS:
        lines = [_line(name, text, longest) for name, text in sorted(categories)]
        if sum(map(_size, lines)) <= LISTED_BYTES:
            return "\n".join(lines)
    return None


def _line(name: str, description: str, longest: int) -> str:
    return f"- {name}: {on_one_line(description, longest)}"


def _size(line: str) -> int:
    return len(line.encode()) + 1
