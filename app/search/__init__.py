"""Words and the index that finds tools by them."""
