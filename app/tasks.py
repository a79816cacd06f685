"""Background tasks."""

import asyncio
from typing import Any


async def end_tasks(*tasks: "asyncio.Task[Any] | None") -> None:
    """Cancel what still runs, and wait for its end."""
    left = [task for task in tasks if task is not None and not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.gather(*left, return_exceptions=True)
