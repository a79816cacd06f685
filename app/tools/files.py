"""Files in a workspace: paths that cannot leave it, and the tools that read and write there."""

import codecs
import fnmatch
import functools
import os
import re
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, ParamSpec

from app.messages import JSON
from app.people import Person
from app.store.space import MEGABYTE, Disk
from app.tools.context import ToolContext
from app.tools.result import ToolResult
from app.tools.tool import Tool

READ_LIMIT = 512 * 1024
WRITE_LIMIT = 1024 * 1024
LIST_LIMIT = 500
BLOCK = 4096
"""Bytes that even an empty file counts as."""

_LONGEST_NAME = 255
_DRIVE = re.compile(r"^[A-Za-z]:")
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for its other end
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd and os.unlink in os.supports_dir_fd


class PathTraversalError(ValueError):
    """A path that is not inside the workspace, or cannot be a path."""


def validate_path(path: str | Path, workspace_root: str | Path) -> Path:
    """The real path of `path` inside the workspace, with every link followed.

    Raises PathTraversalError for what leads out of it: `..`, another absolute path, a link, and for what
    is no path at all: a NUL byte, a name of more than 255 bytes.
    """
    text = str(path)
    if "\0" in text:
        raise PathTraversalError("the path holds a NUL byte")
    parts = text.replace("\\", "/").split("/")
    if ".." in parts:
        raise PathTraversalError(f"{_shown(text)}: '..' is not allowed; name the path from the workspace on")
    if _DRIVE.match(text) or (text.startswith("\\") and os.sep == "/"):
        raise PathTraversalError(f"{_shown(text)}: a path of another machine; name it from the workspace on")
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise PathTraversalError(f"{_shown(text)}: a name in it is longer than {_LONGEST_NAME} bytes")
    try:
        root = Path(workspace_root).resolve()
        real = (root / text).resolve()
    except (
        OSError,
        RuntimeError,
        UnicodeError,
    ) as error:  # a loop of links, a path beyond the system's limit
        raise PathTraversalError(f"{_shown(text)}: {type(error).__name__} while it was looked up") from None
    if not real.is_relative_to(root):
        raise PathTraversalError(f"{_shown(text)} leads out of the workspace")
    return real


def file_tools(
    workspace_root: str | Path, allow_delete: bool = False, *, quota: int = 0, least_free: int = 0
) -> list[Tool]:
    """read_file, list_files, write_file and delete_file for one workspace.

    Owners, and calls without a person, work at its root; others in their own `people/<id>` in it, which
    holds at most `quota` bytes. Nothing is written on a disk with too little room beside `least_free`
    bytes. 0: no limit.
    """
    files = _Files(Path(workspace_root), allow_delete, quota, least_free)
    made: list[tuple[Callable[..., ToolResult], bool, bool]] = [
        (files.read_file, False, True),
        (files.list_files, False, True),
        (files.write_file, True, False),
        (files.delete_file, True, False),
    ]
    return [
        Tool.from_function(
            function, category="files", sensitive=sensitive, idempotent=idempotent, check=files.check
        )
        for function, sensitive, idempotent in made
    ]


P = ParamSpec("P")


