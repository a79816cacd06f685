"""Words and the index that finds tools by them."""

from app.search.index import Document, Hit, ToolIndex

__all__ = ["Document", "Hit", "ToolIndex"]
