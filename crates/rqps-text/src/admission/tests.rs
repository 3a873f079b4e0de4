//! Statements of a load that are refused, those of dumps that are not, and the same with other
//! blanks, comments and capitals.

use proptest::prelude::*;

use super::tokens::{TokenKind, without_hints};
use crate::admission::LoadRules;
use rqps_model::dialect::Dialect::{self, Mysql, Postgres};

/// Judges statements one after another; the first refusal.
fn judge(dialect: Dialect, statements: &[&str]) -> Result<Vec<Option<&'static str>>, String> {
    let mut rules = LoadRules::new(dialect);
    let mut left_out = Vec::new();
    for sql in statements {
        left_out.push(rules.judge(sql.as_bytes()).map_err(|why| format!("{sql}: {why}"))?.left_out);
    }
    Ok(left_out)
}

const OWN: &str = "CREATE TABLE own (id int PRIMARY KEY, a int, b varchar(10))";

/// So the schema or database is known.
const PLACE: &str = "CREATE TABLE here.first (id int)";

/// What no load may do on Postgres, after it has made the table `own`.
const HOSTILE_TO_POSTGRES: &[&str] = &[
    "DROP DATABASE shop",
    "DROP SCHEMA shop CASCADE",
    "DROP TABLE own CASCADE",
    "DROP TABLE own, customers",
    "DROP FUNCTION f",
    "DROP OWNED BY app",
    "DROP TYPE own CASCADE",
    "DO $$ BEGIN DELETE FROM customers; END $$",
    "DO 'BEGIN END'",
    "EXECUTE p",
    "PREPARE p AS DELETE FROM customers",
    "CALL p()",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS $$SELECT 1$$",
    "CREATE PROCEDURE p() LANGUAGE sql AS 'DELETE FROM customers'",
    "CREATE TRIGGER t BEFORE INSERT ON own EXECUTE FUNCTION f()",
    "CREATE RULE r AS ON INSERT TO own DO ALSO DELETE FROM customers",
    "CREATE POLICY p ON own USING (true)",
    "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f()",
    "CREATE SCHEMA other",
    "CREATE DATABASE other",
    "CREATE ROLE r SUPERUSER",
    "CREATE SERVER s FOREIGN DATA WRAPPER w",
    "CREATE FOREIGN TABLE f (a int) SERVER s",
    "CREATE CAST (int AS text) WITH FUNCTION f(int)",
    "CREATE OPERATOR = (LEFTARG = int, RIGHTARG = text, FUNCTION = f)",
    "CREATE TEMP TABLE t (a int)",
    "CREATE TABLE other.t (a int); DROP TABLE customers",
    "CREATE TABLE a.b.c (a int)",
    "CREATE TABLE pg_class (a int)",
    "CREATE TABLE t (a int) TABLESPACE fast",
    "CREATE TABLE t (a int, UNIQUE (a) USING INDEX TABLESPACE fast)",
    "CREATE INDEX i ON own (a) TABLESPACE fast WHERE a > 0",
    "CREATE TABLE t TABLESPACE fast AS SELECT 1",
    "CREATE TABLE t (a int DEFAULT evil())",
    "CREATE TABLE t (a int DEFAULT other.evil())",
    "CREATE TABLE t (a int DEFAULT pg_terminate_backend(7))",
    "CREATE TABLE t (a int CHECK (\"random\"() > 0))",
    "CREATE TABLE t (a int DEFAULT nextval('customers_id_seq'))",
    "CREATE TABLE t (a other.domain)",
    "CREATE TABLE t (a int REFERENCES customers (id))",
    "CREATE TABLE t () INHERITS (customers)",
    "CREATE TABLE t PARTITION OF customers DEFAULT",
    "CREATE TABLE t (LIKE customers)",
    "CREATE TABLE t AS SELECT * FROM customers",
    "CREATE TABLE t AS SELECT query_to_xml('DELETE FROM customers', true, true, '')",
    "CREATE TABLE t AS SELECT lo_import('/etc/passwd')",
    "CREATE TABLE t AS TABLE customers",
    "CREATE TABLE t AS WITH d AS (DELETE FROM own RETURNING *) SELECT * FROM d",
    "CREATE TABLE t AS EXECUTE p",
    "CREATE MATERIALIZED VIEW m AS SELECT * FROM customers",
    "CREATE TYPE t (INPUT = f, OUTPUT = g)",
    "CREATE DOMAIN d AS int CHECK (evil(VALUE))",
    "CREATE INDEX i ON customers (id)",
    "CREATE INDEX i ON own (evil(a))",
    "CREATE OR REPLACE TABLE own (a int)",
    "ALTER DATABASE shop SET search_path TO evil",
    "ALTER ROLE app SUPERUSER",
    "ALTER SYSTEM SET a = 1",
    "ALTER TABLE customers ADD COLUMN c int",
    "ALTER TABLE own RENAME TO customers2",
    "ALTER TABLE own SET SCHEMA other",
    "ALTER TABLE own ADD FOREIGN KEY (id) REFERENCES customers (id)",
    "ALTER TABLE own ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE own ALTER COLUMN a SET DEFAULT evil()",
    "ALTER TABLE own ATTACH PARTITION customers DEFAULT",
    "ALTER TABLE own ALTER COLUMN a TYPE text USING evil(a)",
    "ALTER TABLE own ADD CONSTRAINT c CHECK (a IN (SELECT evil() FROM own))",
    "ALTER SCHEMA public OWNER TO evil",
    "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
    "ALTER SEQUENCE customers_id_seq RESTART",
    "INSERT INTO customers VALUES (1)",
    "INSERT INTO other.own VALUES (1); SELECT 1",
    "INSERT INTO own SELECT id FROM customers",
    "INSERT INTO own (SELECT id FROM customers)",
    "INSERT INTO own ((SELECT id FROM customers))",
    "INSERT INTO own (id) (SELECT evil())",
    "INSERT INTO own SELECT 1 FROM own TABLESAMPLE evil(1)",
    "INSERT INTO own SELECT 1 FROM (own JOIN customers ON true)",
    "INSERT INTO own SELECT 1 FROM ONLY customers",
    "INSERT INTO own SELECT 1 FROM ROWS FROM (evil())",
    "INSERT INTO own SELECT (SELECT 1 FROM customers), 2",
    "INSERT INTO own SELECT a FROM own WHERE a IN (SELECT id FROM customers)",
    "INSERT INTO own SELECT 1 UNION SELECT id FROM customers",
    "INSERT INTO own SELECT extract(year FROM (SELECT max(d) FROM customers))",
    "INSERT INTO own WITH x AS (SELECT 1), y AS (SELECT * FROM customers) SELECT 1 FROM y",
    "INSERT INTO own SELECT 1 FROM own, customers",
    "INSERT INTO own SELECT 1 FROM own o JOIN customers c ON c.id = o.id",
    "INSERT INTO own VALUES ((SELECT count(*) FROM customers))",
    "INSERT INTO own VALUES (evil())",
    "INSERT INTO own VALUES (pg_sleep(1))",
    "INSERT INTO own VALUES ('1'::other.domain)",
    "INSERT INTO own VALUES (other.domain '1')",
    "INSERT INTO own VALUES (\"other\" . domain /* */ $$1$$)",
    "INSERT INTO own SELECT json_value('1', '$' RETURNING other.domain)",
    "INSERT INTO own VALUES (1) ON CONFLICT (id) DO UPDATE SET a = evil()",
    "WITH x AS (DELETE FROM customers RETURNING 1) INSERT INTO own SELECT 1",
    "UPDATE customers SET a = 1",
    "DELETE FROM customers",
    "TRUNCATE customers",
    "TRUNCATE own, customers",
    "MERGE INTO customers USING own ON true WHEN MATCHED THEN DELETE",
    "COPY customers FROM '/tmp/x'",
    "COPY own FROM PROGRAM 'id'",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "COPY own TO '/tmp/x'",
    "SELECT pg_terminate_backend(7)",
    "SELECT set_config('search_path', 'evil', false)",
    "SELECT pg_catalog.set_config('search_path', 'evil', false)",
    "SELECT pg_catalog.set_config('role', '', false)",
    "SELECT pg_catalog.setval('customers_id_seq', 1)",
    "SELECT pg_catalog.set_config('search_path', '', false), evil()",
    "SET search_path = evil",
    "SET ROLE app",
    "SET SESSION AUTHORIZATION app",
    "SET SESSION ROLE app",
    "SET LOCAL search_path TO evil",
    "SET standard_conforming_strings = off",
    "SET client_encoding = 'SJIS'",
    "SET session_replication_role = replica",
    "SET backslash_quote = on",
    "RESET ALL",
    "DISCARD ALL",
    "GRANT ALL ON own TO PUBLIC",
    "REVOKE ALL ON customers FROM app",
    "REASSIGN OWNED BY app TO evil",
    "SECURITY LABEL ON TABLE own IS 'x'",
    "COMMENT ON TABLE customers IS 'x'",
    "COMMENT ON DATABASE shop IS 'x'",
    "LISTEN x",
    "NOTIFY x",
    "LOAD 'evil.so'",
    "LOCK TABLE customers",
    "CLUSTER customers",
    "VACUUM customers",
    "ANALYZE",
    "REINDEX DATABASE shop",
    "EXPLAIN ANALYZE DELETE FROM customers",
    "DECLARE c CURSOR FOR SELECT evil()",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "\\! id",
    "\\i /tmp/x",
    "\\copy own from program 'id'",
    "/* a /* b */ DROP TABLE own; */ DROP DATABASE shop",
    "INSERT INTO own VALUES (E'a'\n'\\'); DROP TABLE customers; --')",
    "INSERT INTO own VALUES ($$a$$); DROP TABLE customers",
    "INSERT INTO own VALUES ($a$ $$ $b$ $a$), (evil())",
    "INSERT INTO own VALUES (U&'a')",
    "INSERT INTO own WITH customers AS (SELECT * FROM customers) SELECT id FROM customers",
    "INSERT INTO own SELECT (WITH customers AS (SELECT 1) SELECT 1), id FROM customers",
    "INSERT INTO own WITH customers AS (SELECT 1) SELECT 1 ON CONFLICT (id) DO UPDATE SET a = \
     (SELECT id FROM customers)",
    "INSERT INTO own WITH customers AS (SELECT 1) SELECT 1 RETURNING (SELECT id FROM customers)",
    "INSERT INTO own SELECT id AS distinct FROM customers",
    "INSERT INTO own SELECT own.is distinct FROM customers",
    "INSERT INTO own SELECT id AS values FROM (customers c JOIN own ON true)",
    "INSERT INTO own SELECT own.for values FROM (customers c JOIN own ON true)",
    "INSERT INTO own SELECT 1 FROM own JOIN own o ON own.where = 1, customers c",
    "INSERT INTO own SELECT 1 FROM own JOIN own o ON (o).limit = 1, customers c",
    "INSERT INTO own SELECT 1 FROM own JOIN own o ON \
     (SELECT true) = (percentile_cont(0.5) WITHIN GROUP (ORDER BY 1) > 0), customers c",
    "INSERT INTO own SELECT 1 FROM own WITHIN GROUP (ORDER BY 1), customers c",
    "INSERT INTO own SELECT 1 FROM (TABLE customers) t",
    "VALUES (evil())",
    "TABLE customers",
    "IMPORT FOREIGN SCHEMA s FROM SERVER x INTO public",
];

