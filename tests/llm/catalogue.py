"""A small catalogue of tools for tests of the built-in model, and what it says of those of the release."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from app.llm.model import ModelRequest
from app.llm.offline.model import OfflineModel
from app.people import Person, Role
from app.routing.tool_catalog import ToolCatalog
from app.search import Document, ToolIndex
from app.store.turn_state import Exchange, PastCall
from app.tools import ToolResult
from app.turns.actions import CallResult

NOW = datetime(2026, 11, 21, 15, 0, tzinfo=UTC)


def _tool(
    name: str, category: str, description: str, phrases: tuple[str, ...], **parameters: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "category": category,
        "description": description,
        "phrases": phrases,
        "parameters": parameters,
    }


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


TOOLS = [
    _tool(
        "time_in_place",
        "clock",
        "Tells the current time in a city or country",
        (
            "qué hora es",
            "qué hora es en {place}",
            "dime la hora en {place}",
            "hora en {place}",
            "que horas são",
            "que horas são em {place}",
            "me diga a hora em {place}",
            "what time is it",
            "what time is it in {place}",
            "current time in {place}",
        ),
        place=_text("City or country; empty for here"),
    ),
    _tool(
        "calculate",
        "maths",
        "Calculates an arithmetic expression exactly",
        (
            "cuánto es {expression}",
            "calcula {expression}",
            "cuánto da {expression}",
            "quanto é {expression}",
            "calcule {expression}",
            "quanto dá {expression}",
            "how much is {expression}",
            "what is {expression}",
            "calculate {expression}",
        ),
        expression=_text("The expression as the person wrote it, in digits or words", required=True),
    ),
    _tool(
        "save_note",
        "notes",
        "Saves a note for later",
        (
            "guarda una nota: {text}",
            "anota {text}",
            "anota que {text}",
            "apunta que {text}",
            "nueva nota: {text}",
            "salva uma nota: {text}",
            "anota aí: {text}",
            "anote que {text}",
            "nova nota: {text}",
            "save a note: {text}",
            "note that {text}",
            "take a note: {text}",
            "write down {text}",
            "note: {text}",
        ),
        text=_text("What to keep", required=True),
    ),
    _tool(
        "list_notes",
        "notes",
        "Lists the saved notes",
        (
            "lista mis notas",
            "muéstrame mis notas",
            "qué notas tengo",
            "ver notas",
            "liste minhas notas",
            "mostra minhas notas",
            "quais são minhas notas",
            "list my notes",
            "show my notes",
            "what notes do I have",
        ),
    ),
    _tool(
        "search_notes",
        "notes",
        "Searches the saved notes for words",
        (
            "busca {query} en mis notas",
            "busca en mis notas {query}",
            "procura {query} nas minhas notas",
            "search my notes for {query}",
            "find {query} in my notes",
        ),
        query=_text("Words to look for", required=True),
    ),
    _tool(
        "delete_note",
        "notes",
        "Deletes a saved note by its number",
        (
            "borra la nota {number}",
            "elimina la nota {number}",
            "apaga a nota {number}",
            "delete note {number}",
        ),
        number={"type": "integer", "description": "Number of the note in the list", "required": True},
    ),
    _tool(
        "get_weather",
        "weather",
        "Weather forecast of a place",
        (
            "qué clima hace en {place}",
            "cómo está el clima en {place}",
            "qué tiempo hace en {place}",
            "como está o tempo em {place}",
            "previsão do tempo em {place}",
            "what is the weather in {place}",
            "weather in {place}",
        ),
        place=_text("City", required=True),
        units=_text("Units", enum=["metric", "imperial"]),
    ),
    _tool(
        "set_reminder",
        "reminders",
        "Sets a reminder for a moment",
        (
            "recuérdame {text} {when}",
            "recuérdame {when} {text}",
            "recuérdame el {when} que {text}",
            "me lembra de {text} às {when}",
            "me lembre amanhã de {text}",
            "remind me to {text} at {when}",
            "remind me at {when} to {text}",
            "remind me in {when} to {text}",
        ),
        text=_text("What to remind of", required=True),
        when=_text("ISO 8601 date and time", required=True),
    ),
    _tool(
        "list_reminders",
        "reminders",
        "Lists the reminders that are set",
        (
            "qué recordatorios tengo",
            "lista mis recordatorios",
            "quais são meus lembretes",
            "list my reminders",
        ),
    ),
    _tool(
        "read_file",
        "files",
        "Reads a text file of the workspace",
        ("lee el archivo {path}", "lê o arquivo {path}", "read the file {path}", "open the file {path}"),
        path=_text("Path in the workspace", required=True),
    ),
    _tool(
        "list_people",
        "people",
        "Lists the people who may talk to the assistant",
        (),
        role=_text("Only people of this role", enum=["owner", "member"]),
    ),
    _tool(
        "convert_currency",
        "money",
        "Converts an amount of money between currencies",
        ("convierte {amount} de {source} a {target}", "convert {amount} {source} to {target}"),
        amount={"type": "number", "description": "How much", "required": True},
        source=_text("Currency to convert from", enum=["USD", "EUR", "BRL", "MXN"], required=True),
        target=_text("Currency to convert to", enum=["USD", "EUR", "BRL", "MXN"], required=True),
    ),
]

PHRASES = {tool["name"]: tool["phrases"] for tool in TOOLS}
CATEGORIES = tuple(
    (name, f"Everything about {name}") for name in sorted({tool["category"] for tool in TOOLS})
)


def index() -> ToolIndex:
    return ToolIndex(
        Document(
            tool["name"],
            tool["name"],
            tool["description"],
            tool["category"],
            {name: schema["description"] for name, schema in tool["parameters"].items()},
            tool["phrases"],
        )
        for tool in TOOLS
    )


def schemas() -> list[dict[str, Any]]:
    return [_schema(tool) for tool in TOOLS]


def _schema(tool: dict[str, Any]) -> dict[str, Any]:
    properties = {
        name: {key: value for key, value in schema.items() if key != "required"}
        for name, schema in tool["parameters"].items()
    }
    required = [name for name, schema in tool["parameters"].items() if schema.get("required")]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": tool["name"], "description": tool["description"], "parameters": parameters},
    }


READ_ONLY = [
    *("time_in_place", "calculate", "list_notes", "search_notes", "get_weather", "list_reminders"),
    *("read_file", "list_people", "convert_currency"),
]


class Installed:
    """What the built-in model is told of what is installed."""

    def __init__(self, index: ToolIndex, phrases: Mapping[str, tuple[str, ...]]) -> None:
        self.index = index
        self._phrases = phrases

    def phrases(self) -> Mapping[str, tuple[str, ...]]:
        return self._phrases

    def read_only(self) -> Collection[str]:
        return READ_ONLY

    def for_owners(self) -> Collection[str]:
        return ()

    def definitions(self, _: Person) -> list[dict[str, Any]]:
        return schemas()


def offline() -> OfflineModel:
    return OfflineModel(Installed(index(), PHRASES), now=lambda: NOW)


def person(language: str = "en") -> Person:
    zone = {"es": "America/Mexico_City", "pt": "America/Sao_Paulo", "en": "Europe/London"}[language]
    return Person("p1", "simulator", "Ana", language=language, timezone=zone)


def asked(said: str, language: str = "en", **more: Any) -> ModelRequest:
    messages = [{"role": "system", "content": "You are Recado."}, {"role": "user", "content": said}]
    return ModelRequest("answer", messages, schemas(), said, person(language), **more)


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
        self.tools = abilities.offer(sorted(abilities.tool_categories(self.who)), self.who).schemas
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
        return ModelRequest("answer", messages, self.tools, said, self.who, earlier=tuple(self.earlier))


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
