//! Tables in Markdown.

/// A table with these column heads.
pub(super) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let mut text = line(&heads) + &"|---".repeat(heads.len()) + "|\n";
    for row in rows {
        text += &line(row);
    }
    text
}

/// A ratio with four digits after the point.
pub(super) fn ratio(number: Option<f64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), |number| format!("{number:.4}"))
}

/// A share in per cent.
pub(super) fn per_cent(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}
