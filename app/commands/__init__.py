"""What the `recado` commands do; `app.cli` names them and their options."""
