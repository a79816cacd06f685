"""Check of the sandbox for code that came from an address or a chat."""

from collections.abc import Iterator
from pathlib import Path

from app.doctor.finding import OK, WARN, Finding
from app.processes.confine import closes_ports
from app.processes.sandbox import Sandbox
from app.settings import Settings

_MORE = "Code from elsewhere in docs/operating.md"
_APT = "sudo apt install bubblewrap, version 0.7 or newer (Debian 12, Ubuntu 24.04)"
_IN_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
# A setting of the kernel, the value with which it forbids user namespaces, and the cure.
_FORBIDDING = (
    ("user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        f"give bwrap an AppArmor profile: {_MORE}; or, for all programs, "
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


def check_sandbox(settings: Settings) -> Iterator[Finding]:
    """Try the sandbox for real, and say how to get it if it does not work."""
    sandbox = Sandbox(settings)
    if sandbox.off:
        fact = "SANDBOX=off: code that came from a URL or from chat has all the rights of this user"
        yield Finding(WARN, "sandbox", fact, "take SANDBOX=off away")
        return
    verdict = sandbox.probe()
    if verdict.works and settings.uses_simulator and settings.simulator != "off" and not closes_ports():
        fact = (
            "on this kernel a server that may use the network can also write here, as the simulator's people"
        )
        yield Finding(WARN, "sandbox", fact, "Linux 6.7 or newer with Landlock, or SIMULATOR=off")
    elif verdict.works:
        yield Finding(
            OK, "sandbox", "tried: code that came from elsewhere sees its own folder and no network"
        )
    if verdict.works:
        return
    fact = f"code that came from elsewhere does not run: {verdict.reason}"
    yield Finding(WARN, "sandbox", fact, _cure(verdict.reason))


def _cure(reason: str) -> str:
    if "not installed" in reason or "Unknown option" in reason:
        return _APT
    if any(mark.exists() for mark in _IN_CONTAINERS):
        return f"a container has to be allowed to make namespaces: {_MORE}"
    for name, forbidden, cure in _FORBIDDING:
        setting = Path("/proc/sys", name)
        if setting.is_file() and setting.read_text().strip() == forbidden:
            return cure
    return _MORE
