"""Access to the simulator: by a browser on this machine that opened the printed link."""

import secrets
from http.cookies import CookieError, SimpleCookie

from fastapi import Request, Response

from app.security import is_local, same_token

_COOKIE = "recado_simulator"


class SimulatorAccess:
    """Checks that a request is from this machine, and that it brings the key of the printed link.

    The key is random at each start. `published`: requests through a published container port count as local.
    """

    def __init__(self, *, published: bool = False) -> None:
        self.key = secrets.token_urlsafe(24)
        self._published = published

    def is_local(self, request: Request) -> bool:
        return is_local(request, published=self._published)

    def has_key(self, request: Request) -> bool:
        """Return True if the cookie that the link set is there. Browsers send cookies of every port."""
        try:
            cookies = SimpleCookie(request.headers.get("cookie", ""))
        except CookieError:
            return False
        return _COOKIE in cookies and same_token(cookies[_COOKIE].value, self.key)

    def opens(self, given: str) -> bool:
        """Return True if this is the key of the link."""
        return same_token(given, self.key)

    def remember(self, response: Response) -> None:
        """Set the cookie, for this browser and until it is closed."""
        response.set_cookie(_COOKIE, self.key, path="/simulator", httponly=True, samesite="strict")