/// The same of MySQL and MariaDB.
const HOSTILE_TO_MYSQL: &[&str] = &[
    "INSERT INTO own SELECT 1 FROM own USE INDEX FOR ORDER BY (a), customers c",
    "INSERT INTO own SELECT 1 FROM own USE INDEX FOR GROUP BY (a), customers c",
    "INSERT INTO own SELECT 1 FROM own FOR SYSTEM_TIME ALL, customers c",
    "INSERT INTO own SELECT 1 FROM own JOIN own o ON own.where = 1, customers c",
    "INSERT INTO own SELECT 1 FROM own JOIN own o ON @where = 1, customers c",
    "INSERT INTO own SELECT 1 FROM own JOIN own o ON @limit = 1, customers c",
    "INSERT INTO own SELECT a IS DISTINCT FROM customers",
    "DROP DATABASE shop",
    "/*!40000 DROP DATABASE IF EXISTS `shop`*/",
    "/*!99999 DROP DATABASE shop */",
    "/*M! DROP DATABASE shop */",
    "DROP SCHEMA shop",
    "DROP TABLE `own`, customers",
    "DROP PROCEDURE p",
    "DROP TABLE other.`own`, `own`",
    "CREATE DATABASE other",
    "USE other",
    "CREATE TABLE other.t (a int); DROP TABLE customers",
    "CREATE TABLE t (a int) ENGINE=FEDERATED CONNECTION='mysql://x/y/z'",
    "CREATE TABLE t (a int) ENGINE=CONNECT TABLE_TYPE=CSV FILE_NAME='/etc/passwd'",
    "CREATE TABLE t (a int) ENGINE='connect'",
    "CREATE TABLE t (a int) ENGINE=MERGE UNION=(customers)",
    "CREATE TABLE t (a int) /*!40000 ENGINE=MRG_MyISAM */",
    "CREATE TABLE t (a int) DATA DIRECTORY='/tmp'",
    "CREATE TABLE t (a int) PARTITION BY HASH (a) (PARTITION p DATA DIRECTORY = '/tmp')",
    "CREATE TABLE t (a int, FOREIGN KEY (a) REFERENCES customers (id))",
    "CREATE TABLE t LIKE customers",
    "CREATE TABLE t SELECT * FROM customers",
    "CREATE TABLE t (a int) AS SELECT id FROM other.customers",
    "CREATE TABLE t (a int DEFAULT (nextval(s)))",
    "CREATE TABLE t (a int DEFAULT evil())",
    "CREATE TABLE t (a int DEFAULT (1 + evil()))",
    "CREATE TABLE t (a int DEFAULT abs(evil()))",
    "CREATE TABLE t (a int AS (evil()) PERSISTENT)",
    "CREATE TABLE t (a int CHECK (a > evil()))",
    "CREATE TABLE t (a int, KEY k ((evil(a))))",
    "ALTER TABLE own ALTER COLUMN a SET DEFAULT evil()",
    "CREATE SEQUENCE s ENGINE=FEDERATED CONNECTION='mysql://x/y/z'",
    "CREATE TABLE t AS SELECT evil()",
    "CREATE TABLE t (a int) SELECT sys_exec('id')",
    "CREATE TABLE t (a int) (SELECT id FROM customers)",
    "INSERT INTO own (SELECT id FROM customers)",
    "INSERT INTO own TABLE customers",
    "INSERT INTO own PARTITION (p) SELECT id FROM customers",
    "/*!40000 INSERT INTO customers VALUES (1) */",
    "CREATE OR REPLACE TABLE t (a int)",
    "CREATE TEMPORARY TABLE t (a int)",
    "CREATE PROCEDURE p() DELETE FROM customers",
    "CREATE FUNCTION f() RETURNS int RETURN 1",
    "CREATE FUNCTION sys_exec RETURNS STRING SONAME 'udf.so'",
    "CREATE TRIGGER t BEFORE INSERT ON own FOR EACH ROW DELETE FROM customers",
    "/*!50003 CREATE*/ /*!50003 TRIGGER t BEFORE INSERT ON own FOR EACH ROW BEGIN END */",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM customers",
    "CREATE USER u",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')",
    "CREATE DEFINER=root@localhost VIEW v AS SELECT 1",
    "CREATE VIEW v AS SELECT 1 INTO OUTFILE '/tmp/x'",
    "CREATE TABLE OUTFILE '/tmp/x'",
    "CREATE TABLE t (dumpfile int)",
    "CREATE INDEX i ON customers (id)",
    "ALTER DATABASE shop CHARACTER SET latin1",
    "ALTER TABLE customers ADD c int",
    "ALTER TABLE own RENAME TO customers2",
    "ALTER TABLE own EXCHANGE PARTITION p WITH TABLE customers",
    "ALTER TABLE own DISCARD TABLESPACE",
    "ALTER TABLE own ENGINE=FEDERATED",
    "ALTER USER u IDENTIFIED BY 'x'",
    "RENAME TABLE own TO customers2",
    "RENAME TABLE customers TO c2",
    "INSERT INTO customers VALUES (1)",
    "INSERT INTO other.own VALUES (1), (SELECT 1)",
    "INSERT INTO own SELECT id FROM customers",
    "INSERT INTO own VALUES (load_file('/etc/passwd'))",
    "INSERT INTO own VALUES (sleep(1))",
    "INSERT INTO own VALUES (evil())",
    "INSERT INTO own VALUES (other.evil())",
    "INSERT INTO own VALUES (`evil`())",
    "INSERT INTO own SELECT 1 INTO OUTFILE '/tmp/x'",
    "INSERT /*!99999 INTO customers */ /*!40000 INTO own */ VALUES (1)",
    "INSERT INTO /*!99999 customers -- */ own VALUES (1)",
    "INSERT INTO own VALUES (1 /*!99999 + evil() */)",
    "INSERT INTO own VALUES ('a' /*!50000 ); DROP TABLE customers */)",
    "REPLACE INTO customers VALUES (1)",
    "UPDATE customers SET a = 1",
    "DELETE FROM customers",
    "TRUNCATE customers",
    "INSERT INTO own VALUES ({fn evil()})",
    "INSERT INTO own SELECT 1 FROM $own",
    "INSERT INTO own VALUES ($count(1))",
    "INSERT INTO own SELECT 1 FROM only, customers",
    "INSERT INTO own SELECT 1 FROM own offset, customers",
    "INSERT INTO own SELECT 1 FROM own window, customers",
    "INSERT INTO own VALUES (NEXT VALUE FOR customers_seq)",
    "INSERT INTO own WITH customers AS (SELECT 1) SELECT 1 ON DUPLICATE KEY UPDATE a = \
     (SELECT id FROM customers)",
    "CREATE TABLE t (x int) AS VALUES (evil(1))",
    "CREATE TABLE t (x int) VALUES (evil(1))",
    "CREATE TABLE t (x int) AS VALUES ROW (evil(1))",
    "CREATE TABLE t WITH c AS (VALUES (evil(1))) SELECT 1",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE own",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE own",
    "LOAD XML INFILE 'x' INTO TABLE own",
    "SELECT 1 INTO OUTFILE '/tmp/x'",
    "SELECT evil()",
    "SELECT sleep(100)",
    "DO sleep(1)",
    "CALL p()",
    "PREPARE s FROM 'DROP TABLE customers'",
    "EXECUTE s",
    "EXECUTE IMMEDIATE 'DROP TABLE customers'",
    "BEGIN NOT ATOMIC DELETE FROM customers; END",
    "SET GLOBAL general_log = 1",
    "SET @@GLOBAL.general_log = 1",
    "SET PERSIST a = 1",
    "SET @@PERSIST.a = 1",
    "SET a = 1, GLOBAL general_log = 1",
    "SET sql_mode = 'ANSI_QUOTES'",
    "SET sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'",
    "SET SESSION sql_mode = ANSI",
    "SET @@sql_mode = 'oracle'",
    "SET sql_mode = @evil",
    "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
    "SET NAMES gbk",
    "SET character_set_client = big5",
    "SET PASSWORD = 'x'",
    "SET ROLE admin",
    "SET STATEMENT sql_mode = 'ANSI' FOR SELECT 1",
    "SET TRANSACTION READ ONLY",
    "SET @a = (SELECT 1 FROM customers)",
    "GRANT ALL ON *.* TO u",
    "REVOKE ALL ON customers FROM u",
    "LOCK TABLES customers WRITE",
    "LOCK TABLES own WRITE, customers WRITE",
    "FLUSH PRIVILEGES",
    "FLUSH TABLES WITH READ LOCK",
    "KILL 7",
    "INSTALL PLUGIN x SONAME 'x.so'",
    "UNINSTALL PLUGIN x",
    "HANDLER customers OPEN",
    "XA START 'x'",
    "RESET MASTER",
    "CHANGE MASTER TO MASTER_HOST = 'x'",
    "OPTIMIZE TABLE customers",
    "ANALYZE TABLE customers",
    "SHUTDOWN",
    "ROLLBACK",
    "/*!50003 SELECT 1 */ /*!50004 ; DROP TABLE customers */",
    "/* x */ /*!99999 CALL p() */",
    "INSERT INTO own VALUES ('a\\'); DROP TABLE customers; --')) evil",
    "/*+ SET_VAR(sql_mode='ANSI') */ INSERT INTO own VALUES (1)",
    "\\! id",
    "DELIMITER //",
    "source /tmp/x",
];

