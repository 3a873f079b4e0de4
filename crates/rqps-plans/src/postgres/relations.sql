SELECT n.nspname, c.relname, c.relkind, am.amname, c.relpages, c.reltuples, c.relallvisible, CASE
    WHEN c.relkind IN ('p', 'I') THEN 0 ELSE pg_relation_size(c.oid) / 8192 END, c.oid, (SELECT
    coalesce(sum(s.stawidth), 0) FROM (SELECT a.attrelid, a.attnum, CASE WHEN a.attlen > 0 THEN
    a.attlen ELSE 0 END AS stawidth FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0)
    s), EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attlen
    < 0)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_am am ON am.oid = c.relam
WHERE c.relkind IN ('r', 'm', 'p', 'i', 'I')
AND c.relpersistence <> 't'
AND n.nspname !~ '^pg_'
AND n.nspname <> 'information_schema'
ORDER BY c.oid
