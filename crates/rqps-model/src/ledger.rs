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

/// What is wrong with a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerFault {
    /// From 1.
    pub line: usize,
    /// The problem.
    pub why: String,
}

impl SittingScatter {
    /// True if scatter can be so: what comes from files of others may be any number.
    pub fn is_possible(&self) -> bool {
        let is_known = ["reads", "writes", "loads"].contains(&self.kind.as_str());
        is_known && (0.0..1.0).contains(&self.sd) && (1.0..1e6).contains(&self.df)
    }

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
/// Another version, or a line that is none of a ledger.
pub fn parse(text: &str) -> Result<Vec<SittingScatter>, LedgerFault> {
    let fault = |line: usize, why: String| LedgerFault { line, why };
    let head = text.lines().next().unwrap_or_default();
    let rest = head.strip_prefix(LEDGER_HEAD).filter(|rest| !rest.starts_with(char::is_numeric));
    if rest.is_none() {
        let why = format!("it does not begin with `{LEDGER_HEAD}`: damaged, or of another rqps");
        return Err(fault(1, why));
    }
    if text.lines().nth(1) != Some(COLUMNS) {
        return Err(fault(2, format!("its columns are not {COLUMNS}")));
    }
    let lines = text.lines().enumerate().skip(2).filter(|(_, line)| !line.is_empty());
    let read = |(at, line): (usize, &str)| {
        scatter(line).ok_or_else(|| fault(at + 1, format!("it is not {COLUMNS}")))
    };
    lines.map(read).collect()
}

fn scatter(line: &str) -> Option<SittingScatter> {
    let cells: Vec<&str> = line.splitn(6, ',').collect();
    let [dbms, kind, host, sd, df, origin] = cells.as_slice() else { return None };
    let scatter = SittingScatter {
        dbms: Dbms::from_name(dbms)?,
        kind: (*kind).to_owned(),
        host: (*host).to_owned(),
        sd: sd.parse().ok()?,
        df: df.parse().ok()?,
        origin: (*origin).to_owned(),
    };
    scatter.is_possible().then_some(scatter)
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
        for (wrong, line) in [
            ("", 1),
            ("# rqps ledger 12\n", 1),
            ("# rqps ledger 2\n", 1),
            ("# rqps ledger 1\ndbms,sd\n", 2),
        ] {
            assert_eq!(parse(wrong).unwrap_err().line, line, "{wrong}");
        }
        for line in [
            "postgres,reads,c2r8,NaN,4,x", "postgres,reads,c2r8,-0.1,4,x",
            "postgres,reads,c2r8,0.01,0,x", "postgres,reads,c2r8,inf,4,x",
            "oracle,reads,c2r8,0.01,4,x", "postgres,scans,c2r8,0.01,4,x", "postgres,reads",
        ] {
            assert_eq!(parse(&format!("{text}{line}\n")).unwrap_err().line, 4, "{line}");
        }
    }
}
