"""The HTTP routes of the stand-in Graph API: messages, files, the number, the token, the subscription."""

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.datastructures import UploadFile

from app.http.limits import bounded_receive
from app.messages import JSON
from app.simulator.access import SimulatorAccess
from app.simulator.faults import Refusal
from app.simulator.graph import StandInGraph
from app.simulator.media import LARGEST, MB, StoredFile

ADDRESS_SECONDS: Final = 300
BUSINESS_ACCOUNT = "100000000000003"
_VERSION = re.compile(r"v\d+\.\d+")


def graph_router(graph: StandInGraph, access: SimulatorAccess) -> APIRouter:
    """Return the API's routes; a request from elsewhere gets 404."""
    routes = _GraphRoutes(graph)
    router = APIRouter(route_class=_route_class(graph, access), include_in_schema=False)
    router.add_api_route("/media/{media_id}", routes.download)
    router.add_api_route("/{version}/{number}/messages", routes.messages, methods=["POST"])
    router.add_api_route("/{version}/{number}/media", routes.upload, methods=["POST"])
    router.add_api_route("/{version}/debug_token", routes.debug_token)
    router.add_api_route("/{version}/{business}/subscribed_apps", routes.subscribed_apps)
    router.add_api_route("/{version}/{business}/message_templates", routes.message_templates)
    router.add_api_route("/{version}/{object_id}", routes.describe)
    router.add_api_route("/{version}/{object_id}", routes.delete, methods=["DELETE"])
    return router


def _route_class(graph: StandInGraph, access: SimulatorAccess) -> type[APIRoute]:
    """Return a route that lets a request in, bounds its body, and answers errors in Meta's form."""

    class GraphRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                if not access.is_local(request):
                    raise HTTPException(404, "Not Found")
                limit = LARGEST + MB if request.url.path.endswith("/media") else MB
                try:
                    _admit(graph, request)
                    return await handle(Request(request.scope, bounded_receive(request.receive, limit)))
                except Refusal as refusal:
                    return refusal.answer()
                except HTTPException as error:  # too large, or no multipart form
                    return Refusal(100, str(error.detail), status=error.status_code).answer()

            return answer

    return GraphRoute


def _admit(graph: StandInGraph, request: Request) -> None:
    if graph.faults.offline:
        raise Refusal(131016, "The service is away.", status=503)
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not _is_same(token.strip(), graph.access_token):
        raise Refusal(190, "The access token is missing, wrong or expired.", status=401)
    version = request.path_params.get("version")
    if version is not None and not _VERSION.fullmatch(version):
        raise Refusal(100, "Invalid version format. Use a format like 'v25.0'.")
    number = request.path_params.get("number")
    if number is not None and number != graph.account.phone_number_id:
        raise Refusal(100, f"Object with ID {number[:40]!r} does not exist or cannot be loaded.")


class _GraphRoutes:
    def __init__(self, graph: StandInGraph) -> None:
        self._graph = graph

    async def messages(self, request: Request) -> Response:
        body = _object(await request.body())
        if body.get("status") == "read":
            self._graph.mark_read(body)
            return JSONResponse({"success": True})
        answer = self._graph.send(body)
        faults = self._graph.faults
        if faults.next_drop():
            self._graph.publish_faults()
            await self._until_gone(request)
        if faults.delay:
            await asyncio.sleep(faults.delay)
        return JSONResponse(answer)

    async def upload(self, request: Request) -> Response:
        async with request.form() as form:
            file, wanted = form.get("file"), form.get("type")
            if form.get("messaging_product") != "whatsapp" or not isinstance(file, UploadFile):
                raise Refusal(100, "The parameters messaging_product and file are required.")
            mime_type = wanted if isinstance(wanted, str) else file.content_type or ""
            stored = self._graph.media.upload(await file.read(), mime_type, file.filename or "")
        return JSONResponse({"id": stored.id})

    async def download(self, media_id: str, request: Request) -> Response:
        """Return the file behind an address that `describe` gave less than five minutes ago."""
        until, proof = request.query_params.get("ext", ""), request.query_params.get("hash", "")
        if not _is_same(proof, self._proof(media_id, until)):
            raise Refusal(100, "The media address is not one of ours.", status=404)
        if time.time() > int(until):
            raise Refusal(131052, "The media address has expired; ask for a new one.", status=404)
        stored = self._file(media_id)
        return Response(stored.data, media_type=stored.mime_type)

    async def describe(self, object_id: str, request: Request) -> Response:
        account = self._graph.account
        if object_id == account.phone_number_id:
            return JSONResponse(
                {
                    "id": object_id,
                    "display_phone_number": f"+{account.display_phone_number}",
                    "verified_name": "Recado",
                    "quality_rating": "GREEN",
                    "code_verification_status": "VERIFIED",
                    "platform_type": "CLOUD_API",
                    "whatsapp_business_account": {"id": account.business_id},
                }
            )
        stored = self._file(object_id)
        base = str(request.url.replace(query="")).rsplit("/", 2)[0]
        until = str(int(time.time()) + ADDRESS_SECONDS)
        return JSONResponse(
            {
                "messaging_product": "whatsapp",
                "url": f"{base}/media/{stored.id}?ext={until}&hash={self._proof(stored.id, until)}",
                "mime_type": stored.mime_type,
                "sha256": hashlib.sha256(stored.data).hexdigest(),
                "file_size": str(len(stored.data)),
                "id": stored.id,
            }
        )

    async def delete(self, object_id: str) -> Response:
        self._graph.media.remove(self._file(object_id).id)
        return JSONResponse({"success": True})

    async def debug_token(self, request: Request) -> Response:
        valid = _is_same(request.query_params.get("input_token", ""), self._graph.access_token)
        scopes = ["whatsapp_business_messaging", "whatsapp_business_management"] if valid else []
        data = {
            "app_id": "100000000000002",
            "type": "SYSTEM_USER",
            "application": "Recado",
            "is_valid": valid,
            "expires_at": 0,
            "scopes": scopes,
            "granular_scopes": [{"scope": scope, "target_ids": [BUSINESS_ACCOUNT]} for scope in scopes],
        }
        return JSONResponse({"data": data})

    async def message_templates(self) -> Response:
        return JSONResponse({"data": self._graph.templates})

    async def subscribed_apps(self) -> Response:
        app = {"id": "100000000000002", "name": "Recado", "link": "https://example.com"}
        return JSONResponse({"data": [{"whatsapp_business_api_data": app}]})

    async def _until_gone(self, request: Request) -> None:
        """Return when the caller gave up, or when the stand-in stops."""
        gone = asyncio.ensure_future(request.receive())
        stopping = asyncio.ensure_future(self._graph.stopping.wait())
        _, rest = await asyncio.wait({gone, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()

    def _proof(self, media_id: str, until: str) -> str:
        """Return what shows that we gave an address out, which only the token's holder can make."""
        signed = f"{media_id} {until}".encode()
        return hmac.new(self._graph.access_token.encode(), signed, hashlib.sha256).hexdigest()

    def _file(self, media_id: str) -> StoredFile:
        stored = self._graph.media.get(media_id)
        if stored is None:
            raise Refusal(100, f"Object with ID {media_id[:40]!r} does not exist or cannot be loaded.")
        return stored


def _object(raw: bytes) -> dict[str, JSON]:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Refusal(100, "The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise Refusal(100, "The body must be a JSON object.")
    return body


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