/// Attacks of several statements. The last one is refused.
const HOSTILE_IN_STEPS: &[(Dialect, &[&str])] = &[
    // A control character ends a comment, or begins one, where others see none.
    (Postgres, &["INSERT INTO own VALUES (1) -- \r; DROP TABLE customers"]),
    (Postgres, &["-- \rDROP TABLE customers"]),
    (Postgres, &["INSERT INTO own\rVALUES (1)"]),
    (Mysql, &["INSERT INTO own VALUES (1) --\x0c + evil()"]),
    (Mysql, &["INSERT INTO own VALUES (1) --\x0b + evil()"]),
    (Mysql, &["INSERT INTO own VALUES (1) # \0 x"]),
    // Modes and character sets from elsewhere.
    (Mysql, &["SET sql_mode = 1048576"]),
    (Mysql, &["SET sql_mode = 0x100000"]),
    (Mysql, &["SET sql_mode = b'100'"]),
    (Mysql, &["SET sql_mode = '4'"]),
    (Mysql, &["SET sql_mode = DEFAULT"]),
    (Mysql, &["SET sql_mode = 'ÁNSI_QUOTES'"]),
    (Mysql, &["SET @m := 'ANSI_QUOTES'"]),
    (Mysql, &["SET @m = @@sql_mode", "INSERT INTO own VALUES (@m := 4)"]),
    (Mysql, &["SET character_set_client = @x"]),
    (Mysql, &["SET character_set_client = 28"]),
    // What has the name of a table is no table.
    (Postgres, &["CREATE INDEX customers ON own (id)", "ALTER TABLE customers ADD c int"]),
    (Postgres, &["CREATE INDEX customers ON own (id)", "INSERT INTO own SELECT 1 FROM customers"]),
    (Postgres, &["CREATE SEQUENCE customers", "INSERT INTO customers VALUES (1)"]),
    (Postgres, &["CREATE TYPE customers AS ENUM ('a')", "CREATE TABLE t (LIKE customers)"]),
    (
        Postgres,
        &[
            "CREATE TABLE t (sequence name GENERATED ALWAYS AS ('x') STORED)",
            "ALTER SEQUENCE generated RESTART",
        ],
    ),
    (Postgres, &["CREATE SEQUENCE s", "ALTER SEQUENCE s OWNED BY s.id"]),
    (
        Postgres,
        &["CREATE TABLE t (a int CONSTRAINT i CHECK (a > 0))", "ALTER INDEX i ATTACH PARTITION i"],
    ),
    (
        Postgres,
        &["CREATE SEQUENCE s", "CREATE TABLE t (a int DEFAULT nextval('s' || 'hop'::text))"],
    ),
    (Postgres, &["CREATE SEQUENCE s", "INSERT INTO own VALUES (nextval('s'::text || 'x'))"]),
    // Each version of the server makes something else.
    (Mysql, &["CREATE TABLE /*!99999 customers */ /*!50000 t */ (a int)"]),
    (Mysql, &["CREATE /*!99999 TABLE t (a int) */ /*M! VIEW t AS SELECT 1 */"]),
    // Views do when they are read what their text says.
    (Postgres, &["CREATE VIEW v AS SELECT * FROM customers", "INSERT INTO own SELECT id FROM v"]),
    (
        Postgres,
        &["CREATE VIEW v AS SELECT evil()", "CREATE MATERIALIZED VIEW m AS SELECT * FROM v"],
    ),
    (Postgres, &["CREATE VIEW v AS SELECT id FROM customers", "INSERT INTO v VALUES (1)"]),
    (
        Postgres,
        &[
            "CREATE VIEW v AS SELECT id FROM customers",
            "CREATE VIEW w AS SELECT id FROM v",
            "INSERT INTO own SELECT id FROM w",
        ],
    ),
    (
        Postgres,
        &[
            "CREATE VIEW v AS SELECT 1 AS id",
            "CREATE MATERIALIZED VIEW m AS SELECT id FROM v WITH NO DATA",
            "CREATE OR REPLACE VIEW v AS SELECT evil() AS id",
            "REFRESH MATERIALIZED VIEW m",
        ],
    ),
    (
        Mysql,
        &[
            "CREATE TABLE t (a int)",
            "CREATE VIEW w AS SELECT a FROM t",
            "DROP TABLE t",
            "CREATE VIEW t AS SELECT a FROM customers",
            "INSERT INTO own SELECT a FROM w",
        ],
    ),
    (Mysql, &["CREATE VIEW v AS SELECT id FROM customers", "LOCK TABLES v WRITE"]),
];

