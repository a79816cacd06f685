"""Skills and MCP servers from the internet: looked at, installed after a yes, removed.

The services make the cards that ask about installing, removing and approving, in every mode.
"""


async def preview_skill_from_url(url: str, context=None):
    """Shows what a skill at an https address holds: its tools, files, hosts and what is conspicuous. Nothing
    is installed.

    Args:
        url: The address, exactly as the person wrote it.

    Example: show me the skill at https://example.org/tides.zip
    Ejemplo: muéstrame la skill de https://example.org/mareas.zip
    """
    return await context.services.installer.preview(url, context)


async def install_skill_from_url(url: str, context=None):
    """Installs a skill from an https address. The person sees its card and is asked first.

    Args:
        url: The address, exactly as the person wrote it.

    Example: install the skill https://example.org/tides.zip
    Ejemplo: instala la skill https://example.org/mareas.zip
    """
    return await context.services.installer.install(url, context)


async def remove_skill(name: str, context=None):
    """Removes a skill that was installed from an address. The person is asked first.

    Args:
        name: The skill's name, such as tide-tables.

    Example: remove the skill tide-tables
    Ejemplo: quita la skill tide-tables
    """
    return await context.services.installer.remove(name, context)


async def search_mcp_registry(words: str, context=None):
    """Searches the registry of MCP servers. Nothing is installed.

    Args:
        words: What the server is for, in English, such as weather or github issues.

    Example: search the registry for a weather server
    Ejemplo: busca servers de clima en el registro
    """
    return await context.services.servers.search(words, context)


async def get_mcp_server_info(name: str, context=None):
    """Shows what an MCP server is: an installed one and how it does, or one of the registry with the
    command, secrets and rights that it would get. Nothing is installed.

    Args:
        name: Its name here, its exact name in the registry, or the person's words for it.

    Example: show me the server io.github.owner/time
    Ejemplo: muéstrame el server de la hora
    """
    return await context.services.servers.info(name, context)


async def install_mcp_server(
    name: str,
    folder: str = "",
    network: bool | None = None,
    values: dict[str, str] | None = None,
    context=None,
):
    """Installs an MCP server from the registry. The person sees its card and is asked first; where several
    fit they are shown a list to choose from.

    Args:
        name: Its exact name in the registry where it is known, else the person's words for it.
        folder: Only where the person named one: the folder of theirs that it may use; "." for all of theirs.
        network: Only where the person said so: whether the server may use the network.
        values: Only what the person said, by the names that its card or an earlier answer has, such as a
            folder. Never a secret.

    Example: install the time server
    Ejemplo: instala el server de la hora
    """
    return await context.services.servers.install(context)


async def remove_mcp_server(name: str, context=None):
    """Removes an installed MCP server, or undoes its install. The person is asked first.

    Args:
        name: The server's name here, such as time.

    Example: remove the server time
    Ejemplo: quita el server time
    """
    return await context.services.servers.remove(context)


async def list_mcp_servers(context=None):
    """Lists the MCP servers that there are here, and how each of them does.

    Example: which servers do I have
    Ejemplo: qué servers tengo
    """
    return await context.services.servers.list(context)


async def enable_mcp_server(name: str, context=None):
    """Turns an MCP server on again that was turned off.

    Args:
        name: The server's name here, such as time.

    Example: turn on the server time
    Ejemplo: activa el server time
    """
    return await context.services.servers.switch(name, True, context)


async def disable_mcp_server(name: str, context=None):
    """Turns an MCP server off without removing it.

    Args:
        name: The server's name here, such as time.

    Example: turn off the server time
    Ejemplo: desactiva el server time
    """
    return await context.services.servers.switch(name, False, context)


async def approve_mcp_tools(name: str, context=None):
    """Approves tools of an MCP server that are held back because they are new or changed. The person sees
    the differences and is asked first.

    Args:
        name: The server's name here, such as time.

    Example: approve the new tools of the server time
    Ejemplo: aprueba las herramientas nuevas del server time
    """
    return await context.services.servers.approve(name, context)


preview_skill_from_url.guard = install_skill_from_url.guard = lambda args, context: (
    context.services.installer.refuse_foreign_address(args, context)
)
install_skill_from_url.card = lambda args, context: context.services.installer.install_card(args, context)
remove_skill.card = lambda args, context: context.services.installer.removal_card(args, context)
install_mcp_server.card = lambda args, context: context.services.servers.install_card(args, context)
remove_mcp_server.card = lambda args, context: context.services.servers.removal_card(args, context)
approve_mcp_tools.card = lambda args, context: context.services.servers.approval_card(args, context)
install_skill_from_url.whole_card = lambda question, services, language: services.installer.whole_card(
    question, language
)
install_mcp_server.whole_card = lambda question, services, language: services.servers.whole_card(
    question, language
)
approve_mcp_tools.whole_card = lambda question, services, language: services.servers.whole_approval_card(
    question, language
)
