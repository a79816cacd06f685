"""The `recado` command."""

from app.cli.commands import app, main

__all__ = ["app", "main"]
