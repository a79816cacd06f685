"""A tool, the one interface to anything that a model may call; the context of a call; the tools by name."""

import asyncio
import copy
import hashlib
import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol, get_args

import orjson
from pydantic import ValidationError

from app.errors import RecadoError
from app.messages import JSON
from app.people import Audience, Person
from app.tasks import DaemonThreads
from app.text import shortened
from app.tools.plain import sendable
from app.tools.result import ToolResult
from app.tools.schema import Schema, Signature, described, is_context, name_of, signature_of
from app.tools.validation import ArgumentsCheck, InvalidArguments, describe_value


class PersonStore(Protocol):
    """This person's rows for this skill. Synchronous for `def` tools, awaitable for `async def` ones."""

    def get(self, key: str, default: JSON = None) -> JSON: ...

    def put(self, key: str, value: JSON) -> JSON: ...

    def list(self, prefix: str = "", limit: int = 1000) -> JSON: ...

    def delete(self, key: str) -> JSON: ...


class InThread:
    """The face of a part for a `def` tool: `async` methods run on the loop while the tool's thread waits."""

    def __init__(self, part: object, seconds: float) -> None:
        self._part = part
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._part, name)

        def call(*args: Any, **named: Any) -> Any:
            acts = asyncio.run_coroutine_threadsafe(method(*args, **named), self._loop)
            return acts.result(self._seconds)

        return call


class Services(dict[str, object]):
    """Services by name, as `context.services.search` or `context.services["search"]`."""

    def __getattr__(self, name: str) -> object:
        if name not in self:
            raise AttributeError(f"no service is named {name!r}; only skills of the release have services")
        return self[name]


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """The context that a tool function's parameter named `context` receives.

    `sources` say where text of others in the turn's prompt came from, none when all of it is the person's.
    `subject` and `choice` belong to a call that was asked about with a card of its own: the hash of what the
    card showed, and what the person chose. `message` is what the person wrote just now, and `own_words` all
    that they wrote in the turns that the prompt shows; both stay in the server's own process. `shown_again`
    are the answers to the call's earlier cards that decided nothing, such as "details".
    """

    person: Person | None = None
    conversation: str = ""
    store: PersonStore | None = None
    http: object | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str = ""
    channel: str = ""
    services: Services = field(default_factory=Services)
    sources: Collection[str] = ()
    subject: str = ""
    choice: str = ""
    chosen: Collection[str] = ()  # the skills in use in the turn
    message: str = ""
    own_words: Sequence[str] = ()
    shown_again: Collection[str] = ()

    @property
    def language(self) -> str:
        """Return the person's language, English when there is no person."""
        return self.person.language if self.person is not None else "en"


PathCheck = Callable[[dict[str, JSON], ToolContext], None]


@dataclass(eq=False, kw_only=True)
class Traits:
    """Facts about a tool that its author or the host declares.

    Functions of bundled skills have some of the last as attributes: `guard` refuses a call before anybody is
    asked (it returns a failure, or None, and what it stores is not kept), `card` makes the card
    (`app.turns.cards.Card`) of a tool that asks in every mode, `whole_card` writes it for the console.
    `consent_about` names what a yes, also "always here", holds for, where that is less than the tool.
    """

    category: str = ""
    sensitive: bool = False
    # A call that comes to UPSTREAM_RATE_LIMIT or UPSTREAM_ERROR is tried again, after the seconds in
    # `meta.retry_after` or a growing pause, as long as that fits into `timeout`.
    idempotent: bool = False
    timeout: float = 30.0
    audience: Audience = "members"
    examples: Iterable[str] = ()  # sentences that lead to this tool
    phrases: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by language: what people write
    harmless: bool = False  # it changes nothing of the world: it never asks, and runs in a dry run too
    read_only: bool = False  # it changes nothing, but may reach others
    destructive: bool = False  # it takes away what the person keeps: a turn with words of others asks
    warnings: tuple[str, ...] = ()
    outside: bool = True  # its results may hold what others wrote, which never grants a permission
    permits_addresses: bool = False  # it searches: a network tool may ask the addresses in its results
    code: str = ""  # the version of the code that answers, "" for the release's: a yes holds for it alone

    guard: Callable[[dict[str, JSON], ToolContext], Awaitable[object]] | None = None
    card: Callable[[dict[str, JSON], ToolContext], Awaitable[Any]] | None = None
    whole_card: Callable[[Any, Services, str], str] | None = None
    changes_person: bool = False  # it runs before the others of its round, which go by what it changed
    consent_about: Callable[[Mapping[str, JSON]], str] | None = None


