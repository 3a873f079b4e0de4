//! The ledger: what sittings of one host differ by beyond the scatter of their blocks.

use serde::{Deserialize, Serialize};

use crate::build::Dbms;

/// The first words of a ledger that this rqps reads.
pub const LEDGER_HEAD: &str = "# rqps ledger 1";

const COLUMNS: &str = "dbms,kind,host,sd,df,origin";

/// One line of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SittingScatter {
    /// The DBMS of both builds.
    pub dbms: Dbms,
    /// `reads`, `writes` or `loads`.
    pub kind: String,
    /// Class of the host, such as `c2r8`.
    pub host: String,
    /// Standard deviation of ln ratios between sittings.
    pub sd: f64,
    /// Its degrees of freedom: sittings less one, because the steps of a sitting share it.
    pub df: f64,
    /// What it was measured with.
    pub origin: String,
}

impl SittingScatter {
    /// The line.
    pub fn line(&self) -> String {
        let SittingScatter { dbms, kind, host, sd, df, origin } = self;
        let word = |text: &str| text.replace([',', '\n', '\r'], " ");
        format!("{},{},{},{sd:.6},{df},{}\n", dbms.name(), word(kind), word(host), word(origin))
    }
}

/// A ledger without lines.
pub fn empty() -> String {
    format!("{LEDGER_HEAD}\n{COLUMNS}\n")
}

/// Reads a ledger.
///
/// # Errors
/// Another version, or a line that is none of a ledger. The text names the line.
pub fn parse(text: &str) -> Result<Vec<SittingScatter>, String> {
    let head = text.lines().next().unwrap_or_default();
    let rest = head.strip_prefix(LEDGER_HEAD).filter(|rest| !rest.starts_with(char::is_numeric));
    if rest.is_none() {
        return Err(format!("it does not begin with `{LEDGER_HEAD}`: damaged, or of another rqps"));
    }
    if text.lines().nth(1) != Some(COLUMNS) {
        return Err(format!("line 2: its columns are not {COLUMNS}"));
    }
    let lines = text.lines().enumerate().skip(2).filter(|(_, line)| !line.is_empty());
    let read = |(at, line): (usize, &str)| {
        scatter(line).ok_or_else(|| format!("line {}: it is not {COLUMNS}", at + 1))
    };
    lines.map(read).collect()
}

fn scatter(line: &str) -> Option<SittingScatter> {
    let cells: Vec<&str> = line.splitn(6, ',').collect();
    let [dbms, kind, host, sd, df, origin] = cells.as_slice() else { return None };
    let (sd, df): (f64, f64) = (sd.parse().ok()?, df.parse().ok()?);
    let fine = (0.0..1.0).contains(&sd) && (1.0..1e6).contains(&df);
    let known = ["reads", "writes", "loads"].contains(kind);
    (fine && known).then(|| {
        Some(SittingScatter {
            dbms: Dbms::from_name(dbms)?,
            kind: (*kind).to_owned(),
            host: (*host).to_owned(),
            sd,
            df,
            origin: (*origin).to_owned(),
        })
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_survives_and_what_is_none_is_named() {
        let one = SittingScatter {
            dbms: Dbms::from_name("postgres").unwrap(),
            kind: "reads".to_owned(),
            host: "c2r8".to_owned(),
            sd: 0.011,
            df: 4.0,
            origin: "five sittings".to_owned(),
        };
        let text = empty() + &one.line();
        assert_eq!(parse(&text), Ok(vec![one]));
        for (wrong, part) in [
            ("", "another rqps"),
            ("# rqps ledger 12\n", "another rqps"),
            ("# rqps ledger 2\n", "another rqps"),
            ("# rqps ledger 1\ndbms,sd\n", "line 2"),
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        for line in [
            "postgres,reads,c2r8,NaN,4,x", "postgres,reads,c2r8,-0.1,4,x",
            "postgres,reads,c2r8,0.01,0,x", "postgres,reads,c2r8,inf,4,x",
            "oracle,reads,c2r8,0.01,4,x", "postgres,scans,c2r8,0.01,4,x", "postgres,reads",
        ] {
            let error = parse(&format!("{text}{line}\n")).unwrap_err();
            assert!(error.starts_with("line 4: "), "{line}: {error}");
        }
    }
}
