//! Query plans made comparable: what a plan does, without its estimates.

/// The plan without numbers, so that neither costs nor row estimates nor the numbers of tables and
/// indexes count as differences.
///
/// Rows with tabs are EXPLAIN of MySQL and MariaDB as the driver keeps them: select_type, table,
/// type, key, key_len, ref, Extra. Only table, type, key and Extra say what is done: 5.7 began to
/// name writes in select_type, which is no other plan, and the table of an INSERT, which has none.
pub fn normalize(plan: &str) -> String {
    let lines = plan.lines().map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let kept = match cells.as_slice() {
            ["INSERT", ..] | [.., "No tables used"] => "no table is read".to_owned(),
            [_, table, access, key, _, _, extra] => format!("{table} {access} {key} {extra}"),
            _ => line.to_owned(),
        };
        without_numbers(&kept)
    });
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// A plan on one line of at most `width` characters.
pub fn shorten(normalized: &str, width: usize) -> String {
    if normalized.chars().count() <= width {
        return normalized.to_owned();
    }
    let head: String = normalized.chars().take(width.saturating_sub(1)).collect();
    format!("{head}…")
}

/// Each number becomes `#`, each run of blanks one blank; parentheses of costs go whole.
pub(super) fn without_numbers(line: &str) -> String {
    let line = match (line.find("(cost="), line.rfind(')')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &line[..open], &line[close + 1..])
        }
        _ => line.to_owned(),
    };
    let mut text = String::with_capacity(line.len());
    let mut in_number = false;
    for c in line.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        let number = c.is_ascii_digit() || (in_number && c == '.');
        if number && !in_number {
            text.push('#');
        } else if !number {
            text.push(c);
        }
        in_number = number;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_same(a: &str, b: &str) {
        assert_eq!(normalize(a), normalize(b));
    }

    fn check_different(a: &str, b: &str) {
        assert_ne!(normalize(a), normalize(b));
    }

    #[test]
    fn estimates_and_table_numbers_are_no_difference() {
        check_same(
            "Index Scan using sbtest1_pkey on sbtest1  (cost=0.29..8.31 rows=1 width=121)\n  \
             Index Cond: (id = 500)",
            "Index Scan using sbtest2_pkey on sbtest2  (cost=0.43..2.45 rows=7 width=9)\n    \
             Index Cond: (id = 77)",
        );
        check_same(
            "SIMPLE\tsbtest1\tconst\tPRIMARY\t4\tconst\tNULL",
            "SIMPLE\tsbtest2\tconst\tPRIMARY\t4\tconst\tNULL",
        );
        check_same(
            "SIMPLE\tsbtest1\trange\tPRIMARY\t4\tconst\tUsing where",
            "UPDATE\tsbtest1\trange\tPRIMARY\t4\tconst\tUsing where",
        );
        check_same(
            "SIMPLE\tNULL\tNULL\tNULL\tNULL\tNULL\tNo tables used",
            "INSERT\tsbtest1\tALL\tNULL\tNULL\tNULL\tNULL",
        );
    }

    #[test]
    fn another_access_is_a_difference() {
        check_different("Index Only Scan using k_1 on sbtest1", "Seq Scan on sbtest1");
        check_different(
            "SIMPLE\tsbtest1\trange\tPRIMARY\t4\tNULL\tUsing where",
            "SIMPLE\tsbtest1\tALL\tNULL\tNULL\tNULL\tUsing where",
        );
    }

    #[test]
    fn a_long_plan_is_cut_with_a_mark() {
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(shorten("abcd", 4), "abcd");
    }
}
