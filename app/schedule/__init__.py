"""Reminders: the clock that tells them, and what tools do with them."""
