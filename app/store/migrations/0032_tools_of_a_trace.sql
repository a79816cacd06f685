-- A trace keeps the tools of a call as a part of its prompt.
DROP TABLE catalogs;
