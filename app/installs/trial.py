"""A first start of a package for Python, to see whether it was written for an older MCP SDK than it gets."""

import asyncio
import json
import os
import re
import signal
from contextlib import suppress
from dataclasses import replace

from app.mcp.definitions import ServerDefinition
from app.processes.sandbox import Sandbox

TRIAL_SECONDS = 20.0
_MOST_SAID = 64 * 1024
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "recado", "version": "1"},
    },
}
_OLDER_SDK = re.compile(
    r"^(?:ImportError|ModuleNotFoundError|AttributeError|TypeError): .*"
    r"(?:\bmcp\b|FastMCP|'(?:Server|ServerSession|ClientSession|RequestContext)'|\bServer\.)",
    re.MULTILINE,
)
"""The last line of a traceback about something that version 2 of the SDK no longer has."""


async def needs_older_sdk(sandbox: Sandbox, server: ServerDefinition) -> bool:
    """Whether it dies at its start for want of the SDK's version 1; whatever else happens is no matter here.

    It is given no secret. Raises ValueError where the sandbox does not let it run.
    """
    known = tuple((name, text) for name, text in server.env if "${" not in text)
    command, environment = await asyncio.to_thread(sandbox.server_command, replace(server, env=known))
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=server.home,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaint = asyncio.create_task(_end_of(process.stderr))
    try:
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(TRIAL_SECONDS):
                process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
                await process.stdin.drain()
                if await process.stdout.read(1):
                    return False
        await _kill(process)
        return bool(_OLDER_SDK.search((await complaint).decode("utf-8", "replace")))
    finally:
        complaint.cancel()
        await _kill(process)


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _end_of(stream: asyncio.StreamReader) -> bytes:
    said = b""
    while more := await stream.read(_MOST_SAID):
        said = (said + more)[-_MOST_SAID:]
    return said
