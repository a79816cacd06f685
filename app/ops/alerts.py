"""Alerts about skills and servers, and what the owners are told of them in their chat."""

import time
from pathlib import Path
from typing import Literal

from app.i18n import lazy, say, say_plural
from app.mcp.approved import subject_of
from app.mcp.definitions import ServerState
from app.messages import SAYS, Button, Outgoing, Wakeable
from app.skills.installed import is_installed_folder
from app.store import alerts, outbox, people
from app.store.database import Connection, Database
from app.store.outbox import Draft
from app.store.ownership import AccessRules

QUIET_SECONDS = 3600.0  # between two messages about the same kind of event of a server
# What an owner was told last of a server.
_Event = Literal["aside", "held", "works"]


class AlertReporter:
    """Raises an alert about a skill or a server, or closes it once there is no trouble any more.

    The owners that `rules` know hear of servers in their chat, each event once.
    """

    def __init__(self, store: Database, data_dir: Path, rules: AccessRules, sender: Wakeable) -> None:
        self._store = store
        self._data_dir = data_dir
        self._rules = rules
        self._sender = sender

    async def forget(self) -> None:
        """Close all alerts about skills and servers: a start tries each again."""

        def close(conn: Connection) -> None:
            for prefix in (alerts.ABOUT_SKILLS, alerts.ABOUT_SERVERS):
                alerts.close_alerts(conn, prefix, time.time())

        await self._store.tx(close)

    async def skill_failed(self, folder: Path, reason: str) -> None:
        """Alert that a skill's code is not run any more."""
        skill = folder.parent.name if is_installed_folder(self._data_dir, folder) else folder.name
        code, now = f"{alerts.ABOUT_SKILLS}{skill}:", time.time()
        if reason:
            text = lazy("the skill {name}: {reason}", name=skill, reason=reason)
            await self._store.tx(lambda conn: alerts.raise_alert(conn, code, text, now))
        else:
            await self._store.tx(lambda conn: alerts.close_alerts(conn, code, now))

    async def server_changed(self, state: ServerState) -> None:
        """Alert that an MCP server does not run or holds tools back, or that it works; tell the owners."""
        for person in await self._store.tx(lambda conn: self._note(conn, state, time.time())):
            self._sender.wake(person)

    def _note(self, conn: Connection, state: ServerState, now: float) -> list[str]:
        """Keep the alert; return the owners for whom a message was queued."""
        code = f"{alerts.ABOUT_SERVERS}{state.name}:"
        alerts.close_alerts(conn, code, now)
        event: _Event = "aside" if state.reason else "works"
        reason = state.reason
        if state.held_back:
            event, tools = "held", ", ".join(one.tool for one in state.held_back)
            reason = lazy("tools changed and wait to be approved: {names}", names=tools)
        if event != "works":
            text = lazy("the MCP server {name}: {reason}", name=state.name, reason=reason)
            alerts.raise_alert(conn, f"{code}{event}", text, now)
        owners = people.owners(conn, self._rules) if state.phase != "off" else ()
        return [owner for owner in owners if self._tell(conn, owner, state, event, now)]

    def _tell(self, conn: Connection, owner: str, state: ServerState, event: _Event, now: float) -> bool:
        """Queue a message to an owner unless it would repeat the last about the server."""
        about = f"server:{state.name}:"
        mark = f"{event}:{subject_of(state) if event == 'held' else ''}"
        last, _, told_at = outbox.last_source(conn, owner, about).removeprefix(about).rpartition(":")
        if last == mark or (event == "works" and not last.startswith("aside:")):
            return False
        if last.startswith(f"{event}:") and now - float(told_at) < QUIET_SECONDS:
            return False  # a server that changes all the time does not fill the owner's chat
        message = _notice(people.language(conn, owner), state, event)
        conversation = people.conversation(conn, owner, self._rules.realm, "", now)
        draft = Draft(message.text, (message,))
        outbox.put_reply(conn, conversation, f"{about}{mark}:{int(now)}", draft, now)
        return True


def _notice(language: str, state: ServerState, event: _Event) -> Outgoing:
    """Write what happened to a server, with buttons where there is something to look at or to decide."""
    name = state.name
    look = Button(SAYS + say(language, "show me the server {name}", name=name), say(language, "Look"))
    if event == "works":
        return Outgoing(say(language, "The server {name} works again.", name=name))
    if event == "aside":
        text = say(language, "The server {name} does not run, so its tools are away.", name=name)
        return Outgoing(text, (look,))
    text = say_plural(
        language,
        "The server {name} has {n} new or changed tool. I use it only once you approve it.",
        "The server {name} has {n} new or changed tools. I use them only once you approve them.",
        len(state.held_back),
        name=name,
    )
    approve = SAYS + say(language, "approve the tools of {name}", name=name)
    return Outgoing(text, (look, Button(approve, say(language, "Approve"))))