/// What the files say a name is, and what the server has under it.
const HOSTILE_NAMES: &[(Dialect, &[&str])] = &[
    (
        Postgres,
        &["ALTER TABLE own ADD COLUMN IF NOT EXISTS id int GENERATED ALWAYS AS IDENTITY \
         (SEQUENCE NAME customers_id_seq)"],
    ),
    (Postgres, &["ALTER TABLE own ADD c int, ADD COLUMN IF NOT EXISTS id int CONSTRAINT i UNIQUE"]),
    (Postgres, &["CREATE SEQUENCE s OWNED BY customers.id"]),
    (
        Postgres,
        &[
            "CREATE TABLE x (id int)",
            "CREATE VIEW x AS SELECT id FROM customers",
            "INSERT INTO x VALUES (1)",
        ],
    ),
    (Mysql, &["/*!99999 CREATE TABLE x (id int) */"]),
    (Mysql, &["/*!50700 DROP TABLE own */"]),
    (Mysql, &["/*M! CREATE TABLE x (id int) */"]),
    (Mysql, &["/*M!100100 INSERT INTO own VALUES (1) */"]),
    (Postgres, &["CREATE TABLE rqps_owner (tag int)"]),
    (Mysql, &["CREATE TABLE `RQPS_owner` (tag int)"]),
    (Postgres, &["CREATE STATISTICS s ON a, b FROM customers"]),
    (Postgres, &["CREATE STATISTICS s ON a, (evil(b)) FROM own"]),
    (Postgres, &["ALTER STATISTICS s SET STATISTICS 0"]),
    (Postgres, &["COMMENT ON STATISTICS s IS 'x'"]),
];

