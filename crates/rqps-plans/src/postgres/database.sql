SELECT pg_encoding_to_char(d.encoding), d.datcollate, d.datctype, coalesce(to_jsonb(d) ->>
    'datlocprovider', 'c'), coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')
FROM pg_database d
WHERE d.datname = current_database()
