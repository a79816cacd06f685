"""What is done and said about servers in a chat: cards, lists, refusals, notices."""
