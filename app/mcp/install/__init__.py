"""Installing what the registry lists: planned, downloaded, kept, removed."""
