//! The command `\setrandom`, which pgbench had up to version 9.6.

/// The way out for `\setrandom name from to`, which pgbench has no more.
pub(super) fn instead(words: &[(usize, String)]) -> String {
    let given =
        |at: usize, other: &'static str| words.get(at).map_or(other, |(_, word)| word.as_str());
    let (name, from, to) = (given(0, "name"), given(1, "1"), given(2, "10"));
    let random = match given(3, "uniform") {
        kind @ ("gaussian" | "exponential") => {
            format!("random_{kind}({from}, {to}, {})", given(4, "2.5"))
        }
        _ => format!("random({from}, {to})"),
    };
    format!("pgbench 9.6 was the last with `\\setrandom`: write `\\set {name} {random}`")
}
