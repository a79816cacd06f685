"""FastAPI dependencies: the administrator's token, and requests from this machine."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import orjson
from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.http.limits import bounded_receive
from app.security import AdminToken, is_local

ADMIN_BODY_BYTES = 256 * 1024
_BEARER = HTTPBearer(auto_error=False, description="The administrator's token (`recado token`)")


class Guard:
    """Lets in who holds the administrator's token, or the token that server.json gives to commands."""

    def __init__(self, admin_token: AdminToken) -> None:
        self.admin_token = admin_token
        self.server_token = ""  # set once the server listens

    async def token(
        self, request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
    ) -> None:
        """Answer 401 unless the request carries a token."""
        _require(await self._has_token(request))

    async def local_or_token(self, request: Request) -> None:
        """Answer 401 unless the request comes from this machine or carries a token."""
        _require(is_local(request) or await self._has_token(request))

    def route_class(self) -> type[APIRoute]:
        """Return a route that checks the token before the body, which FastAPI reads before any dependency."""
        guard = self

        class GuardedRoute(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def guarded(request: Request) -> Response:
                    _require(await guard._has_token(request))
                    return await handle(
                        _StrictRequest(request.scope, bounded_receive(request.receive, ADMIN_BODY_BYTES))
                    )

                return guarded

        return GuardedRoute

    async def _has_token(self, request: Request) -> bool:
        return await self.admin_token.opens(request, self.server_token)


class _StrictRequest(Request):
    """A request whose JSON is refused if it holds half a surrogate pair, which cannot be kept."""

    async def json(self) -> Any:
        return orjson.loads(await self.body())


def _require(allowed: bool) -> None:
    if not allowed:
        raise HTTPException(
            401, "send the administrator's token (recado token) as a bearer", {"WWW-Authenticate": "Bearer"}
        )
