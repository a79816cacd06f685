"""The MCP servers that a skill from elsewhere may name."""

import json

from app.skills.servers import read_servers
from tests.skills.tables import table

REFUSED = table("servers", "refused")


def test_a_server_with_a_command_or_a_doubtful_address_is_refused() -> None:
    for entry in REFUSED:
        servers, refused = read_servers(json.dumps({"mcpServers": {"one": entry}}).encode())
        assert servers == ()
        assert refused[0].name == "one"
        assert refused[0].reason
