"""Servers of the Model Context Protocol: found, installed, run, and their tools offered as ours."""
