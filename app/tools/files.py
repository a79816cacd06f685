"""The tools that read and write the files of a workspace, each person's in a folder of their own."""

import codecs
import fnmatch
import functools
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import IO, Literal, ParamSpec

from app.errors import RecadoError
from app.messages import JSON
from app.people import Person
from app.store.disk_space import MEGABYTE, Disk
from app.tools.documents import Document, DocumentError, Documents, kind_of
from app.tools.paths import (
    PathTraversalError,
    append,
    entries,
    exists,
    keep_beside,
    open_parent,
    open_to_read,
    replace,
    shown,
    validate_path,
)
from app.tools.result import ToolResult
from app.tools.tool import Tool, ToolContext

READ_LIMIT = 1024 * 1024
WRITE_LIMIT = 1024 * 1024
LIST_LIMIT = 500
LONGEST_PATTERN = 1000
LARGEST_PICTURE = 5 * 1024 * 1024
GUEST_PART = 25  # a guest's folder may have this part of a member's
MOST_NAMESAKES = 100
BLOCK = 4096  # bytes that even an empty file counts as
PAGE = 24_000  # characters of a file that one call gives: with their envelope they reach a model whole
PAGE_IN_A_CHAT = 5_500  # characters that a person reads at once: two messages

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def file_tools(
    workspace_root: str | Path, allow_delete: bool = False, *, quota: int = 0, least_free: int = 0
) -> list[Tool]:
    """Return read_file, list_files, write_file and delete_file for one workspace, as `Files` does them."""
    files = Files(workspace_root, allow_delete, quota=quota, least_free=least_free)
    reading, writing = (files.read_file, files.list_files), (files.write_file, files.delete_file)
    return [
        *(Tool.from_function(one, category="files", idempotent=True, check=files.check) for one in reading),
        *(Tool.from_function(one, category="files", sensitive=True, check=files.check) for one in writing),
    ]


class NoRoom(RecadoError):
    """A file that somebody sent has no room: the disk is nearly full, or their quota is used up."""


P = ParamSpec("P")


