CREATE TABLE public.t (id bigint NOT NULL, v text);
COPY public.t (id, v) FROM stdin;
1	one
2	\N
\.
ALTER TABLE ONLY public.t ADD CONSTRAINT k PRIMARY KEY (id);
CREATE VIEW w AS SELECT id, count(*) FROM public.t GROUP BY id;
