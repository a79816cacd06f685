"""Engines and tools to try things with."""

from collections.abc import Callable
from typing import Any

from app.tools import ConfirmationPolicy, ExecutionEngine, Tool, ToolRegistry

EMPTY = {"type": "object", "properties": {}}


def engine_of(*tools: Tool, mode: str = "yolo", **options: Any) -> ExecutionEngine:
    ask = options.pop("ask", None)
    return ExecutionEngine(ToolRegistry(tools), ConfirmationPolicy(mode, ask), **options)


def tool_of(function: Callable[..., object], **options: Any) -> Tool:
    return Tool("it", "Does it", EMPTY, function, **options)


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


ADD = Tool.from_function(add)
