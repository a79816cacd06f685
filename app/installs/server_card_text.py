"""The card of a server in words, in a person's language: all that a yes is about, nothing of it shortened."""

from collections.abc import Iterator, Sequence

from app.i18n import say
from app.installs.server_plan import Plan
from app.installs.skill_card_text import asking, kind_names
from app.installs.skill_cards import quoted

_REGISTRIES = {"npm": "npm (registry.npmjs.org)", "pypi": "PyPI (pypi.org)"}


def card_text(language: str, plan: Plan, *, sandboxed: bool) -> str:
    """What would be installed, from where, with which rights. Without `sandboxed` it would run unconfined."""
    return "\n".join(_Lines(language, plan, sandboxed).all())


def card_question(language: str, plan: Plan) -> str:
    """The last line, which names it."""
    values = {"name": plan.name, "id": plan.registry_id, "version": plan.version, "hash": plan.subject[:12]}
    if plan.replaces:
        return say(language, "Update the server {name}? ({id} {version}, {hash})", **values)
    return say(language, "Install the server {name}? ({id} {version}, {hash})", **values)


def kinds_of_yes(language: str, mode: str) -> str:
    """What each of the two kinds of yes means for its tools, in this mode of confirmation."""
    if mode in ("yolo", "confirm-all"):
        return asking(language, mode)
    return say(
        language,
        "Install: I ask before each of its calls. Install+trust: not before those that, as it says itself, "
        "only read.",
    )


class _Lines:
    """The lines of a card."""

    def __init__(self, language: str, plan: Plan, sandboxed: bool) -> None:
        self._language = language
        self._plan = plan
        self._sandboxed = sandboxed

    def all(self) -> Iterator[str]:
        language, plan = self._language, self._plan
        title, description = quoted(plan.title or plan.name), quoted(plan.description)
        yield say(language, "MCP server {name}: {description}", name=title, description=description)
        yield say(
            language, "Exact name: {id}, version {version}", id=plan.registry_id, version=quoted(plan.version)
        )
        yield say(language, "Published by: {namespace}", namespace=plan.namespace)
        if plan.repository:
            yield say(language, "Its code is said to be at: {address}", address=quoted(plan.repository))
        yield from self._findings()
        yield from self._origin()
        yield from self._secrets()
        yield from self._rights()
        if plan.audience == "owners":
            yield say(language, "Who may use this server: only owners.")
        else:
            yield say(
                language, "Who may use this server: everyone who writes to me here, and all share its data."
            )
        if plan.replaces:
            yield say(language, "It takes the place of the version that is installed here.")
        if plan.edited:
            yield say(language, "What you changed in its entry in the file of servers is gone then.")

    def _findings(self) -> Iterator[str]:
        language, findings = self._language, self._plan.findings
        if not findings:
            yield say(language, "Nothing conspicuous was found in it.")
            return
        yield say(language, "Worth a look before you say yes:")
        names = kind_names(language)
        yield from (f"- {names[one.kind]}: {quoted(one.file)}: {quoted(one.excerpt)}" for one in findings)

    def _origin(self) -> Iterator[str]:
        language, plan = self._language, self._plan
        if plan.url:
            yield say(
                language, "It runs elsewhere: what you ask it goes to {address}", address=quoted(plan.url)
            )
            yield from (f"- {_pair(name, value)}" for name, value in plan.headers)
            return
        registry = _REGISTRIES.get(plan.kind, plan.kind)
        package = quoted(f"{plan.identifier} {plan.version}")
        yield say(language, "Package: {package} from {registry}", package=package, registry=registry)
        if plan.sha256:
            yield f"sha256: {plan.sha256}"
        yield say(language, "What is started, whole: {command}", command=quoted(plan.command_line))
        if plan.env:
            yield say(language, "Variables it is given:")
            yield from (f"- {_pair(name, value)}" for name, value in plan.env)

    def _secrets(self) -> Iterator[str]:
        """By name alone: how they are given is beside them."""
        language, plan = self._language, self._plan
        if not plan.secrets:
            return
        yield say(language, "Secrets it asks for, which you never write here but give in a shell:")
        for secret in plan.secrets:
            needed = say(language, "needed") if secret.required else say(language, "not always needed")
            described = f": {quoted(secret.description)}" if secret.description else ""
            yield f"- {secret.name} ({needed}){described}"
            yield f"   recado mcp secret {plan.name} {secret.name}"

    def _rights(self) -> Iterator[str]:
        language, grants = self._language, self._plan.grants
        if self._plan.url:
            return
        if not self._sandboxed:
            yield say(language, "The sandbox is turned off: its code gets all the rights that I have.")
            return
        yield say(language, "It runs in a sandbox, shut off from my files, settings and secrets.")
        if grants.network:
            yield say(language, "Network: yes, the internet and the network of this machine.")
        else:
            yield say(language, "Network: none.")
        if grants.programs:
            yield say(language, "It may start other programs in the sandbox.")
        if grants.folders_read:
            yield say(language, "Folders it may read: {names}", names=_paths(grants.folders_read))
        if grants.folders_write:
            yield say(language, "Folders it may read and change: {names}", names=_paths(grants.folders_write))
        else:
            yield say(language, "Folders: only one of its own.")


def _paths(folders: Sequence[object]) -> str:
    return ", ".join(quoted(str(folder)) for folder in folders)


def _pair(name: str, value: str) -> str:
    return quoted(f"{name}={value}")
