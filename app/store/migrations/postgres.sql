-- Functions of SQLite that our queries use, for PostgreSQL.
CREATE OR REPLACE FUNCTION instr(text, text) RETURNS bigint LANGUAGE sql IMMUTABLE
  AS 'SELECT strpos($1, $2)::bigint';
CREATE OR REPLACE FUNCTION json_extract(text, text) RETURNS text LANGUAGE sql IMMUTABLE
  AS 'SELECT $1::jsonb #>> string_to_array(substr($2, 3), ''.'')';
CREATE OR REPLACE FUNCTION json_type(text, text) RETURNS text LANGUAGE sql IMMUTABLE
  AS 'SELECT replace(jsonb_typeof($1::jsonb #> string_to_array(substr($2, 3), ''.'')), ''string'', ''text'')';
CREATE OR REPLACE FUNCTION json_remove(text, text) RETURNS text LANGUAGE sql IMMUTABLE
  AS 'SELECT ($1::jsonb #- string_to_array(substr($2, 3), ''.''))::text';
CREATE OR REPLACE FUNCTION folded(text) RETURNS text LANGUAGE sql IMMUTABLE
  AS 'SELECT regexp_replace(normalize(lower($1), NFKD), ''[\u0300-\u036f]'', '''', ''g'')';
