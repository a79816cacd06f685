"""The built-in model, which needs no key and no network, and what it reads people's words with."""
