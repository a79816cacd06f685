"""A server whose transport reaches the web sites of a test on this machine, at the ports that it is given."""

import sys

import app.server
from app.http.transport import Transport
from app.main import create_app
from app.settings import take_settings
from tests.standins.site import authority


def main() -> None:
    hosts = {(host, int(port)) for port in sys.argv[1:] for host in ("127.0.0.1", "localhost")}
    transport = Transport(allowed_hosts=hosts, tls=authority())
    app.server.serve(take_settings(), make_app=lambda settings: create_app(settings, transport=transport))