/// What pg_dump writes about ordinary tables, in order, and whether it is sent.
const DUMP_OF_POSTGRES: &[(&str, Option<&str>)] = &[
    ("SET statement_timeout = 0", None),
    ("SET idle_in_transaction_session_timeout = 0", None),
    ("SET client_encoding = 'UTF8'", None),
    ("SET standard_conforming_strings = on", None),
    ("SELECT pg_catalog.set_config('search_path', '', false)", None),
    ("SET check_function_bodies = false", None),
    ("SET xmloption = content", None),
    ("SET client_min_messages = warning", None),
    ("SET row_security = off", None),
    (
        "CREATE EXTENSION IF NOT EXISTS pgcrypto WITH SCHEMA public",
        Some("extensions are the business of the server's owner"),
    ),
    ("DROP TABLE IF EXISTS public.thing", Some("")),
    ("CREATE TYPE public.mood AS ENUM (\n 'sad',\n 'it''s ok'\n)", None),
    ("ALTER TYPE public.mood OWNER TO app", Some("the owner of what rqps loads is its login")),
    ("CREATE DOMAIN public.small AS integer CONSTRAINT small_check CHECK ((VALUE < 10))", None),
    ("SET default_tablespace = ''", None),
    ("SET default_table_access_method = heap", None),
    (
        "CREATE TABLE public.thing (\n id integer NOT NULL,\n name character varying(40) DEFAULT \
         ''::character varying,\n amount numeric(10,2),\n feels public.mood,\n at timestamp \
         without time zone DEFAULT now(),\n key uuid DEFAULT gen_random_uuid(),\n twice \
         numeric GENERATED ALWAYS AS ((amount * (2)::numeric)) STORED,\n CONSTRAINT amount_check \
         CHECK ((amount > (0)::numeric)),\n CONSTRAINT known CHECK (((name)::text = ANY \
         ((ARRAY['a'::character varying, 'b'::character varying])::text[])))\n) WITH \
         (fillfactor='70')",
        None,
    ),
    ("ALTER TABLE public.thing OWNER TO app", Some("the owner of what rqps loads is its login")),
    ("COMMENT ON TABLE public.thing IS 'it''s; a thing'", None),
    ("COMMENT ON COLUMN public.thing.name IS NULL", None),
    (
        "CREATE SEQUENCE public.thing_id_seq\n AS integer\n START WITH 1\n INCREMENT BY 1\n NO \
         MINVALUE\n NO MAXVALUE\n CACHE 1",
        None,
    ),
    ("ALTER SEQUENCE public.thing_id_seq OWNED BY public.thing.id", None),
    (
        "ALTER TABLE ONLY public.thing ALTER COLUMN id SET DEFAULT \
         nextval('public.thing_id_seq'::regclass)",
        None,
    ),
    ("CREATE TABLE public.part (id bigint, day date) PARTITION BY RANGE (day)", None),
    ("CREATE TABLE public.part_1 (id bigint, day date)", None),
    (
        "ALTER TABLE ONLY public.part ATTACH PARTITION public.part_1 FOR VALUES FROM \
         ('2024-01-01') TO ('2025-01-01')",
        None,
    ),
    (
        "ALTER TABLE public.part ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (\n SEQUENCE \
         NAME public.part_id_seq\n START WITH 1\n CACHE 1\n)",
        None,
    ),
    ("INSERT INTO public.thing (id, name) VALUES (1, E'a\\'b'), (-2, NULL)", None),
    ("SELECT pg_catalog.setval('public.thing_id_seq', 3, true)", None),
    ("SELECT pg_catalog.setval('public.part_id_seq', 1, false)", None),
    (
        "CREATE VIEW public.named AS\n SELECT t.id,\n EXTRACT(year FROM t.at) AS y\n FROM \
         (public.thing t JOIN public.part p ON ((p.id = t.id)))\n WHERE (t.name IS NOT NULL)",
        None,
    ),
    (
        "CREATE MATERIALIZED VIEW public.sums AS\n SELECT sum(t.amount) AS total FROM \
         public.thing t WITH NO DATA",
        None,
    ),
    ("ALTER TABLE ONLY public.thing ADD CONSTRAINT thing_pkey PRIMARY KEY (id)", None),
    (
        "CREATE UNIQUE INDEX thing_by_name ON public.thing USING btree (lower((name)::text) DESC, \
         id) INCLUDE (amount) WHERE (amount > (0)::numeric)",
        None,
    ),
    (
        "ALTER TABLE ONLY public.part_1 ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES \
         public.thing(id) ON UPDATE CASCADE ON DELETE SET NULL",
        None,
    ),
    ("REFRESH MATERIALIZED VIEW public.sums", None),
    ("CREATE STATISTICS public.both (ndistinct, mcv) ON name, (id + 1) FROM public.thing", None),
    (
        "ALTER STATISTICS public.both OWNER TO app",
        Some("the owner of what rqps loads is its login"),
    ),
    ("ALTER STATISTICS public.both SET STATISTICS 100", None),
    ("COMMENT ON STATISTICS public.both IS 'x'", None),
    (
        "CREATE MATERIALIZED VIEW public.more AS SELECT json_agg(t.name) AS names, \
         percentile_cont((0.5)::double precision) WITHIN GROUP (ORDER BY ((t.id)::double \
         precision)) AS middle, bool_or((t.id > 1)) FILTER (WHERE (t.id > 2)) AS any FROM \
         public.thing t WITH NO DATA",
        None,
    ),
    ("COMMENT ON EXTENSION pgcrypto IS 'x'", Some("it is not about a table of the load")),
];

