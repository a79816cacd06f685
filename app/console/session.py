"""Sign-in to the console: the administrator's token once, then a cookie that only this server can make."""

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from fastapi import Request, Response

from app.security import AdminToken, same_token

SESSION_SECONDS = 30 * 86_400
_COOKIE = "recado_console"


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in; its forms carry `csrf`."""

    csrf: str

    def allows(self, form: Mapping[str, str]) -> bool:
        """Return True for a form of this session's own pages."""
        return same_token(form.get("csrf", ""), self.csrf)


class Sessions:
    """Make and check the cookies. They are signed with the token, so a renewed token ends them all."""

    def __init__(self, token: AdminToken) -> None:
        self._token = token

    async def sign_in(self, given: str, request: Request, response: Response) -> bool:
        """Set the cookie if this is the token; wrong ones are slowed as everywhere."""
        if not await self._token.accepts(given):
            return False
        until, nonce = str(int(time.time()) + SESSION_SECONDS), secrets.token_urlsafe(16)
        response.set_cookie(
            _COOKIE,
            f"{until}.{nonce}.{self._sign('session', until, nonce)}",
            max_age=SESSION_SECONDS,
            path="/console",
            httponly=True,
            samesite="strict",
            secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto")),
        )
        return True

    def sign_out(self, response: Response) -> None:
        response.delete_cookie(_COOKIE, path="/console")

    async def find(self, request: Request) -> Session | None:
        """Return the session of a request, None if there is none.

        A bearer token may read pages, but send no form.
        """
        until, _, rest = request.cookies.get(_COOKIE, "").partition(".")
        nonce, _, signature = rest.partition(".")
        if not same_token(signature, self._sign("session", until, nonce)) or int(until) < time.time():
            return Session("") if await self._token.opens(request) else None
        return Session(self._sign("form", until, nonce))

    def _sign(self, *parts: str) -> str:
        return hmac.new(self._token.value().encode(), repr(parts).encode(), sha256).hexdigest()
