"""A small catalogue of tools for tests of the built-in model, and what it says of those of the release."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from app.llm.model import ModelRequest
from app.llm.offline.model import OfflineModel
from app.people import Person, Role
from app.routing.tool_catalog import ToolCatalog
from app.search.index import Document, ToolIndex
from app.store.turn_state import Exchange, PastCall
from app.tools import ToolResult
from app.turns.actions import CallResult
from app.turns.model_calls import RECENT_EXCHANGES

NOW = datetime(2026, 11, 21, 15, 0, tzinfo=UTC)


def _tool(name: str, category: str, description: str, *phrases: str, **parameters: Any) -> dict[str, Any]:
    """Describe a tool; parameters are required but for those with `optional`, and texts unless they say."""
    required = [one for one, schema in parameters.items() if not schema.pop("optional", False)]
    properties = {one: {"type": "string", **schema} for one, schema in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": required}
    function = {"name": name, "description": description, "parameters": schema}
    return {"category": category, "phrases": phrases, "form": {"type": "function", "function": function}}


TOOLS = [
    _tool(
        "time_in_place",
        "clock",
        "Tells the current time in a city or country",
        *("qué hora es", "qué hora es en {place}", "que horas são em {place}", "what time is it in {place}"),
        place={"description": "City or country; empty for here", "optional": True},
    ),
    _tool(
        "calculate",
        "maths",
        "Calculates an arithmetic expression exactly",
        *(
            "cuánto es {expression}",
            "quanto é {expression}",
            "how much is {expression}",
            "what is {expression}",
        ),
        expression={"description": "The expression as the person wrote it, in digits or words"},
    ),
    _tool(
        "save_note",
        "notes",
        "Saves a note for later",
        *("guarda una nota: {text}", "anota {text}", "anota aí: {text}", "note that {text}", "note: {text}"),
        text={"description": "What to keep"},
    ),
    _tool(
        "delete_note",
        "notes",
        "Deletes a saved note by its number",
        *("borra la nota {number}", "apaga a nota {number}", "delete note {number}"),
        number={"type": "integer", "description": "Number of the note in the list"},
    ),
    _tool(
        "get_weather",
        "weather",
        "Weather forecast of a place",
        *("qué clima hace en {place}", "como está o tempo em {place}", "what is the weather in {place}"),
        place={"description": "City"},
        units={"description": "Units", "enum": ["metric", "imperial"], "optional": True},
    ),
    _tool(
        "set_reminder",
        "reminders",
        "Sets a reminder for a moment",
        *("recuérdame {text} {when}", "recuérdame {when} {text}", "me lembra de {text} às {when}"),
        *("remind me to {text} at {when}", "remind me in {when} to {text}"),
        text={"description": "What to remind of"},
        when={"description": "ISO 8601 date and time"},
    ),
    _tool(
        "list_people",
        "people",
        "Lists the people who may talk to the assistant",
        role={"description": "Only people of this role", "enum": ["owner", "member"], "optional": True},
    ),
    _tool(
        "convert_currency",
        "money",
        "Converts an amount of money between currencies",
        *("convierte {amount} de {source} a {target}", "convert {amount} {source} to {target}"),
        amount={"type": "number", "description": "How much"},
        source={"description": "Currency to convert from", "enum": ["USD", "EUR", "BRL", "MXN"]},
        target={"description": "Currency to convert to", "enum": ["USD", "EUR", "BRL", "MXN"]},
    ),
]
SCHEMAS = [tool["form"] for tool in TOOLS]
PHRASES = {tool["form"]["function"]["name"]: tool["phrases"] for tool in TOOLS}
CATEGORIES = tuple((name, f"About {name}") for name in sorted({tool["category"] for tool in TOOLS}))


def _document(tool: dict[str, Any]) -> Document:
    function = tool["form"]["function"]
    name, properties = function["name"], function["parameters"]["properties"]
    described = {one: schema["description"] for one, schema in properties.items()}
    return Document(name, name, function["description"], tool["category"], described, tool["phrases"])


READ_ONLY = ("time_in_place", "calculate", "get_weather", "list_people", "convert_currency")


class Installed:
    """What the built-in model is told of what is installed."""

    def __init__(self, index: ToolIndex, phrases: Mapping[str, tuple[str, ...]]) -> None:
        self.index = index
        self._phrases = phrases

    def phrases(self) -> Mapping[str, tuple[str, ...]]:
        return self._phrases

    def read_only(self) -> Collection[str]:
        return READ_ONLY

    def summary(self, _: Person, language: str, *, offline: bool) -> list[str]:
        return [{"es": "“cuánto es 12 × 7”", "pt": "“quanto é 12 × 7”", "en": "“what is 12 × 7”"}[language]]

    def definitions(self, _: Person) -> list[dict[str, Any]]:
        return SCHEMAS


def offline() -> OfflineModel:
    return OfflineModel(Installed(ToolIndex(map(_document, TOOLS)), PHRASES), now=lambda: NOW)


def person(language: str = "en") -> Person:
    zone = {"es": "America/Mexico_City", "pt": "America/Sao_Paulo", "en": "Europe/London"}[language]
    return Person("p1", "simulator", "Ana", language=language, timezone=zone)


def asked(said: str, language: str = "en", **more: Any) -> ModelRequest:
    messages = [{"role": "system", "content": "You are Recado."}, {"role": "user", "content": said}]
    return ModelRequest("answer", messages, SCHEMAS, said, person(language), **more)


# what tools answer in these tests, by name; others say that something was changed
RESULTS: dict[str, Any] = {
    "list_notes": {"notes": [{"number": 7}, {"number": 5}, {"number": 2}]},
    "search_notes": {"notes": [{"number": 4}]},
    "list_reminders": {"reminders": [{"number": 4}, {"number": 1}]},
    "list_tasks": {"tasks": [{"number": 3}, {"number": 9}]},
    "show_list": {"numbers": [1, 4]},
    **dict.fromkeys(
        ("current_time", "get_weather", "calculate", "convert_units", "days_between"), "It is so."
    ),
}
CHANGED = ("text", "fact", "task", "name")  # arguments by which a change is told


def result_of(tool: str, arguments: dict[str, Any]) -> ToolResult:
    about = {name: value for name, value in arguments.items() if name in CHANGED}
    return ToolResult.of(RESULTS.get(tool, {"summary": "✓ Done", **about}))


class Dialog:
    """A person who writes a message at a time to the built-in model with the skills of the release."""

    def __init__(self, abilities: ToolCatalog, language: str, role: Role = "member", **results: Any) -> None:
        self.model = OfflineModel(abilities, now=lambda: NOW)
        self.who = replace(person(language), role=role)
        self.tools = abilities.offer(sorted(abilities.tool_categories(self.who)), self.who)
        self.earlier: list[Exchange] = []
        self._results = results

    async def says(self, said: str) -> tuple[list[tuple[str, Any]], str]:
        """Return the calls of all rounds, and the text at their end."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": said}]
        made: list[PastCall] = []
        while (answer := await self.model.complete(self.request(said, messages))).calls:
            messages.append({"role": "assistant", "tool_calls": [{"id": call.id} for call in answer.calls]})
            for call in answer.calls:
                assert isinstance(call.arguments, dict)
                given = self._results.get(call.name)
                result = ToolResult.of(given) if given else result_of(call.name, call.arguments)
                known = CallResult.of(call.name, result, result.to_json())
                messages.append({"role": "tool", "content": known.text})
                changed = bool(known.receipt)
                made.append(PastCall(call.name, call.arguments, known.ok, changed, known.follow_up))
        self.earlier.append(Exchange(said, answer.text, 0.0, calls=tuple(made)))
        return [(one.tool, one.arguments) for one in made], answer.text

    def request(self, said: str, messages: list[dict[str, Any]]) -> ModelRequest:
        return ModelRequest(
            "answer", messages, self.tools, said, self.who, earlier=tuple(self.earlier[-RECENT_EXCHANGES:])
        )


async def answered(
    abilities: ToolCatalog, language: str, *spoken: str, role: Role = "member", **results: Any
) -> tuple[list[tuple[str, Any]], str]:
    """Return what is called for and answered to the last of these messages."""
    dialog = Dialog(abilities, language, role, **results)
    for said in spoken:
        last = await dialog.says(said)
    return last


async def calls(abilities: ToolCatalog, language: str, *spoken: str, **more: Any) -> list[tuple[str, Any]]:
    """Return what is called for the last of these messages."""
    return (await answered(abilities, language, *spoken, **more))[0]
