"""`server.json` read tolerantly and bounded: what a registry lists, as an entry.

The format: https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json. Of what would become
part of a command every character is checked, and none is changed: what is odd makes its package unusable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.errors import RecadoError
from app.installs.registry_entries import Argument, Entry, Package, Reason, ReasonCode, Remote, Variable
from app.messages import JSON
from app.skills.manifest import shortened
from app.skills.servers import remote_fault
from app.text import visible

NAME = re.compile(r"[a-zA-Z0-9.-]{1,100}/[a-zA-Z0-9._-]{1,100}")
OFFICIAL = "io.modelcontextprotocol.registry/official"
PROVIDED = "io.modelcontextprotocol.registry/publisher-provided"
_READ = ("name", "title", "description", "version", "status", "repository", "packages", "remotes")
TITLE_CHARACTERS = 100
DESCRIPTION_CHARACTERS = 400
DETAIL_CHARACTERS = 200
VALUE_CHARACTERS = 2000
MOST_WAYS = 16
"""Packages, and remotes, that are looked at."""
MOST_INPUTS = 64
MOST_CHOICES = 64

_NPM = re.compile(r"(?:@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*")
_NPM_VERSION = re.compile(
    r"\d+\.\d+\.\d+(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
_PYPI = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PYPI_VERSION = re.compile(
    r"(?:\d+!)?\d+(?:\.\d+)*(?:[-_.]?(?:a|b|rc|alpha|beta)[-_.]?\d+)?(?:\.post\d+)?(?:\.dev\d+)?", re.ASCII
)
_HOMES = {
    "npm": ("https://registry.npmjs.org",),
    "pypi": ("https://pypi.org", "https://pypi.org/simple"),
}
_RUNTIMES = {"npm": ("", "npx", "node"), "pypi": ("", "uvx", "pipx", "python", "python3")}
_NEEDLESS = frozenset({"-y", "--yes"})
"""Runtime arguments that mean nothing to a package that is installed before it is started."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FLAG = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_HEADER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_LOADER = re.compile(
    r"(?:LD_|DYLD_|NPM_CONFIG_|PIP_|UV_).*|NODE_(?:OPTIONS|PATH)|PYTHON(?:PATH|HOME|STARTUP|USERBASE|BREAKPOINT)"
    r"|PATH|HOME|SHELL|IFS|ENV|BASH_ENV",
    re.IGNORECASE,
)
"""Variables that change which programs run and where they look for parts, rather than what a server does."""
_TRANSPORT_HEADER = re.compile(
    "Host|Connection|Content-.*|Transfer-Encoding|Te|Trailer|Upgrade|Expect|Keep-Alive|Proxy-.*|Mcp-.*"
    "|Accept(?:-Encoding)?",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"(\$?)\{([A-Za-z_][\w.-]{0,63})\}", re.ASCII)
_SECRET = re.compile(r"token|secret|passw|credential|api_?key|private_?key|access_?key|authorization", re.I)


class Unusable(RecadoError):
    """Something in a package or remote that nothing is installed with."""

    def __init__(self, code: ReasonCode, detail: str = "") -> None:
        super().__init__(code)
        self.reason = Reason(code, _text(detail, DETAIL_CHARACTERS))


def read_entry(raw: JSON) -> Entry | None:
    """An entry as the registry lists it (`{"server": …, "_meta": …}`) or a bare server.json; None where it is
    neither or has no proper name. Never raises."""
    server, meta = _parts(raw)
    needs = _needs(server)
    name = server.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return None
    return Entry(
        name=name,
        title=_text(server.get("title"), TITLE_CHARACTERS),
        description=_text(server.get("description"), DESCRIPTION_CHARACTERS),
        version=_text(server.get("version"), TITLE_CHARACTERS),
        packages=tuple(map(_package, _objects(server.get("packages"))[:MOST_WAYS])),
        remotes=tuple(map(_remote, _objects(server.get("remotes"))[:MOST_WAYS])),
        status=_text(meta.get("status") or server.get("status"), 20) or "active",
        status_message=_text(meta.get("statusMessage"), DETAIL_CHARACTERS),
        repository=_text(_object(server.get("repository")).get("url"), DETAIL_CHARACTERS),
        offline=needs.get("network") is False,
        programs=needs.get("programs") is True,
    )


def trimmed(raw: JSON) -> JSON:
    """All of an entry that `read_entry` looks at; nothing of one that is not the newest of its server."""
    server, meta = _parts(raw)
    if meta.get("isLatest") is False:
        return None
    kept = {key: server[key] for key in _READ if key in server}
    said = {PROVIDED: {"sandbox": _needs(server)}}
    return {"server": {**kept, "_meta": said}, "_meta": {OFFICIAL: meta}}


