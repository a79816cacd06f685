"""Our own tools at /mcp, for other hosts."""
