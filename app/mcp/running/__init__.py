"""Servers that run: started, kept running, talked to, ended."""