def _parts(raw: JSON) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """The server.json of an entry, and what the registry says of it."""
    outer = _object(raw)
    return _object(outer.get("server")) or outer, _object(_object(outer.get("_meta")).get(OFFICIAL))


def _needs(server: Mapping[str, JSON]) -> dict[str, JSON]:
    """What its publisher says that it needs of a sandbox."""
    return _object(_object(_object(server.get("_meta")).get(PROVIDED)).get("sandbox"))


def _package(raw: Mapping[str, JSON]) -> Package:
    transport = _object(raw.get("transport")).get("type", "stdio")
    digest = raw.get("fileSha256")
    package = Package(
        kind=_text(raw.get("registryType"), 20).lower(),
        identifier=_text(raw.get("identifier"), DETAIL_CHARACTERS),
        version=_text(raw.get("version"), TITLE_CHARACTERS),
        transport=_text(transport, 20),
        sha256=digest if isinstance(digest, str) and _SHA256.fullmatch(digest) else "",
    )
    try:
        _check_package(package, raw)
        return replace(package, arguments=_arguments(raw), environment=_environment(raw))
    except Unusable as unusable:
        return replace(package, fault=unusable.reason)


def _check_package(package: Package, raw: Mapping[str, JSON]) -> None:
    """Raises Unusable for what is not installed and started just by its name and version."""
    if package.kind not in _HOMES:
        raise Unusable("OCI_ONLY") if package.kind == "oci" else Unusable("OTHER_KIND", package.kind)
    if package.transport != "stdio":
        raise Unusable("NOT_STDIO", package.transport)
    is_npm = package.kind == "npm"
    # What is checked is what was shown: a text that cleaning changed matches none of these.
    if not (_NPM if is_npm else _PYPI).fullmatch(package.identifier):
        raise Unusable("BAD_IDENTIFIER", package.identifier)
    if not (_NPM_VERSION if is_npm else _PYPI_VERSION).fullmatch(package.version):
        raise Unusable("NOT_EXACT", package.version)
    home = raw.get("registryBaseUrl")
    if home and str(home).rstrip("/") not in _HOMES[package.kind]:
        raise Unusable("OTHER_REGISTRY", str(home))
    if (runtime := _text(raw.get("runtimeHint"), 40)) not in _RUNTIMES[package.kind]:
        raise Unusable("ODD_RUNTIME", runtime)
    joint = "@" if is_npm else "=="
    harmless = _NEEDLESS | {package.identifier, f"{package.identifier}{joint}{package.version}"}
    for argument in _objects(raw.get("runtimeArguments")):
        written = " ".join(str(argument[key]) for key in ("name", "value", "default") if argument.get(key))
        if written not in harmless:
            raise Unusable("ODD_RUNTIME", written)


def _arguments(raw: Mapping[str, JSON]) -> tuple[Argument, ...]:
    return tuple(_argument(position, one) for position, one in enumerate(_few(raw, "packageArguments"), 1))


def _argument(position: int, raw: Mapping[str, JSON]) -> Argument:
    if raw.get("type") != "named":
        hint = _text(raw.get("valueHint"), 40)
        name = hint if _VARIABLE_NAME.fullmatch(hint) else f"argument_{position}"
        return Argument("", _variable(name, raw))
    flag = raw.get("name")
    if not isinstance(flag, str) or not _FLAG.fullmatch(flag) or len(flag) > TITLE_CHARACTERS:
        raise Unusable("ODD_ARGUMENT", str(flag))
    return Argument(flag, _variable(flag, raw))


def _environment(raw: Mapping[str, JSON]) -> tuple[Variable, ...]:
    return tuple(map(_environment_variable, _few(raw, "environmentVariables")))


def _environment_variable(raw: Mapping[str, JSON]) -> Variable:
    name = raw.get("name")
    if not isinstance(name, str) or not _VARIABLE_NAME.fullmatch(name) or _LOADER.fullmatch(name):
        raise Unusable("ODD_VARIABLE", str(name))
    return _variable(name, raw)


