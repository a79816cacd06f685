"""Tools of servers: their definitions pinned and adapted, their names, what they answer."""
