"""What else the Graph API answers: files up and down, the number, the token, the subscription."""

import hashlib
import hmac
import time
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.messages import JSON
from app.simulator.bodies import Account
from app.simulator.media import LARGEST, MB, MediaShelf, StoredFile, parse_form
from app.simulator.refusals import Refusal

ADDRESS_SECONDS: Final = 300


class Lookups:
    """Handlers about media and the account; whoever calls them was already let in."""

    def __init__(self, account: Account, token: str, media: MediaShelf) -> None:
        self._account = account
        self._token = token
        self._media = media

    async def upload(self, request: Request) -> Response:
        form = parse_form(await read_body(request, LARGEST + MB), request.headers.get("content-type", ""))
        if form.get("messaging_product", (b"",))[0] != b"whatsapp" or "file" not in form:
            raise Refusal(100, "The parameters messaging_product and file are required.")
        data, mime_type, filename = form["file"]
        wanted = form["type"][0].decode("utf-8", "replace") if "type" in form else mime_type
        return JSONResponse({"id": self._media.upload(data, wanted, filename).id})

    async def download(self, request: Request) -> Response:
        """The file behind an address that `describe` gave less than five minutes ago."""
        query, media_id = request.query_params, request.path_params["media_id"]
        proof = self._proof(media_id, query.get("ext", ""))
        if not hmac.compare_digest(query.get("hash", "").encode(), proof.encode()):
            raise Refusal(100, "The media address is not one of ours.", status=404)
        if time.time() > int(query["ext"]):
            raise Refusal(131052, "The media address has expired; ask for a new one.", status=404)
        stored = self._file(request.path_params["media_id"])
        return Response(stored.data, media_type=stored.mime_type)

    async def describe(self, request: Request) -> Response:
        wanted = request.path_params["object"]
        if wanted == self._account.phone_number_id:
            number = self._account.display_phone_number
            return JSONResponse(
                {
                    "id": wanted,
                    "display_phone_number": f"+{number}",
                    "verified_name": "Recado",
                    "quality_rating": "GREEN",
                    "code_verification_status": "VERIFIED",
                    "platform_type": "CLOUD_API",
                    "whatsapp_business_account": {"id": self._account.business_id},
                }
            )
        stored = self._file(wanted)
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

    async def delete(self, request: Request) -> Response:
        self._media.remove(self._file(request.path_params["object"]).id)
        return JSONResponse({"success": True})

    async def debug_token(self, request: Request) -> Response:
        asked = request.query_params.get("input_token", "")
        valid = hmac.compare_digest(asked.encode(), self._token.encode())
        scopes = ["whatsapp_business_messaging", "whatsapp_business_management"] if valid else []
        data = {
            "app_id": "100000000000002",
            "type": "SYSTEM_USER",
            "application": "Recado",
            "is_valid": valid,
            "expires_at": 0,
            "scopes": scopes,
        }
        return JSONResponse({"data": data})

    async def subscribed_apps(self, request: Request) -> Response:
        app = {"id": "100000000000002", "name": "Recado", "link": "https://example.com"}
        return JSONResponse({"data": [{"whatsapp_business_api_data": app}]})

    def _proof(self, media_id: str, until: str) -> str:
        """What shows that we gave an address out: nobody else can make it."""
        return hmac.new(self._token.encode(), f"{media_id} {until}".encode(), hashlib.sha256).hexdigest()

    def _file(self, media_id: str) -> StoredFile:
        stored = self._media.get(media_id)
        if stored is None:
            raise Refusal(100, f"Object with ID {media_id[:40]!r} does not exist or cannot be loaded.")
        return stored


async def read_body(request: Request, most: int) -> bytes:
    """The whole body. Raises Refusal (413) over `most` bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Refusal(131053 if most > MB else 100, f"The body has more than {most} bytes.", status=413)
    return bytes(body)


async def read_json(request: Request, most: int) -> dict[str, JSON]:
    """The body as a JSON object of at most `most` bytes. Raises Refusal."""
    raw = await read_body(request, most)
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Refusal(100, "The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise Refusal(100, "The body must be a JSON object.")
    return body
