"""Moments and repetitions: read from people's words, counted in their time zone."""