def _errors_as_results(function: Callable[P, ToolResult]) -> Callable[P, ToolResult]:
    """Return what the file system refuses as a failed result that the model can act on."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> ToolResult:
        path = str(kwargs.get("path", "."))
        try:
            return function(*args, **kwargs)
        except PathTraversalError as error:
            return ToolResult.failure("BAD_REQUEST", str(error))
        except DocumentError as error:
            return ToolResult.failure(error.code, f"{shown(path)}: {error}")
        except FileNotFoundError:
            return _not_found(path)
        except (IsADirectoryError, NotADirectoryError, FileExistsError):
            return ToolResult.failure("NOT_A_FILE", f"{shown(path)} is not a plain file in a folder")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return ToolResult.failure("FILE_ERROR", f"{shown(path)}: {reason}")

    return guarded


class Files:
    """The four functions; every path goes through `validate_path`, every open through a walk without links.

    Owners, and calls without a person, work at the root; others in their own `people/<id>` in it, which
    holds at most `quota` bytes. Nothing is written on a disk with too little room beside `least_free` bytes;
    0: no limit. `page`: characters of a file at a time. `in_a_chat`: what is appended begins on a new line,
    and what is overwritten or deleted stays beside it under its name with .bak, the last one.
    `closed`: files and folders that are no tool's where the root holds them, or is one of them; what members
    keep in it stays open.
    """

    def __init__(
        self,
        root: str | Path,
        allow_delete: bool = False,
        *,
        quota: int = 0,
        least_free: int = 0,
        documents: Documents | None = None,
        page: int = PAGE,
        in_a_chat: bool = False,
        closed: Iterable[Path] = (),
    ) -> None:
        self.allow_delete = allow_delete
        self._root = Path(root)
        inside = Path(root).resolve()
        self._people = inside / "people"
        self._closed = {real for place in closed if (real := place.resolve()).is_relative_to(inside)}
        self._quota = quota
        self._disk = Disk(self._root, least_free)
        self.documents = documents or Documents()
        self._page = page
        self._in_a_chat = in_a_chat
        self._one_writer = threading.Lock()  # from counting to writing: the last bytes go to one call alone

    def check(self, args: dict[str, JSON], context: ToolContext) -> None:
        """Raise PathTraversalError for a path that leads out of the person's folder or to what is closed."""
        self._home_of(args.get("path", "."), context)

    @_errors_as_results
    def read_file(self, path: str, page: int = 1, *, context: ToolContext) -> ToolResult:
        """Read a file of the workspace: text, or the text of a PDF, Word or Excel file.

        Args:
            path: Path from the workspace on, such as "notes/today.md"
            page: Which part of a long text, counted from 1

        Example: lee el archivo notas.txt
        """
        home = self._home_of(path, context)
        opened = open_parent(home, path, is_closed=self.is_closed)
        with opened as (parent, name), open_to_read(name, parent) as file:
            size = os.fstat(file.fileno()).st_size
            document = self._text_of(file, path)
        if document is None:
            return ToolResult.failure("NOT_TEXT", f"{path} is not a text file", size=size)
        found = pages(document.text, self._page)
        if not 1 <= page <= len(found):
            return ToolResult.failure("NO_SUCH_PAGE", f"{path} has {len(found)} pages", pages=len(found))
        more = page < len(found) or not document.whole
        said: dict[str, JSON] = {"path": path, "content": found[page - 1], "size": size, "more": more}
        return ToolResult.success({**said, "page": page, "pages": len(found), "whole": document.whole})

    @_errors_as_results
    def list_files(
        self, path: str = ".", pattern: str = "*", recursive: bool = False, *, context: ToolContext
    ) -> ToolResult:
        """List the files of a folder of the workspace.

        Args:
            path: Folder from the workspace on
            pattern: Only names like this, such as "*.md"
            recursive: Whether to look into the folders inside too

        Example: qué archivos tengo
        """
        if len(pattern) > LONGEST_PATTERN:
            return ToolResult.failure("BAD_REQUEST", f"a pattern has at most {LONGEST_PATTERN} characters")
        home = self._home_of(path, context)
        folder = validate_path(path, home)
        if not folder.exists():
            if folder == home.resolve():
                return ToolResult.success({"path": path, "entries": [], "more": False})
            return _not_found(path)
        if not folder.is_dir():
            return ToolResult.failure("NOT_A_FOLDER", f"{path} is a file", "use read_file")
        found: list[dict[str, JSON]] = []
        for entry in entries(folder, recursive, self.is_closed):
            relative = os.path.relpath(entry.path, folder).replace(os.sep, "/")
            if fnmatch.fnmatch(entry.name, pattern) or fnmatch.fnmatch(relative, pattern):
                found.append(_described(entry, relative))
            if len(found) > LIST_LIMIT:
                break
        more = len(found) > LIST_LIMIT
        return ToolResult.success({"path": path, "entries": found[:LIST_LIMIT], "more": more})

    @_errors_as_results
    def write_file(
        self,
        path: str,
        content: str,
        mode: Literal["overwrite", "append"] = "overwrite",
        *,
        context: ToolContext,
    ) -> ToolResult:
        """Write a text file in the workspace, and the folders it needs.

        Args:
            path: Path from the workspace on, such as "notes/today.md"
            content: The text
            mode: Whether the text replaces the file or is added at its end

        Example: guarda esto en lista.txt
        """
        data = content.encode("utf-8", "replace")
        if len(data) > WRITE_LIMIT:
            message = f"{len(data)} bytes are more than the {WRITE_LIMIT} that one write may have"
            return ToolResult.failure("TOO_LARGE", message)
        home = self._home_of(path, context)
        with self._one_writer:
            refusal = self._refusal(home, context.person, path, len(data), mode == "append")
            if refusal is not None:
                return refusal
            with open_parent(home, path, create=True, is_closed=self.is_closed) as (parent, name):
                replaced, kept = exists(name, parent), False
                if mode == "append":
                    append(name, data, parent, new_line=self._in_a_chat)
                else:
                    kept = replaced and self._in_a_chat and keep_beside(name, parent)
                    replace(name, data, parent)
        said: dict[str, JSON] = {"path": path, "bytes": len(data), "mode": mode, "replaced": replaced}
        return ToolResult.success({**said, "kept": f"{path}.bak"} if kept else said)

    @_errors_as_results
    def delete_file(self, path: str, *, context: ToolContext) -> ToolResult:
        """Delete a file of the workspace; a person's own stays as NAME.bak until that is deleted, too.

        Args:
            path: Path from the workspace on

        Example: borra el archivo viejo.txt
        """
        if not self.allow_delete:
            hint = "the operator can set ALLOW_DELETE=true"
            return ToolResult.failure("DELETE_NOT_ALLOWED", "deleting files is switched off", hint)
        home = self._home_of(path, context)
        opened = open_parent(home, path, link_itself=True, is_closed=self.is_closed)
        with self._one_writer, opened as (parent, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                return ToolResult.failure("NOT_A_FILE", f"{path} is a folder; only files can be deleted")
            kept = self._in_a_chat and not name.endswith(".bak") and keep_beside(name, parent)
            os.unlink(name, dir_fd=parent)
        said: dict[str, JSON] = {"path": path, "deleted": True}
        return ToolResult.success({**said, "kept": f"{path}.bak"} if kept else said)

    def receive(self, path: str, data: bytes, context: ToolContext) -> str:
        """Keep what somebody sent under `path`, or beside it if another file has that name; return its path.

        The same bytes are kept once. Blocks. Raises NoRoom.
        """
        home, wanted = self.home(context), PurePosixPath(path)
        with self._one_writer:
            for number in range(1, MOST_NAMESAKES):
                name = f"{wanted.stem} ({number}){wanted.suffix}" if number > 1 else wanted.name
                place = str(wanted.with_name(name))
                with open_parent(home, place, create=True, is_closed=self.is_closed) as (parent, last):
                    if exists(last, parent):
                        if _has_content(last, parent, data):
                            return place
                        continue
                    if self._refusal(home, context.person, place, len(data), append=False) is not None:
                        raise NoRoom(f"there is no room for {len(data)} bytes")
                    replace(last, data, parent)
                    return place
        raise NoRoom(f"there are {MOST_NAMESAKES} files named {wanted.name}")

    def read_bytes(self, person: Person | None, path: str, most: int = LARGEST_PICTURE) -> bytes:
        """Return a file of the person's, cut at `most` bytes. Blocks. Raises OSError or ValueError."""
        home = self.home(ToolContext(person=person))
        opened = open_parent(home, path, is_closed=self.is_closed)
        with opened as (parent, name), open_to_read(name, parent) as file:
            return file.read(most)

    def first_page(self, source: Path, name: str) -> tuple[str, int]:
        """Return the first page of a document's words, as `read_file` counts them, and how many there are.

        Blocks. Raises DocumentError, OSError.
        """
        with source.open("rb") as file:
            document = self._text_of(file, name)
        if document is None:
            raise DocumentError("UNREADABLE", "it is not a text file")
        found = pages(document.text, self._page)
        return found[0], len(found)

    def _text_of(self, file: IO[bytes], name: str) -> Document | None:
        """Return the text of an open file, None for what is no text. Raises DocumentError."""
        content = file.read(READ_LIMIT + 1)
        kind = kind_of(name, content)
        return self.documents.read(file.fileno(), kind) if kind else plain_text(content)

    def _refusal(
        self, home: Path, person: Person | None, path: str, size: int, append: bool
    ) -> ToolResult | None:
        """Return a failure where `size` bytes more find no room; a replaced file gives its own back."""
        if not self._disk.has_room_for("data"):
            return ToolResult.failure("NO_SPACE", "the disk is nearly full, so no file is written")
        quota = self._quota_of(person)
        if not quota:
            return None
        target = validate_path(path, home)
        replaced = 0 if append or not target.is_file() else _counted(target.stat().st_size)
        if _used(home) - replaced + _counted(size) <= quota:
            return None
        limit = f"{quota / MEGABYTE:g} MB"
        hint = "say so; files that are no longer needed must go first"
        return ToolResult.failure("QUOTA_EXCEEDED", f"this person's files may have {limit} in all", hint)

    def _home_of(self, path: str, context: ToolContext) -> Path:
        """Return the person's folder, for a path that may be used in it. Raises PathTraversalError."""
        home = self.home(context)
        real, folder = validate_path(path, home), validate_path(Path(str(path)).parent, home)
        if self.is_closed(real) or self.is_closed(folder):  # a link may lead out of a closed folder
            raise PathTraversalError(f"{shown(path)} is the assistant's own: no file of the workspace")
        return home

    def is_closed(self, real: Path) -> bool:
        """Tell whether a real path is the assistant's own, which no tool opens."""
        if not self._closed or self._closed.isdisjoint((real, *real.parents)):
            return False
        return not real.is_relative_to(self._people)

    def fits(self, context: ToolContext) -> bool:
        """Tell whether the person's folder is within its quota and the disk has room. Blocks."""
        quota = self._quota_of(context.person)
        return self._disk.has_room_for("data") and (not quota or _used(self.home(context)) <= quota)

    def _quota_of(self, person: Person | None) -> int:
        """Return the bytes that a person's folder may have, 0 for any: an owner's is the operator's own."""
        if person is None or person.is_owner:
            return 0
        return self._quota // GUEST_PART if person.is_guest else self._quota

    def home(self, context: ToolContext) -> Path:
        """Return the person's folder; it may not exist yet."""
        person = context.person
        if person is None or person.is_owner:
            return self._root
        if not _PLAIN_ID.fullmatch(person.id):
            raise PathTraversalError("this person has no folder: the id is not a plain name")
        return self._root / "people" / person.id


def _has_content(name: str, parent: int, data: bytes) -> bool:
    try:
        with open_to_read(name, parent) as file:
            return os.fstat(file.fileno()).st_size == len(data) and file.read() == data
    except OSError:  # a folder, a link
        return False


def plain_text(content: bytes) -> Document | None:
    """Decode a text file in UTF-8 or as older Windows programs write it; None for what is no text."""
    whole = len(content) <= READ_LIMIT
    content = content[:READ_LIMIT]
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Document(content.decode("utf-16", "replace"), whole)
    try:  # a character that the limit cut in two is left out
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(content, final=whole)
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        return None if _CONTROL.search(text) or "\ufffd" in text else Document(text, whole)
    return None if "\0" in text else Document(text, whole)


def pages(text: str, size: int) -> list[str]:
    """Split into parts of at most `size` characters that end at the end of a line where one is near."""
    found, start = [], 0
    while len(text) - start > size:
        line = text.rfind("\n", start + size // 2, start + size) + 1
        end = line or start + size
        found.append(text[start:end])
        start = end
    return [*found, text[start:]]


def _used(home: Path) -> int:
    if not home.is_dir():
        return 0
    return sum(_counted(entry.stat(follow_symlinks=False).st_size) for entry in entries(home, recursive=True))


def _counted(size: int) -> int:
    return max(size, BLOCK)


def _described(entry: os.DirEntry[str], relative: str) -> dict[str, JSON]:
    if entry.is_symlink() or entry.is_dir(follow_symlinks=False):
        return {"path": relative, "kind": "link" if entry.is_symlink() else "folder"}
    return {"path": relative, "kind": "file", "size": entry.stat(follow_symlinks=False).st_size}


def _not_found(path: str) -> ToolResult:
    message = f"there is no {shown(path)} in the workspace"
    return ToolResult.failure("NOT_FOUND", message, "list_files shows what is")
