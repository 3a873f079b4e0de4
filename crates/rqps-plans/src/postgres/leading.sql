SELECT n.nspname, c.relname, a.attname, x.indoption[0]
FROM pg_index x
JOIN pg_class c ON c.oid = x.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_am am ON am.oid = i.relam
JOIN pg_attribute a ON a.attrelid = c.oid
AND a.attnum = x.indkey[0]
JOIN pg_opclass o ON o.oid = x.indclass[0]
WHERE am.amname = 'btree'
AND o.opcdefault
AND x.indisvalid
AND x.indpred IS NULL
AND x.indcollation[0] = a.attcollation
AND c.relkind IN ('r', 'm')
AND n.nspname !~ '^pg_'
AND n.nspname <> 'information_schema'