class Tool(Traits):
    """A typed function that a model may call. Not changed once made; `replace` gives a changed copy.

    `execute` is called with the arguments as keywords, and with `context=` if it has that parameter.
    A callable whose first parameter is named `args` gets the whole mapping instead: `execute(args)` or
    `execute(args, context)`; one that was made a tool by `from_function` never does. It may be `async def` or
    `def` (then it runs in a thread), and may return any JSON value, an envelope with "ok", or a ToolResult.

    `check(args, context)` raises ValueError for arguments that fit the schema and still cannot be taken;
    it also runs in a dry run and must have no effect.
    """

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: Mapping[str, JSON],
        execute: Callable[..., object],
        *,
        check: PathCheck | None = None,
        signature: Signature | None = None,
        **traits: Any,
    ) -> None:
        super().__init__(**traits)
        if self.timeout <= 0:
            raise ValueError(f"timeout of {name}: expected seconds above 0, got {self.timeout}")
        if self.audience not in (known := get_args(Audience)):
            raise ValueError(f"audience of {name}: expected one of {known}, got {self.audience!r}")
        self.name = name
        self.description: str = sendable(description)
        self.input_schema: Schema = sendable(dict(input_schema))
        self.examples: tuple[str, ...] = tuple(sendable(list(self.examples)))
        self.read_only = self.read_only or self.harmless
        self._function = execute
        self._check = check
        self._adapters = signature.adapters if signature else {}
        self._fills = signature.fills if signature else {}
        try:
            parameters = [*inspect.signature(execute).parameters.values()]
        except (TypeError, ValueError):  # some built-in callables have none
            parameters = []
        by_place = [p.name for p in parameters[:1] if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._takes_whole = signature is None and by_place == ["args"]
        self._context_name = next((p.name for p in parameters if is_context(p)), "")

    @classmethod
    def from_function(cls, fn: Callable[..., object], *, name: str | None = None, **traits: Any) -> "Tool":
        """Make a tool of a function's name, docstring and annotations. Raises ValueError for a generator.

        `traits` are those of `Traits`, and `check`.
        """
        signature = signature_of(fn)
        name = name or name_of(fn)
        return cls(
            name,
            signature.docstring.description or name,
            signature.schema,
            fn,
            signature=signature,
            examples=signature.docstring.examples,
            warnings=signature.warnings,
            **traits,
        )

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @property
    def is_async(self) -> bool:
        """Return True if the function runs on the loop (`async def`); others run in a thread."""
        return inspect.iscoroutinefunction(self._function)

    @property
    def wants_context(self) -> bool:
        """Return True if the function or its check receives the context of the call."""
        return bool(self._context_name) or self._check is not None

    def replace(self, **changes: Any) -> "Tool":
        """Return a copy with other attributes, such as `name` or `sensitive`."""
        changed = copy.copy(self)
        for derived in ("_definitions", "_arguments_check", "definition_hash"):
            changed.__dict__.pop(derived, None)
        for attribute, value in changes.items():
            if attribute.startswith("_") or attribute not in changed.__dict__:
                raise TypeError(f"a tool has no attribute {attribute!r}")
            setattr(changed, attribute, value)
        return changed

    def get_schema(self) -> Schema:
        """Return the OpenAI function form, the same object each time: not to be changed."""
        return self._definitions[0]

    def mcp_definition(self) -> Schema:
        """Return the Model Context Protocol's form."""
        return self._definitions[1]

    @cached_property
    def _definitions(self) -> tuple[Schema, Schema]:
        said = {"name": self.name, "description": described(self.description, self.examples)}
        function = {"type": "function", "function": {**said, "parameters": self.input_schema}}
        return function, {**said, "inputSchema": self.input_schema}

    @cached_property
    def definition_hash(self) -> str:
        """Return the sha256 of what an approval covers: category, name, description, schema and code."""
        parts = [self.category, self.name, self._definitions[1]["description"], self.input_schema]
        parts += [self.code] if self.code else []
        return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def consent_hash(self, args: Mapping[str, JSON]) -> str:
        """Return the sha256 of what a yes to this call covers: its definition and `consent_about`."""
        if self.consent_about is None:
            return self.definition_hash
        return hashlib.sha256(f"{self.definition_hash}\n{self.consent_about(args)}".encode()).hexdigest()

    def validate_args(self, args: Mapping[str, JSON] | str | None) -> dict[str, JSON]:
        """Return the checked arguments, as JSON. Raises InvalidArguments, which says how to mend them."""
        checked = self._arguments_check(args)
        self._converted(checked)
        return checked

    @cached_property
    def _arguments_check(self) -> ArgumentsCheck:
        return ArgumentsCheck(self.input_schema)

    def check(self, args: dict[str, JSON], context: ToolContext) -> None:
        """Let the tool itself check the arguments. Raises ValueError."""
        if self._check is not None:
            self._check(args, context)

    def bind(self, args: dict[str, JSON], context: ToolContext) -> Callable[[], Any]:
        """Return the call, ready to run; for an async tool it gives an awaitable."""
        named = {**self._fills, **self._converted(args)}
        if self._takes_whole:
            return partial(self._function, named, *([context] if self._context_name else []))
        if self._context_name:
            named[self._context_name] = context
        return partial(self._function, **named)

    async def execute(self, args: dict[str, JSON], context: ToolContext | None = None) -> ToolResult:
        """Run with checked arguments, without limits; what the function raises is raised."""
        call = self.bind(args, context or ToolContext())
        value = await (call() if self.is_async else DaemonThreads().run(call))
        return ToolResult.of(await value if inspect.isawaitable(value) else value)

    def _converted(self, args: dict[str, JSON]) -> dict[str, Any]:
        """Return arguments as the Python types the function was annotated with."""
        converted: dict[str, Any] = dict(args)
        problems: list[str] = []
        for name, adapter in self._adapters.items():
            if name not in args:
                continue
            try:
                converted[name] = adapter.validate_python(args[name])
            except ValidationError as error:
                for fault in error.errors(include_url=False):
                    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in fault["loc"])
                    problems.append(f"{name}{where}: {fault['msg']}, got {describe_value(fault['input'])}")
        if problems:
            raise InvalidArguments(problems)
        return converted


