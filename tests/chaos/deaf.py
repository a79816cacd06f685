"""A server with every wake dropped: only the sweep finds work."""

import app.server
from app.main import create_app
from app.settings import take_settings


def main() -> None:
    app.server.serve(take_settings(), make_app=lambda settings: create_app(settings, wakes=False))
