CREATE FUNCTION pg_temp.base(oid) RETURNS oid LANGUAGE sql STABLE AS $$
    WITH RECURSIVE d(t) AS (SELECT $1 UNION ALL SELECT y.typbasetype FROM d JOIN pg_type y ON
        y.oid = d.t WHERE y.typtype = 'd') SELECT t
    FROM d
    JOIN pg_type y ON y.oid = d.t
    WHERE y.typtype <> 'd'
$$

CREATE FUNCTION pg_temp.key(oid) RETURNS oid LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT o.opcintype FROM pg_opclass o WHERE o.opcdefault AND o.opcmethod = 403
        AND o.opcintype = $1), (SELECT k.casttarget FROM pg_cast k JOIN pg_opclass o ON
        o.opcintype = k.casttarget AND o.opcdefault AND o.opcmethod = 403 WHERE k.castsource = $1
        AND k.castmethod = 'b' AND k.castcontext = 'i' LIMIT 1), (SELECT CASE WHEN t.typtype = 'e'
        THEN 3500 WHEN t.typtype = 'r' THEN 3831 WHEN t.typtype = 'm' THEN 4537 WHEN t.typtype =
        'c' THEN 2249 WHEN t.typelem <> 0 AND t.typlen = -1 THEN 2277 END FROM pg_type t WHERE
        t.oid = $1)::oid)
$$

CREATE FUNCTION pg_temp.op(oid, int) RETURNS oid LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT a.amopopr FROM pg_opclass o JOIN pg_amop a ON a.amopfamily =
        o.opcfamily AND a.amoplefttype = o.opcintype AND a.amoprighttype = o.opcintype WHERE
        o.opcdefault AND o.opcmethod = 403 AND a.amopstrategy = $2 AND o.opcintype =
        pg_temp.key($1)), CASE WHEN $2 = 3 THEN (SELECT a.amopopr FROM pg_opclass o JOIN pg_amop a
        ON a.amopfamily = o.opcfamily AND a.amoplefttype = o.opcintype AND a.amoprighttype =
        o.opcintype WHERE o.opcdefault AND o.opcmethod = 405 AND o.opcintype = $1) END, 0)
$$

CREATE FUNCTION pg_temp.elem(oid) RETURNS oid LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN $1 = 3614 THEN 25 ELSE (SELECT t.typelem FROM pg_type t WHERE t.oid = $1) END
$$
