"""Skills from the internet: looked at, installed after a yes, removed."""


async def preview_skill_from_url(url: str, context=None):
    """Shows what a skill at an https address holds: its tools, files, hosts and what is conspicuous. Nothing
    is installed.

    Args:
        url: The address, exactly as the person wrote it.

    Example: show me the skill at https://example.org/tides.zip
    Ejemplo: muéstrame la skill de https://example.org/mareas.zip
    """
    return await context.services.installer.preview(url, context.person)


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
