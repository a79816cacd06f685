"""Servers as they are written down: the file, what was installed and approved, secrets."""
