"""What `recado mcp` asks of a running server: how the MCP servers do, and a yes to their tools."""

from collections.abc import Sequence

from starlette.routing import BaseRoute

from app.console.admin import Admin, guarded_routes
from app.errors import RecadoError
from app.mcp.configuration import Configuration
from app.mcp.report import report
from app.mcp.servers import McpServers
from app.messages import JSON


def server_routes(admin: Admin, configuration: Configuration, servers: McpServers) -> Sequence[BaseRoute]:
    """The routes under /admin/servers."""

    async def listing(body: JSON) -> JSON:
        await servers.refresh()
        return report(configuration, servers.states())

    async def approve(body: JSON) -> JSON:
        name, hashes = str(body.get("name")), body.get("hashes")
        if not isinstance(hashes, dict) or name not in {state.name for state in servers.states()}:
            raise RecadoError(f"there is no server {name[:100]!r} whose tools could be approved")
        await servers.approve(name, {str(tool): str(sha256) for tool, sha256 in hashes.items()})
        return {}

    return guarded_routes(admin, {"servers": listing, "servers/approve": approve})
