"""Searching and reading pages: a web on this machine, asked through the transport that tools have."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from starlette.responses import Response

from app.http.address import origins
from app.http.transport import THREAD_SECONDS, HttpClient, Transport
from app.tools import ToolContext
from app.tools.tool import InThread
from tests.skills.tables import table
from tests.skills.tools import context, functions
from tests.standins.web import Web

TOOLS = functions("web")


@dataclass
class Here:
    """The tools, and the web they ask: SEARCH_URL is its own address."""

    web: Web
    context: ToolContext

    async def search(self, query: str, language: str = "es", **more: Any) -> Any:
        return await self._call(TOOLS["search_web"], query, language, **more)

    async def fetch(self, path: str, language: str = "es", **more: Any) -> Any:
        url = path if "://" in path else self.web.url + path
        return await self._call(TOOLS["fetch_page"], url, language, **more)

    async def _call(self, tool: Callable[..., Any], what: str, language: str, **more: Any) -> Any:
        mine = replace(self.context, person=context(language).person)
        return await asyncio.to_thread(tool, what, context=mine, **more)


@pytest.fixture(scope="module")
def running() -> Iterator[Web]:
    web = Web()
    yield web
    web.stop()


@pytest.fixture
async def here(running: Web) -> AsyncIterator[Here]:
    running.pages.clear()
    running.asked.clear()
    running.results = []
    transport = Transport(allowed_hosts={("127.0.0.1", running.port)})
    yield Here(running, _context(transport, running.url))
    await transport.close()


def _context(transport: Transport, search: str, **more: str) -> ToolContext:
    http = InThread(HttpClient(transport, trusted=origins([search])), THREAD_SECONDS)
    return replace(context(), http=http, settings={"SEARCH_URL": search, **more})


# Search


async def test_a_search_lists_titles_words_and_addresses(here: Here) -> None:
    here.web.results = [
        here.web.result("/sol", "Paneles <b>solares</b>", "Qué  son\ny cuánto rinden."),
        here.web.result("/sol", "dos veces"),
        here.web.result("/luz", "Luz", "x" * 500),
        {"url": "magnet:?x", "title": "no"},
        "nothing",
    ]
    answer = await here.search(" paneles   solares ")
    assert answer["summary"].splitlines()[:4] == [
        "Encontré para «paneles solares»:",
        "1. **Paneles solares**",
        "Qué son y cuánto rinden.",
        f"{here.web.url}/sol",
    ]
    assert [one["url"] for one in answer["results"]] == [f"{here.web.url}/sol", f"{here.web.url}/luz"]
    assert len(answer["results"][1]["text"]) == 300
    assert here.web.asked == ["/search?q=paneles+solares&format=json&language=es"]


async def test_without_a_search_engine_the_owner_is_told_what_to_set(here: Here) -> None:
    here.context = replace(here.context, settings={})
    error = (await here.search("x"))["error"]
    assert error["code"] == "NOT_SET_UP"
    assert "SEARCH_URL" not in error["hint"]
    owner = replace(here.context, person=replace(context("es").person, role="owner"))
    assert "SEARCH_URL" in TOOLS["search_web"]("x", context=owner)["error"]["hint"]
    assert (await here.search(" "))["error"]["message"] == "Falta qué buscar."


# Pages

ARTICLE = f"""<!doctype html><html><head><title>Pan | El Diario</title>
<meta property="og:title" content="Cómo se hace el pan">
<style>p {{ color: red }}</style><script>alert("<p>no</p>")</script></head>
<body><nav><ul><li><a href="/">Inicio</a></li><li><a href="/cocina">Cocina</a></li></ul></nav>
<article><h1>Cómo se hace el&nbsp;pan</h1><p>Se mezcla <b>harina</b> y agua
con <a href="levadura.html">levadura</a>.</p><ul><li>500 g de harina</li><li><p>sal &amp; agua</p></li></ul>
<table><tr><td>horno</td><td>220 °C</td></tr></table><pre>uno
  dos</pre><p>{"Después se espera. " * 12}</p></article>
<aside>Publicidad</aside><footer>© El Diario <a href="/legal">Aviso legal</a></footer></body></html>"""


async def test_a_page_is_its_title_and_what_is_to_be_read(here: Here) -> None:
    here.web.pages["/pan/"] = ARTICLE
    page = await here.fetch("/pan/")
    assert page["title"] == "Cómo se hace el pan"
    assert page["text"].splitlines()[:7] == [
        *("# Cómo se hace el pan", "Se mezcla harina y agua con levadura.", "- 500 g de harina"),
        *("- sal & agua", "horno | 220 °C", "uno", "  dos"),
    ]
    assert page["text"].splitlines()[-1].startswith("Después se espera.")
    assert page["links"] == [{"text": "levadura", "url": f"{here.web.url}/pan/levadura.html"}]
    assert page["summary"].startswith("# Cómo se hace el pan\nSe mezcla")
    assert page["summary"].endswith(f"{here.web.url}/pan/")


async def test_what_is_read_of_html(here: Here) -> None:
    for html, text in table("web", "what_is_read_of_html"):
        here.web.pages["/x"] = html
        assert (await here.fetch("/x")).get("text", "") == text, html


async def test_a_hostile_page_takes_bounded_time_and_text(here: Here) -> None:
    for html in [
        *("<div>" * 10_000, "<" * 50_000, "<!--" * 12_000, '<a href="' * 5_000),
        *("<p " + "a=1 " * 10_000, "<script>" * 5_000),
    ]:
        here.web.pages["/x"] = html
        assert len(str(await here.fetch("/x"))) < 32 * 1024


async def test_a_long_page_has_parts(here: Here) -> None:
    here.web.pages["/long"] = "".join(f"<p>line {number}</p>" for number in range(3000))
    first = await here.fetch("/long")
    last = await here.fetch("/long", part=first["parts"])
    assert (first["part"], first["parts"] > 3) == (1, True)
    assert f"(parte 1 de {first['parts']})" in first["summary"]
    assert last["text"].endswith("line 2999")
    assert (await here.fetch("/long", part=99))["error"]["code"] == "BAD_PART"


async def test_what_is_not_read_is_refused_in_words(here: Here) -> None:
    for answer, code in [
        (Response(b"%PDF-1.7", media_type="application/pdf"), "NOT_TEXT"),
        (Response(b"a\0b", media_type="text/html"), "NOT_TEXT"),
        (Response("<script>app()</script>", media_type="text/html"), "NO_TEXT"),
        (Response(status_code=404), "PAGE_REFUSED"),
        (Response(b"x" * 3_000_000, media_type="text/html"), "TOO_LARGE"),
        (Response(status_code=302, headers={"location": "http://10.0.0.1/"}), "NOT_PUBLIC"),
        (Response(status_code=302, headers={"location": "/x"}), "BAD_REDIRECT"),
    ]:
        here.web.pages["/x"] = answer
        error = (await here.fetch("/x"))["error"]
        assert error["code"] == code
        assert error["message"].endswith((".", "texto"))
        assert error["hint"]
    for url, code in [("file:///etc/passwd", "BAD_ADDRESS"), ("https://nowhere.invalid/", "NO_SUCH_HOST")]:
        assert (await here.fetch(url))["error"]["code"] == code
