"""Requests to Meta's Graph API, read tolerantly."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import httpx2

from app.channels.whatsapp.errors import parse_object
from app.messages import JSON

ANSWER_SECONDS = 10.0


_BUSY = frozenset({4, 17, 32, 613, 80007, 130429})
_REFUSED_TOKEN = frozenset({102, 190})


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the Graph API; `status` 0 means that none came, and `fault` says why."""

    status: int
    data: dict[str, JSON] = field(default_factory=dict)
    fault: str = ""
    is_address_wrong: bool = False
    clock_ahead: float = 0.0
    """By how many seconds this machine's clock is ahead of the server's."""

    @property
    def is_good(self) -> bool:
        return self.status == 200 and not self.error

    @property
    def error(self) -> dict[str, JSON]:
        error = self.data.get("error")
        return error if isinstance(error, dict) else {}

    @property
    def code(self) -> int:
        """Return Meta's error code, -1 if there is none."""
        code = self.error.get("code")
        return code if isinstance(code, int) else -1

    @property
    def said(self) -> str:
        return self.fault or str(self.error.get("message") or f"answer {self.status}")[:300]

    @property
    def is_busy(self) -> bool:
        return self.code in _BUSY or self.status == 429 or self.status >= 500

    @property
    def refuses_token(self) -> bool:
        return self.code in _REFUSED_TOKEN or (self.status == 401 and self.code == -1)

    @property
    def lacks_permission(self) -> bool:
        return self.code in (3, 10) or 200 <= self.code <= 299

    def rows(self) -> Iterator[dict[str, JSON]]:
        """Return the objects of the list under `data`."""
        found = self.data.get("data")
        yield from (row for row in found if isinstance(row, dict)) if isinstance(found, list) else ()


class GraphAPI:
    """The Graph API at one address; redirects are not followed, so that a token goes nowhere else."""

    def __init__(self, api_url: str) -> None:
        self.url = api_url
        self._http = httpx2.Client(timeout=ANSWER_SECONDS, trust_env=False)

    def __enter__(self) -> "GraphAPI":
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def get(self, path: str, token: str, parameters: Mapping[str, str] | None = None) -> Answer:
        """Send one GET. Never raise for what the other side does."""
        headers = {"Authorization": f"Bearer {token}"}
        try:
            response = self._http.get(f"{self.url}/{path}", params=dict(parameters or {}), headers=headers)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            return Answer(0, fault=str(error), is_address_wrong=True)
        except httpx2.HTTPError as error:
            return Answer(0, fault=str(error) or type(error).__name__)
        ahead = _clock_ahead(response.headers.get("date", ""))
        return Answer(response.status_code, parse_object(response.content), clock_ahead=ahead)


def _clock_ahead(date: str) -> float:
    try:
        return time.time() - parsedate_to_datetime(date).timestamp()
    except ValueError:
        return 0.0
