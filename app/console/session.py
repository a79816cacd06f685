"""Sign-in to the console: the administrator's token once, then a cookie of a session that can be ended."""

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response

from app.assistant import Assistant
from app.channels.access import shown_name
from app.security import same_token
from app.store import audit, ownership, people
from app.store.database import Connection, insert

SESSION_SECONDS = 30 * 86_400
AGENT_CHARACTERS = 200
_COOKIE = "recado_console"


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in; its forms carry `csrf`.

    `owner` is the name of the owner whose link signed it in, "" for the administrator's token.
    """

    id: str
    csrf: str
    agent: str = ""
    created_at: float = 0.0
    owner: str = ""

    def allows(self, form: Mapping[str, str]) -> bool:
        """Return True for a form of this session's own pages."""
        return same_token(form.get("csrf", ""), self.csrf)


class Sessions:
    """Begin, find and end sessions.

    Each is bound to the administrator's token: a renewed one ends them all. One that began with an owner's
    link ends when they own no more.
    """

    def __init__(self, assistant: Assistant) -> None:
        self._token = assistant.admin_token
        self._store = assistant.store
        self._access = assistant.access
        self._public_url = assistant.settings.public_url

    async def sign_in(self, given: str, request: Request, response: Response) -> bool:
        """Begin a session if this is the token; wrong ones are slowed as everywhere."""
        if not await self._token.accepts(given):
            return False
        await self._begin(request, response)
        return True

    async def enter(self, code: str, request: Request, response: Response) -> bool:
        """Begin a session with the code of a link, which is used up by that."""
        now = time.time()

        def use(conn: Connection) -> str | None:
            person = ownership.use_link(conn, code, now)
            return person if person is not None and self._is_owner(conn, person) else None

        person = await self._store.tx(use)
        if person is None:
            await self._token.accepts(code)  # is slowed as a wrong token
            return False
        await self._begin(request, response, person)
        return True

    async def _begin(self, request: Request, response: Response, person: str | None = None) -> None:
        secret, now = secrets.token_urlsafe(32), time.time()
        agent = request.headers.get("user-agent", "")[:AGENT_CHARACTERS]
        id, token = _hash(secret), _hash(self._token.value())

        def write(conn: Connection) -> None:
            row: dict[str, Any] = {"id": id, "token": token, "agent": agent, "person_id": person}
            insert(conn, "console_sessions", **row, created_at=now, expires_at=now + SESSION_SECONDS)
            audit.record(conn, f"console:{id[:8]}", "sign-in", person or "", now)

        await self._store.tx(write)
        response.set_cookie(
            _COOKIE,
            secret,
            max_age=SESSION_SECONDS,
            path="/console",
            httponly=True,
            samesite="strict",
            secure=self._is_https(request),
        )

    def _is_https(self, request: Request) -> bool:
        """Return True if a browser came over https: by a proxy's word, or because PUBLIC_URL says so."""
        protocols = request.headers.get("x-forwarded-proto", request.url.scheme)
        public, host = urlsplit(self._public_url), request.headers.get("host", "")
        return protocols.partition(",")[0].strip().lower() == "https" or (
            public.scheme == "https" and public.netloc.lower() == host.lower()
        )

    async def end(self, session: str) -> None:
        """End a session, this browser's or another one's."""

        def write(conn: Connection) -> None:
            conn.execute("DELETE FROM console_sessions WHERE id = ?", (session,))

        await self._store.tx(write)

    async def find(self, request: Request) -> Session | None:
        """Return the session of a request, None if there is none.

        A bearer token may read pages, but send no form.
        """
        secret = request.cookies.get(_COOKIE, "")
        found = next((one for one in await self.all() if same_token(_hash(secret), one.id)), None)
        if found is None:
            return Session("", "") if await self._token.opens(request) else None
        csrf = hmac.new(self._token.value().encode(), secret.encode(), sha256).hexdigest()
        return replace(found, csrf=csrf)

    async def all(self) -> list[Session]:
        """Return the sessions that are open, the newest first, without what their forms carry."""
        token, now = _hash(self._token.value()), time.time()

        def read(conn: Connection) -> list[Session]:
            rows = conn.execute(
                "SELECT id, agent, created_at, person_id FROM console_sessions"
                " WHERE token = ? AND expires_at > ? ORDER BY created_at DESC",
                (token, now),
            ).fetchall()
            return [
                Session(id, "", agent, at, shown_name(people.shown_as(conn, person)[0]) if person else "")
                for id, agent, at, person in rows
                if person is None or self._is_owner(conn, person)
            ]

        return await self._store.read(read)

    def _is_owner(self, conn: Connection, person: str) -> bool:
        rules = self._access.access_rules(people.by_id(conn, person).row["realm"])
        return person in people.owners(conn, rules)


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
