"""Which files of the project may be seen and changed, and what is in them."""

import ast
import os
import re
import secrets
import stat
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
LARGEST_FILE = 512 * 1024
MOST_FILES = 5000
MOST_HITS = 50
LONGEST_LINE = 240

_FOLDERS = frozenset({"app", "skills", "docs", "tests", "bench"})
_FILES = frozenset(
    {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "Makefile", "Dockerfile"}
    | {"docker-compose.yml", ".env.example"}
)
_SUFFIXES = frozenset(
    {".py", ".md", ".txt", ".toml", ".yaml", ".yml", ".sql", ".html", ".css", ".js", ".po", ".pot"}
)
_SECRET_WORDS = re.compile(
    r"secret|credential|passw|passphrase|api_?key|tokens?(?:[^a-z]|$)"
    r"|(?:^|[^a-z])(?:keys?|certs?|pwd|private|id_(?:rsa|dsa|ecdsa|ed25519)|auth|netrc|kubeconfig|wallet|cookies?)"
    r"(?:[^a-z]|$)"
)


class Refused(ValueError):
    """A path that is not for reading; the text says why."""


def real_path(path: str, root: Path = PROJECT, closed: tuple[Path, ...] = ()) -> Path:
    """Return the file or folder of the project that a path names, every link followed.

    Raises Refused for what leads out of the project, for what no source is made of, and for what lies in
    one of the `closed` folders: those that hold people's data.
    """
    if "\0" in path or len(path) > 1000:
        raise Refused("that is no path")
    root = root.resolve()
    try:
        real = (root / path).resolve()
    except (OSError, RuntimeError, ValueError):
        raise Refused("that path cannot be followed") from None
    if real != root and not real.is_relative_to(root):
        raise Refused("it leads out of the project")
    if any(real == folder or real.is_relative_to(folder) for folder in (one.resolve() for one in closed)):
        raise Refused("people's data lie there")
    parts = real.relative_to(root).parts
    named = Path(os.path.normpath(path)).parts
    if parts and not _is_source((*parts,)):
        raise Refused("only the project's own source can be seen")
    if not Path(path).is_absolute() and named not in ((), (".",)) and not _is_source(named):
        raise Refused("only the project's own source can be seen")
    return real


def _is_source(parts: tuple[str, ...]) -> bool:
    if len(parts) == 1 and parts[0] in _FILES:
        return True
    if parts[0] not in _FOLDERS or any(part.startswith(".") or part == "__pycache__" for part in parts):
        return False
    if any(_SECRET_WORDS.search(part.lower()) for part in parts[1:]):
        return False
    suffix = Path(parts[-1]).suffix.lower()
    return len(parts) == 1 or not suffix or suffix in _SUFFIXES


def files(folder: Path, root: Path, closed: tuple[Path, ...]) -> list[str]:
    """Return the files below a folder that may be seen, as paths from the project's folder on, sorted."""
    found: list[str] = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if _is_open(Path(here, name), root, closed))
        for name in names:
            path = Path(here, name)
            if _is_open(path, root, closed) and path.is_file() and not _is_bare(path):
                found.append(path.relative_to(root).as_posix())
        if len(found) > MOST_FILES:
            break
    return sorted(found)[:MOST_FILES]


def _is_open(path: Path, root: Path, closed: tuple[Path, ...]) -> bool:
    try:
        real_path(str(path.relative_to(root)), root, closed)
    except (Refused, ValueError):
        return False
    return True


def _is_bare(path: Path) -> bool:
    """Tell whether a file has no suffix and lies in a folder: it may be anything."""
    return not path.suffix and path.name not in _FILES


def read(path: Path) -> str:
    """Return the text of a file. Raises Refused where it has none, or too much."""
    if _is_bare(path):
        raise Refused("only the project's own source can be seen")
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused("that is no file")
            body = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise Refused("there is no such file") from None
    except OSError as error:
        raise Refused(f"it cannot be read: {error.strerror}") from None
    if len(body) > LARGEST_FILE:
        raise Refused(f"it has more than {LARGEST_FILE // 1024} KB")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise Refused("it is no text") from None


def check(path: Path, text: str) -> None:
    """Raise Refused where a file may not be written so."""
    if _is_bare(path):
        raise Refused("a file of the project's source has an ending, such as .py or .md")
    if path.is_dir():
        raise Refused("it is a folder")
    if len(text.encode(errors="surrogatepass")) > LARGEST_FILE:
        raise Refused(f"it would have more than {LARGEST_FILE // 1024} KB")
    if path.suffix == ".py":
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise Refused(f"it would be no valid Python: {error}") from None


def write(path: Path, text: str) -> None:
    """Replace a whole file at once. Raises Refused where that is not allowed or possible."""
    check(path, text)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            new.chmod(stat.S_IMODE(path.stat().st_mode))
        new.replace(path)
    except (OSError, UnicodeError) as error:
        with suppress(OSError):
            new.unlink()
        raise Refused(f"it cannot be written: {error}") from None


def search(words: str, paths: list[str], root: Path) -> list[dict[str, str | int]]:
    """Return the lines that hold the words just so, without regard to case."""
    wanted = words.lower()
    hits: list[dict[str, str | int]] = []
    for path in paths:
        try:
            text = read(root / path)
        except Refused:
            continue
        if wanted not in text.lower():
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if wanted in line.lower():
                hits.append({"path": path, "line": number, "text": line.strip()[:LONGEST_LINE]})
                if len(hits) >= MOST_HITS:
                    return hits
    return hits


def outline(text: str, suffix: str) -> list[dict[str, str | int]]:
    """Return classes and functions of Python, headings of Markdown, each with its line."""
    if suffix == ".md":
        lines = enumerate(text.splitlines(), start=1)
        return [{"line": number, "what": line} for number, line in lines if line.startswith("#")]
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"it is no valid Python: {error}") from None
    return list(_definitions(tree, ""))


def _definitions(node: ast.AST, indent: str):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "class" if isinstance(child, ast.ClassDef) else "def"
            about = (ast.get_docstring(child) or "").partition("\n")[0]
            what = f"{indent}{kind} {child.name}" + (f": {about}" if about else "")
            yield {"line": child.lineno, "what": what[:LONGEST_LINE]}
            if kind == "class":
                yield from _definitions(child, f"{indent}  ")


def matching(paths: list[str], pattern: str) -> list[str]:
    """Return those whose path, or whose name alone, fits a pattern such as `*.py`."""
    return [path for path in paths if fnmatch(path, pattern) or fnmatch(path.rpartition("/")[2], pattern)]
