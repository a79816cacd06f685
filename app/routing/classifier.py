"""The classifier: one cheap model call for the intent of a message; whatever comes back, a turn goes on.

No call is made if the message clearly goes on with the conversation. The answer is read tolerantly.
"""

import asyncio
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, zip_longest
from typing import Literal

from app.llm.model import PROMPTS, Model, ModelAnswer, ModelRequest
from app.llm.smalltalk import asks_nothing
from app.messages import JSON
from app.people import Person
from app.search.clauses import asks_of_state
from app.search.index import Hit, ToolIndex
from app.search.words import says_something, words
from app.store.turn_state import Exchange
from app.text import fold, on_one_line

Categories = tuple[tuple[str, str], ...]  # name and description of each

KNOWS_BETTER = 0.2  # larger share of the words by which another category takes a message over
KNOWS_ENOUGH = 0.2  # share of the words that a tool must know to be more than a chance
MOST_CATEGORIES = 6
MOST_PHRASES = 8
MOST_SHOWN = 40
LISTED_BYTES = 1_800  # of categories in one prompt: with the rest of it three kilobytes
_LONGEST_DESCRIPTION = 60  # characters that a prompt holds of a category's
_SHORTLIST_DEPTH = 200
_LONGEST_SAID = 4_000
_LONGEST_LINE = 300
_MOST_EARLIER = 2  # messages before this one that the prompt holds
_LONGEST_ANSWER, _LONGEST_PROSE, _LONGEST_PHRASE = 4_000, 400, 200  # characters that the model may write

_LISTED = "Categories:\n"
_CATEGORY_KEYS = ("categories", "category", "categorias", "tools", "intents", "intent")
_PHRASE_KEYS = ("phrases", "phrase", "queries", "subtasks")
_NOTHING = {"none", "null", "nothing", "no", "n/a", "[]", "{}", "ninguna", "ninguno", "nenhuma", "nenhum"}

_ON_FROM_BEFORE = frozenset(("y", "e", "and", "also", "tambien"))
_MOST_WORDS = 5  # of a message that adds to the one before, or answers a question


@dataclass(frozen=True, slots=True)
class Intent:
    """The intent of a message.

    `categories`: names of skills and servers that exist; `phrases`: one search phrase per sub-task.
    `source`: "model"; "continued" if the message clearly goes on with the conversation; "sticky" for the
    conversation's categories if the model named none; "index" if the model failed; "none" if the model says
    that nothing fits.
    """

    categories: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    source: Literal["model", "continued", "sticky", "index", "none"] = "none"

    @property
    def is_clear(self) -> bool:
        """Return whether the categories are known, so that the words decide little more."""
        return self.source in ("model", "continued")


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

    @property
    def known(self) -> tuple[str, ...]:
        """The conversation's categories that still exist."""
        usable = dict(self.categories)
        return tuple(name for name in self.sticky if name in usable)


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
        return Classified(_or_sticky(Intent(source="index"), request))
    if _goes_on(request, index, skills):
        return Classified(Intent(request.known, source="continued"))
    shown = _shortlist(request, index, skills)
    prompt = _prompt(request, shown)
    answer, intent, problem = None, None, ""
    try:
        async with asyncio.timeout(request.timeout):
            answer = await model.complete(
                ModelRequest(
                    "classify",
                    prompt,
                    said=request.said,
                    person=request.person,
                    categories=shown,
                    earlier=request.earlier,
                )
            )
        intent = read_intent(answer.text, [name for name, _ in request.categories])
        if intent is None:
            problem = f"unreadable answer of {len(answer.text)} characters"
    except TimeoutError:
        problem = f"no answer within {request.timeout:g} s"
    except Exception as error:  # whatever broke, the turn goes on; the caller logs the problem
        problem = f"{type(error).__name__}: {error}"
    if intent is None:
        _, best = _better(request, index, skills)
        intent = Intent((best,) if best else (), source="index")
    return Classified(_or_sticky(intent, request), prompt, answer, problem)


def _or_sticky(intent: Intent, request: IntentRequest) -> Intent:
    """Return an intent without categories with those of the conversation, if it has any."""
    if intent.categories or not request.known:
        return intent
    return replace(intent, categories=request.known, source="sticky")


def _goes_on(request: IntentRequest, index: ToolIndex, skills: ToolIndex) -> bool:
    """Return whether a message clearly goes on with the conversation.

    Such as thanks, "vale", "and on Sunday?", a word or two in answer to a question; unless other categories
    or their tools know more of its words.
    """
    known = request.known
    if asks_nothing(request.said):
        return bool(known or (request.earlier and not request.asked))
    if not known or not says_something(request.said):
        return bool(known)
    said = words(request.said)
    if len(said) > _MOST_WORDS:
        return False
    adds = said[0] in _ON_FROM_BEFORE
    answers = request.asked and not asks_of_state(request.said)
    return (adds or answers) and not _better(request, index, skills)[0]


def _better(request: IntentRequest, index: ToolIndex, skills: ToolIndex) -> tuple[bool, str | None]:
    """Tell whether others clearly know more of the words than the conversation's categories.

    Return with it the best of these others that knows enough of them.
    """
    known, usable = request.known, dict(request.categories)
    ranked = [*_fitting(request, index), *_fitting(request, skills)]
    own = max((hit.coverage for hit, name in ranked if name in known), default=0.0)
    others = [(hit, name) for hit, name in ranked if name in usable and name not in known]
    if max((hit.coverage for hit, _ in others), default=0.0) < own + KNOWS_BETTER:
        return False, None
    return True, next((name for hit, name in others if hit.coverage >= KNOWS_ENOUGH), None)


