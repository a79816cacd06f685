"""Access to the simulator: by a browser on this machine that opened the printed link."""

import secrets

from fastapi import HTTPException, Request, Response

from app.i18n import public_program
from app.security import is_local, same_token

_COOKIE = "recado_simulator"


class SimulatorAccess:
    """Checks that a request is from this machine, and that it brings the key of the printed link.

    The key is random at each start. `published`: requests through a published container port count as local.
    """

    def __init__(self, *, published: bool = False) -> None:
        self.key = secrets.token_urlsafe(24)
        self._published = published

    def require_local(self, request: Request) -> None:
        """Answer 404 to a request from elsewhere."""
        if not is_local(request, published=self._published):
            raise HTTPException(404, "Not Found")

    def require_key(self, request: Request) -> None:
        """Answer 401 to a browser that did not open the link."""
        if not self.has_key(request):
            raise HTTPException(401, f"open the link that the start printed: {public_program()} simulator")

    def has_key(self, request: Request) -> bool:
        """Return True if the cookie that the link set is there."""
        return self.opens(request.cookies.get(_COOKIE, ""))

    def opens(self, given: str) -> bool:
        """Return True if this is the key of the link."""
        return same_token(given, self.key)

    def remember(self, response: Response) -> None:
        """Set the cookie, for this browser and until it is closed."""
        response.set_cookie(_COOKIE, self.key, path="/simulator", httponly=True, samesite="strict")
