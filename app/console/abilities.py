"""The pages of abilities: skills and servers with their state, installs, secrets, and trying a tool."""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog
from fastapi import Request, Response

from app.assistant import Assistant
from app.console.site import Fields, Language, Site, Values, Words, back, language_of
from app.errors import RecadoError
from app.i18n import lazy, said, say
from app.installs.card_text import Candidate
from app.installs.chat import START_SECONDS
from app.installs.entries import Entry
from app.installs.pipeline import Approval, InstallError
from app.installs.sentences import installed_text, reason_said, refusal
from app.mcp.configuration import edit_server
from app.messages import JSON
from app.store import alerts, statistics
from app.store.database import Connection, new_id
from app.tasks import start_task
from app.text import visible
from app.tools import Tool
from app.tools.plain import loads

log = structlog.get_logger(__name__)

Kind = Literal["server", "skill"]
Change = Literal["on", "off", "owners", "all", "remove"]
STATISTICS_SECONDS = 6 * 86_400.0  # before today
INSTALLS_KEPT = 20
PREFIX = "argument-"  # of the names of a tool's fields
HERE = "/console/abilities"
_KINDS = {"integer": "number", "number": "number", "boolean": "choice", "string": "text"}


def add_abilities(site: Site) -> None:
    """Add the pages of skills and servers."""
    assistant = site.assistant
    installing = Installing(assistant)

    @site.page(HERE, "abilities.html")
    async def abilities(request: Request) -> Values:
        def rows(conn: Connection) -> Values:
            since = statistics.day_of(time.time() - STATISTICS_SECONDS)
            of_skills = [one for one in alerts.open_alerts(conn) if one.code.startswith("skill:")]
            return {
                "figures": {one.tool: one for one in statistics.tool_figures(conn, since)},
                "aside": {one.code.split(":")[1]: one.text for one in of_skills},
            }

        skills = sorted(assistant.skills.skills, key=lambda one: one.bundled)
        return await site.store.read(rows) | {
            "skills": [(one, assistant.switches.of(one.name)) for one in skills],
            "servers": assistant.configuration.report(assistant.servers.states()),
            "running": [one for one in installing.installs.values() if one.state == "running"],
        }

    _add_search(site)
    _add_installs(site, installing)
    _add_servers(site)
    _add_skills(site)
    _add_tool_form(site)


def _add_search(site: Site) -> None:
    """Add the pages that lead to the card of a server or a skill."""
    installs = site.assistant.installs

    async def find_entry(name: str) -> Entry:
        entry = await installs.servers.directory.get(name)
        if entry is None:
            raise RecadoError(lazy("the directory has no server {name}", name=name[:100]))
        return entry

    @site.page(f"{HERE}/find", "find.html")
    async def find(request: Request, language: Language, words: Words = "") -> Values:
        entries, trouble = [], ""
        if words:
            try:
                entries = await installs.servers.directory.search(words)
            except RecadoError as error:
                trouble = in_words(language, error)
        listed = [(one, one.reason and reason_said(language, one.reason)) for one in entries]
        return {"entries": listed, "words": words, "trouble": trouble}

    @site.page(f"{HERE}/entry", "entry.html")
    async def entry_form(request: Request, name: str) -> Values:
        """Return a server of the directory, and the values that its form asks for."""
        found = await find_entry(name)
        inputs = [one for one in found.inputs.values() if not one.secret]
        return {"entry": found, "inputs": inputs, "prefix": PREFIX}

    @site.router.post(f"{HERE}/entry")
    async def propose_server(request: Request, language: Language, form: Fields) -> Response:
        """Show the card of a server with the values of its form."""
        found = await find_entry(form.get("name", ""))
        values = {name.removeprefix(PREFIX): text for name, text in form.items() if name.startswith(PREFIX)}
        given = {name: text for name, text in values.items() if text}
        network = False if form.get("offline") else None
        try:
            made = await installs.servers.installer.propose(found, "", given, form.get("folder", ""), network)
        except InstallError as error:
            raise RecadoError(in_words(language, error)) from error
        return await card(request, "server", made)

    @site.router.post(f"{HERE}/skill")
    async def propose_skill(request: Request, language: Language, form: Fields) -> Response:
        """Fetch the skill at an address, and show its card."""
        address = form.get("address", "").strip()
        try:
            made = await installs.skills.installer.propose(address)
        except RecadoError as error:
            raise RecadoError(in_words(language, error), field="address") from error
        return await card(request, "skill", made, address)

    async def card(request: Request, kind: Kind, made: Candidate, address: str = "") -> Response:
        text = await asyncio.to_thread(installs.writer.whole, language_of(request), made)
        return site.render(request, "card.html", kind=kind, made=made, text=text, address=address)


