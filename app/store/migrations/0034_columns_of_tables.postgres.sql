-- The tables and their columns, under one name for both databases.
CREATE VIEW table_columns AS
  SELECT c.table_name::text, c.column_name::text FROM information_schema.columns c
  JOIN information_schema.tables t ON t.table_name = c.table_name AND t.table_schema = c.table_schema
  WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE';
