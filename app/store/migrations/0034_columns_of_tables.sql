-- The tables and their columns, under one name for both databases.
CREATE VIEW table_columns AS
  SELECT m.name AS table_name, c.name AS column_name
  FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table';
