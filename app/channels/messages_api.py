"""`POST /api/messages`: a system of the business sends a text or a template through the outbox."""

import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Header, HTTPException
from pydantic import BaseModel, Field, model_validator

from app.channels.templates import read_templates
from app.channels.whatsapp.formatting import split_message
from app.http.limits import Guard
from app.messages import Outgoing, Wakeable
from app.people import Realm
from app.store import outbox
from app.store.database import Connection, Database, Row
from app.store.outbox import Draft

LONGEST_TEXT = 16_000


class TemplateName(BaseModel, extra="forbid"):
    """A template of templates.yaml with its values by name."""

    name: str
    language: str = ""
    variables: dict[str, str] = {}


class NewMessage(BaseModel, extra="forbid"):
    """A message to a phone number with its country code, or to a WhatsApp user id."""

    to: str
    text: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    template: TemplateName | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "NewMessage":
        if bool(self.text.strip()) == (self.template is not None):
            raise ValueError("give a text or a template")
        return self


class Queued(BaseModel):
    """The id of the outbox row; it comes back as `biz_opaque_callback_data` in statuses."""

    id: str


def messages_router(
    store: Database, realm: Realm, data_dir: Path, sender: Wakeable, guard: Guard
) -> APIRouter:
    """Return the route, which wants the administrator's token."""
    router = APIRouter(
        prefix="/api", tags=["messages"], dependencies=[Depends(guard.token)], route_class=guard.route_class()
    )

    @router.post("/messages", status_code=202)
    async def send_message(
        message: NewMessage, idempotency_key: Annotated[str, Header(min_length=1, max_length=255)]
    ) -> Queued:
        """Queue a message; the same key queues it once, and is refused with another message."""
        parts, now = _parts(message, data_dir), time.time()
        source = f"api:{sha256(idempotency_key.encode()).hexdigest()[:32]}"
        mark = sha256(orjson.dumps(message.model_dump())).hexdigest()[:16]

        def write(conn: Connection) -> Row:
            known = outbox.first_of(conn, source)
            if known is None:
                draft = Draft(message.text, parts)
                outbox.put_for(conn, realm, message.to, f"{source}:{mark}", draft, now)
                known = outbox.first_of(conn, source)
            assert known is not None
            if not known["source"].endswith(mark):
                raise HTTPException(409, "this Idempotency-Key came with another message before")
            return known

        row = await store.tx(write, then=lambda kept: sender.wake(kept["person_id"]))
        return Queued(id=row["id"])

    return router


def _parts(message: NewMessage, data_dir: Path) -> tuple[Outgoing, ...]:
    """Return the message as it is sent. Raises RecadoError for a template that is not listed."""
    if message.template is None:
        return tuple(Outgoing(part) for part in split_message(message.text))
    values: Mapping[str, str] = message.template.variables
    return (read_templates(data_dir).find(message.template.name, message.template.language).filled(values),)
