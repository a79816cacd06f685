"""Reminders: the alarm that tells them, and the service that tools use."""
