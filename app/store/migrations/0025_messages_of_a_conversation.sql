-- The newest message of each conversation, and those beside one: the console's list, and recall.
CREATE INDEX messages_of_conversation ON messages (conversation_id, id);
