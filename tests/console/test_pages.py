"""The owner's pages, as a browser meets them: signing in, answering a customer, roles, costs."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.world import Graph, Server, wait_for, world

CRAFTED = "<script>alert(1)</script>"


class Browser:
    """A signed-in browser without scripts: it reads pages and sends their forms."""

    def __init__(self, server: Server) -> None:
        self.http = server.http
        token = (server.folder / "admin_token").read_text().strip()
        signed_in = self.http.post("/console/sign-in", data={"token": token})
        assert signed_in.status_code == 303

    def page(self, path: str) -> str:
        answer = self.http.get(path)
        assert answer.status_code == 200
        return answer.text

    def send(self, page: str, form: str, **fields: str) -> int:
        """Send a form of a page with its hidden fields."""
        assert f'action="{form}"' in self.page(page)
        return self.http.post(form, data={"csrf": self.csrf(page), **fields}).status_code

    def post(self, page: str, form: str, **fields: str) -> str:
        """Send a form that a page has, follow where it leads, and return what is shown."""
        answer = self.http.post(form, data={"csrf": self.csrf(page), **fields}, follow_redirects=True)
        assert answer.status_code == 200, answer.text
        return answer.text

    def csrf(self, page: str) -> str:
        """Return the secret that the forms of a page send with them."""
        return self.found(page, r'name="csrf" value="(\w+)"')

    def found(self, page: str, pattern: str) -> str:
        """Return what the only group of a pattern matches on a page."""
        found = re.search(pattern, self.page(page))
        assert found is not None, page
        return found[1]

    def conversation(self, words: str) -> str:
        """Return the address of the only conversation that a search finds."""
        listed = self.page(f"/console/conversations?words={words}")
        [found] = re.findall(r"/console/conversations/(\w+)", listed)
        return f"/console/conversations/{found}"


PEOPLE = [
    {"id": name.lower(), "name": name, "phone": f"1212555000{number}", "user_id": f"US.{number}"}
    for number, name in enumerate(("Olga", "Rosa", "Rita", "Ines"))
]
PEOPLE[1]["name"] = CRAFTED


@pytest.fixture(scope="module")
def _standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Graph]]:
    folder, people = tmp_path_factory.mktemp("pages"), {"people": PEOPLE}
    for server, graph in world(folder, crowd=0, graph=people, ACCESS="everyone", ALLOWED_PHONE_NUMBERS=""):
        server.start()
        yield server, graph


@pytest.fixture
def town(_standing: tuple[Server, Graph]) -> tuple[Server, Graph]:
    """A server where nobody is signed in; Olga owns, the others are guests."""
    server, graph = _standing
    server.http.cookies.clear()
    return server, graph


def test_the_administrators_api_is_described_to_who_has_the_token(town: Any) -> None:
    server, _ = town
    address, token = "/openapi.json", (server.folder / "admin_token").read_text().strip()
    assert server.http.get(address, headers={"Authorization": "Bearer wrong"}).status_code == 401
    described = server.http.get(address, headers={"Authorization": f"Bearer {token}"}).json()
    routes = {path: route["post"] for path, route in described["paths"].items() if path.startswith("/admin/")}
    shapes = {
        path: route["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for path, route in routes.items()
    }
    results = {shape: described["components"]["schemas"][shape]["properties"] for shape in shapes.values()}
    assert all(properties.keys() == {"result"} for properties in results.values())
    assert results[shapes["/admin/people/erase"]]["result"]["$ref"].endswith("/ErasedPerson")


def test_without_the_token_there_is_only_the_sign_in_page(town: Any) -> None:
    server, _ = town
    for path in ("/console", "/console/people", "/console/costs", "/console/conversations/x"):
        shown = server.http.get(path, headers={"accept-language": "pt-BR,pt;q=0.9"})
        assert shown.status_code == 401
        assert "O token do administrador" in shown.text
    assert server.http.post("/console/sign-in", data={"token": "wrong"}).status_code == 401
    assert server.http.post("/console/people/owner", data={"who": "12125550009"}).status_code == 401
    browser = Browser(server)
    browser.page("/console/people")
    server.recado("token", "--renew")
    assert server.http.get("/console/people").status_code == 401


def test_a_browser_is_signed_out_from_another_one_for_good(town: Any) -> None:
    server, _ = town
    lost = Browser(server)
    cookie = dict(lost.http.cookies)
    lost.http.cookies.clear()
    browser = Browser(server)
    [session] = set(re.findall(r'name="session" value="(\w+)"', browser.page("/console/sessions"))) - {
        row["id"] for row in server.rows("SELECT id FROM console_sessions ORDER BY created_at DESC LIMIT 1")
    }
    assert browser.send("/console/sessions", "/console/sessions/end", session=session) == 303
    assert "this browser" in browser.page("/console/sessions")
    assert browser.send("/console/sessions", "/console/sessions/end") == 303
    for gone in (cookie, dict(browser.http.cookies)):
        browser.http.cookies.clear()
        browser.http.cookies.update(gone)
        assert server.http.get("/console").status_code == 401


def test_a_form_that_comes_while_its_session_ends_changes_nothing(town: Any) -> None:
    server, graph = town
    graph.ask("rita", "hola")
    browser = Browser(server)
    secret = browser.csrf("/console/people")

    def slow_body() -> Iterator[bytes]:
        yield f"csrf={secret}&who=12125550002&".encode()
        server.recado("token", "--renew")
        yield b"x=1"

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    sent = browser.http.post("/console/people/owner", content=slow_body(), headers=form)
    assert sent.status_code == 401
    assert server.rows("SELECT 1 FROM people WHERE access = 'owner'") == []


def test_an_owner_answers_a_customer_and_gives_the_conversation_back(town: Any) -> None:
    server, graph = town
    graph.ask("rosa", "hello")
    browser = Browser(server)
    where = browser.conversation("hello")
    assert CRAFTED not in browser.page(where)
    assert browser.send(where, f"{where}/reply", text="This is Olga. Come at *five*.") == 303
    assert graph.reply("rosa", 2) == "This is Olga. Come at *five*."
    graph.say("rosa", "what is 6 * 7?")
    wait_for(lambda: "6 * 7" in browser.page(where), "her words in the thread")
    assert "You answer here" in browser.page(where)
    assert browser.send(where, f"{where}/give") == 303
    assert "42" in graph.reply("rosa", 3)
    assert re.findall('<li class="(.*?)"', browser.page(where))[-1] == "assistant"


def test_a_form_of_another_page_changes_nothing_and_an_owners_chat_stays_their_own(town: Any) -> None:
    server, graph = town
    graph.ask("olga", "what do I owe?")
    browser = Browser(server)
    where = browser.conversation("owe")
    assert f"{where}/take" not in browser.page(where)
    for csrf in ("", "0" * 64):
        assert browser.http.post(f"{where}/take", data={"csrf": csrf}).status_code == 403
    assert not server.rows("SELECT 1 FROM handovers")


def test_a_refused_form_comes_back_as_it_was_filled_in_with_the_error_at_its_field(town: Any) -> None:
    browser = Browser(town[0])
    secret = browser.csrf("/console/setup")

    def refused(form: str, page: str, status: int = 400, csrf: str = secret, **fields: str) -> str:
        headers = {"accept-language": "es", "sec-fetch-site": "same-origin"}
        sent = {"csrf": csrf, "page": page, **fields}
        answer = browser.http.post(form, data=sent, headers=headers)
        assert answer.status_code == status
        assert answer.text.count('id="fault"') == 1
        return answer.text

    invited = {"role": "owner", "uses": "7", "hours": CRAFTED}
    shown = refused("/console/people/invite", "/console/people?words=x", **invited)
    assert 'value="7"' in shown
    assert '<option value="owner" selected>' in shown
    assert re.search(r'name="hours"[^>]*autofocus[^>]*aria-describedby="fault"', shown)
    assert '<details class="card" open>' in shown
    assert CRAFTED not in shown
    keys = {"PUBLIC_URL": "ftp://x", "WHATSAPP_ACCESS_TOKEN": "key-of-the-test", "LLM_MODEL": "mine"}
    shown = refused("/console/setup/save", "/console/setup", **keys)
    assert re.search(r'value="ftp://x"[^>]*aria-describedby="fault"', shown)
    assert 'value="mine"' in shown
    assert "key-of-the-test" not in shown
    shown = refused("/console/knowledge/answer", "/console/knowledge", 403, "0" * 64, answer="until two")
    assert ">until two</textarea>" in shown
    assert "de otro inicio de sesión" in shown
    assert "Invita" in refused("/console/people/owner", "/console/people", who="nobody")
    refused("/console/people/owner", "http://[/console/people", who="nobody")
    large = refused("/console/people/owner", "/console/people", 413, who="x" * 300_000)
    assert "como máximo" in large


def test_no_more_than_fifty_pages_change_by_themselves_at_once(town: Any) -> None:
    server, _ = town
    cookies = dict(Browser(server).http.cookies)

    async def look(http: httpx.AsyncClient, until: asyncio.Event) -> int:
        async with http.stream("GET", "/console/log?live=0") as answer:
            if answer.status_code == 200:
                await until.wait()
            return answer.status_code

    async def look_at_once(count: int) -> list[int]:
        limits, until = httpx.Limits(max_connections=None), asyncio.Event()
        async with httpx.AsyncClient(
            base_url=server.url, cookies=cookies, limits=limits, timeout=30, trust_env=False
        ) as http:
            looks = [asyncio.create_task(look(http, until)) for _ in range(count)]
            while sum(one.done() for one in looks) < count - 50:
                await asyncio.sleep(0.05)
            until.set()
            return await asyncio.gather(*looks)

    for _ in range(2):  # their places are free again
        answers = asyncio.run(look_at_once(60))
        assert (answers.count(200), answers.count(503)) == (50, 10)


@pytest.mark.slow
def test_people_are_found_among_many_and_shown_by_the_hundred(make_world: Any) -> None:
    server, graph = make_world(crowd=101, ACCESS="everyone", ALLOWED_PHONE_NUMBERS="")
    for number in range(101):
        graph.say(f"p{number}", "hello")
    browser = Browser(server)
    wait_for(lambda: "page=2" in browser.page("/console/people"), "a second page")
    assert browser.page("/console/people?page=2").count('class="name"') == 1
    found = browser.page("/console/people?words=5550042")
    assert found.count('class="name"') == 1
    assert "page=2" not in found


def test_roles_are_changed_and_costs_are_shown(town: Any) -> None:
    server, graph = town
    graph.ask("ines", "hello")
    browser = Browser(server)
    assert ">guest<" in browser.page("/console/people")
    assert re.search(r"<b>[1-9]\d*</b> messages? came today", browser.page("/console"))
    assert browser.send("/console/people", "/console/people/allow", who="12125550003") == 303
    assert ">member<" in browser.page("/console/people")
    assert browser.send("/console/people", "/console/people/block", who="12125550003") == 303
    graph.say("ines", "are you there?")
    wait_for(lambda: server.rows("SELECT 1 FROM outsiders"), "that she is turned away")
    assert browser.http.post("/console/people/owner", data={"who": "12125550003"}).status_code == 403
    billed = r"bills</dt><dd>\d+</dd>"
    wait_for(lambda: re.search(billed, browser.page("/console/costs")), "the message that was billed")
    assert re.search(billed, browser.page("/console/costs?month=never"))
