"""The HTTP routes of the stand-in Graph API: messages, files and the number."""

import asyncio
import hashlib
from contextlib import suppress

import orjson
from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import UploadFile

from app.messages import JSON
from app.security import bearer_of, same_token
from app.simulator.access import SimulatorAccess
from app.simulator.faults import Refusal
from app.simulator.graph import StandInGraph
from app.simulator.media import StoredFile
from app.simulator.webhooks import BUSINESS_NUMBER

SILENT_SECONDS = 30.0  # of a send that is to stay unanswered: our client gives up before


def graph_router(graph: StandInGraph, access: SimulatorAccess) -> APIRouter:
    """Return the API's routes; a request from elsewhere gets 404, one without the token Meta's 401."""

    def admit(request: Request) -> None:
        if graph.faults.offline:
            raise Refusal(131016, "The service is away.")
        if not same_token(bearer_of(request), graph.access_token):
            raise Refusal(190, "The access token is missing, wrong or expired.")
        if request.path_params.get("number", graph.number_id) != graph.number_id:
            raise _unknown(request.path_params["number"])

    # The bodies are read by the routes themselves: after these.
    router = APIRouter(dependencies=[Depends(access.require_local), Depends(admit)], include_in_schema=False)

    @router.post("/{version}/{number}/messages")
    async def messages(request: Request) -> JSON:
        body = read_object(await request.body())
        if body.get("status") == "read":
            graph.mark_read(body)
            return {"success": True}
        answer = graph.send(body)
        if graph.faults.next_drop():
            graph.publish_faults()
            with suppress(TimeoutError):
                await asyncio.wait_for(graph.stopping.wait(), SILENT_SECONDS)
        await asyncio.sleep(graph.faults.delay)
        return answer

    @router.post("/{version}/{number}/media")
    async def upload(request: Request) -> JSON:
        async with request.form() as form:
            file, wanted = form.get("file"), form.get("type")
            if form.get("messaging_product") != "whatsapp" or not isinstance(file, UploadFile):
                raise Refusal(100, "The parameters messaging_product and file are required.")
            mime_type = wanted if isinstance(wanted, str) else file.content_type or ""
            stored = graph.media.upload(await file.read(), mime_type, file.filename or "")
        return {"id": stored.id}

    @router.get("/media/{media_id}")
    async def download(media_id: str) -> Response:
        stored = find(media_id)
        return Response(stored.data, media_type=stored.mime_type)

    @router.get("/{version}/{object_id}")
    async def describe(object_id: str, request: Request) -> JSON:
        if object_id == graph.number_id:
            shown = f"+{BUSINESS_NUMBER}"
            return {"id": object_id, "display_phone_number": shown, "verified_name": "Recado"}
        stored = find(object_id)
        base = str(request.url.replace(query="")).rsplit("/", 2)[0]
        return {
            "messaging_product": "whatsapp",
            "url": f"{base}/media/{stored.id}",
            "mime_type": stored.mime_type,
            "sha256": hashlib.sha256(stored.data).hexdigest(),
            "file_size": str(len(stored.data)),
            "id": stored.id,
        }

    @router.delete("/{version}/{object_id}")
    async def delete(object_id: str) -> JSON:
        graph.media.remove(find(object_id).id)
        return {"success": True}

    def find(media_id: str) -> StoredFile:
        stored = graph.media.get(media_id)
        if stored is None:
            raise _unknown(media_id)
        return stored

    return router


def read_object(raw: bytes) -> dict[str, JSON]:
    """Return the JSON object of a body. Raise Refusal for anything else."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise Refusal(100, "The body must be a JSON object.")
    return body


def _unknown(object_id: str) -> Refusal:
    return Refusal(100, f"Object with ID {object_id[:40]!r} does not exist or cannot be loaded.")
