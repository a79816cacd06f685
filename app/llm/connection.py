"""The `openai` package's client: 250 ms and 58 MB, so imported only where a model is configured."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAioHttpClient

from app.http.endpoint import url_fault
from app.i18n import lazy
from app.llm.model import ModelError
from app.llm.reading import refusal

CONNECT_SECONDS = 5.0
ANSWER_BYTES = 8 * 1024 * 1024
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)


class Connection:
    """Posts chat completions to one address. Redirects are not followed: the key is for this host."""

    def __init__(self, url: str, key: str) -> None:
        self._key = key
        self._client: AsyncOpenAI | None = None
        is_key = key.isascii() and key.isprintable()
        self._fault = url_fault(url) if is_key else "the key holds a line break or the like"
        if not self._fault:
            try:
                self._client = open_client(url, key)
            except (httpx2.InvalidURL, ValueError):
                self._fault = "the proxy of the environment is not of the form http://host"

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def post(self, model: str, body: bytes, seconds: float) -> bytes:
        """Return the body of an answer with status 200. Raises ModelError, whose text names the model."""
        if self._client is None:
            raise _not_sent(model, self._fault)
        try:
            async with asyncio.timeout(seconds):  # the package's own limit begins anew with each byte
                # as bytes: create() walks through every message, which takes 4 times the CPU
                answer = await self._client.post(
                    "/chat/completions",
                    content=body,
                    cast_to=httpx2.Response,
                    options={"headers": {"Content-Type": "application/json"}, "follow_redirects": False},
                )
        except APIStatusError as error:
            retry_after = error.response.headers.get("retry-after")
            content = error.response.content
            raise refusal(model, error.status_code, content, retry_after, self._key) from error
        except (APIConnectionError, aiohttp.ClientError) as error:
            raise _connection_error(model, error, seconds) from error
        except TimeoutError as error:
            raise _timed_out(model, seconds) from error
        except (httpx2.InvalidURL, OSError, ValueError) as error:
            raise _not_sent(model, error) from error
        return answer.content


class _LimitedStream(httpx2.AsyncByteStream):
    """A body that may not exceed ANSWER_BYTES."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > ANSWER_BYTES:
                raise httpx2.ReadError(f"the answer has more than {ANSWER_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def open_client(url: str, key: str, max_retries: int = 0) -> AsyncOpenAI:
    """Make the client over aiohttp; it obeys HTTPS_PROXY and NO_PROXY. A turn has retries of its own."""
    return AsyncOpenAI(
        base_url=url,
        api_key=key or "none",
        max_retries=max_retries,
        http_client=DefaultAioHttpClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=0, keepalive_expiry=30),  # 0: unlimited, for aiohttp
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [_limit_size]},
        ),
    )


async def _limit_size(response: httpx2.Response) -> None:
    """Limit what is read of a body before the package reads it."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.ReadError("the answer is compressed, although that was not asked for")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _LimitedStream(response.stream)


def _connection_error(model: str, error: Exception, seconds: float) -> ModelError:
    """Map by aiohttp's exception: the transport above it calls a broken connection a time-out."""
    cause: BaseException = error
    while cause.__cause__ is not None and not isinstance(cause, aiohttp.ClientError):
        cause = cause.__cause__
    status, message = getattr(cause, "status", 0), getattr(cause, "message", "")
    reason = f"{status} {message}" if status else str(cause) or type(cause).__name__
    if isinstance(cause, _NEVER_SENT):
        return _not_sent(model, reason)
    if isinstance(cause, TimeoutError):
        return _timed_out(model, seconds)
    return ModelError(lazy("{model} gave no answer: {reason}", model=model, reason=reason), "no_answer")


def _not_sent(model: str, reason: object) -> ModelError:
    return ModelError(
        lazy("{model} cannot be reached: no connection: {reason}", model=model, reason=reason), "not_sent"
    )


def _timed_out(model: str, seconds: float) -> ModelError:
    return ModelError(
        lazy("{model} gave no answer within {seconds} s", model=model, seconds=f"{seconds:g}"), "timed_out"
    )
