"""The one interface to anything that a model may call."""

import copy
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from app.messages import JSON
from app.people import Audience
from app.tools.context import Services, ToolContext
from app.tools.limits import MOST_PER_MINUTE, DaemonThreads
from app.tools.plain import sendable
from app.tools.result import ToolResult
from app.tools.schema import Schema, described, shortened
from app.tools.signature import is_context, name_of, signature_of
from app.tools.validation import ArgumentsCheck, InvalidArguments, describe_value

PathCheck = Callable[[dict[str, JSON], ToolContext], None]
Guard = Callable[[dict[str, JSON], ToolContext], Awaitable[object]]
MakesCard = Callable[[dict[str, JSON], ToolContext], Awaitable[Any]]
WritesCard = Callable[[Any, Services], str]


class Tool:
    """A typed function that a model may call. Not changed once made; `replace` gives a changed copy.

    `execute` is called with the arguments as keywords, and with `context=` if it has that parameter.
    A callable whose first parameter is named `args` gets the whole mapping instead: `execute(args)` or
    `execute(args, context)`; one that was made a tool by `from_function` never does. It may be `async def` or
    `def` (then it runs in a thread), and may return any JSON value, an envelope with "ok", or a ToolResult.

    `check(args, context)` raises ValueError for arguments that fit the schema and still cannot be taken;
    it also runs in a dry run and must have no effect. `harmless` tools change nothing of the world: they
    are never asked about and run in a dry run too. `read_only` tools change nothing, but may reach others.
    `destructive` ones take away what the person keeps: in a turn that holds words of others they need a yes.
    `examples` are sentences that lead to this tool.

    A call of an `idempotent` tool that comes to UPSTREAM_RATE_LIMIT or UPSTREAM_ERROR is tried again, after
    the seconds in `meta.retry_after` or a growing pause, as long as that fits into `timeout`.
    `outside`: its results may hold what others wrote, which never grants a permission.
    `permits_addresses`: it searches, and a network tool may ask the addresses that its results list.
    `calls_per_minute` is for each person, 0 for no limit; waiting for its turn counts as time of the call.
    `guard(args, context)` refuses a call before anybody is asked about it: it returns a failure, or None.
    `card(args, context)` makes the card (`app.turns.cards.Card`) of a tool that asks in every mode, and
    `whole_card(question, services)` writes it for the console. `consent_about(arguments)` names what a yes,
    also "always here", holds for, where that is less than the tool. A tool that `changes_person` runs before
    the others of its round, which go by what it changed. These are attributes of functions of bundled skills.
    `code` names the version of the code that answers, "" for that of the release: a yes holds for it alone.
    """

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: Mapping[str, JSON],
        execute: Callable[..., object],
        *,
        category: str = "",
        sensitive: bool = False,
        idempotent: bool = False,
        timeout: float = 30.0,
        audience: Audience = "members",
        wants_context: bool | None = None,
        examples: Iterable[str] = (),
        harmless: bool = False,
        read_only: bool = False,
        destructive: bool = False,
        check: PathCheck | None = None,
        adapters: Mapping[str, Any] | None = None,
        fills: Mapping[str, Any] | None = None,
        warnings: Iterable[str] = (),
        calls_per_minute: int = 0,
        outside: bool = True,
        permits_addresses: bool = False,
        code: str = "",
        by_name: bool = False,
    ) -> None:
        if timeout <= 0:
            raise ValueError(f"timeout of {name}: expected seconds above 0, got {timeout}")
        if audience not in get_args(Audience):
            raise ValueError(f"audience of {name}: expected one of {get_args(Audience)}, got {audience!r}")
        if not 0 <= calls_per_minute <= MOST_PER_MINUTE:
            raise ValueError(
                f"calls_per_minute of {name}: expected 0 (none) to {MOST_PER_MINUTE}, got {calls_per_minute}"
            )
        self.name = name
        self.description: str = sendable(description)
        self.input_schema: Schema = sendable(dict(input_schema))
        self.category = category
        self.sensitive = sensitive
        self.idempotent = idempotent
        self.timeout = timeout
        self.audience: Audience = audience
        self.examples: tuple[str, ...] = tuple(sendable(list(examples)))
        self.harmless = harmless
        self.read_only = read_only or harmless
        self.destructive = destructive
        self.warnings = tuple(warnings)
        self.calls_per_minute = calls_per_minute
        self.outside = outside
        self.permits_addresses = permits_addresses
        self.code = code
        self.guard: Guard | None = None
        self.card: MakesCard | None = None
        self.whole_card: WritesCard | None = None
        self.changes_person = False
        self.consent_about: Callable[[Mapping[str, JSON]], str] | None = None
        self._function = execute
        self._check = check
        self._adapters = dict(adapters or {})
        self._fills = dict(fills or {})
        self._call = _Call(execute, wants_context, by_name)

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., object],
        *,
        name: str | None = None,
        category: str = "",
        sensitive: bool = False,
        idempotent: bool = False,
        timeout: float = 30.0,
        audience: Audience = "members",
        harmless: bool = False,
        read_only: bool = False,
        destructive: bool = False,
        check: PathCheck | None = None,
        calls_per_minute: int = 0,
        outside: bool = True,
        permits_addresses: bool = False,
    ) -> "Tool":
        """Make a tool of a function's name, docstring and annotations. Raises ValueError for a generator."""
        signature = signature_of(fn)
        own = name or name_of(fn)
        return cls(
            own,
            signature.docstring.description or own,
            signature.schema,
            fn,
            category=category,
            sensitive=sensitive,
            idempotent=idempotent,
            timeout=timeout,
            audience=audience,
            wants_context=signature.wants_context,
            examples=signature.docstring.examples,
            harmless=harmless,
            read_only=read_only,
            destructive=destructive,
            check=check,
            adapters=signature.adapters,
            fills=signature.fills,
            warnings=signature.warnings,
            calls_per_minute=calls_per_minute,
            outside=outside,
            permits_addresses=permits_addresses,
            by_name=True,
        )

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @property
    def is_async(self) -> bool:
        """Return True if the function runs on the loop (`async def`); others run in a thread."""
        return self._call.is_async

    @property
    def wants_context(self) -> bool:
        """Return True if the function or its check receives the context of the call."""
        return self._call.wants_context or self._check is not None

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
        if self._adapters:
            self._converted(checked)
        return checked

    def check(self, args: dict[str, JSON], context: ToolContext) -> None:
        """Let the tool itself check the arguments. Raises ValueError."""
        if self._check is not None:
            self._check(args, context)

    def bind(self, args: dict[str, JSON], context: ToolContext) -> Callable[[], Any]:
        """Return the call, ready to run; for an async tool it gives an awaitable."""
        values = {**self._fills, **self._converted(args)} if self._adapters or self._fills else args
        return self._call.bind(values, context)

    async def execute(
        self,
        args: dict[str, JSON],
        context: ToolContext | None = None,
        threads: DaemonThreads | None = None,
    ) -> ToolResult:
        """Runs with checked arguments, without limits; what the function raises is raised."""
        call = self.bind(args, context or ToolContext())
        if self.is_async:
            value = await call()
        elif threads is not None:
            value = await threads.run(call)
        else:
            value = await DaemonThreads(limit=1, idle_seconds=0).run(call)
        if inspect.isawaitable(value):
            value = await value
        return ToolResult.of(value)

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
                problems += [_explained(name, fault) for fault in error.errors(include_url=False)]
        if problems:
            raise InvalidArguments(problems)
        return converted

    @cached_property
    def _arguments_check(self) -> ArgumentsCheck:
        return ArgumentsCheck(self.input_schema)

    @cached_property
    def _definitions(self) -> tuple[Schema, Schema]:
        words = described(self.description, self.examples)
        function = {"name": self.name, "description": words, "parameters": self.input_schema}
        mcp = {"name": self.name, "description": words, "inputSchema": self.input_schema}
        return {"type": "function", "function": function}, mcp


