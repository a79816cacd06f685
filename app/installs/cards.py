"""The card of a skill: what an owner is asked to approve, read from its bytes in a process of its own.

Python's parser and the searches can be held up for seconds by a file made for it; there they delay no other
work, and end at their limits.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from app.installs.pipeline import Quarantined, QuarantineError, kept
from app.people import Audience
from app.skills.findings import Finding, find, hosts
from app.skills.manifest import audience_of, may_use_network
from app.skills.scripts import Script, scripts_in
from app.skills.servers import RefusedServer, Server, read_servers
from app.text import escape_text
from app.tools.source import find_tools

MAX_LISTED = 100  # hosts, tools, variables: a longer list is approved without being read
EXAMINE_SECONDS = 20  # a hundred times what an honest skill takes
EXAMINE_MEMORY = 1024 * 1024 * 1024

_TOOLS = "scripts/tools.py"
_REFUSED = b"refused: "
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import app.installs.cards as cards; cards.main()"


@dataclass(frozen=True)
class SkillCard:
    """The content of a skill as an owner is asked to approve it, and what is conspicuous in it.

    `source` is the address that the person wrote, `sent_on` the other host that it redirected to.
    Texts from outside are unchanged: to show them, use `quoted`. `files` have their sizes in bytes, `tools`
    the descriptions that a model would read. `settings` are variables that it asks for and would be given.
    `scripts` are programs that its instructions may tell to run, with internet where `script_network`. For an
    update `replaces` is the hash of the version before, and `came_from` the address and the host of that one,
    if they are others now.
    """

    name: str
    description: str
    source: str
    sha256: str
    files: Mapping[str, int]
    tools: Mapping[str, str]
    tools_fault: str
    hosts: tuple[str, ...]
    settings: tuple[str, ...]
    servers: tuple[Server, ...]
    refused: tuple[RefusedServer, ...]
    audience: Audience
    findings: tuple[Finding, ...]
    sent_on: str = ""
    scripts: tuple[Script, ...] = ()
    script_network: bool = False
    came_from: tuple[str, ...] = ()
    replaces: str = ""

    @property
    def subject(self) -> str:
        """These bytes, under this name, in place of that version or of none."""
        return f"{self.sha256}/{self.name}/{self.replaces}"

    @property
    def label(self) -> str:
        return f"{self.name} ({self.sha256[:12]})"


def examine(data_dir: Path, sha256: str, seconds: float = EXAMINE_SECONDS) -> SkillCard:
    """Make the card of a skill in quarantine. Blocks its thread for so long at most.

    Raises `QuarantineError` for a skill that no card can show, or that takes more than it may.
    """
    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", "-X", "utf8", "-c", _PROGRAM, str(_ROOT), str(data_dir), sha256],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            timeout=seconds,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise QuarantineError(f"it cannot be looked through within {seconds:g} seconds") from error
    except (OSError, subprocess.CalledProcessError) as error:
        raise QuarantineError("it cannot be looked through: that took more than it may") from error
    if done.stdout.startswith(_REFUSED):
        raise QuarantineError(done.stdout.removeprefix(_REFUSED).decode())
    return _CARD.validate_json(done.stdout)


def main() -> None:
    """Print the card of a skill in quarantine, or why there is none; in a process of its own."""
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_AS, (EXAMINE_MEMORY, EXAMINE_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (EXAMINE_SECONDS, EXAMINE_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, _, data_dir, sha256 = sys.argv
    try:
        card = make_card(kept(Path(data_dir), sha256))
        sys.stdout.buffer.write(_CARD.dump_json(card, exclude_defaults=True))
    except QuarantineError as error:
        sys.stdout.buffer.write(_REFUSED + str(error).encode())


def make_card(tree: Quarantined) -> SkillCard:
    """Make the card in this process. Raises `QuarantineError` for more names than a person would read."""
    manifest = tree.manifest
    tools, tools_fault = _tools(tree)
    servers, refused = read_servers(tree.files["mcp.json"]) if "mcp.json" in tree.files else ((), ())
    asked = (*manifest.words("settings"), *manifest.needs("env"))
    settings = tuple(dict.fromkeys((*asked, *(name for server in servers for name in server.secrets))))
    named = hosts(tree.files)
    for what, count in (("hosts", len(named)), ("tools", len(tools)), ("variables", len(settings))):
        if count > MAX_LISTED:
            raise QuarantineError(
                f"it names {count} {what}; at most {MAX_LISTED} are taken, more nobody would read"
            )
    return SkillCard(
        name=tree.name,
        description=manifest.description,
        source=tree.source,
        sha256=tree.sha256,
        files={path: len(content) for path, content in sorted(tree.files.items())},
        tools=tools,
        tools_fault=tools_fault,
        hosts=named,
        settings=settings,
        servers=servers,
        refused=refused,
        audience="owners" if settings else audience_of(manifest),
        findings=find(tree.files),
        sent_on=tree.sent_on,
        scripts=scripts_in(tree.files),
        script_network=may_use_network(manifest),
    )


def quoted(text: str) -> str:
    """Show a text from outside on one line between quotation marks, with nothing in it invisible."""
    return f"“{escape_text(' '.join(text.split()))}”"


_CARD = TypeAdapter(SkillCard)


def _tools(tree: Quarantined) -> tuple[dict[str, str], str]:
    """Return the tools as the static catalogue reads them, and the fault of a file that is no Python."""
    source = tree.files.get(_TOOLS)
    if source is None:
        return {}, ""
    try:
        found, _ = find_tools(source)
    except SyntaxError as error:
        where = f" line {error.lineno}" if error.lineno else ""
        return {}, f"{_TOOLS}{where}: {error.msg}"
    return {one.name: str(one.definition()["description"]) for one in found}, ""
