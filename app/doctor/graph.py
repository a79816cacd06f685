"""Requests to Meta's Graph API, read tolerantly."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import httpx2

from app.channels.whatsapp.errors import parse_object
from app.messages import JSON

ANSWER_SECONDS = 10.0

_BUSY = frozenset({4, 17, 32, 613, 80007, 130429})
_REFUSED_TOKEN = frozenset({3, 10, 102, 190, *range(200, 300)})


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the Graph API; `status` 0 means that none came, and `fault` says why."""

    status: int
    data: dict[str, JSON] = field(default_factory=dict)
    fault: str = ""

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
    def is_away(self) -> bool:
        """Return True if another try may succeed."""
        return self.status in (0, 429) or self.status >= 500 or self.code in _BUSY

    @property
    def refuses_token(self) -> bool:
        return self.code in _REFUSED_TOKEN or (self.status == 401 and self.code == -1)

    def rows(self) -> Iterator[dict[str, JSON]]:
        """Return the objects of the list under `data`."""
        yield from objects(self.data.get("data"))


@dataclass(frozen=True, slots=True)
class GraphAPI:
    """The Graph API at one address; redirects are not followed, so that a token goes nowhere else."""

    url: str

    def get(self, path: str, token: str, parameters: Mapping[str, str] | None = None) -> Answer:
        """Send one GET. Never raise for what the other side does."""
        try:
            response = httpx2.get(
                f"{self.url}/{path}",
                params=dict(parameters or {}),
                headers={"Authorization": f"Bearer {token}"},
                timeout=ANSWER_SECONDS,
                trust_env=False,
            )
        except (httpx2.InvalidURL, httpx2.HTTPError) as error:
            return Answer(0, fault=str(error) or type(error).__name__)
        return Answer(response.status_code, parse_object(response.content))


def objects(value: JSON) -> Iterator[dict[str, JSON]]:
    """Yield the objects in what should be a list of them."""
    yield from (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()