def _fitting(request: IntentRequest, index: ToolIndex) -> list[tuple[Hit, str]]:
    """Return the tools or skills that fit the message, best first, with their categories."""
    return [(hit, index.category(hit.id)) for hit in index.rank(request.said, limit=_SHORTLIST_DEPTH)]


def _shortlist(request: IntentRequest, index: ToolIndex, skills: ToolIndex) -> Categories:
    """Return the categories that a prompt has room for, sorted by name.

    If not all have room: the sticky ones, then those that fit best, by turns by their tools and on their own.
    """
    if _size(_listed(request.categories)) <= LISTED_BYTES:
        return tuple(sorted(request.categories))
    described = dict(request.categories)
    by_tools, by_themselves = (
        dict.fromkeys(name for _, name in _fitting(request, one)) for one in (index, skills)
    )
    by_fit = (name for pair in zip_longest(by_tools, by_themselves) for name in pair)
    wanted = dict.fromkeys((*request.sticky, *by_fit, *sorted(described)))
    names = [name for name in wanted if name in described][:MOST_SHOWN]
    sizes = accumulate(_size(_line(name, described[name])) for name in names)
    room = sum(size <= LISTED_BYTES for size in sizes)
    return tuple(sorted((name, described[name]) for name in names[:room]))


def _prompt(request: IntentRequest, shown: Categories) -> list[dict[str, JSON]]:
    """Return the messages of the call.

    A list of all categories is in the first message, a shortlist in the last: the first changes only with the
    categories, so that a provider's prompt cache keeps hitting.
    """
    listed = _LISTED + _listed(shown)
    earlier = "\n".join(on_one_line(one.said, _LONGEST_LINE) for one in request.earlier[-_MOST_EARLIER:])
    parts = [f"Earlier in the conversation:\n{earlier}"] if earlier else []
    parts.append(f"Message:\n{request.said[:_LONGEST_SAID]}")
    first = PROMPTS["classify"]
    if len(shown) == len(request.categories):
        first += f"\n{listed}"
    else:
        parts.insert(0, listed)
    return [{"role": "system", "content": first}, {"role": "user", "content": "\n\n".join(parts)}]


def _listed(categories: Categories) -> str:
    return "\n".join(_line(name, text) for name, text in sorted(categories))


def _line(name: str, description: str) -> str:
    return f"- {name}: {on_one_line(description, _LONGEST_DESCRIPTION)}"


def _size(line: str) -> int:
    return len(line.encode()) + 1


def read_intent(text: str, known: Collection[str]) -> Intent | None:
    """Read JSON (fenced, bare or amid prose), a JSON list or plain names; return None if it is none of them.

    An empty list, `none` and names that are not `known` are valid and give no categories.
    """
    answer = text[:_LONGEST_ANSWER]
    names = {_key(name): name for name in known}
    if answer.strip("` \n.").lower() in _NOTHING:
        return Intent()
    for value in json_values(answer):
        fields: Mapping[str, JSON] = {"categories": value}
        if isinstance(value, dict):
            fields = {fold(key).strip(): inner for key, inner in value.items()}
        if not value or any(key in fields for key in _CATEGORY_KEYS):
            found = (names.get(_key(text)) for text in _texts(_first(fields, _CATEGORY_KEYS)))
            categories = tuple(dict.fromkeys(name for name in found if name is not None))[:MOST_CATEGORIES]
            return Intent(categories, _phrases(fields), "model" if categories else "none")
    categories = _plain_names(answer, names)
    return Intent(categories, source="model") if categories else None


def _phrases(fields: Mapping[str, JSON]) -> tuple[str, ...]:
    phrases = _first(fields, _PHRASE_KEYS)
    listed = phrases if isinstance(phrases, list) else [phrases]
    texts = (" ".join(item.split())[:_LONGEST_PHRASE] for item in listed if isinstance(item, str))
    return tuple(dict.fromkeys(filter(None, texts)))[:MOST_PHRASES]


def json_values(text: str) -> Iterator[JSON]:
    """Yield every JSON object or list in a text."""
    decoder, position = json.JSONDecoder(), 0
    while start := re.compile(r"[{\[]").search(text, position):
        try:
            value, position = decoder.raw_decode(text, start.start())
        except ValueError:
            position = start.end()
        except RecursionError:  # thousands of brackets: to try each takes seconds
            return
        else:
            yield value


def _first(fields: Mapping[str, JSON], keys: tuple[str, ...]) -> JSON:
    return next((fields[key] for key in keys if key in fields), None)


def _texts(value: JSON) -> list[str]:
    """Return the words that may be names: of lists, comma-separated texts, objects by or with a name."""
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, dict):
        return [*(key for key, inner in value.items() if inner), *_texts(list(value.values()))]
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


def _plain_names(text: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return known names that are whole words of a short answer, or of a list that was cut or is no JSON."""
    part = fold(text.partition("phrases")[0])
    if len(part) > _LONGEST_PROSE:
        return ()
    found = []
    for key, name in names.items():
        pattern = re.escape(key).replace(r"\-", "[-_ ]")
        if match := re.search(rf"(?<![\w-]){pattern}(?![\w-])", part):
            found.append((match.start(), name))
    return tuple(name for _, name in sorted(found))[:MOST_CATEGORIES]


def _key(name: str) -> str:
    """Return a name without case, accents and kind of separator, to compare it."""
    return re.sub(r"(?<=\w)[_ ](?=\w)", "-", fold(name[:100]).strip().strip("\"'`*."))
