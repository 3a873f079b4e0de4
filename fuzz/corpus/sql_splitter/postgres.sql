-- a dump
\restrict abc
SET statement_timeout = 0;
CREATE TABLE public.t (id integer NOT NULL, "na;me" text DEFAULT E'a\'b', c text);
CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN 1=1 THEN 2 END; END;
CREATE FUNCTION g() RETURNS void AS $body$ BEGIN PERFORM 1; END $body$ LANGUAGE plpgsql;
COPY public.t (id, "na;me") FROM stdin;
1	a;b
2	\N
\.
/* one /* in */ another; */ SELECT 'x''y', $$;$$, 1::int, :id, :'v' ;
DROP TABLE IF EXISTS "a b".t CASCADE;
ALTER TABLE ONLY public.t ADD CONSTRAINT p PRIMARY KEY (id);
\unrestrict abc