/// What mysqldump and mariadb-dump write about ordinary tables, without what rqps leaves out.
const DUMP_OF_MYSQL: &[(&str, Option<&str>)] = &[
    ("/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */", None),
    ("/*!50503 SET NAMES utf8mb4 */", None),
    ("/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */", None),
    ("/*!40103 SET TIME_ZONE='+00:00' */", None),
    ("/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */", None),
    ("/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */", None),
    ("/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0 */", None),
    ("DROP TABLE IF EXISTS `item`", Some("")),
    ("/*!40101 SET @saved_cs_client     = @@character_set_client */", None),
    ("/*!50503 SET character_set_client = utf8mb4 */", None),
    (
        "CREATE TABLE `item` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `name` varchar(40) \
         DEFAULT 'it''s \\'x\\'' COMMENT 'a;b',\n  `kind` enum('a','b') DEFAULT NULL,\n  `at` \
         timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,\n  `twice` int \
         GENERATED ALWAYS AS (`id` * 2) VIRTUAL,\n  PRIMARY KEY (`id`),\n  KEY `k` \
         (`name`(10),`kind`)\n) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4 \
         COLLATE=utf8mb4_0900_ai_ci /*!80016 DEFAULT ENCRYPTION='N' */\n/*!50100 PARTITION BY \
         RANGE (`id`)\n(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB) */",
        None,
    ),
    ("/*!40101 SET character_set_client = @saved_cs_client */", None),
    (
        "CREATE TABLE `line` (`id` int, CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `item` (`id`) \
         ON DELETE CASCADE) ENGINE=InnoDB",
        None,
    ),
    ("LOCK TABLES `item` WRITE", None),
    ("/*!40000 ALTER TABLE `item` DISABLE KEYS */", None),
    ("INSERT INTO `item` VALUES (1,';\\' x',_binary 'a\\0',0x1F),(2,NULL,NULL,-1.5e3)", None),
    ("/*!40000 ALTER TABLE `item` ENABLE KEYS */", None),
    ("UNLOCK TABLES", None),
    ("/*!50001 DROP VIEW IF EXISTS `named`*/", Some("")),
    ("/*!50001 CREATE VIEW `named` AS SELECT 1 AS `id`*/", None),
    ("/*!50001 DROP VIEW IF EXISTS `named`*/", None),
    (
        "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013  SQL SECURITY DEFINER */\n/*!50001 VIEW \
         `named` AS select `item`.`id` AS `id` from `item` where (`item`.`name` is not null) */",
        None,
    ),
    ("/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */", None),
    ("/*!40101 SET SQL_MODE=@OLD_SQL_MODE */", None),
    ("COMMIT", None),
];

