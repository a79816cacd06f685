"""The frame of the console's pages: sessions, forms, templates, parts that change by themselves.

One signs in with the administrator's token once; then a cookie stands for a session that can be ended.
"""

import asyncio
import hmac
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, wraps
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, StreamingResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from pydantic import AfterValidator
from starlette.datastructures import UploadFile
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from app.assistant import Assistant
from app.channels.access import shown_address, shown_name
from app.erasure import Erasure
from app.errors import RecadoError
from app.http.limits import bounded_receive
from app.i18n import LANGUAGES, LazyText, lazy, program, said, say, say_plural
from app.ops import Finding
from app.schedule.wording import local_text
from app.security import page_headers, same_token
from app.settings import Settings
from app.store import audit, ownership, people
from app.store.database import Connection, delete, insert
from app.text import visible, visible_lines

SESSION_SECONDS = 30 * 86_400
AGENT_CHARACTERS = 200
FORM_BYTES = 256 * 1024
SIGN_IN_BYTES = 4096
UPLOAD_BYTES = 20 * 1024 * 1024
MOST_FIELDS = 200
LIVE_SECONDS = 1.0
MOST_STREAMS = 50
STATIC = {path.name: path for path in Path(__file__).with_name("static").iterdir()}
_ADDRESSES = {  # they change with the content
    name: f"/console/static/{name}?v={sha256(path.read_bytes()).hexdigest()[:12]}"
    for name, path in STATIC.items()
}
HEADERS = page_headers("img-src 'self'; form-action 'self'")

_COOKIE = "recado_console"
# forms that change nothing, or that the audit learns of elsewhere
_NOT_AUDITED = (
    *("/console/check", "/console/audit/check", "/console/setup/check", "/console/setup/ollama"),
    *("/console/turns/{id}/replay", "/console/decisions/answer"),
)

# for htmx: the whole page takes the place of the one that sent a form
_WHOLE = {"HX-Retarget": "#main", "HX-Reselect": "#main"}
_NO_PAGE = lazy("this is none of the console's pages")

Values = dict[str, Any]  # of a page, for its template
Read = Callable[..., Awaitable[Values]]
# of a query: the number of a page of a list, and words that are searched for
PageNumber = Annotated[int, AfterValidator(lambda page: min(max(page, 1), 10**9))]
Words = Annotated[str, AfterValidator(lambda words: " ".join(words.split())[:200])]

# Runs the doctor's checks of these names, or all checks if there are none. Blocks.
Examine = Callable[[Settings, tuple[str, ...]], Iterable[Finding]]


