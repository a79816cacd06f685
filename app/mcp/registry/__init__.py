"""The registry of servers: asked, mirrored, searched, its entries read."""