class _Call:
    """The way in which a callable wants its arguments."""

    def __init__(self, function: Callable[..., object], wants_context: bool | None, by_name: bool) -> None:
        self._function = function
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
        )
        parameters = _parameters(function)
        first = next(iter(parameters.values()), None)
        takes_args = first is not None and first.name == "args" and first.kind in _POSITIONAL
        self._whole = takes_args and not by_name
        self._positional = tuple(p for p in parameters.values() if p.kind is p.POSITIONAL_ONLY)
        contexts = [name for name, parameter in parameters.items() if is_context(parameter)]
        self._context = contexts[0] if contexts else "context"
        self.wants_context = bool(contexts) if wants_context is None else wants_context

    def bind(self, values: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        function = self._function
        if self._whole:
            if self.wants_context:
                return lambda: function(dict(values), context)
            return lambda: function(dict(values))
        named = dict(values)
        if self.wants_context:
            named[self._context] = context
        if not self._positional:
            return lambda: function(**named)
        first = []
        for parameter in self._positional:  # one that is left out has those after it in its place
            if parameter.name not in named and parameter.default is parameter.empty:
                break
            first.append(named.pop(parameter.name, parameter.default))
        return lambda: function(*first, **named)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in callables have none
        return {}


def _explained(name: str, fault: Mapping[str, Any]) -> str:
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in fault["loc"])
    return f"{name}{where}: {fault['msg']}, got {describe_value(fault['input'])}"


