"""The MCP servers that a skill from elsewhere may name."""

import json

import pytest

from app.skills.servers import read_servers
from tests.skills.tables import table

REFUSED = table("servers", "refused")


@pytest.mark.parametrize("entry", REFUSED)
def test_a_server_with_a_command_or_a_doubtful_address_is_refused(entry: object) -> None:
    servers, refused = read_servers(json.dumps({"mcpServers": {"one": entry}}).encode())
    assert servers == ()
    assert refused[0].name == "one"
    assert refused[0].reason


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"mcpServers": []}', b"[" * 100_000])
def test_an_mcp_json_that_is_none_is_refused(content: bytes) -> None:
    servers, refused = read_servers(content)
    assert (servers, len(refused)) == ((), 1)
