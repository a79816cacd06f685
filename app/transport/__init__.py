"""The one guarded way to an address that came from outside (docs/decisions/0017)."""
