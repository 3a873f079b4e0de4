//! Checks that the tables are consistent after a step: conditions 1 to 4.

use std::collections::BTreeMap;

use rqps_driver::connection::Connection;

/// Amounts that differ by less are equal, because SQLite adds in binary floating point.
const CENT: f64 = 0.005;

/// Checks the conditions. The error names the first violation.
pub(super) fn check(session: &mut Connection) -> Result<(), String> {
    years(session)?;
    numbers(session)?;
    lines(session)
}

fn fault(place: &str, what: &str) -> String {
    format!("orders are inconsistent after the step: {place}: {what}")
}

/// The rows of a query as numbers; NULL is `None`.
fn ask(session: &mut Connection, sql: &str) -> Result<Vec<Vec<Option<f64>>>, String> {
    let rows = session.rows(sql).map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
    Ok(rows.into_iter().map(|row| row.into_iter().map(number).collect()).collect())
}

/// Condition 1: the year of a warehouse is the sum of its districts.
fn years(session: &mut Connection) -> Result<(), String> {
    let sql = "SELECT w_id, w_ytd, (SELECT SUM(d_ytd) FROM district WHERE d_w_id = w_id) \
               FROM warehouse ORDER BY w_id";
    for row in ask(session, sql)? {
        let [Some(warehouse), year, districts] = row[..] else { continue };
        let (year, districts) = (year.unwrap_or(0.0), districts.unwrap_or(0.0));
        if (year - districts).abs() > CENT {
            let what = format!("w_ytd is {year:.2}, and its districts have {districts:.2}");
            return Err(fault(&format!("warehouse {warehouse}"), &what));
        }
    }
    Ok(())
}

/// Conditions 2 and 3: the next number follows the last order, and new orders have no gap.
fn numbers(session: &mut Connection) -> Result<(), String> {
    let of_new = |what: &str| {
        format!("(SELECT {what} FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id)")
    };
    let sql = format!(
        "SELECT d_w_id, d_id, d_next_o_id - 1, (SELECT MAX(o_id) FROM orders \
         WHERE o_w_id = d_w_id AND o_d_id = d_id), {}, {}, {} FROM district ORDER BY d_w_id, d_id",
        of_new("MAX(no_o_id)"),
        of_new("MIN(no_o_id)"),
        of_new("COUNT(*)")
    );
    for row in ask(session, &sql)? {
        let [Some(warehouse), Some(district), Some(last), order, newest, oldest, count] = row[..]
        else {
            continue;
        };
        let place = format!("district {district} of warehouse {warehouse}");
        if order != Some(last) || newest.is_some_and(|newest| newest != last) {
            let said = |number: Option<f64>| number.map_or("none".to_owned(), |n| n.to_string());
            let (order, newest) = (said(order), said(newest));
            let what = format!(
                "d_next_o_id - 1 is {last}, the last order {order}, the last new order {newest}"
            );
            return Err(fault(&place, &what));
        }
        if let (Some(newest), Some(oldest), Some(count)) = (newest, oldest, count)
            && newest - oldest + 1.0 != count
        {
            let what = format!("{count} new orders have the numbers {oldest} to {newest}");
            return Err(fault(&place, &what));
        }
    }
    Ok(())
}

