"""`recado export` and `recado erase`: a person's data given out or deleted."""

import asyncio
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, BinaryIO

import orjson

from app.commands.people import listed_people, owns, realm_of
from app.commands.records import none_yet, open_database, read_records
from app.commands.running import find_server
from app.errors import RecadoError, StoreError
from app.messages import JSON
from app.settings import Settings

if TYPE_CHECKING:
    from app.store.personal_data import DataSubject, ErasedPerson, PersonFolders

ERASE_SECONDS = 120.0


def export_person(settings: Settings, who: str, to: Path | None) -> str:
    """Return everything kept of a person as JSON, or write it with their files to the zip file `to`.

    Raise RecadoError for an unknown person, or if the file cannot be written.
    """
    from app.store import personal_data

    def read(conn: Connection) -> "tuple[DataSubject, Mapping[str, JSON]]":
        somebody = personal_data.find(conn, realm_of(settings), who)
        return somebody, personal_data.export(conn, somebody)

    somebody, rows = read_records(settings.database_path, read)
    files = _files(settings, somebody.id)
    document = {"names": somebody.names, "realm": somebody.realm, **rows, "files": list(files)}
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    if to is None:
        return text
    try:
        with to.open("xb") as made:
            _write_archive(made, text, files)
    except FileExistsError as error:
        raise RecadoError(f"{to} is there already, and is not replaced") from error
    except OSError as error:
        to.unlink(missing_ok=True)
        raise RecadoError(f"{to} cannot be written: {error.strerror or error}") from error
    messages = len(document.get("messages", ()))
    return f"{to}: {messages} messages, {len(files)} files, and whatever else is kept of {who}"


def erase_person(settings: Settings, who: str) -> str:
    """Delete everything kept of a person and return what to tell.

    Raise RecadoError for an unknown person, or if something could not be deleted.
    """
    if not settings.database_path.is_file():  # "nobody is known" would sound as if they were gone already
        raise StoreError(none_yet(settings.database_path))
    owners = {line.id for line in listed_people(settings) if owns(line, settings)}
    server = find_server(settings.data_dir)
    if server is not None:
        erased = server.ask("people/erase", {"who": who}, seconds=ERASE_SECONDS)
    else:
        erased = asdict(asyncio.run(_erase(settings, who)))
    told = f"everything of {who} is erased, {erased['messages']} messages with the rest"
    if erased["who"]["id"] in owners:
        told += f"\nThey were an owner: files of owners lie together in {settings.workspace_dir}, and stay"
    return told


async def _erase(settings: Settings, who: str) -> "ErasedPerson":
    from app.erasure import Erasure, StoredPhones
    from app.store import build_store

    database = await open_database(settings.database_path)
    try:
        store = replace(build_store(settings), database=database)
        return await Erasure(store, StoredPhones(settings.data_dir)).erase(realm_of(settings), who)
    finally:
        await database.close()


def folders(settings: Settings) -> "PersonFolders":
    from app.store.personal_data import PersonFolders

    return PersonFolders(settings.workspace_dir, settings.data_dir)


def _files(settings: Settings, person: str) -> dict[str, Path]:
    """Map archive names to the person's files; links are left out, because they may lead anywhere."""
    return {
        os.fsencode(f"{kind}/{path.relative_to(folder)}").decode("utf-8", "replace"): path
        for kind, folder in folders(settings).of(person).items()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _write_archive(made: BinaryIO, text: str, files: Mapping[str, Path]) -> None:
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        archive.writestr("data.json", text)
        for name, path in files.items():
            with suppress(FileNotFoundError):  # it went meanwhile
                archive.write(path, name)
