"""The pages of conversations: a list to search, a thread, taking over, replying, giving back."""

import asyncio
import time
from typing import Annotated, Literal

from fastapi import HTTPException, Path, Request, Response
from fastapi.responses import FileResponse

from app.channels.whatsapp.formatting import split_message
from app.console.site import HEADERS, Fields, Site, Values, Words, back
from app.errors import RecadoError
from app.i18n import lazy
from app.messages import Outgoing
from app.people import Conversation
from app.store import handovers, outbox, people, threads
from app.store.database import Connection, new_id
from app.store.outbox import Draft

_PICTURES = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG": "image/png", b"RIFF": "image/webp"}


def add_conversations(site: Site) -> None:
    """Add the pages of conversations."""
    router, assistant = site.router, site.assistant
    rules = assistant.access.access_rules(assistant.realm)

    def may_be_taken(conn: Connection, where: Conversation) -> bool:
        is_here = where.channel == assistant.realm and not where.group
        return is_here and where.person_id not in people.owners(conn, rules)

    @site.page("/console/conversations", "conversations.html")
    async def conversations(request: Request, words: Words = "", show: threads.Show = "") -> Values:
        """Return the newest conversations; those that ask for a person come first."""
        known = rules.allowed | rules.owners
        lines = await site.store.read(lambda conn: threads.newest(conn, words, time.time(), show, known))
        return {"lines": lines, "words": words, "show": show}

    @site.page("/console/conversations/{id}", "thread.html")
    async def thread(request: Request, id: str) -> Values:
        def rows(conn: Connection) -> Values:
            where = people.conversation_by_id(conn, id)
            name, who = people.shown_as(conn, where.person_id)
            return {
                "where": where,
                "name": name,
                "who": who,
                "messages": threads.thread(conn, id),
                "is_silent": outbox.is_silent(conn, id, time.time()),
                "may_take": may_be_taken(conn, where),
            }

        return await site.store.read(rows)

    @router.get("/console/media/{message}")
    async def media(message: Annotated[int, Path(ge=0, le=2**63 - 1)]) -> Response:
        """Give out a file of a message that is still kept: a picture to be shown, all else to be saved."""
        path = await site.store.read(lambda conn: threads.media(conn, message))
        file = assistant.media.absolute(path)
        if not path or not file.is_file():
            raise HTTPException(404, lazy("this file is not kept any more"))
        start = (await asyncio.to_thread(file.read_bytes))[:4]
        for beginning, picture in _PICTURES.items():
            if start.startswith(beginning):
                return FileResponse(file, media_type=picture, headers=HEADERS)
        return FileResponse(file, media_type="application/octet-stream", headers=HEADERS, filename=file.name)

    @router.post("/console/conversations/{id}/{action}")
    async def change(form: Fields, id: str, action: Literal["reply", "take", "give"]) -> Response:
        """Reply as a person of the business, or only begin or end the assistant's silence."""
        text, now = form.get("text", "").strip(), time.time()
        until = now + site.settings.handover_hours * 3600
        draft = Draft(text, tuple(map(Outgoing, split_message(text))))
        turn = new_id("turn")

        def write(conn: Connection) -> str:
            where = people.conversation_by_id(conn, id)
            if not may_be_taken(conn, where):
                raise RecadoError(lazy("an owner's own chat, or a group, cannot be taken over"))
            if action == "give":
                handovers.give_back(conn, id, now)
            elif action == "take":
                handovers.begin(conn, where, until, now, told=True)
            elif text:
                handovers.answer(conn, where, turn, draft, until, now)
            return where.person_id

        await site.store.tx(write, then=assistant.hints.wake)
        assistant.look_again.set()  # what was given back is answered, a turn that was taken over ends
        return back(f"/console/conversations/{id}#end")