class Site:
    """Renders pages, reads forms, and lets in who has a session.

    The pages of a subject are added to `router` by the module of that subject.
    """

    def __init__(self, assistant: Assistant, erasure: Erasure, examine: Examine | None) -> None:
        self.assistant = assistant
        self.erasure = erasure
        self.examine = examine
        self.store = assistant.store
        self.settings = assistant.settings
        self.sessions = Sessions(assistant)
        self.zone = ZoneInfo(assistant.settings.default_timezone)
        self.router = APIRouter(include_in_schema=False, route_class=_route_class(self))
        self._closing = asyncio.Event()
        self._streams = asyncio.Semaphore(MOST_STREAMS)
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")), autoescape=True, trim_blocks=True
        )
        self._templates.globals.update(
            say=say,
            say_plural=say_plural,
            program=program,
            shown_name=shown_name,
            shown_address=shown_address,
            static=_ADDRESSES,
        )
        self._templates.filters.update(said=said, visible=visible, visible_lines=visible_lines)

    def render(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a page in the language of the browser, with times of the assistant's own zone."""
        headers = HEADERS | _WHOLE if status >= 400 else HEADERS
        return HTMLResponse(self._text(request, template, values), status, headers)

    def page(self, path: str, template: str, every: float = LIVE_SECONDS) -> Callable[[Read], Read]:
        """Add a page; the function that follows returns the values of its template.

        Where `live/` has a template of the same name, that part is sent again each time that it changed; it
        is read anew `every` so many seconds.
        """
        live = f"live/{template}"
        is_live = live in self._templates.list_templates()

        def add(read: Read) -> Read:
            @self.router.get(path, response_model=None)
            @wraps(read)
            async def show(request: Request, **query: Any) -> Response:
                again = partial(read, request, **query)
                if is_live and "live" in request.query_params:
                    return _Stream(self._streams, self._events(request, live, again, every))
                values = await again()
                if is_live:
                    part = self._text(request, live, values | {"refusal": None})
                    values |= {"live": Markup(part), "live_hash": _sha256(part)}  # noqa: S704
                return self.render(request, template, **values)

            return read

        return add

    async def refuse(self, request: Request, status: int, error: Exception) -> Response:
        """Show why something was not done: on the page of its form, filled in as it was, if there is one."""
        told = error.told if isinstance(error, RecadoError) else getattr(error, "detail", "")
        if not isinstance(error, RecadoError) and not isinstance(told, LazyText):  # of the framework
            told = _NO_PAGE
        text, form = said(told, language_of(request)), getattr(request.state, "form", {})
        about = {"field": getattr(error, "field", ""), "action": request.url.path}
        request.state.refusal = about | {"text": text, "form": form}  # the form as it was typed
        shown = await self._show_form_again(request, form.get("page", ""))
        if shown is None:
            return self.render(request, "problem.html", status)
        shown.status_code = status
        return shown

    async def _show_form_again(self, request: Request, address: str) -> HTMLResponse | None:
        """Return the page of a refused form; None if it was sent from none, or the page is gone too."""
        page, _, query = address.partition("?")
        scope = {**request.scope, "method": "GET", "path": page, "query_string": query.encode()}
        for route in self.router.routes:
            match, found = route.matches(scope)
            if match is Match.FULL and isinstance(route, APIRoute):
                with suppress(RecadoError, HTTPException, RequestValidationError):
                    shown = await route.get_route_handler()(Request({**scope, **found}, request.receive))
                    if isinstance(shown, HTMLResponse):
                        shown.headers.update(_WHOLE | {"HX-Replace-Url": quote(address, "/?&=%+")})
                        return shown
        return None

    async def check(self, *parts: str) -> list[Finding]:
        """Return what the doctor finds about these parts, or about every part if none is given."""
        if self.examine is None:
            raise RecadoError(lazy("the checks are not here: run {recado} doctor"))
        return await asyncio.to_thread(lambda examine: list(examine(self.settings, parts)), self.examine)

    async def note(self, request: Request) -> None:
        """Write into the audit what a form did; a page may have said to whom in the request's state."""
        actor = f"console:{request.state.session.id[:8]}"
        action = request.url.path.removeprefix("/console/")
        subject, now = getattr(request.state, "subject", ""), time.time()
        await self.store.tx(lambda conn: audit.record(conn, actor, action, subject, now))

    def close(self) -> None:
        """End the open streams, for which the server would wait."""
        self._closing.set()

    def _text(self, request: Request, template: str, values: Values) -> str:
        language, session = language_of(request), getattr(request.state, "session", None)
        today = datetime.now(self.zone).date()
        shown = {
            "language": language,
            "csrf": session.csrf if session is not None else "",
            "here": request.url.path,
            "query": {name: value for name, value in request.query_params.items() if name != "live"},
            "when": lambda at: local_text(datetime.fromtimestamp(at, self.zone), today, language),
            "refusal": getattr(request.state, "refusal", None),
        }
        return self._templates.get_template(template).render(shown | values)

    async def _events(
        self, request: Request, template: str, read: Callable[[], Awaitable[Values]], every: float
    ) -> AsyncIterator[str]:
        last = request.query_params["live"]
        while not self._closing.is_set() and await self.sessions.find(request) is not None:
            with suppress(RecadoError):  # what is shown is gone, or the database is busy
                part = self._text(request, template, await read())
                if _sha256(part) != last:
                    last = _sha256(part)
                    yield "".join(f"data: {line}\n" for line in part.splitlines()) + "\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), every)


class _Stream(StreamingResponse):
    """The events of a page, refused with 503 while too many pages are open."""

    def __init__(self, places: asyncio.Semaphore, events: AsyncIterator[str]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=HEADERS)
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._places.locked():
            await Response("too many pages of the console are open", 503, HEADERS)(scope, receive, send)
            return
        async with self._places:
            await super().__call__(scope, receive, send)


def back(path: str) -> RedirectResponse:
    """Return to a page after its form was carried out."""
    return RedirectResponse(path, 303, HEADERS)


def language_of(request: Request) -> str:
    """Return the first of the browser's languages that is one of ours."""
    wanted = request.headers.get("accept-language", "").lower().split(",")
    return next((one.strip()[:2] for one in wanted if one.strip()[:2] in LANGUAGES), "en")


async def _language(request: Request) -> str:  # on the loop: FastAPI calls a plain function in a thread
    return language_of(request)


async def _fields(request: Request) -> dict[str, str]:
    form: dict[str, str] = request.state.form
    return form


Language = Annotated[str, Depends(_language)]
Fields = Annotated[dict[str, str], Depends(_fields)]  # of a form that was sent


def open_router(site: Site) -> APIRouter:
    """Return the routes that need no session: signing in, and the files of the pages."""
    router = APIRouter(include_in_schema=False)

    @router.get("/console/static/{name}")
    async def static(name: str) -> FileResponse:
        if name not in STATIC:
            raise HTTPException(404, _NO_PAGE)
        headers = HEADERS | {"Cache-Control": "public, max-age=86400"}  # their addresses name the content
        return FileResponse(STATIC[name], headers=headers)

    @router.post("/console/sign-in")
    async def sign_in(request: Request) -> Response:
        form, _ = await _form(request)
        entered = await site.sessions.sign_in(request, form.get("token", "").strip())
        return entered or site.render(request, "sign_in.html", 401, failed=True)

    @router.get("/console/enter")
    async def link(request: Request, code: str = "") -> Response:
        """Show the button of a sign-in link: whoever only looks at it does not use it up."""
        return site.render(request, "enter.html", code=code[:100])

    @router.post("/console/enter")
    async def enter(request: Request) -> Response:
        form, _ = await _form(request)
        entered = await site.sessions.enter(request, form.get("code", ""))
        return entered or site.render(request, "sign_in.html", 401, is_old=True)

    return router


def _route_class(site: Site) -> type[APIRoute]:
    """Return a route that wants a session, and of a form also the secret that its page put in."""

    class ConsoleRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()
            is_audited = self.path not in _NOT_AUDITED

            async def answer(request: Request) -> Response:
                request.state.session = session = await site.sessions.find(request)
                if session is not None and request.method == "POST":
                    request.state.form, request.state.files = await _form(request, is_signed_in=True)
                    session = await site.sessions.find(request)  # it may have been ended meanwhile
                if session is None:
                    return site.render(request, "sign_in.html", 401)
                if request.method == "POST":
                    _check_secret(session.csrf, request)
                response = await handle(request)
                if request.method == "POST" and is_audited:
                    await site.note(request)
                return response

            return answer

    return ConsoleRoute


def _check_secret(csrf: str, request: Request) -> None:
    """Raise HTTPException for a form that no page of this session made."""
    if not same_token(request.state.form.get("csrf", ""), csrf):
        if request.headers.get("sec-fetch-site") != "same-origin":  # only our own page may fill a form in
            request.state.form = {}
        raise HTTPException(403, lazy("this form is of another sign-in: look at it, and send it again"))


async def _form(
    request: Request, *, is_signed_in: bool = False
) -> tuple[dict[str, str], dict[str, UploadFile]]:
    """Return the fields and the files of a form; without a session it may only be small, and has no files.

    Raises HTTPException for one that is too large, or was sent by a page of another site.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, lazy("this form was sent by a page of another site"))
    may_upload = is_signed_in and request.headers.get("content-type", "").startswith("multipart/form-data")
    most = FORM_BYTES if is_signed_in else SIGN_IN_BYTES
    if may_upload:
        most = UPLOAD_BYTES
    limited = Request(request.scope, bounded_receive(request.receive, most))
    if not may_upload:
        await limited.body()  # one that is too large is refused as such, whatever else is wrong with it
    given = await limited.form(max_files=int(may_upload), max_fields=MOST_FIELDS, max_part_size=FORM_BYTES)
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    return texts, {name: value for name, value in given.items() if isinstance(value, UploadFile)}


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in; its forms carry `csrf`.

    `owner` is the name of the owner whose link signed it in, "" for the administrator's token.
    """

    id: str
    csrf: str
    agent: str = ""
    created_at: float = 0.0
    owner: str = ""


class Sessions:
    """Begin, find and end sessions.

    Each is bound to the administrator's token: a renewed one ends them all. One that began with an owner's
    link ends when they own no more.
    """

    def __init__(self, assistant: Assistant) -> None:
        self._token = assistant.admin_token
        self._store = assistant.store
        self._access = assistant.access
        self._public_url = assistant.settings.public_url

    async def sign_in(self, request: Request, given: str) -> Response | None:
        """Begin a session if this is the token, None if it is not; wrong ones are slowed as everywhere."""
        return await self._begin(request) if await self._token.accepts(given) else None

    async def enter(self, request: Request, code: str) -> Response | None:
        """Begin a session with the code of a link, which is used up by that; None if it does not count."""
        now = time.time()

        def use(conn: Connection) -> str | None:
            person = ownership.use_link(conn, code, now)
            return person if person is not None and self._is_owner(conn, person) else None

        person = await self._store.tx(use)
        if person is None:
            await self._token.accepts(code)  # is slowed as a wrong token
            return None
        return await self._begin(request, person)

    async def _begin(self, request: Request, person: str | None = None) -> Response:
        """Return the answer that leads to the first page, with the cookie of a new session."""
        secret, now = secrets.token_urlsafe(32), time.time()
        agent = request.headers.get("user-agent", "")[:AGENT_CHARACTERS]
        id, token = _sha256(secret), _sha256(self._token.value())

        def write(conn: Connection) -> None:
            row: dict[str, Any] = {"id": id, "token": token, "agent": agent, "person_id": person}
            insert(conn, "console_sessions", **row, created_at=now, expires_at=now + SESSION_SECONDS)
            audit.record(conn, f"console:{id[:8]}", "sign-in", person or "", now)

        await self._store.tx(write)
        response = back("/console")
        response.set_cookie(
            _COOKIE,
            secret,
            max_age=SESSION_SECONDS,
            path="/console",
            httponly=True,
            samesite="strict",
            secure=self._is_https(request),
        )
        return response

    def _is_https(self, request: Request) -> bool:
        """Return True if a browser came over https: by a proxy's word, or because PUBLIC_URL says so."""
        protocols = request.headers.get("x-forwarded-proto", request.url.scheme)
        public, host = urlsplit(self._public_url), request.headers.get("host", "")
        return protocols.partition(",")[0].strip().lower() == "https" or (
            public.scheme == "https" and public.netloc.lower() == host.lower()
        )

    async def end(self, session: str) -> None:
        """End a session, this browser's or another one's."""
        await self._store.tx(lambda conn: delete(conn, "console_sessions", "id = ?", session))

    async def find(self, request: Request) -> Session | None:
        """Return the session of a request, None if there is none.

        A bearer token may read pages, but send no form.
        """
        secret = request.cookies.get(_COOKIE, "")
        found = next((one for one in await self.all() if same_token(_sha256(secret), one.id)), None)
        if found is None:
            return Session("", "") if await self._token.opens(request) else None
        csrf = hmac.new(self._token.value().encode(), secret.encode(), sha256).hexdigest()
        return replace(found, csrf=csrf)

    async def all(self) -> list[Session]:
        """Return the sessions that are open, the newest first, without what their forms carry."""
        token, now = _sha256(self._token.value()), time.time()

        def read(conn: Connection) -> list[Session]:
            rows = conn.execute(
                "SELECT id, agent, created_at, person_id FROM console_sessions"
                " WHERE token = ? AND expires_at > ? ORDER BY created_at DESC",
                (token, now),
            ).fetchall()
            return [
                Session(id, "", agent, at, shown_name(people.shown_as(conn, person)[0]) if person else "")
                for id, agent, at, person in rows
                if person is None or self._is_owner(conn, person)
            ]

        return await self._store.read(read)

    def _is_owner(self, conn: Connection, person: str) -> bool:
        rules = self._access.access_rules(people.by_id(conn, person).row["realm"])
        return person in people.owners(conn, rules)


def _sha256(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