def _add_installs(site: Site, installing: "Installing") -> None:
    """Add the install that a card leads to, and the page of its progress."""

    @site.router.post(f"{HERE}/install")
    async def install(request: Request, language: Language, form: Fields) -> Response:
        """Begin the install that the card showed."""
        kind: Kind = "server" if form.get("kind") == "server" else "skill"
        trusted, address = form.get("choice") == "trust", form.get("address", "")
        approval = Approval(form.get("subject", ""), "console", trusted, address)
        request.state.subject = visible(approval.subject)[:200]
        begun = installing.begin(kind, form.get("name", "")[:100], approval, language)
        return back(f"{HERE}/installs/{begun.id}")

    @site.page(f"{HERE}/installs/{{id}}", "install.html")
    async def progress(request: Request, id: str) -> Values:
        if id not in installing.installs:
            raise RecadoError(lazy("this install was too long ago: see the list of abilities"))
        return {"install": installing.installs[id]}


def _add_servers(site: Site) -> None:
    """Add the page of a server, its secrets and its switches."""
    assistant = site.assistant
    servers = assistant.servers

    def find_server(name: str) -> dict[str, Any]:
        report: dict[str, Any] = assistant.configuration.report(servers.states())
        found = next((row for row in report["servers"] if row["name"] == name), None)
        if found is None:
            raise RecadoError(lazy("there is no server {name}", name=name[:100]))
        return dict(found)

    @site.page(f"{HERE}/servers/{{name}}", "server.html")
    async def one_server(request: Request, name: str) -> Values:
        """Return a server with its tools, and what it lacks."""
        found, tools = find_server(name), {one.name: one for one in assistant.console_calls.tools}
        return {"server": found, "tools": [tools.get(each) for each in found["tools"]]}

    @site.router.post(f"{HERE}/servers/{{name}}/secret")
    async def secret(form: Fields, name: str) -> Response:
        """Keep a secret for a server, which is started anew with it."""
        state = next((one for one in servers.states() if one.name == name), None)
        definition = state.definition if state is not None else None
        if definition is None or form.get("variable") not in definition.missing:
            raise RecadoError(lazy("the server does not ask for that"))
        kept_as, value = definition.kept_as or name, form.get("value", "").strip()
        await asyncio.to_thread(assistant.configuration.secrets.put, kept_as, form["variable"], value)
        await servers.refresh()
        return back(f"{HERE}/servers/{name}")

    @site.router.post(f"{HERE}/servers/{{name:path}}/{{action}}")
    async def change_server(name: str, action: Change) -> Response:
        """Turn a server on or off, keep it for owners, or remove one that was installed."""
        path, found = assistant.configuration.path, find_server(name)
        if action == "remove":
            await assistant.installs.servers.installer.remove(name)
        elif found["origin"] == "skill":
            raise RecadoError(lazy("this server belongs to a skill: turn that one off"))
        elif action in ("on", "off"):
            await asyncio.to_thread(edit_server, path, name, enabled=action == "on", disabled=None)
        else:
            audience = "owners" if action == "owners" else None  # whom it was for before
            await asyncio.to_thread(edit_server, path, name, audience=audience)
        await servers.refresh()
        return back(HERE)


def _add_skills(site: Site) -> None:
    """Add the switches of a skill."""
    assistant = site.assistant

    @site.router.post(f"{HERE}/skills/{{name:path}}/{{action}}")
    async def change_skill(name: str, action: Change) -> Response:
        """Turn a skill on or off, keep it for owners, or remove one that was installed."""
        if assistant.skills.skill(name) is None:
            raise RecadoError(lazy("there is no skill {name}", name=name[:100]))
        if action == "remove":
            await assistant.installs.skills.installer.remove(name)
        else:
            before = assistant.switches.of(name)
            field = "off" if action in ("on", "off") else "owners_only"
            switch = before.model_copy(update={field: action in ("off", "owners")})
            await asyncio.to_thread(assistant.switches.put, name, switch)
        await assistant.abilities.refresh()
        return back(HERE)


def _add_tool_form(site: Site) -> None:
    """Add the page to try a tool on."""
    assistant = site.assistant

    def find_tool(name: str) -> Tool:
        found = next((one for one in assistant.console_calls.tools if one.name == name), None)
        if found is None:
            raise RecadoError(lazy("{name} is no tool that can be tried here", name=name[:100]))
        return found

    def tool_page(request: Request, one: Tool, **values: Any) -> Response:
        """Show the form, with what pressing its button agrees to."""
        sentences, asks = assistant.abilities.sentences(one), None
        if one.sensitive or one.destructive or assistant.settings.confirmation_mode == "confirm-all":
            asks = sentences.question(language_of(request), {}) if sentences else ""
            asks = re.sub(r"\{\w+\}", "…", asks)
        fields = fields_of(one.input_schema)
        return site.render(request, "tool.html", tool=one, fields=fields, asks=asks, **values)

    @site.router.get(f"{HERE}/tools/{{name}}")
    async def try_form(request: Request, name: str) -> Response:
        return tool_page(request, find_tool(name))

    @site.router.post(f"{HERE}/tools/{{name}}")
    async def try_tool(request: Request, form: Fields, name: str) -> Response:
        """Call a tool in the owner's name, and show its result."""
        one = find_tool(name)
        result = await assistant.console_calls.call(name, arguments_of(one.input_schema, form))
        if result.error is not None and result.meta.get("invalid_arguments"):
            fault = result.error.message
            raise RecadoError(fault, field=PREFIX + re.split(r"[:.\[]", fault)[0])
        text = json.dumps(json.loads(result.to_json()), ensure_ascii=False, indent=2)
        given = {key.removeprefix(PREFIX): text for key, text in form.items() if key.startswith(PREFIX)}
        return tool_page(request, one, given=given, result=text, ok=result.ok)


