"""Meta's side of the webhook: signed bodies, made beforehand, over connections that stay open."""

import asyncio
import hashlib
import hmac
import itertools
import time
from typing import Any
from urllib.parse import urlsplit

import orjson

from bench.standin import content_length

SECRET = "app-secret-of-the-benchmark"
NUMBER = "106540352242922"
SAID = "Please read the gauges of both places"

_ids = itertools.count(time.time_ns())


def phone(n: int) -> str:
    """The n-th person's number, as WhatsApp delivers it."""
    return f"1{212 + n // 10_000}555{n % 10_000:04}"


def new_message(person: str, text: str = SAID) -> tuple[str, bytes]:
    """A message of its own id and the request that brings it."""
    wamid = f"wamid.in{next(_ids)}"
    at = str(int(time.time()))
    return wamid, webhook_request(
        {
            "contacts": [{"profile": {"name": "Ana"}, "wa_id": person}],
            "messages": [
                {"from": person, "id": wamid, "timestamp": at, "type": "text", "text": {"body": text}}
            ],
        }
    )


def new_status() -> bytes:
    """A request with the status of a message that is none of ours: a commit, and no turn."""
    status = {"id": f"wamid.other{next(_ids)}", "status": "delivered", "timestamp": "1", "recipient_id": "1"}
    return webhook_request({"statuses": [status]})


def webhook_request(value: dict[str, Any]) -> bytes:
    """A whole HTTP request with one change, signed."""
    metadata = {"display_phone_number": "15550783881", "phone_number_id": NUMBER}
    whole = {"messaging_product": "whatsapp", "metadata": metadata, **value}
    entry = {"id": "1", "changes": [{"value": whole, "field": "messages"}]}
    body = orjson.dumps({"object": "whatsapp_business_account", "entry": [entry]})
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    head = (
        "POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"X-Hub-Signature-256: sha256={signature}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[int] | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(cls, url: str) -> "Connection":
        address = urlsplit(url)
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(cls, address.hostname, address.port))[1]

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()

    async def send(self, request: bytes) -> float:
        """Sends a request and gives the seconds until its answer, which the caller limits.

        Raises for any answer but 200.
        """
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        started = time.perf_counter()
        self._transport.write(request)
        status = await self._answer
        if status != 200:
            raise RuntimeError(f"the server answered {status}")
        return time.perf_counter() - started

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or len(self._buffer) < end + 4 + content_length(self._buffer[:end]):
            return
        status, self._buffer = int(self._buffer[9:12]), b""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(status)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionError("the server closed the connection"))
