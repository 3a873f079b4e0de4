-- Kinds of objects, in an order in which most of them can be made. Each has its name, the catalogue
-- whose members of extensions are left out, its identifier and its name there, and then, for each
-- object, the statement that makes it.

-- object: schema, pg_namespace, n.oid, n.nspname
format('CREATE SCHEMA IF NOT EXISTS %I', n.nspname)
FROM pg_namespace n
WHERE true

-- object: collation, pg_collation, c.oid, c.collname
format('CREATE COLLATION %I.%I (PROVIDER = %s, %s, DETERMINISTIC = %s)', n.nspname, c.collname,
    CASE c.collprovider WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' END, CASE WHEN
    c.collprovider = 'c' THEN format('LC_COLLATE = %L, LC_CTYPE = %L', c.collcollate, c.collctype)
    ELSE format('LOCALE = %L', coalesce(to_jsonb(c) ->> 'colllocale', to_jsonb(c) ->>
    'colliculocale', c.collcollate)) END, c.collisdeterministic)
FROM pg_collation c
JOIN pg_namespace n ON n.oid = c.collnamespace
WHERE true

-- object: type, pg_type, t.oid, t.typname
format('CREATE TYPE %I.%I AS ENUM (%s)', n.nspname, t.typname, (SELECT
    string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE
    e.enumtypid = t.oid))
FROM pg_type t
JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype = 'e'