/// What people write by hand.
const BY_HAND: &[(Dialect, &str)] = &[
    (Postgres, "create table if not exists t (id serial primary key, ref int references own (id))"),
    (Postgres, "INSERT INTO own SELECT i, i % 7, md5(i::text) FROM generate_series(1, 1000) AS i"),
    (
        Postgres,
        "INSERT INTO own WITH a AS (SELECT 1 AS x), b (y) AS (SELECT x FROM a) SELECT b.y, 1, \
         own.b FROM b, LATERAL (SELECT 2) AS c JOIN own ON true WHERE own.a IN (SELECT x FROM a)",
    ),
    (
        Postgres,
        "INSERT INTO own SELECT g.i, x.b FROM generate_series(1, 9) AS g (i), own AS x (a, b)",
    ),
    (Postgres, "INSERT INTO own VALUES (1) ON CONFLICT (id) DO UPDATE SET a = excluded.a"),
    (Postgres, "CREATE TABLE t AS SELECT own.*, count(*) FROM own GROUP BY own.id"),
    (Postgres, "INSERT INTO own SELECT id FROM own WHERE a IS DISTINCT FROM id"),
    (Postgres, "INSERT INTO own SELECT id FROM own WHERE a IS NOT DISTINCT FROM id"),
    (
        Postgres,
        "INSERT INTO own SELECT x FROM (WITH a AS (SELECT 1 AS x) SELECT x FROM a) AS s UNION \
         SELECT id + 1 FROM own EXCEPT SELECT a, id FROM own OFFSET 1",
    ),
    (Postgres, "BEGIN"),
    (Mysql, "INSERT INTO own SELECT id, a FROM own EXCEPT SELECT a, id FROM own LIMIT 1 OFFSET 2"),
    (Mysql, "INSERT INTO own VALUES ROW (1, 2, '{$x}'), ROW (2, 3, 'next')"),
    (Postgres, "CREATE INDEX ON own (a)"),
    (
        Mysql,
        "INSERT INTO own (id) WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s \
             WHERE n < 10) SELECT n FROM s",
    ),
    (Mysql, "INSERT IGNORE INTO own SET id = 1, a = rand() * 10"),
    (Mysql, "INSERT INTO own VALUES (1, 2, 'x') ON DUPLICATE KEY UPDATE a = VALUES(a)"),
    (Postgres, "CREATE TABLE t (tablespace name, b int)"),
    (Postgres, "ALTER TABLE own ADD COLUMN tablespace name"),
    (Mysql, "CREATE TABLE t LIKE own"),
    (
        Mysql,
        "CREATE TABLE t (a text, b json CHECK (json_valid(`b`)), KEY evil (a(10)), KEY k (a (5)))",
    ),
    (Mysql, "CREATE UNIQUE INDEX i ON own (a, b(5))"),
    (Mysql, "ALTER TABLE own ADD INDEX j (a), MODIFY b varchar(20) NOT NULL"),
    (Mysql, "start transaction"),
];

#[test]
fn what_a_load_may_not_do_is_refused() {
    assert!(HOSTILE_TO_POSTGRES.len() >= 60 && HOSTILE_TO_MYSQL.len() >= 60);
    let hostile = [(Postgres, HOSTILE_TO_POSTGRES), (Mysql, HOSTILE_TO_MYSQL)];
    for (dialect, statements) in hostile {
        for sql in statements {
            assert!(judge(dialect, &[PLACE, OWN, sql]).is_err(), "{dialect:?} admits {sql}");
        }
    }
}

#[test]
fn no_step_leads_to_what_a_load_may_not_do() {
    for (dialect, steps) in HOSTILE_IN_STEPS.iter().chain(HOSTILE_NAMES) {
        let (last, before) = steps.split_last().unwrap();
        let before = [&[PLACE, OWN], before].concat();
        judge(*dialect, &before).unwrap();
        let all = [&before[..], &[last]].concat();
        assert!(judge(*dialect, &all).is_err(), "{dialect:?} admits {all:?}");
    }
}

/// A drop of what the load did not make is left out, and rqps looks for it before.
#[test]
fn a_kind_with_the_name_of_a_table_drops_no_table() {
    for made in [
        "CREATE INDEX customers ON own (id)",
        "CREATE TABLE t (sequence name GENERATED ALWAYS AS ('x') STORED, customers int)",
        "ALTER TABLE own ADD CONSTRAINT customers UNIQUE (a)",
    ] {
        let found = judge(Postgres, &[OWN, made, "DROP TABLE IF EXISTS customers"]).unwrap();
        assert_eq!(found.last(), Some(&Some("")), "{made}");
    }
}

#[test]
fn views_that_were_checked_and_indexes_of_constraints_are_used() {
    let admitted = [
        "CREATE TABLE p (id int, CONSTRAINT p_key UNIQUE (id)) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 (id int)",
        "ALTER TABLE ONLY p ADD CONSTRAINT p_pkey PRIMARY KEY (id)",
        "ALTER TABLE ONLY p1 ADD CONSTRAINT p1_pkey PRIMARY KEY (id)",
        "ALTER INDEX p_pkey ATTACH PARTITION p1_pkey",
        "CREATE VIEW v AS SELECT p.id FROM p",
        "CREATE MATERIALIZED VIEW m AS SELECT id FROM v",
        "CREATE VIEW other AS SELECT evil()",
        "REFRESH MATERIALIZED VIEW m",
        "COMMENT ON CONSTRAINT p_pkey ON p IS 'x'",
        "COMMENT ON INDEX p_pkey IS 'x'\r\n",
        "ALTER TABLE v OWNER TO app",
    ];
    judge(Postgres, &admitted).unwrap();
}

#[test]
fn dumps_of_ordinary_tables_are_admitted() {
    for (dialect, dump) in [(Postgres, DUMP_OF_POSTGRES), (Mysql, DUMP_OF_MYSQL)] {
        let statements: Vec<&str> = dump.iter().map(|(sql, _)| *sql).collect();
        let wanted: Vec<Option<&str>> = dump.iter().map(|(_, left_out)| *left_out).collect();
        let found = judge(dialect, &statements).unwrap();
        for ((sql, want), found) in statements.iter().zip(&wanted).zip(&found) {
            assert_eq!(found, want, "{sql}");
        }
    }
    for (dialect, sql) in BY_HAND {
        judge(*dialect, &[OWN, sql]).unwrap();
    }
}

#[test]
fn rows_of_copy_go_into_tables_of_the_load() {
    let mut rules = LoadRules::new(Postgres);
    rules.judge(b"CREATE TABLE public.own (a int)").unwrap();
    rules.judge_copy("COPY public.own (a) FROM stdin").unwrap();
    rules.judge_copy("COPY own FROM STDIN WITH (FORMAT csv)").unwrap();
    for sql in [
        "COPY customers FROM stdin",
        "COPY other.own FROM stdin",
        "COPY own FROM stdin WHERE evil()",
        "COPY own FROM PROGRAM 'x'; COPY own FROM stdin",
        "COPY own FROM '/tmp/x' /* FROM STDIN */",
    ] {
        assert!(rules.judge_copy(sql).is_err(), "{sql}");
    }
}

