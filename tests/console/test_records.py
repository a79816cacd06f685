"""Turns, knowledge, schedules, people, the log and the audit in the console."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.console.test_pages import Browser
from tests.databases import of_sqlite
from tests.tides import obeys, say
from tests.world import wait_for

CRAFTED = "<script>alert(1)</script>"


def test_what_was_not_known_is_answered_from_the_console(make_world: Any, model: Any) -> None:
    server, graph = make_world(model=model(obeys), ACCESS="everyone", ALLOWED_PHONE_NUMBERS="")
    browser, here = Browser(server), "/console/knowledge"
    secret = browser.csrf(here)
    say(graph, "p1", "search_knowledge", question="are you there at night?")
    assert "UNKNOWN_YET" in graph.reply("p1")
    wait_for(lambda: "at night?" in browser.page(here), "the question that came before all files")
    file = {"file": ("<b>prices</b>.md", b"# Cleaning\n\nA cleaning costs 40.\n")}
    kept = browser.http.post(f"{here}/add", data={"csrf": secret}, files=file, follow_redirects=True)
    assert "<b>prices" not in kept.text
    assert "1 passage" in kept.text
    say(graph, "p1", "search_knowledge", question="do you open on Saturday?")
    assert "UNKNOWN" in graph.reply("p1", 2)
    wait_for(lambda: "do you open on Saturday?" in browser.page(here), "the question")
    for row in server.rows("SELECT text FROM messages WHERE direction = 'in'"):
        fields = {"asked": row["text"], "question": f"{row['text'][:20]} (edited)"}
        browser.post(here, f"{here}/answer", **fields, answer="On Saturday until two.")
    assert "Nothing in the last two weeks." in browser.page(here)
    found = browser.page(f"{here}?words=saturday")
    assert "On Saturday until two." in found
    assert "!-- asked" not in found
    refused = browser.http.post(f"{here}/answer", data={"csrf": secret}, headers={"accept-language": "pt-BR"})
    assert "escreva uma pergunta e a resposta" in refused.text
    answers = [{"csrf": secret, "question": f"question {n}", "answer": f"answer {n}"} for n in range(6)]
    with ThreadPoolExecutor(len(answers)) as pool:
        list(pool.map(lambda one: browser.http.post(f"{here}/answer", data=one), answers))
    kept = (server.folder / "knowledge" / "answers.md").read_text()
    assert all(f"answer {n}" in kept for n in range(6))


def test_the_chain_of_the_audit_outlives_a_person(make_world: Any) -> None:
    server, graph = make_world(ACCESS="code", crowd=3)
    browser = Browser(server)
    graph.ask("p1", "remember that my cat is called Mimi")
    graph.ask("p1", "remind me tomorrow at 9 to feed the cat")
    [row] = server.rows("SELECT person_id FROM aliases WHERE value = '12125550001'")
    person = f"/console/people/{row['person_id']}"
    assert "Mimi" in browser.page(person)
    assert "Mimi" in browser.page(f"{person}/export")
    assert "feed the cat" in browser.page("/console/schedules")
    [schedule] = server.rows("SELECT id FROM schedules")
    gone = browser.post("/console/schedules", "/console/schedules/cancel", schedule=schedule["id"])
    assert "Nothing is planned." in gone
    invited = browser.post(person, "/console/people/invite")
    code = re.search(r"<code>(\w{4}-\w{4}-\w{4})</code>", invited)
    assert code is not None
    assert re.search(rf'href="https://wa.me/\d+\?text={code[1]}"', invited)
    assert "<svg" in invited
    assert "1 use left" in browser.page("/console/people")
    browser.post(person, f"{person}/forget", what="fact:1")
    assert "Mimi" not in browser.page(person)
    assert browser.send(person, f"{person}/erase") == 400
    browser.post(person, f"{person}/erase", sure="1")
    audit = browser.page("/console/audit")
    assert f"{person.removeprefix('/console/')}/erase" in audit
    assert "12125550001" not in audit
    assert "The audit is whole" in server.recado("audit", "verify")


@of_sqlite
@pytest.mark.slow
@pytest.mark.both
def test_a_change_of_the_audit_shows(make_world: Any) -> None:
    server, _ = make_world(ACCESS="code", crowd=1)
    browser = Browser(server)
    for _ in range(2):
        browser.post("/console/people", "/console/people/invite")
    assert "The chain is whole: 3 rows." in browser.post("/console/audit", "/console/audit/check")
    head = re.search(r"\d+:[0-9a-f]{64}", server.recado("audit", "verify"))
    assert head is not None
    assert "The audit is whole" in server.recado("audit", "verify", "--head", head[0])
    server.stop()
    copy = shutil.copy(server.folder / "recado.db", server.folder / "whole.db")
    server.change("DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)")
    assert "The audit is whole" in server.recado("audit", "verify")
    assert "the newest were taken out" in server.recado("audit", "verify", "--head", head[0], fails=True)
    shutil.copy(copy, server.folder / "recado.db")
    server.start()
    assert head[0] in server.log
    server.stop()
    server.change("UPDATE audit SET action = 'nothing' WHERE seq = 2")
    assert "row number 2 was changed" in server.recado("audit", "verify", fails=True)


def test_a_session_is_shut_out_by_other_sites_and_bounded_in_its_forms(offline_town: Any) -> None:
    server = offline_town.server
    browser = Browser(server)
    secret = browser.csrf("/console/sessions")
    form = {"csrf": secret, "who": "12125550009"}
    crossed = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    assert browser.http.post("/console/people/block", data=form, headers=crossed).status_code == 403
    of_one = {"csrf": secret, "what": "fact:" + "9" * 5000}
    assert browser.http.post("/console/people/x/forget", data=of_one).status_code == 400
    other = Browser(server)
    assert other.http.post("/console/people/block", data=form).status_code == 403
    large = browser.http.post("/console/people/block", data={**form, "x": "x" * 300_000})
    assert large.status_code == 413
    numbers = {"/console/media/": 400, "/console/audit?page=": 200, "/console/schedules?page=": 200}
    for path, status in numbers.items():
        assert browser.http.get(path + "9" * 30).status_code == status
    policy = browser.http.get("/console").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert CRAFTED not in browser.http.get(f"/console/log?words={CRAFTED}").text
    assert CRAFTED not in browser.http.get(f"/console/conversations?words={CRAFTED}").text


def test_a_sign_in_is_small_of_this_site_and_its_cookie_stays_on_https(offline_town: Any) -> None:
    server = offline_town.server
    form = {"token": (server.folder / "admin_token").read_text().strip()}
    assert server.http.post("/console/sign-in", data=form, files={"x": b"x" * 5000}).status_code == 413
    crossed = {"Sec-Fetch-Site": "cross-site"}
    assert server.http.post("/console/sign-in", data=form, headers=crossed).status_code == 403
    for protocol, is_secure in (("https, http", True), ("HTTPS", True), ("http", False)):
        signed_in = server.http.post("/console/sign-in", data=form, headers={"X-Forwarded-Proto": protocol})
        assert ("Secure" in signed_in.headers["set-cookie"]) is is_secure


def test_a_turn_shows_its_steps_and_runs_again_without_an_effect(offline_town: Any) -> None:
    server, graph = offline_town.server, offline_town.graph
    person = offline_town.newcomer()
    graph.ask(person, "note: buy <i>bread</i>")
    browser = Browser(server)
    [turn] = server.rows(
        "SELECT t.id FROM turns t JOIN messages m ON m.turn_id = t.id WHERE m.text LIKE '%bread%' LIMIT 1"
    )
    where = f"/console/turns/{turn['id']}"
    page = browser.page(where)
    steps = re.findall(r'<details class="(\w+)">', page)
    assert steps[:2] == ["wait", "route"]
    assert steps.count("model") == 2
    assert {"tool", "send"} <= set(steps)
    assert "Why each tool was offered" in page
    assert "best of a chosen category" in page
    assert "&lt;i&gt;bread" in page
    assert "<i>bread" not in page
    notes = "SELECT count(*) FROM skill_data WHERE skill = 'notes'"
    rows = f"SELECT (SELECT count(*) FROM journal), ({notes})"
    before = (*server.rows(rows)[0], len(graph.sends(person)))
    assert "[DRY-RUN] save_note" in browser.post(where, f"{where}/replay")
    assert before == (*server.rows(rows)[0], len(graph.sends(person)))
