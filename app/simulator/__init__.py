"""The phone simulator: a page with several people's phones and the stand-in Graph API behind it."""
