"""`recado templates`: the approved messages of templates.yaml, and what Meta says of them."""

from app.channels.templates import FILE, differences, read_templates
from app.cli.output import table
from app.doctor.graph import GraphAPI
from app.doctor.whatsapp import Account
from app.errors import RecadoError
from app.settings import Settings
from app.text import visible


def templates_table(settings: Settings) -> str:
    """Return a line for each template. Raises RecadoError for a file that cannot be read."""
    listed = read_templates(settings.data_dir).listed
    if not listed:
        return f"There are no templates: {settings.data_dir / FILE} would list those that Meta approved."
    rows = [(one.name, one.language, ", ".join(one.variables), visible(one.text)) for one in listed]
    return table(("NAME", "LANGUAGE", "VARIABLES", "TEXT"), rows)


def checked_templates(settings: Settings) -> str:
    """Compare the templates with Meta's list. Raises RecadoError where one differs or cannot be compared."""
    listed = read_templates(settings.data_dir).listed
    if settings.uses_simulator or settings.missing_credentials:
        raise RecadoError("WhatsApp is not connected: there is no list of Meta's to compare with")
    with GraphAPI(settings.whatsapp_api_url) as graph:
        approved = Account(settings, graph).templates()
    found = [(one, differences(one, approved)) for one in listed]
    if wrong := [f"{one.name} ({one.language}): {fault}" for one, fault in found if fault]:
        raise RecadoError("\n".join(wrong))
    return f"All {len(listed)} templates are as Meta approved them."