-- object: type, pg_type, t.oid, t.typname
format('CREATE TYPE %I.%I AS (%s)', n.nspname, t.typname, (SELECT string_agg(format('%I %s',
    a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum) FROM pg_attribute a
    WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped))
FROM pg_type t
JOIN pg_namespace n ON n.oid = t.typnamespace
JOIN pg_class c ON c.oid = t.typrelid
WHERE c.relkind = 'c'

-- object: type, pg_type, t.oid, t.typname
format('CREATE TYPE %I.%I AS RANGE (SUBTYPE = %s)', n.nspname, t.typname,
    format_type(r.rngsubtype, NULL))
FROM pg_type t
JOIN pg_namespace n ON n.oid = t.typnamespace
JOIN pg_range r ON r.rngtypid = t.oid
WHERE t.typtype = 'r'

-- Without its checks: they change no plan, and a superuser who writes statistics would run them.
-- object: domain, pg_type, t.oid, t.typname
format('CREATE DOMAIN %I.%I AS %s%s', n.nspname, t.typname, format_type(t.typbasetype,
    t.typtypmod), CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END)
FROM pg_type t
JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype = 'd'

-- object: sequence, pg_class, c.oid, c.relname
format('CREATE SEQUENCE %I.%I', n.nspname, c.relname)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S'

-- object: function, pg_proc, p.oid, p.proname
pg_get_functiondef(p.oid)
FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind IN ('f', 'p')

-- object: aggregate, pg_proc, p.oid, p.proname
format('CREATE AGGREGATE %I.%I (%s) (SFUNC = %s, STYPE = %s%s%s%s, PARALLEL = %s)', n.nspname,
    p.proname, pg_get_function_arguments(p.oid), g.aggtransfn::regproc,
    format_type(g.aggtranstype, NULL), CASE WHEN g.aggfinalfn = 0 THEN '' ELSE ', FINALFUNC = ' ||
    g.aggfinalfn::regproc END, CASE WHEN g.aggcombinefn = 0 THEN '' ELSE ', COMBINEFUNC = ' ||
    g.aggcombinefn::regproc END, CASE WHEN g.agginitval IS NULL THEN '' ELSE ', INITCOND = ' ||
    quote_literal(g.agginitval) END, CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN
    'restricted' ELSE 'unsafe' END)
FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace
JOIN pg_aggregate g ON g.aggfnoid = p.oid
WHERE g.aggkind = 'n'

-- object: operator, pg_operator, o.oid, o.oprname
format('CREATE OPERATOR %I.%s (FUNCTION = %s%s%s%s%s%s)', n.nspname, o.oprname,
    o.oprcode::regproc, CASE WHEN o.oprleft = 0 THEN '' ELSE ', LEFTARG = ' ||
    format_type(o.oprleft, NULL) END, CASE WHEN o.oprright = 0 THEN '' ELSE ', RIGHTARG = ' ||
    format_type(o.oprright, NULL) END, CASE WHEN o.oprrest = 0 THEN '' ELSE ', RESTRICT = ' ||
    o.oprrest::regproc END, CASE WHEN o.oprjoin = 0 THEN '' ELSE ', JOIN = ' || o.oprjoin::regproc
    END, CASE WHEN o.oprcanhash THEN ', HASHES' ELSE '' END)
FROM pg_operator o
JOIN pg_namespace n ON n.oid = o.oprnamespace
WHERE true

-- Dropped columns keep the numbers of those behind them, which statistics refer to. Defaults
-- change no plan.
-- object: table, pg_class, c.oid, c.relname
format('CREATE TABLE %I.%I (%s)%s%s', n.nspname, c.relname, (SELECT string_agg(CASE WHEN
    a.attisdropped THEN format('rqps_dropped_%s integer', a.attnum) ELSE format('%I %s%s%s%s',
    a.attname, format_type(a.atttypid, a.atttypmod), (SELECT format(' COLLATE %I.%I', cn.nspname,
    co.collname) FROM pg_collation co JOIN pg_namespace cn ON cn.oid = co.collnamespace JOIN
    pg_type ct ON ct.oid = a.atttypid WHERE co.oid = a.attcollation AND a.attcollation <>
    ct.typcollation), CASE WHEN a.attgenerated <> '' THEN format(' GENERATED ALWAYS AS (%s) %s',
    pg_get_expr(d.adbin, d.adrelid), CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL'
    END) ELSE '' END, CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END) END, ', ' ORDER BY
    a.attnum) FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum =
    a.attnum WHERE a.attrelid = c.oid AND a.attnum > 0), CASE WHEN c.relkind = 'p' THEN
    ' PARTITION BY ' || pg_get_partkeydef(c.oid) ELSE '' END, (SELECT format(' WITH (%s)',
    string_agg(format('%s=%L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)), ', ')) FROM
    unnest(c.reloptions) o HAVING count(*) > 0))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
AND c.relpersistence <> 't'

-- object: column, pg_class, c.oid, c.relname
format('ALTER TABLE ONLY %I.%I DROP COLUMN rqps_dropped_%s', n.nspname, c.relname, a.attnum)
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0
AND a.attisdropped
AND c.relkind IN ('r', 'p')
AND c.relpersistence <> 't'

-- object: constraint, pg_class, c.oid, k.conname
format('ALTER TABLE ONLY %I.%I ADD CONSTRAINT %I %s', n.nspname, c.relname, k.conname,
    pg_get_constraintdef(k.oid))
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype = 'c'

-- object: partition, pg_class, c.oid, c.relname
format('ALTER TABLE ONLY %I.%I ATTACH PARTITION %I.%I %s', pn.nspname, p.relname, n.nspname,
    c.relname, pg_get_expr(c.relpartbound, c.oid))
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.relispartition
AND c.relkind IN ('r', 'p')

-- object: inheritance, pg_class, c.oid, c.relname
format('ALTER TABLE %I.%I INHERIT %I.%I', n.nspname, c.relname, pn.nspname, p.relname)
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE NOT c.relispartition
AND c.relkind = 'r'

-- object: constraint, pg_class, c.oid, k.conname
format('ALTER TABLE ONLY %I.%I ADD CONSTRAINT %I %s', n.nspname, c.relname, k.conname,
    pg_get_constraintdef(k.oid))
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype IN ('p', 'u', 'x')

-- object: view, pg_class, c.oid, c.relname
format('CREATE VIEW %I.%I%s AS %s', n.nspname, c.relname, (SELECT format(' WITH (%s)',
    string_agg(format('%s=%L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)), ', ')) FROM
    unnest(c.reloptions) o HAVING count(*) > 0), pg_get_viewdef(c.oid))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v'
AND c.relpersistence <> 't'

-- object: materialized view, pg_class, c.oid, c.relname
format('CREATE MATERIALIZED VIEW %I.%I AS %s WITH NO DATA', n.nspname, c.relname,
    rtrim(pg_get_viewdef(c.oid), '; '))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'm'

-- object: index, pg_class, c.oid, c.relname
pg_get_indexdef(c.oid)
FROM pg_index x
JOIN pg_class c ON c.oid = x.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class r ON r.oid = x.indrelid
WHERE x.indisvalid
AND r.relpersistence <> 't'
AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid AND k.contype IN ('p', 'u',
    'x'))

-- object: index, pg_class, c.oid, c.relname
format('ALTER INDEX %I.%I ATTACH PARTITION %I.%I', pn.nspname, p.relname, n.nspname, c.relname)
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class p ON p.oid = i.inhparent
JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.relkind IN ('i', 'I')

-- object: constraint, pg_class, c.oid, k.conname
format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s', n.nspname, c.relname, k.conname,
    pg_get_constraintdef(k.oid))
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype = 'f'
AND k.conparentid = 0

-- object: statistics, pg_statistic_ext, s.oid, s.stxname
pg_get_statisticsobjdef(s.oid)
FROM pg_statistic_ext s
JOIN pg_namespace n ON n.oid = s.stxnamespace
WHERE true

-- object: rule, pg_class, c.oid, r.rulename
pg_get_ruledef(r.oid)
FROM pg_rewrite r
JOIN pg_class c ON c.oid = r.ev_class
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE r.rulename <> '_RETURN'

-- object: trigger, pg_class, c.oid, t.tgname
pg_get_triggerdef(t.oid)
FROM pg_trigger t
JOIN pg_class c ON c.oid = t.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT t.tgisinternal
AND c.relkind = 'v'

-- object: cast, pg_cast, k.oid, format_type(k.castsource, NULL)
format('CREATE CAST (%s AS %s) %s%s', format_type(k.castsource, NULL), format_type(k.casttarget,
    NULL), CASE k.castmethod WHEN 'f' THEN 'WITH FUNCTION ' || k.castfunc::regprocedure WHEN 'i'
    THEN 'WITH INOUT' ELSE 'WITHOUT FUNCTION' END, CASE k.castcontext WHEN 'a' THEN
    ' AS ASSIGNMENT' WHEN 'i' THEN ' AS IMPLICIT' ELSE '' END)
FROM pg_cast k
JOIN pg_type t ON t.oid = k.castsource
JOIN pg_namespace n ON true
WHERE k.oid >= 16384
AND n.nspname = 'public'

-- object: text search dictionary, pg_ts_dict, d.oid, d.dictname
format('CREATE TEXT SEARCH DICTIONARY %I.%I (TEMPLATE = %I.%I%s)', n.nspname, d.dictname,
    tn.nspname, t.tmplname, ', ' || d.dictinitoption)
FROM pg_ts_dict d
JOIN pg_namespace n ON n.oid = d.dictnamespace
JOIN pg_ts_template t ON t.oid = d.dicttemplate
JOIN pg_namespace tn ON tn.oid = t.tmplnamespace
WHERE true

-- object: text search configuration, pg_ts_config, c.oid, c.cfgname
format('CREATE TEXT SEARCH CONFIGURATION %I.%I (PARSER = pg_catalog.%I)', n.nspname, c.cfgname,
    p.prsname)
FROM pg_ts_config c
JOIN pg_namespace n ON n.oid = c.cfgnamespace
JOIN pg_ts_parser p ON p.oid = c.cfgparser
WHERE true