/// Condition 4: orders have the stated number of lines.
fn lines(session: &mut Connection) -> Result<(), String> {
    let mut of = |sql: &str| -> Result<BTreeMap<(u64, u64), u64>, String> {
        let rows = ask(session, sql)?;
        let whole = |number: Option<f64>| number.unwrap_or(0.0) as u64;
        Ok(rows.iter().map(|row| ((whole(row[0]), whole(row[1])), whole(row[2]))).collect())
    };
    let said = of("SELECT o_w_id, o_d_id, SUM(o_ol_cnt) FROM orders GROUP BY o_w_id, o_d_id")?;
    let there = of("SELECT ol_w_id, ol_d_id, COUNT(*) FROM order_line GROUP BY ol_w_id, ol_d_id")?;
    match said.iter().find(|(place, count)| there.get(place) != Some(count)) {
        None => Ok(()),
        Some((place, count)) => {
            let there = there.get(place).copied().unwrap_or(0);
            let what = format!("its orders should have {count} lines, but have {there}");
            Err(fault(&format!("district {} of warehouse {}", place.1, place.0), &what))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use rqps_embed::sqlite::{Sqlite, SqliteConnection};

    /// Two districts of two warehouses each, with three orders of two lines; the last two of each
    /// district are new.
    fn tables() -> Connection {
        let library = Arc::new(Sqlite::compiled_in());
        let memory = Path::new(":memory:");
        let mut session =
            Connection::Sqlite(SqliteConnection::open(&library, memory, 1000).unwrap());
        let mut make = |sql: &str| {
            session.simple(sql).unwrap();
        };
        make("CREATE TABLE warehouse (w_id INT, w_ytd DECIMAL(12,2))");
        make("CREATE TABLE district (d_w_id INT, d_id INT, d_ytd DECIMAL(12,2), d_next_o_id INT)");
        make("CREATE TABLE orders (o_w_id INT, o_d_id INT, o_id INT, o_ol_cnt INT)");
        make("CREATE TABLE new_order (no_w_id INT, no_d_id INT, no_o_id INT)");
        make("CREATE TABLE order_line (ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT)");
        for w in 1..=2 {
            make(&format!("INSERT INTO warehouse VALUES ({w}, 60000.2)"));
            for d in 1..=2 {
                make(&format!("INSERT INTO district VALUES ({w}, {d}, 30000.1, 4)"));
                for o in 1..=3 {
                    make(&format!("INSERT INTO orders VALUES ({w}, {d}, {o}, 2)"));
                    for number in 1..=2 {
                        make(&format!("INSERT INTO order_line VALUES ({w}, {d}, {o}, {number})"));
                    }
                }
                make(&format!("INSERT INTO new_order VALUES ({w}, {d}, 2), ({w}, {d}, 3)"));
            }
        }
        session
    }

    #[test]
    fn tables_that_agree_pass_and_every_broken_one_is_found_with_its_place() {
        let mut session = tables();
        assert_eq!(super::check(&mut session), Ok(()));
        let mut found = |breaks: &str, wanted: &str| {
            session.simple("BEGIN").unwrap();
            session.simple(breaks).unwrap();
            let fault = super::check(&mut session).unwrap_err();
            let all = format!("orders are inconsistent after the step: {wanted}");
            assert_eq!(fault, all, "{breaks}");
            session.simple("ROLLBACK").unwrap();
        };
        found(
            "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2",
            "warehouse 2: w_ytd is 60000.21, and its districts have 60000.20",
        );
        found(
            "UPDATE district SET d_next_o_id = 5 WHERE d_w_id = 1 AND d_id = 2",
            "district 2 of warehouse 1: d_next_o_id - 1 is 4, the last order 3, the last new order \
             3",
        );
        found(
            "DELETE FROM new_order WHERE no_w_id = 2 AND no_d_id = 1 AND no_o_id = 3",
            "district 1 of warehouse 2: d_next_o_id - 1 is 3, the last order 3, the last new order \
             2",
        );
        found(
            "UPDATE new_order SET no_o_id = 1 WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 2",
            "district 1 of warehouse 1: 2 new orders have the numbers 1 to 3",
        );
        found(
            "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 2 AND ol_o_id = 1 \
             AND ol_number = 1",
            "district 2 of warehouse 2: its orders should have 6 lines, but have 5",
        );
        found(
            "DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = 1",
            "district 1 of warehouse 1: d_next_o_id - 1 is 3, the last order none, the last new \
             order 3",
        );
        assert_eq!(super::check(&mut session), Ok(()));
    }
}