class DuplicateToolError(RecadoError, ValueError):
    """A name that is taken already."""


class ToolNotFoundError(RecadoError, KeyError):
    """A name that no tool has."""

    def __str__(self) -> str:  # KeyError would put the text in quotes
        return str(self.args[0]) if self.args else ""


class ToolRegistry:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool, allow_override: bool = False) -> None:
        """Add a tool. Raises DuplicateToolError for a name that is taken, unless it may be replaced."""
        if tool.name in self._tools and not allow_override:
            raise DuplicateToolError(
                f"a tool named {tool.name!r} is registered already; "
                "rename one of the two or pass allow_override=True"
            )
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool:
        """Return the tool of that name. Raises ToolNotFoundError."""
        tool = self._tools.get(name)
        if tool is None:
            raise ToolNotFoundError(f"no tool is named {name!r}")
        return tool

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name, None where there is none."""
        return self._tools.get(name)

    def list_all(self) -> list[Tool]:
        """Return all tools, sorted by name."""
        return [self._tools[name] for name in sorted(self._tools)]

    def get_schemas(self, allowed: Iterable[str] | None = None) -> list[Schema]:
        """Return function definitions, by name for `None` (all of them), else in the order asked for.

        Raises ToolNotFoundError for an unknown name.
        """
        tools = self.list_all() if allowed is None else self.filter_by_names(allowed)
        return [tool.get_schema() for tool in tools]

    def filter_by_names(self, names: Iterable[str]) -> list[Tool]:
        """Return the tools of these names, in their order. Raises ToolNotFoundError for an unknown one."""
        return [self.get(name) for name in names]

    def has_tool(self, name: str) -> bool:
        return name in self._tools

    def count(self) -> int:
        return len(self._tools)

    def clear(self) -> None:
        self._tools.clear()


LONGEST_NAME = 64
_KEPT_END = 40  # characters of the end that a shortened name keeps: models know a tool by its own name


def fitting_name(name: str, mark: str = "", *, is_marked: bool = False) -> str:
    """Return a name that model servers accept; a long one, and one to be marked, has a hash in the middle."""
    fit = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if len(fit) <= LONGEST_NAME and not is_marked:
        return fit
    mark = mark or name_mark(name)
    return f"{fit[: LONGEST_NAME - _KEPT_END - len(mark) - 2]}_{mark}_{fit[-_KEPT_END:]}"


def name_mark(text: str) -> str:
    """Return a short hash that tells names apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


LONGEST_DESCRIPTION = 320  # characters that every prompt holds of what a tool says of itself
LONGEST_WITH_EXAMPLES = 100  # examples stay where a description is that short: there they tell most
LONGEST_ABOUT_A_PARAMETER = 160

_EMPTY: dict[str, tuple[JSON, ...]] = {"required": ([],), "default": ("", None), "description": ("", None)}


def brief(tool: Tool) -> Schema:
    """Return the function form, its texts cut, without what says nothing."""
    said = shortened(tool.description, LONGEST_DESCRIPTION)
    with_examples = [described(said, tool.examples[:count]) for count in range(len(tool.examples), 0, -1)]
    words = next((whole for whole in with_examples if len(whole) <= LONGEST_WITH_EXAMPLES), said)
    function = {"name": tool.name, "description": words, "parameters": _brief(tool.input_schema)}
    return {"type": "function", "function": function}


def _brief(schema: JSON) -> JSON:
    if isinstance(schema, list):
        return [_brief(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    said = {key: _brief(part) for key, part in schema.items() if part not in _EMPTY.get(key, ())}
    if isinstance(said.get("description"), str):
        said["description"] = shortened(said["description"], LONGEST_ABOUT_A_PARAMETER)
    if "properties" in said and said.get("additionalProperties") is False:
        del said["additionalProperties"]
    return said
