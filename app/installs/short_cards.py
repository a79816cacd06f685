"""The cards of installs as a phone shows them: what a yes depends on; the word "details" shows all of it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from app.i18n import say, say_plural
from app.installs.card_text import CardText, kind_names, script_packages
from app.installs.cards import Difference, SkillCard, quoted
from app.installs.plans import Plan
from app.installs.skills import SkillCandidate
from app.skills.findings import Finding

PHONE_CHARACTERS = 500  # of a card with its question
_LEAST_ABOUT = 40  # of what the author says it is for, which gets the room that is left
_MOST_ABOUT = 120
_MOST_NAMED = 3
_REGISTRIES = {"npm": "npm", "pypi": "PyPI"}


def short_server_card(
    language: str, plan: Plan, *, about: str, trust: str, sandboxed: bool, workspace: Path, room: int
) -> CardText:
    """Write what an owner must know before a yes in at most `room` characters.

    `about` is what its author says it is for, perhaps translated; `trust` says what each kind of yes means.
    """
    if plan.replaces:
        question = say(language, "Update the server {name}?", name=plan.name)
    else:
        question = say(language, "Install the server {name}?", name=plan.name)
    lines = [*_server_lines(language, plan, sandboxed, workspace), trust, _written(language, plan)]
    return _fitted(plan.name, about, lines, question, room)


def short_skill_card(
    language: str, candidate: SkillCandidate, *, about: str, trust: str, sandboxed: bool, room: int
) -> CardText:
    """Write what an owner must know before a yes to a skill, as `short_server_card` does."""
    card, change = candidate.card, candidate.change
    if change is None:
        question = say(language, "Install the skill {name}?", name=card.name)
    else:
        question = say(language, "Update the skill {name}?", name=card.name)
    see_all = say(language, "Write “details” to see all of it.")
    lines = [*_skill_lines(language, card, change, sandboxed), trust, see_all]
    return _fitted(card.name, about, lines, question, room)


def _fitted(name: str, about: str, lines: list[str], question: str, room: int) -> CardText:
    rest = "\n".join(filter(None, lines))
    left = room - len(name) - len(rest) - len(question) - len(":  “”…\n\n\n")
    most = max(_LEAST_ABOUT, min(left, _MOST_ABOUT))
    told = quoted(about if len(about) <= most else f"{about[:most].rstrip()}…")
    return CardText(f"{name}: {told}\n{rest}", question)


def _server_lines(language: str, plan: Plan, sandboxed: bool, workspace: Path) -> Iterator[str]:
    which = f"{plan.registry_id} {plan.version}"
    if plan.url:
        host = quoted(urlsplit(plan.url).hostname or plan.url)
        yield say(language, "By {publisher}: {which}", publisher=plan.namespace, which=which)
        yield say(language, "It runs elsewhere: what you ask it goes to {address}", address=host)
    else:
        registry = _REGISTRIES.get(plan.kind, plan.kind)
        yield say(
            language,
            "By {publisher}: {which}, from {registry}",
            publisher=plan.namespace,
            which=which,
            registry=registry,
        )
        yield _server_rights(language, plan, sandboxed, workspace)
    if plan.secrets:
        names = _some([one.name for one in plan.secrets])
        yield say(language, "It asks for {names}: never here, but in a shell.", names=names)
    if plan.audience == "owners":
        yield say(language, "Only owners may use it.")
    else:
        yield say(language, "Everyone here may use it, and all share its data.")
    yield from _findings(language, plan.findings)
    if plan.edited:
        yield say(language, "What you changed in its entry in the file of servers is gone then.")


def _server_rights(language: str, plan: Plan, sandboxed: bool, workspace: Path) -> str:
    grants = plan.grants
    if not sandboxed:
        return say(language, "The sandbox is turned off: its code gets all the rights that I have.")
    if workspace in grants.folders_write:
        uses = [say(language, "all of your files")]
    elif grants.folders_write:
        names = _some([str(one.relative_to(workspace)) for one in grants.folders_write])
        uses = [say(language, "your folder {names}", names=names)]
    else:
        uses = [say(language, "only a folder of its own")]
    uses.append(say(language, "the internet") if grants.network else say(language, "no internet"))
    if grants.programs:
        uses.append(say(language, "other programs"))
    return say(language, "It may use: {things}.", things=", ".join(uses))


def _written(language: str, plan: Plan) -> str:
    if plan.grants.network:
        return say(language, "Write “details” to see all of it, “no internet” to install it without.")
    return say(language, "Write “details” to see all of it.")


def _skill_lines(language: str, card: SkillCard, change: Difference | None, sandboxed: bool) -> Iterator[str]:
    yield say(language, "From: {source}", source=_cut(card.source, 60))
    if card.sent_on:
        yield say(language, "Its files come from: {host}", host=_cut(urlsplit(card.sent_on).netloc, 40))
    if change is not None:
        yield from _changes(language, change)
    tools = len(card.tools)
    count = say_plural(language, "{n} tool", "{n} tools", tools) if tools else say(language, "no tools")
    if card.tools and not sandboxed:
        yield say(language, "The sandbox is turned off: its code gets all the rights that I have.")
    elif card.hosts:
        yield say(language, "{tools}, reaches {names}", tools=count, names=_some(card.hosts))
    else:
        yield say(language, "{tools}, no internet", tools=count)
    if card.scripts:
        yield say_plural(language, "{n} program", "{n} programs", len(card.scripts)) + (
            ", " + (say(language, "the internet") if card.script_network else say(language, "no internet"))
        )
    if packages := script_packages(card):
        yield say(language, "Packages that are installed for them: {names}", names=_some(packages))
    if card.settings:
        yield say(language, "Settings and secrets it asks for: {names}", names=_some(card.settings))
    servers = [*(one.name for one in card.servers), *(one.name for one in card.refused)]
    if servers:
        yield say(language, "MCP servers: {names}", names=_some(servers))
    if card.audience == "owners":
        yield say(language, "Only owners may use it.")
    else:
        yield say(language, "Everyone here may use it, and all share its data.")
    yield from _findings(language, card.findings)


def _changes(language: str, change: Difference) -> Iterator[str]:
    if change.source_before or change.host_before:
        before = _cut(change.source_before or change.host_before, 60)
        yield say(language, "It came from another address before: {source}", source=before)
    new = (*change.hosts_added, *change.settings_added, *change.tools_added)
    if new:
        yield say(language, "New in it: {names}", names=_some(new))
    changed = (*change.tools_changed, *change.tools_removed)
    if changed:
        yield say(language, "Tools that change or go: {names}", names=_some(changed))


def _findings(language: str, findings: tuple[Finding, ...]) -> Iterator[str]:
    if findings:
        counts, names = Counter(one.kind for one in findings), kind_names(language)
        told = ", ".join(f"{names[kind]} ({counts[kind]})" for kind in names if counts[kind])
        yield "⚠ " + say(language, "Worth a look: {kinds}", kinds=told)


def _some(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(_cut(name, 40) for name in names[:_MOST_NAMED])
    return f"{shown} +{len(names) - _MOST_NAMED}" if len(names) > _MOST_NAMED else shown


def _cut(text: str, most: int) -> str:
    return quoted(text if len(text) <= most else f"{text[: most - 1]}…")
