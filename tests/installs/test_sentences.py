"""Sentences about servers in a chat."""

from dataclasses import replace

from app.installs.sentences import installed_text, states_text
from app.mcp.approved import InstalledServer
from app.mcp.definitions import NEEDS_SIGN_IN, ServerState

TIME = "io.github.modelcontextprotocol/mcp-server-time"


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
