//! Functions of servers in drafted statements: their results, and what they take beside data.

/// Functions whose result is a value like those of their column.
pub(super) const SAME: &[&str] = &[
    "LOWER", "UPPER", "DATE", "CAST", "COALESCE", "IFNULL", "TRIM", "LTRIM", "RTRIM", "MIN", "MAX",
    "ANY_VALUE", "BINARY", "UNACCENT",
];

/// Functions and the values of their results.
pub(super) const RESULTS: &[(&[&str], &str)] = &[
    (&["COUNT"], "1, 2, 5"),
    (&["LENGTH", "CHAR_LENGTH", "OCTET_LENGTH"], "5, 10, 20"),
    (&["MONTH", "QUARTER", "DAYOFWEEK"], "1, 2, 3, 4"),
    (&["DAY", "DAYOFMONTH", "WEEK", "DAYOFYEAR", "HOUR", "MINUTE"], "1, 5, 12, 20"),
    (&["DATEDIFF", "TIMESTAMPDIFF"], "1, 7, 30"),
];

/// What functions take beside data: names, the place of the argument, values.
pub(super) const ARGUMENTS: &[(&[&str], usize, &str)] = &[
    (&["DATE_TRUNC", "DATE_PART"], 0, "\"month\""),
    (&["TO_CHAR", "TO_DATE", "TO_TIMESTAMP"], 1, "\"YYYY-MM-DD\""),
    (&["DATE_FORMAT", "STR_TO_DATE"], 1, "\"%Y-%m-%d\""),
    (&["ROUND", "TRUNC", "TRUNCATE"], 1, "2"),
    (&["SUBSTRING", "SUBSTR", "MID"], 1, "1"),
    (&["SUBSTRING", "SUBSTR", "MID"], 2, "3"),
    (&["LEFT", "RIGHT"], 1, "3"),
    (&["LPAD", "RPAD"], 1, "10"),
    (&["LPAD", "RPAD"], 2, "\"0\""),
    (&["CONCAT_WS"], 0, "\"-\""),
    (&["CONCAT", "CONCAT_WS"], 1, "\"-\""),
    (&["CONCAT", "CONCAT_WS"], 2, "\"-\""),
    (&["GROUP_CONCAT", "STRING_AGG", "ARRAY_TO_STRING", "STRING_TO_ARRAY"], 1, "\",\""),
    (&["TO_TSVECTOR", "TO_TSQUERY", "PLAINTO_TSQUERY", "WEBSEARCH_TO_TSQUERY"], 0, "\"simple\""),
    (&["TO_TSQUERY", "PLAINTO_TSQUERY", "WEBSEARCH_TO_TSQUERY"], 1, "\"a\""),
    (&["GENERATE_SERIES"], 0, "1"),
    (&["GENERATE_SERIES"], 1, "10"),
    (&["PERCENTILE_CONT", "PERCENTILE_DISC"], 0, "0.5"),
    (&["NTILE"], 0, "4"),
    (&["LAG", "LEAD", "NTH_VALUE", "ADDDATE", "SUBDATE"], 1, "1"),
    (&["SPLIT_PART", "SUBSTRING_INDEX"], 1, "\" \""),
    (&["SPLIT_PART", "SUBSTRING_INDEX"], 2, "1"),
    (&["MOD", "NULLIF"], 1, "10"),
    (&["POWER", "POW"], 1, "2"),
    (&["REGEXP_REPLACE", "REGEXP_LIKE", "REPLACE", "STRPOS", "INSTR"], 1, "\"a\""),
    (&["REGEXP_REPLACE", "REPLACE"], 2, "\"b\""),
    (&["LOCATE", "POSITION"], 0, "\"a\""),
    (&["JSON_EXTRACT", "JSON_VALUE"], 1, "\"$\""),
    (&["ENCODE", "DECODE"], 1, "\"hex\""),
    (&["CONVERT_TZ"], 1, "\"+00:00\""),
    (&["CONVERT_TZ"], 2, "\"+00:00\""),
    (&["MAKE_INTERVAL"], 0, "1"),
];
