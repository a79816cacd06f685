"""`recado skills add URL`: show the card, ask, install the same bytes."""

import asyncio
import sys

from app.commands.shell import agreed
from app.errors import RecadoError
from app.http.transport import Transport
from app.installs.skill_card_text import card_text
from app.installs.skill_installer import Installer, Preview
from app.mcp.skill_servers import forget_gone, kept_for
from app.processes.sandbox import Sandbox
from app.settings import Settings

_UNASKED = "CONFIRMATION_MODE is yolo: its tools will run without asking."


def install_skill(settings: Settings, address: str, *, transport: Transport | None = None) -> str:
    """Show the skill at an address, ask, install it and return what to tell.

    Raise RecadoError if it cannot be installed, if the answer is no, or without a terminal.
    """
    if not sys.stdin.isatty():
        raise RecadoError("a skill from an address is installed after a yes; run this in a terminal")
    return asyncio.run(_install(settings, address, transport or Transport()))


async def _install(settings: Settings, address: str, transport: Transport) -> str:
    installer = Installer(transport, settings.data_dir, settings.skills_dir)
    sandbox = Sandbox(settings)
    try:
        preview = await installer.preview(address)
    finally:
        await transport.close()
    if not _agreed(preview, sandboxed=not sandbox.off, mode=settings.confirmation_mode):
        raise RecadoError("nothing was installed")
    secrets = kept_for(settings.data_dir, preview.card.name)
    installed = await installer.install(preview.subject, address, approved_by="shell")
    forget_gone(settings.data_dir, installed.name, secrets)
    lines = [f"Installed {installed.name} in {installed.folder}. It is seen at the next message."]
    if preview.card.tools and (refusal := sandbox.refusal()):
        lines.append(f"Its tools do not run here: {refusal} (recado doctor has the cure)")
    return "\n".join(lines)


def _agreed(preview: Preview, *, sandboxed: bool, mode: str) -> bool:
    shown = card_text("en", preview.card, preview.change, sandboxed=sandboxed)
    print(shown.whole)  # noqa: T201
    if preview.card.tools:
        print(_UNASKED if mode == "yolo" else "Its tools will ask before each call.")  # noqa: T201
    return agreed(f"\n{shown.question}")