def _remote(raw: Mapping[str, JSON]) -> Remote:
    remote = Remote(kind=_text(raw.get("type"), 40), url=_text(raw.get("url"), VALUE_CHARACTERS))
    try:
        if remote.kind == "sse":
            raise Unusable("SSE_ONLY")
        if remote.kind != "streamable-http":
            raise Unusable("OTHER_KIND", remote.kind)
        if remote.url != raw.get("url") or remote_fault(remote.url):
            raise Unusable("BAD_ADDRESS", remote.url)
        declared = _declared(raw)
        url = _template(remote.url, declared, is_asked=True)
        headers = tuple(_header(one, declared) for one in _few(raw, "headers"))
        return replace(remote, url=url.value, headers=headers, variables=url.variables)
    except Unusable as unusable:
        return replace(remote, fault=unusable.reason)


def _header(raw: Mapping[str, JSON], declared: Mapping[str, Variable]) -> Variable:
    name = raw.get("name")
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name) or _TRANSPORT_HEADER.fullmatch(name):
        raise Unusable("ODD_VARIABLE", str(name))
    return _variable(name, raw, declared, is_asked=True)


def _variable(
    name: str,
    raw: Mapping[str, JSON],
    declared: Mapping[str, Variable] | None = None,
    is_asked: bool = False,
) -> Variable:
    """A value, which may be a template; `is_asked`: a `{name}` of it that nobody declared is asked for."""
    plain = _plain(name, raw)
    value = _exact(raw.get("value"), name)
    if not value:
        return plain
    template = _template(value, {**(declared or {}), **_declared(raw)}, is_asked)
    return replace(plain, value=template.value, variables=template.variables, default="", required=False)


def _declared(raw: Mapping[str, JSON]) -> dict[str, Variable]:
    variables = _object(raw.get("variables"))
    if len(variables) > MOST_INPUTS:
        raise Unusable("TOO_LARGE", "variables")
    return {name: _plain(name, _object(one)) for name, one in variables.items()}


@dataclass(frozen=True, slots=True)
class _Template:
    value: str
    variables: tuple[Variable, ...]


def _template(text: str, declared: Mapping[str, Variable], is_asked: bool) -> _Template:
    """The text with each variable of a person's as `{name}`: hosts write `${NAME}` too, which must never
    mean a variable of this machine. What has a value of its own is filled in."""
    found: dict[str, Variable] = {}

    def name_of(match: re.Match[str]) -> str:
        dollar, name = match.groups()
        if name not in declared and not dollar and not is_asked:
            return match[0]
        found[name] = declared.get(name) or _plain(
            name, {"isRequired": True, "isSecret": is_asked or bool(dollar)}
        )
        return f"{{{name}}}"

    value = _PLACEHOLDER.sub(name_of, text)
    if "${" in value:
        raise Unusable("ODD_VARIABLE", text)
    return _Template(value, tuple(found.values()))


def _plain(name: str, raw: Mapping[str, JSON]) -> Variable:
    """A value that a person gives."""
    form = raw.get("format")
    default = _exact(raw.get("default"), name)
    variable = Variable(
        name=name,
        description=_text(raw.get("description"), DETAIL_CHARACTERS),
        required=raw.get("isRequired") is True,
        secret=raw.get("isSecret") is True or (form != "filepath" and bool(_SECRET.search(name))),
        default="" if "${" in default else default,  # another host's own variables
        placeholder=_text(raw.get("placeholder"), DETAIL_CHARACTERS),
        choices=_choices(raw.get("choices"), name),
        format=form if form in ("number", "boolean", "filepath") else "string",
    )
    if not _VARIABLE_NAME.fullmatch(variable.key):
        raise Unusable("ODD_VARIABLE", name)
    return variable


def _choices(value: JSON, name: str) -> tuple[str, ...]:
    choices = value if isinstance(value, list) else []
    if len(choices) > MOST_CHOICES:
        raise Unusable("TOO_LARGE", name)
    return tuple(_exact(one, name) for one in choices)


def _exact(value: JSON, name: str) -> str:
    """A text that is used as it is. Raises Unusable where a reader would not see all of it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value) if isinstance(value, (str, int, float)) else ""
    if len(text) > VALUE_CHARACTERS:
        raise Unusable("TOO_LARGE", name)
    if text != visible(text):
        raise Unusable("ODD_VARIABLE" if _VARIABLE_NAME.fullmatch(name) else "ODD_ARGUMENT", text)
    return text


def _few(raw: Mapping[str, JSON], key: str) -> list[dict[str, JSON]]:
    found = _objects(raw.get(key))
    if len(found) > MOST_INPUTS:
        raise Unusable("TOO_LARGE", key)
    return found


def _object(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}


def _objects(value: JSON) -> list[dict[str, JSON]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: JSON, limit: int) -> str:
    """A text to be read: on one line, nothing in it hidden, cut."""
    return shortened(visible(" ".join(value[: 4 * limit].split())), limit) if isinstance(value, str) else ""
