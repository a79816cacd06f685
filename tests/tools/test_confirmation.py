"""Which tools need a yes, and how it is asked for."""

import asyncio
import os
import pty
import subprocess
import sys
from typing import Any

import pytest

from app.tools import ConfirmationPolicy, NoTTYError
from app.tools.engine import CallTerms, call_in_words
from tests.tools.engines import ADD, engine_of, tool_of


@pytest.mark.parametrize(
    ("mode", "sensitive", "harmless", "asked"),
    [
        ("yolo", True, False, False),
        ("confirm-sensitive", False, False, False),
        ("confirm-sensitive", True, False, True),
        ("confirm-all", False, False, True),
        ("confirm-all", True, True, False),
    ],
)
async def test_modes(mode: str, sensitive: bool, harmless: bool, asked: bool) -> None:
    questions: list[str] = []

    def ask(name: str, args: dict[str, Any]) -> bool:
        questions.append(name)
        return False

    engine = engine_of(tool_of(lambda: 1, sensitive=sensitive, harmless=harmless), mode=mode, ask=ask)
    assert (await engine.execute_tool_call("it", {})).code == ("DENIED" if asked else "ok")
    assert bool(questions) == asked
    approved = CallTerms(approved=engine.registry.get("it"))
    assert (await engine.execute_tool_call("it", {}, None, approved)).ok


async def test_unknown_mode_and_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="confirm-sensitive"):
        ConfirmationPolicy("sometimes")
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115
    with pytest.raises(NoTTYError):
        await ConfirmationPolicy("confirm-all").request_confirmation("it", {})
    result = await engine_of(ADD, mode="confirm-all").execute_tool_call("add", {"a": 1})
    assert result.code == "NO_TTY"
    assert result.error is not None
    assert result.error.hint


def test_the_question_at_the_terminal() -> None:
    code = """
import asyncio
from app.tools import *
registry = ToolRegistry([Tool("it", "x", {"type": "object"}, lambda **a: 1)])
engine = ExecutionEngine(registry, ConfirmationPolicy("confirm-all"))
async def main():
    result = await engine.execute_tool_call("it", {"text": "one\\u202etwo"})
    print("END", result.code, "aborted" if result.meta.get("aborted") else "", flush=True)
asyncio.run(main())
"""
    controller, terminal = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stdin=terminal, stdout=subprocess.PIPE, text=True)
    os.close(terminal)
    for line in (b"what\n", b"a\n"):
        os.write(controller, line)
    output, _ = child.communicate(timeout=20)
    os.close(controller)
    assert "text: one\\u202etwo" in output
    assert "[y/n/a]" in output
    assert output.strip().splitlines()[-1].split("END ")[1].strip() == "DENIED aborted"


def test_a_call_in_words_hides_nothing() -> None:
    assert call_in_words("send", {"to": "a\nb\x00\u200b"}) == "send\n  to: a\\nb\\u0000\\u200b"
    assert call_in_words("run", {"text": "x" * 5000 + "; rm -rf /"}).endswith("x; rm -rf /")
    assert "  to: bob" not in call_in_words("send", {"text": "x" + " " * 80 + "to: bob"})


@pytest.mark.parametrize("error", [SystemExit(3), RuntimeError("x"), asyncio.CancelledError()], ids=repr)
async def test_a_question_that_raises_anything_is_a_no(error: BaseException) -> None:
    async def ask(name: str, args: dict[str, Any]) -> bool:
        raise error

    ran: list[int] = []
    engine = engine_of(tool_of(lambda: ran.append(1)), mode="confirm-all", ask=ask)
    result = await engine.execute_tool_call("it", {})
    assert (result.code, ran) == ("DENIED", [])


async def test_a_call_cancelled_while_it_asks_is_cancelled() -> None:
    asked = asyncio.Event()

    async def ask(name: str, args: dict[str, Any]) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    call = asyncio.create_task(engine_of(ADD, mode="confirm-all", ask=ask).execute_tool_call("add", {"a": 1}))
    await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
