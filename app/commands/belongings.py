"""What is kept of a person: given out as a file, or erased for good."""

import asyncio
import zipfile
from collections.abc import Mapping
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING

import orjson

from app.commands.people import realm_of
from app.commands.records import open_database, read_records
from app.commands.running import find_server
from app.errors import RecadoError
from app.messages import JSON
from app.settings import Settings

if TYPE_CHECKING:
    from app.store.belongings import Erased, Somebody

ERASE_SECONDS = 120.0


def export_person(settings: Settings, who: str, to: Path | None) -> str:
    """Everything of theirs as JSON; `to` is a zip file for that and their files, and the text says what is in
    it. Raises RecadoError for somebody unknown, and for a file that cannot be written.
    """
    from app.erasure import folders_of
    from app.store import belongings

    def read(conn: Connection) -> "tuple[Somebody, Mapping[str, JSON]]":
        somebody = belongings.find(conn, realm_of(settings), who)
        return somebody, belongings.export(conn, somebody)

    somebody, rows = read_records(settings.database_path, read)
    files = [
        (f"{kind}/{path.relative_to(folder)}", path)
        for kind, folder in folders_of(settings, somebody.id).items()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]
    document = {
        "names": somebody.names,
        "realm": somebody.realm,
        **rows,
        "files": [name for name, _ in files],
    }
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    if to is None:
        return text
    try:
        with zipfile.ZipFile(to, "x", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.json", text)
            for name, path in files:
                archive.write(path, name)
    except OSError as error:
        raise RecadoError(f"{to} cannot be written: {error.strerror}") from error
    messages = len(document.get("messages", ()))
    return f"{to}: {messages} messages, {len(files)} files, and whatever else is kept of {who}"


def erase_person(settings: Settings, who: str) -> str:
    """Deletes everything of theirs; gives what to tell. Raises RecadoError for somebody unknown, and where
    not all of it could be deleted."""
    server = find_server(settings.data_dir)
    if server is not None:
        erased = server.ask("people/erase", {"who": who}, seconds=ERASE_SECONDS)
    else:
        from dataclasses import asdict

        erased = asdict(asyncio.run(_erase(settings, who)))
    told = f"everything of {who} is erased, {erased['messages']} messages with the rest"
    if erased["was_owner"]:
        told += f"\nThey were an owner: files of owners lie together in {settings.workspace_dir}, and stay"
    return told


async def _erase(settings: Settings, who: str) -> "Erased":
    from app.erasure import Erasure

    database = await open_database(settings.database_path)
    try:
        return await Erasure(database, settings).erase(realm_of(settings), who)
    finally:
        await database.close()
