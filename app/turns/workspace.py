"""Calls of file tools that nobody need be asked about: what they would do is refused anyway."""

import asyncio
from collections.abc import Mapping

from app.i18n import say
from app.messages import JSON
from app.tools import PathTraversalError, ToolContext, ToolResult
from app.tools.files import Files
from app.turns.approvals import Guard, Refused
from app.turns.state import TurnContext

DELETE_TOOL = "delete_file"
FILE_TOOLS = ("read_file", "list_files", "write_file", DELETE_TOOL)


def guards(files: Files) -> dict[str, Guard]:
    """By tool: each path lies in the person's own folder, and files are deleted where that is allowed."""

    async def inside(arguments: Mapping[str, JSON], run: TurnContext) -> None:
        try:
            await asyncio.to_thread(files.check, dict(arguments), ToolContext(person=run.person))
        except PathTraversalError as error:
            said = say(run.person.language, "That path is not among your files.")
            raise Refused(ToolResult.failure("BAD_REQUEST", said, str(error))) from error

    async def deletable(arguments: Mapping[str, JSON], run: TurnContext) -> None:
        if not files.allow_delete:
            language = run.person.language
            said = say(language, "Files cannot be deleted here.")
            hint = say(language, "Whoever runs me allows it with ALLOW_DELETE=true.")
            raise Refused(ToolResult.failure("DELETE_NOT_ALLOWED", said, hint))
        await inside(arguments, run)

    return {**dict.fromkeys(FILE_TOOLS, inside), DELETE_TOOL: deletable}
