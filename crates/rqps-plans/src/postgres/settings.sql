SELECT name, reset_val
FROM pg_settings
WHERE (category LIKE 'Query Tuning%' OR name IN ('work_mem', 'hash_mem_multiplier', 'search_path',
    'max_parallel_workers', 'max_parallel_workers_per_gather', 'DateStyle', 'IntervalStyle',
    'TimeZone', 'standard_conforming_strings', 'default_text_search_config', 'bytea_output',
    'xmlbinary', 'transform_null_equals', 'array_nulls', 'backslash_quote', 'temp_buffers',
    'effective_io_concurrency', 'row_security'))
AND source NOT IN ('default', 'override')
AND (source <> 'session' OR reset_val IS DISTINCT FROM boot_val)
AND context IN ('user', 'superuser')