@dataclass(slots=True)
class Install:
    """An install: what was done so far, a line each, and whether it is over."""

    id: str
    name: str
    lines: list[str] = field(default_factory=list)
    state: Literal["running", "done", "failed"] = "running"


class Installing:
    """Installs that the console began, the last ones; each goes on while its page is closed."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._tasks: set[asyncio.Task[None]] = set()
        self.installs: dict[str, Install] = {}

    def begin(self, kind: Kind, name: str, approval: Approval, language: str) -> Install:
        """Begin an install, and return it at once."""
        install = Install(new_id("install"), name)
        self.installs[install.id] = install
        for old in list(self.installs)[:-INSTALLS_KEPT]:
            del self.installs[old]
        start_task(self._tasks, self._run(install, kind, approval, language), name=f"install {name}")
        return install

    async def _run(self, install: Install, kind: Kind, approval: Approval, language: str) -> None:
        try:
            await (self._server if kind == "server" else self._skill)(install, approval, language)
            install.state = "done"
        except RecadoError as error:
            install.state = "failed"
            install.lines.append(in_words(language, error))
        except Exception:
            install.state = "failed"
            log.exception("an install failed")
            install.lines.append(say(language, "This failed on our side: the log says why."))

    async def _server(self, install: Install, approval: Approval, language: str) -> None:
        servers, installer = self._assistant.servers, self._assistant.installs.servers.installer
        install.lines.append(say(language, "Fetching the package and what it needs …"))
        record = await installer.commit(approval)
        install.lines.append(say(language, "It is in its place, and starts for the first time …"))
        await servers.refresh()
        state = await servers.settled(record.name, START_SECONDS)
        install.name = record.name
        install.lines.append(installed_text(language, record, state))

    async def _skill(self, install: Install, approval: Approval, language: str) -> None:
        install.lines.append(say(language, "Fetching what its programs need …"))
        installed = await self._assistant.installs.skills.installer.commit(approval)
        self._assistant.abilities.refresh_soon()
        install.name, sha256 = installed.name, installed.sha256[:12]
        told = say(language, "✓ Installed: {name} ({hash})", name=installed.name, hash=sha256)
        install.lines.append(told)


def in_words(language: str, error: RecadoError) -> str:
    """Return an error of an install in words for a person, with its detail."""
    told = refusal(language, error)
    return f"{told.error.message if told.error else error} ({visible(said(error.told, language))})"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a tool's form; `kind` is text, long, number, choice or json."""

    name: str
    kind: str
    description: str
    required: bool
    choices: tuple[str, ...] = ()
    default: str = ""


def fields_of(schema: Mapping[str, JSON]) -> list[Field]:
    """Return a field for each argument of a tool, those that are required first."""
    required, fields = schema.get("required") or (), []
    for name, one in (schema.get("properties") or {}).items():
        one = one if isinstance(one, dict) else {}
        branches = [branch for branch in one.get("anyOf", ()) if isinstance(branch, dict)]
        types = [str(each.get("type")) for each in (one, *branches)]
        kind = next((_KINDS[each] for each in types if each in _KINDS), "json")
        choices = one.get("enum") or ((True, False) if kind == "choice" else ())
        if choices:
            kind = "choice"
        elif kind == "text" and (one.get("maxLength") or 0) > 200:
            kind = "long"
        default = "" if one.get("default") is None else _shown(one["default"])
        about = str(one.get("description") or "")
        fields.append(Field(name, kind, about, name in required, tuple(map(_shown, choices)), default))
    return sorted(fields, key=lambda one: not one.required)


def _shown(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def arguments_of(schema: Mapping[str, JSON], form: Mapping[str, str]) -> dict[str, JSON]:
    """Return what a sent form says; what cannot be read stays a text, which the tool's check then names."""
    given: dict[str, JSON] = {}
    for one in fields_of(schema):
        text = form.get(PREFIX + one.name, "").strip()
        if not text:
            continue
        given[one.name] = text
        if one.kind in ("number", "json") or (one.kind == "choice" and text in ("true", "false")):
            with suppress(ValueError):
                given[one.name] = loads(text)
    return given
