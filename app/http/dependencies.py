"""FastAPI dependencies: the administrator's token, and requests from this machine."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.http.limits import bounded_receive
from app.security import AdminToken, bearer_of, is_local, same_token

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
        _require(self._has_token(request))

    async def local_or_token(self, request: Request) -> None:
        """Answer 401 unless the request comes from this machine or carries a token."""
        _require(is_local(request) or self._has_token(request))

    def route_class(self) -> type[APIRoute]:
        """Return a route that checks the token before the body, which FastAPI reads before any dependency."""
        guard = self

        class GuardedRoute(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def guarded(request: Request) -> Response:
                    _require(guard._has_token(request))
                    return await handle(
                        Request(request.scope, bounded_receive(request.receive, ADMIN_BODY_BYTES))
                    )

                return guarded

        return GuardedRoute

    def _has_token(self, request: Request) -> bool:
        given = bearer_of(request)
        return same_token(given, self.server_token) or same_token(given, self.admin_token.value())


def _require(allowed: bool) -> None:
    if not allowed:
        raise HTTPException(
            401, "send the administrator's token (recado token) as a bearer", {"WWW-Authenticate": "Bearer"}
        )