/// `IF NOT EXISTS` would take the table of somebody who was faster for the own.
#[test]
fn what_a_load_makes_is_new() {
    let sent = |dialect, sql: &str| {
        let admitted = LoadRules::new(dialect).judge(sql.as_bytes()).unwrap();
        String::from_utf8(admitted.sent(sql.as_bytes())).unwrap()
    };
    let table = sent(Postgres, "CREATE TABLE IF NOT EXISTS t (a int)");
    assert_eq!(table, "CREATE TABLE t (a int)");
    assert_eq!(sent(Mysql, "create or replace view v as select 1"), "create view v as select 1");
    let twice = ["CREATE TABLE t (a int)", "CREATE TABLE IF NOT EXISTS t (b int)"];
    assert!(judge(Postgres, &twice).is_err());
}

#[test]
fn all_files_of_a_load_are_in_one_place() {
    let two = ["CREATE TABLE a.t (x int)", "CREATE TABLE b.t (x int)"];
    assert!(judge(Postgres, &two).unwrap_err().contains("b.t is not in a"));
    let mut rules = LoadRules::new(Mysql);
    rules.judge(b"CREATE TABLE `shop`.`t` (x int)").unwrap();
    assert_eq!(rules.place(), Some("shop"));
}

#[test]
fn a_variable_holds_one_setting_only() {
    let restored = "SET sql_mode = @a";
    judge(Mysql, &["SET @a = @@sql_mode", restored]).unwrap();
    for statements in [
        &["SET @a = 'ANSI_QUOTES'", "/*!99999 SET @a = @@sql_mode */", restored][..],
        &["SET @a = @@sql_mode", "SET @a = 'ANSI_QUOTES'", restored],
        &["SET @a = @@time_zone", restored],
        &["SET @a = @@GLOBAL.sql_mode", restored],
    ] {
        assert!(judge(Mysql, statements).is_err(), "{statements:?}");
    }
}

/// Somebody may have made a function or an operator of that name.
#[test]
fn what_statements_call_is_noted() {
    let mut rules = LoadRules::new(Postgres);
    rules.judge(OWN.as_bytes()).unwrap();
    rules.judge(b"CREATE TABLE p (id int) PARTITION BY RANGE (id)").unwrap();
    assert!(!rules.called().any(|it| it == "range"));
    rules.judge(b"INSERT INTO own SELECT Hash(1) <-> lower('x') || pg_catalog.upper('y')").unwrap();
    let called: Vec<&str> = rules.called().collect();
    assert!(["<->", "hash", "lower", "||"].iter().all(|it| called.contains(it)), "{called:?}");
    assert!(!called.contains(&"upper"), "{called:?}");
    // Postgres takes all but the first for functions, where they are no columns.
    rules.judge(b"INSERT INTO own SELECT ('/x'::text).A.\"B\", o.c FROM own o").unwrap();
    assert_eq!(rules.attributes().collect::<Vec<_>>(), ["B", "a", "c"]);
    assert_eq!(rules.attributes_of_values().collect::<Vec<_>>(), ["B", "a"]);
    assert!(rules.judge(b"INSERT INTO own SELECT (('x'::text).f).* FROM own").is_ok());
    assert!(rules.judge(b"INSERT INTO own SELECT ('x'::text).f.* FROM own").is_err());
}

#[test]
fn an_entry_of_drop_drops_what_it_names() {
    let names = |entry: &str| {
        let found = crate::admission::dropped(Postgres, entry)?;
        Ok::<_, String>(found.iter().map(|it| it.drop_entry()).collect::<Vec<_>>())
    };
    assert_eq!(names("shop.\"Order\"").unwrap(), ["shop.\"Order\""]);
    assert_eq!(names("drop view if exists a, b").unwrap().len(), 2);
    assert_eq!(names("DROP FUNCTION f(int), g").unwrap().len(), 2);
    assert_eq!(names("DROP TRIGGER x ON t").unwrap().len(), 1);
    for entry in [
        "",
        "t; DROP TABLE u",
        "DROP TABLE t CASCADE",
        "DROP TABLE t; DROP TABLE u",
        "DROP SCHEMA s",
        "DROP DATABASE d",
        "DROP OWNED BY u",
        "DROP TABLE t -- \n; x",
        "DROP TABLE IF EXISTS own -- \r; DROP TABLE customers",
        "DELETE FROM t",
        "DROP TABLE t u",
    ] {
        assert!(names(entry).is_err(), "{entry}");
    }
    assert!(crate::admission::dropped(Mysql, "DROP TABLE t /*!50000 , u */").is_err());
}

/// The same statement with other capitals, blanks and comments.
fn disguised(dialect: Dialect, sql: &str, choices: &[u8]) -> Option<String> {
    let all = without_hints(dialect, sql.as_bytes()).ok()?;
    if all.iter().any(|token| token.comment.is_some()) {
        return None;
    }
    let (mut text, mut choices, mut end) = (String::new(), choices.iter().cycle(), 0);
    for token in all {
        let choice = *choices.next()?;
        // Blanks between two words, or the parts of a text, stay; others come between any tokens.
        let between = ["\n\t ", "/* ; */", " -- '\n", " "][usize::from(choice % 4)];
        if token.begin > end || choice % 3 == 0 {
            text.push_str(between);
        }
        let said = &sql[token.begin..token.end];
        match token.kind {
            TokenKind::Word => {
                text.extend(said.chars().enumerate().map(|(at, letter)| {
                    match (choice >> (at % 8)) & 1 {
                        0 => letter.to_ascii_uppercase(),
                        _ => letter.to_ascii_lowercase(),
                    }
                }))
            }
            _ => text.push_str(said),
        }
        end = token.end;
    }
    Some(text)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_disguise_helps(choices in prop::collection::vec(any::<u8>(), 1..40)) {
        for (dialect, statements) in
            [(Postgres, HOSTILE_TO_POSTGRES), (Mysql, HOSTILE_TO_MYSQL)]
        {
            for sql in statements {
                if let Some(text) = disguised(dialect, sql, &choices) {
                    prop_assert!(judge(dialect, &[PLACE, OWN, &text]).is_err(), "admits {}", text);
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for dialect in [Postgres, Mysql] {
            LoadRules::new(dialect).judge(&bytes).ok();
        }
    }
}
