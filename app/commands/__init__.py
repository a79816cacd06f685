"""The work behind the `recado` commands; `app.cli` declares their names and options."""
