"""Sign-in to the console: the administrator's token once, then a cookie of a session that can be ended."""

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fastapi import Request, Response

from app.security import AdminToken, same_token
from app.store import audit, ownership
from app.store.database import Connection, Database, insert

SESSION_SECONDS = 30 * 86_400
AGENT_CHARACTERS = 200
_COOKIE = "recado_console"


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in; its forms carry `csrf`."""

    id: str
    csrf: str
    agent: str = ""
    created_at: float = 0.0

    def allows(self, form: Mapping[str, str]) -> bool:
        """Return True for a form of this session's own pages."""
        return same_token(form.get("csrf", ""), self.csrf)


class Sessions:
    """Begin, find and end sessions. Each is bound to the token it came by: a renewed one ends them all."""

    def __init__(self, token: AdminToken, store: Database) -> None:
        self._token = token
        self._store = store

    async def sign_in(self, given: str, request: Request, response: Response) -> bool:
        """Begin a session if this is the token; wrong ones are slowed as everywhere."""
        if not await self._token.accepts(given):
            return False
        await self._begin(request, response)
        return True

    async def enter(self, code: str, request: Request, response: Response) -> bool:
        """Begin a session with the code of a link, which is used up by that."""
        now = time.time()
        if not await self._store.tx(lambda conn: ownership.use_link(conn, code, now)):
            await self._token.accepts(code)  # is slowed as a wrong token
            return False
        await self._begin(request, response)
        return True

    async def _begin(self, request: Request, response: Response) -> None:
        secret, now = secrets.token_urlsafe(32), time.time()
        agent = request.headers.get("user-agent", "")[:AGENT_CHARACTERS]
        id, token = _hash(secret), _hash(self._token.value())

        def write(conn: Connection) -> None:
            row: dict[str, Any] = {"id": id, "token": token, "agent": agent}
            insert(conn, "console_sessions", **row, created_at=now, expires_at=now + SESSION_SECONDS)
            audit.record(conn, f"console:{id[:8]}", "sign-in", "", now)

        await self._store.tx(write)
        response.set_cookie(
            _COOKIE,
            secret,
            max_age=SESSION_SECONDS,
            path="/console",
            httponly=True,
            samesite="strict",
            secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto")),
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
        return Session(found.id, csrf, found.agent, found.created_at)

    async def all(self) -> list[Session]:
        """Return the sessions that are open, the newest first, without what their forms carry."""
        rows = await self._store.all(
            "SELECT id, agent, created_at FROM console_sessions WHERE token = ? AND expires_at > ?"
            " ORDER BY created_at DESC",
            _hash(self._token.value()),
            time.time(),
        )
        return [Session(row["id"], "", row["agent"], row["created_at"]) for row in rows]


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
