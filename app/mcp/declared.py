"""One entry of an `mcpServers` mapping, as other hosts write it too, read into a definition."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from app.errors import RecadoError
from app.http.address import Address
from app.http.errors import FetchError
from app.mcp.definitions import NAME_RULE, Origin, ServerDefinition, is_server_name
from app.mcp.templates import Filling, TemplateError, has_reference, is_secret, is_secret_text
from app.messages import JSON
from app.processes.sandbox import Grants
from app.skills.manifest import shortened
from app.tools.tool import Audience

MOST_TEXTS = 256
LONGEST_TEXT = 32 * 1024

_URL_KEYS = ("url", "serverUrl", "httpUrl")
_REMOTE_TYPES = frozenset({"http", "streamable-http", "streamablehttp"})
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class _Unusable(RecadoError):
    """An entry of which no server can be made."""


def declare(
    name: str,
    entry: JSON,
    values: Mapping[str, str],
    *,
    origin: Origin = "operator",
    folder: str = "",
) -> ServerDefinition:
    """The server that an entry describes, with `values` in its `${VARIABLE}`; `fault` says what to mend.

    `folder` is where it starts unless the entry has a `cwd`. Never raises.
    """
    try:
        return _read(name, entry, Filling(values), origin, folder)
    except (_Unusable, TemplateError) as error:
        off = isinstance(entry, dict) and (entry.get("enabled") is False or entry.get("disabled") is True)
        shown = shortened(name, 100) or "(no name)"
        return ServerDefinition(shown, origin, enabled=not off, audience="owners", fault=str(error))


def _read(name: str, entry: JSON, filling: Filling, origin: Origin, folder: str) -> ServerDefinition:
    if not is_server_name(name):
        raise _Unusable(f"its name cannot be used: {NAME_RULE}; rename it")
    if not isinstance(entry, dict):
        raise _Unusable('it is no object; write {"command": …, "args": […]} or {"url": …}')
    command, url = _command(entry, filling), _url(entry, filling)
    _check_type(entry, command, url)
    args = tuple(map(filling.fill, _texts(entry, "args")))
    env = tuple((key, filling.fill(value)) for key, value in _named(entry, "env"))
    headers = tuple((key, filling.fill(value)) for key, value in _named(entry, "headers"))
    _check_values(args, env, headers)
    exposed = tuple(_exposed(entry))
    open_secrets = (value for name, value in (*env, *headers) if is_secret(name, value))
    holds_secret = bool(filling.given or filling.missing or exposed)
    sandboxed, grants = _sandbox(entry)
    return ServerDefinition(
        name=name,
        origin=origin,
        command=command,
        args=args,
        env=env,
        url=url,
        headers=headers,
        folder=_text(entry, "cwd") or folder,
        sandboxed=sandboxed,
        grants=grants,
        audience=_audience(entry, "owners" if holds_secret else "everyone"),
        trusted=_is_true(entry, "trust", False),
        enabled=_is_true(entry, "enabled", True) and not _is_true(entry, "disabled", False),
        description=shortened(_text(entry, "description"), 300),
        missing=filling.missing,
        exposed=exposed,
        hidden=(*filling.secrets, *open_secrets),
    )


def _command(entry: Mapping[str, JSON], filling: Filling) -> str:
    command = filling.fill(_text(entry, "command"))
    if any(character.isspace() for character in command) and not Path(command).exists():
        raise _Unusable('"command" is the program alone; its arguments belong into "args"')
    return command


def _url(entry: Mapping[str, JSON], filling: Filling) -> str:
    """The address of a remote; its text is never part of a fault, for it may hold a key."""
    written = next((text for key in _URL_KEYS if (text := _text(entry, key))), "")
    url = filling.fill(written)
    if not url or filling.missing:
        return url
    try:
        Address.parse(url)
    except FetchError as error:
        raise _Unusable(f'"url" cannot be used: {error}') from error
    return url


def _check_type(entry: Mapping[str, JSON], command: str, url: str) -> None:
    if bool(command) == bool(url):
        both = "both" if command else "neither"
        raise _Unusable(f'it has {both} of "command" (a program here) and "url" (a server elsewhere)')
    kind = (_text(entry, "type") or _text(entry, "transport")).lower().replace("_", "-")
    if kind == "sse":
        raise _Unusable("the transport SSE is not spoken; look for the server's streamable HTTP address")
    known = _REMOTE_TYPES if url else {"stdio"}
    if kind and kind not in known:
        raise _Unusable(f'"type" does not fit: with "{"url" if url else "command"}" it is {sorted(known)[0]}')


def _check_values(
    args: tuple[str, ...], env: tuple[tuple[str, str], ...], headers: tuple[tuple[str, str], ...]
) -> None:
    """What no program or request can be given; the values may hold secrets and are not named."""
    if any("\0" in text for text in (*args, *(value for _, value in env))):
        raise _Unusable("args or env holds a NUL character")
    for name, _ in env:
        if not name or "=" in name or _UNPRINTABLE.search(name):
            raise _Unusable(f"env: {name!r} is no variable's name")
    for name, value in headers:
        if not _HEADER.fullmatch(name):
            raise _Unusable(f"headers: {name!r} is no header's name")
        if _UNPRINTABLE.search(value) or not value.isascii():
            raise _Unusable(f"headers: the value of {name} holds line breaks or letters beyond ASCII")


def _sandbox(entry: Mapping[str, JSON]) -> tuple[bool, Grants]:
    """`true`, or an object with what it may do: {"network": true, "read": [folder], "write": [folder]}."""
    wanted = entry.get("sandbox", False)
    if isinstance(wanted, bool):
        return wanted, Grants()
    if not isinstance(wanted, dict) or not wanted.keys() <= {"network", "programs", "read", "write"}:
        raise _Unusable('"sandbox" is true, false or {"network", "programs", "read": […], "write": […]}')
    return True, Grants(
        network=_is_true(wanted, "network", False),
        programs=_is_true(wanted, "programs", False),
        folders_read=tuple(map(Path, _texts(wanted, "read"))),
        folders_write=tuple(map(Path, _texts(wanted, "write"))),
    )


def _audience(entry: Mapping[str, JSON], usual: Audience) -> Audience:
    wanted = entry.get("audience", usual)
    if wanted not in get_args(Audience):
        raise _Unusable(f'"audience" is one of {", ".join(get_args(Audience))}')
    return "owners" if wanted == "owners" else "everyone"


def _exposed(entry: Mapping[str, JSON]) -> Iterator[str]:
    """Places where a secret stands as it is."""
    for key in ("env", "headers"):
        for name, value in _named(entry, key):
            if not has_reference(value) and is_secret(name, value):
                yield f"{key} {name}"
    for key, texts in (("args", _texts(entry, "args")), ("url", [_text(entry, key) for key in _URL_KEYS])):
        if any(is_secret_text(text) and not has_reference(text) for text in texts):
            yield key


def _named(entry: Mapping[str, JSON], key: str) -> list[tuple[str, str]]:
    value = entry.get(key) or {}
    if not isinstance(value, dict) or len(value) > MOST_TEXTS:
        raise _Unusable(f'"{key}" is an object of at most {MOST_TEXTS} texts by name')
    return [(name, _as_text(one, key)) for name, one in value.items()]


def _texts(entry: Mapping[str, JSON], key: str) -> list[str]:
    value = entry.get(key) or []
    if not isinstance(value, list) or len(value) > MOST_TEXTS:
        raise _Unusable(f'"{key}" is a list of at most {MOST_TEXTS} texts')
    return [_as_text(one, key) for one in value]


def _text(entry: Mapping[str, JSON], key: str) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or "\0" in value:
        raise _Unusable(f'"{key}" is a text of at most {LONGEST_TEXT} characters')
    return value.strip()


def _as_text(value: JSON, key: str) -> str:
    """Other hosts take numbers and switches where a program is given their texts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise _Unusable(f'"{key}" holds what is no text of at most {LONGEST_TEXT} characters')
    return value


def _is_true(entry: Mapping[str, JSON], key: str, usual: bool) -> bool:
    value = entry.get(key, usual)
    if not isinstance(value, bool):
        raise _Unusable(f'"{key}" is true or false')
    return value