def _errors_as_results(function: Callable[P, ToolResult]) -> Callable[P, ToolResult]:
    """Gives what the file system refuses as a failed result that the model can act on."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> ToolResult:
        path = str(kwargs.get("path", "."))
        try:
            return function(*args, **kwargs)
        except PathTraversalError as error:
            return ToolResult.failure("BAD_REQUEST", str(error))
        except FileNotFoundError:
            return _not_found(path)
        except (IsADirectoryError, NotADirectoryError, FileExistsError):
            return ToolResult.failure("NOT_A_FILE", f"{_shown(path)} is not a plain file in a folder")
        except OSError as error:
            return ToolResult.failure(
                "FILE_ERROR", f"{_shown(path)}: {error.strerror or type(error).__name__}"
            )

    return guarded


class _Files:
    """The four functions; every path goes through `_place`, every open through a walk without links."""

    def __init__(self, root: Path, allow_delete: bool, quota: int, least_free: int) -> None:
        self._root = root
        self._allow_delete = allow_delete
        self._quota = quota
        self._disk = Disk(root, least_free)
        self._one_writer = threading.Lock()
        """Held from counting to writing: two calls at once must not both get the last bytes."""

    def check(self, args: dict[str, JSON], context: ToolContext) -> None:
        validate_path(args.get("path", "."), self._home(context))

    @_errors_as_results
    def read_file(
        self, path: str, start_line: int = 1, max_lines: int = 2000, *, context: ToolContext
    ) -> ToolResult:
        """Read a text file of the workspace.

        Args:
            path: Path from the workspace on, such as "notes/today.md"
            start_line: First line to read, counted from 1
            max_lines: How many lines at most

        Example: lee el archivo notas.txt
        """
        with _open_parent(self._home(context), path) as (parent, name):
            descriptor = _open_regular(name, os.O_RDONLY | _NO_WAIT, parent)
            with os.fdopen(descriptor, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                content = file.read(READ_LIMIT + 1)
        if b"\0" in content[:8192]:
            return ToolResult.failure("NOT_TEXT", f"{path} is not a text file", size=size)
        try:
            text = _text(content)
        except UnicodeDecodeError:
            return ToolResult.failure("NOT_TEXT", f"{path} is not UTF-8 text", size=size)
        lines = text.splitlines(keepends=True)
        first = max(1, start_line) - 1
        shown = lines[first : first + max(1, max_lines)]
        more = first + len(shown) < len(lines) or size > READ_LIMIT
        return ToolResult.success({"path": path, "content": "".join(shown), "size": size, "more": more})

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
        home = self._home(context)
        folder = validate_path(path, home)
        if not folder.exists():
            if folder == home.resolve():
                return ToolResult.success({"path": path, "entries": [], "more": False})
            return _not_found(path)
        if not folder.is_dir():
            return ToolResult.failure("NOT_A_FOLDER", f"{path} is a file", "use read_file")
        entries: list[dict[str, JSON]] = []
        for entry in _entries(folder, recursive):
            relative = os.path.relpath(entry.path, folder).replace(os.sep, "/")
            if not (fnmatch.fnmatch(entry.name, pattern) or fnmatch.fnmatch(relative, pattern)):
                continue
            if len(entries) == LIST_LIMIT:
                return ToolResult.success({"path": path, "entries": entries, "more": True})
            entries.append(_described(entry, relative))
        return ToolResult.success({"path": path, "entries": entries, "more": False})

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
            return ToolResult.failure(
                "TOO_LARGE", f"{len(data)} bytes are more than the {WRITE_LIMIT} that one write may have"
            )
        home = self._home(context)
        with self._one_writer:
            refusal = self._refusal(home, context.person, path, len(data), mode == "append")
            if refusal is not None:
                return refusal
            with _open_parent(home, path, create=True) as (parent, name):
                if mode == "append":
                    _append(name, data, parent)
                else:
                    _replace(name, data, parent)
        return ToolResult.success({"path": path, "bytes": len(data), "mode": mode})

    @_errors_as_results
    def delete_file(self, path: str, *, context: ToolContext) -> ToolResult:
        """Delete a file of the workspace.

        Args:
            path: Path from the workspace on

        Example: borra el archivo viejo.txt
        """
        if not self._allow_delete:
            return ToolResult.failure(
                "DELETE_NOT_ALLOWED",
                "deleting files is switched off",
                "the operator can set ALLOW_DELETE=true",
            )
        with self._one_writer, _open_parent(self._home(context), path) as (parent, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                return ToolResult.failure("NOT_A_FILE", f"{path} is a folder; only files can be deleted")
            os.unlink(name, dir_fd=parent)
        return ToolResult.success({"path": path, "deleted": True})

    def _refusal(
        self, home: Path, person: Person | None, path: str, size: int, append: bool
    ) -> ToolResult | None:
        """Why there is no room for `size` bytes more; a file that is replaced gives its own back."""
        if not self._disk.has_room_for("data"):
            return ToolResult.failure("NO_SPACE", "the disk is nearly full, so no file is written")
        if not self._quota or person is None or person.is_owner:  # an owner's workspace is the operator's own
            return None
        target = validate_path(path, home)
        replaced = 0 if append or not target.is_file() else _counted(target.stat().st_size)
        if _used(home) - replaced + _counted(size) <= self._quota:
            return None
        limit = f"{self._quota / MEGABYTE:g} MB"
        hint = "say so; files that are no longer needed must go first"
        return ToolResult.failure("QUOTA_EXCEEDED", f"this person's files may have {limit} in all", hint)

    def _home(self, context: ToolContext) -> Path:
        person = context.person
        if person is None or person.is_owner:
            return self._root
        if not _PLAIN_ID.fullmatch(person.id):
            raise PathTraversalError("this person has no folder: the id is not a plain name")
        return self._root / "people" / person.id


@contextmanager
def _open_parent(home: Path, path: str, create: bool = False) -> Iterator[tuple[int | None, str]]:
    """A descriptor of the file's real folder, reached without following a link, and the file's name.

    The path is resolved first, so a link met on the way was put there in between: it is refused.
    Without descriptors (Windows) the name is the whole path.
    """
    real = validate_path(path, home)
    root = home.resolve()
    if real == root:
        raise IsADirectoryError(f"{_shown(path)} is a folder")
    if create:
        root.mkdir(parents=True, exist_ok=True)
    if not _HAS_DESCRIPTORS:
        if create:
            real.parent.mkdir(parents=True, exist_ok=True)
        yield None, str(real)
        return
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in real.relative_to(root).parts[:-1]:
            inner = _enter(descriptor, part, create)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, real.name
    finally:
        os.close(descriptor)


def _enter(parent: int, name: str, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=parent)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=parent)


def _open_regular(name: str, flags: int, parent: int | None, mode: int = 0o644) -> int:
    """Opens a plain file: no link, folder, pipe or device."""
    descriptor = os.open(name, flags | _NO_FOLLOW, mode, dir_fd=parent)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise IsADirectoryError("not a plain file")


def _append(name: str, data: bytes, parent: int | None) -> None:
    descriptor = _open_regular(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_WAIT, parent)
    with os.fdopen(descriptor, "ab") as file:
        file.write(data)


def _replace(name: str, data: bytes, parent: int | None) -> None:
    """Writes beside the file and takes its place: a crash leaves the old one whole."""
    temporary = os.path.join(os.path.dirname(name), f".{secrets.token_hex(8)}.tmp")
    descriptor = _open_regular(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        os.unlink(temporary, dir_fd=parent)
        raise


def _entries(folder: Path, recursive: bool) -> Iterator[os.DirEntry[str]]:
    """By name, folders' own entries after them; links are named but not followed."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        yield entry
        if recursive and entry.is_dir(follow_symlinks=False):
            yield from _entries(Path(entry.path), recursive)


def _used(home: Path) -> int:
    """Bytes of a person's files."""
    if not home.is_dir():
        return 0
    return sum(
        _counted(entry.stat(follow_symlinks=False).st_size) for entry in _entries(home, recursive=True)
    )


def _counted(size: int) -> int:
    return max(size, BLOCK)


def _described(entry: os.DirEntry[str], relative: str) -> dict[str, JSON]:
    if entry.is_symlink():
        return {"path": relative, "kind": "link"}
    if entry.is_dir(follow_symlinks=False):
        return {"path": relative, "kind": "folder"}
    return {"path": relative, "kind": "file", "size": entry.stat(follow_symlinks=False).st_size}


def _text(content: bytes) -> str:
    """UTF-8 text; a character that the read limit cut in two is left out."""
    whole = len(content) <= READ_LIMIT
    return codecs.getincrementaldecoder("utf-8-sig")().decode(content[:READ_LIMIT], final=whole)


def _not_found(path: str) -> ToolResult:
    return ToolResult.failure(
        "NOT_FOUND", f"there is no {_shown(path)} in the workspace", "list_files shows what is"
    )


def _shown(path: str) -> str:
    return repr(path if len(path) <= 100 else path[:100] + "…")
