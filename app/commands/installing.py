"""Installs of skills in the shell: the card on the terminal, a yes, the same bytes."""

import asyncio
import sys

from app.commands.shell import agreed, show
from app.errors import RecadoError
from app.http.transport import Transport
from app.installs.card_text import CardWriter
from app.installs.pipeline import Approval
from app.installs.skills import SkillInstaller
from app.processes.sandbox import Sandbox
from app.settings import Settings

_UNASKED = "CONFIRMATION_MODE is yolo: its tools will run without asking."


def install_skill(settings: Settings, address: str, *, transport: Transport | None = None) -> str:
    """Show what is at an address, ask, install it, and return what to tell.

    Raises `RecadoError` if it cannot be installed, if the answer is no, and without a terminal.
    """
    if not sys.stdin.isatty():
        raise RecadoError("a skill from an address is installed after a yes; run this in a terminal")
    return asyncio.run(_install(settings, address, transport or Transport()))


async def _install(settings: Settings, address: str, transport: Transport) -> str:
    installer = SkillInstaller(transport, settings.data_dir, settings.skills_dir)
    sandbox = Sandbox(settings)
    try:
        candidate = await installer.propose(address)
    finally:
        await transport.close()
    text = CardWriter(not sandbox.off, settings.confirmation_mode).install("en", candidate)
    show(text.whole)
    if candidate.card.tools:
        is_unasked = settings.confirmation_mode == "yolo"
        show(_UNASKED if is_unasked else "Its tools will ask before each call.")
    if not agreed(f"\n{text.question}"):
        raise RecadoError("nothing was installed")
    installed = await installer.commit(Approval(candidate.subject, "shell", address=address))
    lines = [f"Installed {installed.name} in {installed.folder}. It is seen at the next message."]
    if candidate.card.tools and (refusal := sandbox.refusal()):
        lines.append(f"Its tools do not run here: {refusal} (recado doctor has the cure)")
    return "\n".join(lines)
