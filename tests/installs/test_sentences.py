"""Sentences about servers in a chat."""

from dataclasses import replace

from app.installs.entries import read_entry
from app.installs.sentences import installed_text, list_text, states_text
from app.mcp.definitions import NEEDS_SIGN_IN, HeldBack, ServerState
from app.mcp.installed import InstalledServer
from tests.standins.registry import entry

TIME = "io.github.modelcontextprotocol/mcp-server-time"


def test_of_what_cannot_be_installed_nothing_is_to_be_chosen() -> None:
    image = {"registryType": "oci", "identifier": "ghcr.io/ana/tides:1", "transport": {"type": "stdio"}}
    closed = read_entry(entry("com.example/image", remotes=[], packages=[image]))
    can_be_had = read_entry(entry("com.example/open"))
    assert closed is not None
    assert can_be_had is not None
    assert "Answer with its number." in list_text("en", [closed, can_be_had], asks=True)
    assert "“install the server com.example/open”" in list_text("en", [closed, can_be_had])
    assert list_text("en", [closed], asks=True) == list_text("en", [closed])
    assert "in a form that I do not install" in list_text("en", [closed]).splitlines()[-1]


def test_the_receipt_of_an_update_does_not_offer_to_remove_the_server_with_its_data() -> None:
    record = InstalledServer("time", TIME, "2.0.0", "")
    state = ServerState("time", "ready", tools=("mcp_time_now",))
    assert "Undo: “remove the server time”" in installed_text("en", record, state)
    updated = installed_text("en", replace(record, updated_from="1.0.0"), state)
    assert "Undo" not in updated
    assert "It took the place of version 1.0.0." in updated


def test_a_server_that_wants_a_sign_in_says_so_in_the_persons_language() -> None:
    state = ServerState("crm", "broken", f"set aside: {NEEDS_SIGN_IN}: it answers with status 401")
    told = states_text("es", [state])
    assert "Pide iniciar sesión, y eso todavía no lo sé hacer." in told
    assert "sign-in" not in told


def test_the_receipt_says_what_of_a_server_waits_for_a_yes() -> None:
    record = InstalledServer("time", TIME, "2.0.0", "", updated_from="1.0.0")
    held = (HeldBack("now", {"name": "now"}), HeldBack("then", {"name": "then"}))
    nothing = installed_text("en", record, ServerState("time", "ready", held_back=held))
    assert "2 new or changed tools wait for your yes: “approve the tools of time”" in nothing
    assert "0 tools" not in nothing
    assert "You can use it" not in nothing
    some = installed_text(
        "en", record, ServerState("time", "ready", tools=("mcp_time_now",), held_back=held[1:])
    )
    assert "You can use it" in some
    assert "1 new or changed tool waits" in some
