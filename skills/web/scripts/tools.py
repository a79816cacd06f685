"""Searches the web and reads pages."""

import re
from typing import Any
from urllib.parse import urlsplit

from app.http.address import FetchError
from app.tools.authoring import Sentences, cut, read_said

from .page import MOST_CHARACTERS, Page, page_of

SAID = read_said(__file__)
SECONDS = 15
MOST_RESULTS = 10
LONGEST_QUERY = 400
LONGEST_EXCERPT = 300
# Characters of a page in one result.
PART = 8000
# Of them in the summary, which a phone shows.
SHOWN = 700
HTML = {"text/html", "application/xhtml+xml"}
PLAIN = re.compile(r"text/[\w.+-]+|application/(?:[\w.+-]+\+)?(?:json|xml|yaml|x-yaml)")
# Of a failed request, those that have a sentence of their own.
FETCH_CODES = frozenset(
    {"BAD_ADDRESS", "NOT_PUBLIC", "NO_SUCH_HOST", "BAD_CERTIFICATE", "BAD_REDIRECT", "TOO_LARGE", "TIMED_OUT"}
)
# By status, what a search engine refuses for.
REFUSALS = {401: "SEARCH_REFUSED", 403: "SEARCH_REFUSED", 429: "UPSTREAM_RATE_LIMIT"}
AWAY = "UPSTREAM_ERROR"


def search_web(query: str, count: int = 5, context=None) -> dict:
    """Searches the web for pages.

    Args:
        query: Few words that say what is looked for.
        count: How many results, 10 at most.

    Example: search the web for solar panels
    Ejemplo: busca en internet horarios del museo
    """
    say = Sentences(SAID, context)
    query, address = " ".join(query.split())[:LONGEST_QUERY], context.settings.get("SEARCH_URL", "")
    if not query:
        return say.failed("EMPTY_QUERY")
    if not address:
        is_owner = context.person is not None and context.person.is_owner
        hint = say("hint_for_owners") if is_owner else ""
        return say.failed("NO_SEARCH_SERVICE", code="NOT_SET_UP", hint=hint)
    try:
        came = _searched(address, query, say.language, context)
        found = _results(came.json()) if came.ok else None
    except (FetchError, ValueError):
        return say.failed("SEARCH_AWAY", code=AWAY, host=_host(address))
    if found is None and came.status in REFUSALS:
        return say.failed(REFUSALS[came.status], host=_host(address))
    if found is None:
        return say.failed("SEARCH_AWAY", code=AWAY, host=_host(address))
    found = found[: max(1, min(count, MOST_RESULTS))]
    if not found:
        return {"summary": say("nothing", query=query), "results": []}
    lines = [f"{number}. {_line(one)}" for number, one in enumerate(found, 1)]
    return {"summary": "\n".join([say("found", query=query), *lines]), "results": found}


def fetch_page(url: str, part: int = 1, context=None) -> dict:
    """Reads the text of a web page.

    Args:
        url: Its whole address.
        part: Which part of a long page.

    Example: what does https://example.org say
    Ejemplo: lee https://example.org
    """
    say = Sentences(SAID, context)
    address = url.strip().strip("<>")
    if "://" not in address:
        address = f"https://{address}"
    try:
        headers = {"Accept-Language": say.language}
        came = context.http.get(address, headers=headers, seconds=SECONDS, public=True)
    except FetchError as error:
        if error.code in FETCH_CODES:
            return say.failed(error.code, host=_host(address))
        return say.failed("NO_PAGE", code=AWAY, host=_host(address))
    if not came.ok:
        return say.failed("PAGE_REFUSED", host=_host(came.url), status=came.status)
    page = _page(came)
    if page is None:
        return say.failed("NOT_TEXT", kind=came.content_type[:60] or "?")
    if not page.text:
        return say.failed("NO_TEXT", host=_host(came.url))
    parts = -(-len(page.text) // PART)
    if not 1 <= part <= parts:
        return say.failed("BAD_PART", parts=parts)
    shown = page.text[(part - 1) * PART : part * PART]
    return {
        "summary": _summary(say, page.title, shown, came.url, part, parts),
        "title": page.title,
        "url": came.url,
        "text": shown,
        "links": [{"text": name, "url": target} for name, target in page.links] if part == 1 else [],
        "part": part,
        "parts": parts,
    }


def _searched(address: str, query: str, language: str, context: Any) -> Any:
    """Search with SearXNG, or Brave where the address is its own. Raises FetchError."""
    base = address.rstrip("/")
    if base.endswith("/web/search"):
        headers = {"X-Subscription-Token": context.settings.get("SEARCH_KEY", "")}
        params = {"q": query, "count": MOST_RESULTS, "search_lang": "pt-br" if language == "pt" else language}
        return context.http.get(base, params=params, headers=headers, seconds=SECONDS)
    base = base if base.endswith("/search") else f"{base}/search"
    return context.http.get(
        base, params={"q": query, "format": "json", "language": language}, seconds=SECONDS
    )


def _page(came: Any) -> Page | None:
    """Return the fetched page, None where it is no text."""
    kind = came.content_type or ("text/html" if came.body.lstrip()[:1] == b"<" else "text/plain")
    if b"\0" in came.body[:1024]:
        return None
    if kind in HTML:
        return page_of(came.text, came.url)
    return Page("", came.text.strip()[:MOST_CHARACTERS]) if PLAIN.fullmatch(kind) else None


def _results(answer: Any) -> list[dict[str, str]] | None:
    """Return the results with a web address, each once; None where the answer is no list of results."""
    answer = answer if isinstance(answer, dict) else {}
    web = answer.get("web")
    listed = answer.get("results", web.get("results") if isinstance(web, dict) else None)
    if not isinstance(listed, list):
        return [] if answer.get("type") == "search" else None  # Brave's answer without any
    found: dict[str, dict[str, str]] = {}
    for one in listed:
        address = one.get("url") if isinstance(one, dict) else None
        if isinstance(address, str) and address.startswith(("http://", "https://")):
            excerpt = cut(_plain(one.get("content") or one.get("description")), LONGEST_EXCERPT)
            found.setdefault(
                address, {"title": _plain(one.get("title"))[:200], "url": address, "text": excerpt}
            )
    return list(found.values())


def _plain(text: Any) -> str:
    """Remove the marks that engines put around the words that were found."""
    return " ".join(re.sub(r"</?\w+>", "", text if isinstance(text, str) else "").split())


def _line(result: dict[str, str]) -> str:
    words = result["text"]
    short = words if len(words) <= 120 else f"{words[:119].rsplit(' ', 1)[0]}…"
    return "\n".join(
        filter(None, (f"**{result['title']}**" if result["title"] else "", short, result["url"]))
    )


def _summary(say: Sentences, title: str, text: str, url: str, part: int, parts: int) -> str:
    short = text if len(text) <= SHOWN else f"{text[:SHOWN].rsplit(' ', 1)[0]}…"
    is_told = text.split("\n", 1)[0] == f"# {title}"
    heading = f"**{title}**" if title and not is_told else ""
    which = say("part", part=part, parts=parts) if parts > 1 else ""
    return "\n".join(filter(None, (heading, short, " ".join(filter(None, (url, which))))))


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or address[:60]
    except ValueError:
        return address[:60]