LONGEST_DESCRIPTION = 320
"""Characters that every prompt holds of what a tool says of itself."""
LONGEST_WITH_EXAMPLES = 100
"""Examples stay where a description is that short: there they tell most."""
LONGEST_ABOUT_A_PARAMETER = 160

# Where a schema holds another, a list of them, or some by name.
_ONE = frozenset(("items", "additionalProperties", "propertyNames", "not", "contains", "if", "then", "else"))
_LISTED = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "dependentSchemas"))
_SAYS_NOTHING: tuple[tuple[str, JSON], ...] = (("required", []), ("default", ""), ("default", None))


def brief(tool: Tool) -> Schema:
    """Return the function form, its texts cut where a sentence ends, without what says nothing."""
    function = {
        "name": tool.name,
        "description": _description(tool),
        "parameters": _without_much(tool.input_schema),
    }
    return {"type": "function", "function": function}


def _description(tool: Tool) -> str:
    said = _cut(tool.description, LONGEST_DESCRIPTION)
    for count in range(len(tool.examples), 0, -1):
        whole = described(said, tool.examples[:count])
        if len(whole) <= LONGEST_WITH_EXAMPLES:
            return whole
    return said


def _without_much(schema: JSON) -> JSON:
    if not isinstance(schema, Mapping):
        return schema
    closed = "properties" in schema and schema.get("additionalProperties") is False
    return {
        key: _inner(key, value)
        for key, value in schema.items()
        if (key, value) not in _SAYS_NOTHING
        and not (key == "description" and not value)
        and not (key == "additionalProperties" and closed)
    }


def _inner(key: str, value: JSON) -> JSON:
    if key == "description" and isinstance(value, str):
        return _cut(value, LONGEST_ABOUT_A_PARAMETER)
    if key in _ONE:
        return _without_much(value)
    if key in _LISTED and isinstance(value, list):
        return [_without_much(one) for one in value]
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _without_much(one) for name, one in value.items()}
    return value


def _cut(text: str, longest: int) -> str:
    """Return the whole sentences that fit; the beginning if they fill less than half of the room."""
    if len(text) <= longest:
        return text
    ends = [text.rfind(end, 0, longest) for end in (". ", ".\n", "\n")]
    end = max(ends)
    return text[: end + 1].rstrip() if end >= longest // 2 else shortened(text, longest)
