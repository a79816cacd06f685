"""The pages of people: roles, invitations, and all that is kept of one."""

import re
import time
from math import ceil
from typing import Any, Literal

import orjson
import segno
from fastapi import Request, Response
from markupsafe import Markup

from app.channels.whatsapp.channel import invitation_link
from app.console.site import HEADERS, Fields, PageNumber, Site, Values, Words, back
from app.errors import RecadoError
from app.i18n import lazy
from app.store import journal, limits, ownership, people, personal_data, skill_data, turn_state
from app.store.database import Connection
from app.store.statistics import day_of
from app.store.turn_state import summary_of

PEOPLE_ON_A_PAGE = 100
MOST_USES, MOST_HOURS = 10_000, 24 * 366
HERE = "/console/people"


def add_people(site: Site) -> None:
    """Add the pages of people."""
    router, assistant, settings = site.router, site.assistant, site.settings
    realm = assistant.realm
    rules = assistant.access.access_rules(realm)

    @site.page(HERE, "people.html")
    async def everybody(request: Request, words: Words = "", page: PageNumber = 1) -> Values:
        """Return people with their roles, those whom a search finds in a name, number or user id."""
        now = time.time()
        listed, invited = await site.store.read(
            lambda conn: (people.listing(conn), ownership.invitations(conn, now))
        )
        found = [
            line
            for line in listed
            if line.realm == realm and words.lower() in " ".join((line.name, *line.names)).lower()
        ]
        page = min(page, max(ceil(len(found) / PEOPLE_ON_A_PAGE), 1))
        last = page * PEOPLE_ON_A_PAGE
        lines = [
            (line, people.role_of(rules, line.role, line.access, line.names) if line.id else "turned away")
            for line in found[last - PEOPLE_ON_A_PAGE : last]
        ]
        return {
            "lines": lines,
            "words": words,
            "page": page,
            "is_last": len(found) <= last,
            "invited": invited,
            "may_invite": settings.access != "listed",
        }

    @site.page(f"{HERE}/{{id}}", "person.html")
    async def person(request: Request, id: str) -> Values:
        def rows(conn: Connection) -> Values:
            _known(conn, id)
            known, today = people.by_id(conn, id), day_of(time.time())
            where = people.conversations_with(conn, id)
            return {
                "person": people.person_of(known, rules),
                "names": known.names,
                "row": known.row,
                "conversations": where,
                "facts": skill_data.facts(conn, id),
                "summary": [
                    line for one in where for part in summary_of(conn, one.id).values() for line in part
                ],
                "tokens": journal.tokens_used(conn, id, today),
                "answers": limits.answers_to(conn, id, time.time())["day"],
                "settings": settings,
            }

        return await site.store.read(rows)

    @router.get(f"{HERE}/{{id}}/export")
    async def export(id: str) -> Response:
        def rows(conn: Connection) -> Any:
            who = _known(conn, id)
            return {"names": who.names, "realm": who.realm, **personal_data.export(conn, who)}

        text = orjson.dumps(await site.store.read(rows), option=orjson.OPT_INDENT_2)
        named = HEADERS | {"Content-Disposition": f'attachment; filename="{id}.json"'}
        return Response(text, media_type="application/json", headers=named)

    @router.post(f"{HERE}/invite")
    async def invite(request: Request, form: Fields) -> Response:
        """Make an invitation, and show its code once."""
        role: Literal["owner", "member"] = "owner" if form.get("role") == "owner" else "member"
        uses, hours = form.get("uses", "1").strip(), form.get("hours", "48").strip()
        for name, text, most in (("uses", uses, MOST_USES), ("hours", hours, MOST_HOURS)):
            if not re.fullmatch(r"[1-9]\d{0,9}", text, re.ASCII) or int(text) > most:
                raise RecadoError(lazy("write a whole number from 1 to {n}", n=most), field=name)
        until = time.time() + int(hours) * 3600
        code = await site.store.tx(lambda conn: ownership.invite(conn, role, int(uses), until))
        link = await invitation_link(settings, code)
        qr_code = segno.make(link).svg_inline(scale=5, light="#fff") if link else ""
        values: dict[str, Any] = {"link": link, "picture": Markup(qr_code)}  # noqa: S704
        return site.render(request, "invited.html", code=code, until=until, **values)

    @router.post(f"{HERE}/withdraw")
    async def withdraw(form: Fields) -> Response:
        await site.store.tx(lambda conn: ownership.withdraw_invitation(conn, form.get("invitation", "")))
        return back(HERE)

    @router.post(f"{HERE}/{{id}}/limits")
    async def limit(request: Request, form: Fields, id: str) -> Response:
        """Keep what a person may have in a day; an empty field is what the settings say."""
        request.state.subject = id
        given = {name: form.get(name, "").strip() for name in ("answers", "tokens")}
        for name, text in given.items():
            if not re.fullmatch(r"\d{0,9}", text, re.ASCII):
                raise RecadoError(lazy("write a whole number, 0 for no limit, or nothing"), field=name)
        answers, tokens = (int(one) if one else None for one in given.values())

        def write(conn: Connection) -> None:
            _known(conn, id)
            limits.set_daily(conn, id, answers, tokens)

        await site.store.tx(write, then=lambda _: assistant.look_again.set())
        return back(f"{HERE}/{id}")

    @router.post(f"{HERE}/{{id}}/forget")
    async def forget(request: Request, form: Fields, id: str) -> Response:
        """Forget a fact about a person, or a line of the summary of their conversation."""
        request.state.subject = id
        kind, _, number = form.get("what", "").partition(":")
        if not re.fullmatch(r"\d{1,9}", number, re.ASCII):
            raise RecadoError(lazy("this is nothing that is remembered"))

        def write(conn: Connection) -> None:
            if kind == "fact":
                skill_data.forget_fact(conn, id, int(number))
            elif where := people.conversations_with(conn, id):
                turn_state.drop_summary_line(conn, where[0].id, int(number))

        await site.store.tx(write)
        return back(f"{HERE}/{id}")

    @router.post(f"{HERE}/{{id}}/erase")
    async def erase(request: Request, form: Fields, id: str) -> Response:
        request.state.subject = id
        if not form.get("sure"):
            raise RecadoError(lazy("mark that you are sure: it cannot be undone"), field="sure")
        await site.erasure.erase(realm, id)
        return back(HERE)

    @router.post(f"{HERE}/{{action}}")
    async def change(request: Request, form: Fields, action: Literal["allow", "block", "owner"]) -> Response:
        request.state.subject = await assistant.change_access(action, form.get("who", ""))
        return back(HERE)


def _known(conn: Connection, id: str) -> people.PersonLine:
    """Return a person by our own id alone. Raises RecadoError."""
    found = personal_data.find(conn, "whatsapp", id)
    if found.id != id:
        raise RecadoError(lazy("nobody is known by this id"))
    return found
