"""`recado token`."""

from app.commands.running import find_server
from app.errors import RecadoError
from app.security import AdminToken
from app.settings import Settings


def admin_token(settings: Settings, *, renew: bool) -> str:
    """Return the administrator's token, or a new one. Raise RecadoError to renew a configured one."""
    server = find_server(settings.data_dir)
    if server is not None:
        return str(server.ask("token/renew" if renew else "token")["token"])
    token = AdminToken(settings.data_dir, settings.admin_token.get_secret_value())
    if renew and token.is_configured:
        raise RecadoError("ADMIN_TOKEN is set in the environment: change it there")
    try:
        return token.renew() if renew else token.value()
    except OSError as error:
        raise RecadoError(
            f"the token in {settings.data_dir} cannot be read or written: {error.strerror}; "
            "run this as the user that runs the server"
        ) from error
