//! The published rules of the Insert Benchmark's reports: which rates meet their target, the
//! colours of the summary tables, and the identities between columns of a metrics row. Pure
//! functions of values.

use serde::Serialize;

use rqps_model::benchmark::RateUnit;

/// Share of the target rate of inserts that a query step must achieve.
pub const SLA_SHARE: f64 = 0.95;

/// The colour of a cell in a summary table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shade {
    /// No colour.
    Plain,
    /// In the lowest quarter; in the table of insert rates: the target was missed.
    Red,
    /// The target rate of inserts was missed, so the query rate has little meaning.
    Gray,
    /// In the highest quarter.
    Green,
    /// More than 5 % above the baseline.
    Blue,
    /// More than 5 % below the baseline.
    Yellow,
}

impl Shade {
    /// The CSS colour of published reports.
    pub fn css(self) -> &'static str {
        match self {
            Shade::Plain => "",
            Shade::Red => "#FF9A9A",
            Shade::Gray => "#D7D7D7",
            Shade::Green => "#81FFA6",
            Shade::Blue => "#81FFF9",
            Shade::Yellow => "#FFDD81",
        }
    }
}

/// The requested rows per second in the name of a step: `q100.1`, `qr500.L3` and `qp1000.L6`, times
/// the clients. `None` for steps without a target.
pub fn target_rate(step: &str, clients: u32) -> Option<f64> {
    let rest = step.strip_prefix('q')?;
    let rest = rest.strip_prefix(['r', 'p']).unwrap_or(rest);
    let digits = rest.split('.').next().unwrap_or("");
    let rate: u32 = digits.parse().ok()?;
    Some(f64::from(rate) * f64::from(clients))
}

/// True for the name of a step of queries, as in published tables.
pub fn is_query_step(step: &str) -> bool {
    target_rate(step, 1).is_some()
}

/// True if the operations of a step with this unit are queries.
pub fn counts_queries(rate: RateUnit) -> bool {
    rate == RateUnit::Queries
}

/// True if an insert rate is at least 95 % of its target, rounded to a whole row.
pub fn meets_sla(inserts_per_second: f64, target: f64) -> bool {
    inserts_per_second >= (SLA_SHARE * target).round()
}

/// A cell of the table of absolute throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Rows inserted per second in l steps; queries per second in q steps.
    pub rate: f64,
    /// True if the step met its target; `None` for l steps, which have no target.
    pub meets_sla: Option<bool>,
}

/// Colours of one column (one step, all targets) of the table of absolute throughput.
///
/// The span is from the smallest rate to the largest rate that met its target. Its lowest quarter
/// is red, unless the smallest rate is at least 80 % of the largest; rates that missed their target
/// are gray; the highest quarter is green. The first match counts.
pub fn absolute_shades(column: &[Throughput]) -> Vec<Shade> {
    let good = |cell: &&Throughput| cell.meets_sla != Some(false);
    let all = || column.iter().map(|cell| cell.rate);
    let min = all().fold(f64::INFINITY, f64::min);
    let of_good = column.iter().filter(good).map(|cell| cell.rate);
    let max = of_good.fold(f64::NEG_INFINITY, f64::max);
    // If no target met its rate, all rates define the span.
    let max = if max.is_finite() { max } else { all().fold(f64::NEG_INFINITY, f64::max) };
    let quarter = (0.25 * (max - min)).floor();
    let top = max - quarter;
    let bottom = if min >= 0.8 * max { 0.0 } else { min + quarter };
    let shade = |cell: &Throughput| {
        if cell.rate <= bottom {
            Shade::Red
        } else if cell.meets_sla == Some(false) {
            Shade::Gray
        } else if cell.rate >= top {
            Shade::Green
        } else {
            Shade::Plain
        }
    };
    column.iter().map(shade).collect()
}

/// Colours of a column by the rules of the reports of November 2021, which did not find the target
/// rates and treated every query step as one that missed its target.
pub fn absolute_shades_2021(column: &[Throughput]) -> Vec<Shade> {
    let shades = absolute_shades(column);
    let gray = |(shade, cell): (Shade, &Throughput)| match (shade, cell.meets_sla) {
        (Shade::Red, _) | (_, None) => shade,
        _ => Shade::Gray,
    };
    shades.into_iter().zip(column).map(gray).collect()
}

/// Colour of a relative throughput by the ratio in whole per cent; 95 and 105 are plain.
pub fn relative_shade(ratio: f64) -> Shade {
    match (100.0 * ratio).round() {
        percent if percent > 105.0 => Shade::Blue,
        percent if percent < 95.0 => Shade::Yellow,
        _ => Shade::Plain,
    }
}

/// Colour of an insert rate in a query step.
pub fn insert_rate_shade(inserts_per_second: f64, target: f64) -> Shade {
    if meets_sla(inserts_per_second, target) { Shade::Plain } else { Shade::Red }
}

/// Colours of the longest response times of one step, in seconds. The highest quarter of the span
/// is red; the lowest is green, unless the shortest is at least 80 % of the longest. Compared in
/// whole milliseconds.
pub fn longest_shades(seconds: &[f64]) -> Vec<Shade> {
    let milliseconds = |seconds: f64| (seconds * 1000.0).round() as i64;
    let min = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let max = seconds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let quarter = ((max - min) / 4.0 * 1000.0).round() / 1000.0;
    let (high, low) = (milliseconds(max - quarter), milliseconds(min + quarter));
    let shade = |value: &f64| {
        let value = milliseconds(*value);
        if value >= high {
            Shade::Red
        } else if value <= low && min < 0.8 * max {
            Shade::Green
        } else {
            Shade::Plain
        }
    };
    seconds.iter().map(shade).collect()
}

/// The grays of [`share_gray`]: 254 − 2 k of 255.
const GRAYS: [&str; 21] = [
    "#fefefe", "#fcfcfc", "#fafafa", "#f8f8f8", "#f6f6f6", "#f4f4f4", "#f2f2f2", "#f0f0f0",
    "#eeeeee", "#ececec", "#eaeaea", "#e8e8e8", "#e6e6e6", "#e4e4e4", "#e2e2e2", "#e0e0e0",
    "#dedede", "#dcdcdc", "#dadada", "#d8d8d8", "#d6d6d6",
];

/// The CSS gray of a percentage in a table of response times: a darker gray for a larger k =
/// round(percent / 5). `None` for an empty cell.
pub fn share_gray(percent: f64) -> Option<&'static str> {
    let step = (percent / 5.0).round().clamp(0.0, 20.0) as usize;
    (percent > 0.0).then(|| GRAYS[step])
}

/// A printed number: its value, and half a unit of its last digit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedNumber {
    /// The value.
    pub value: f64,
    /// Largest distance of the exact number.
    pub half: f64,
}

impl PrintedNumber {
    /// Reads a number; `None` for anything else, such as `NA`.
    pub fn read(text: &str) -> Option<PrintedNumber> {
        let value: f64 = text.trim().parse().ok()?;
        let decimals = text.trim().split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let half = 0.5 * 10f64.powi(-i32::try_from(decimals).ok()?);
        value.is_finite().then_some(PrintedNumber { value, half })
    }

    /// True if factor × this / divisor can be `quotient` within the printed precision.
    pub fn over(self, factor: f64, divisor: PrintedNumber, quotient: PrintedNumber) -> bool {
        let low = factor * (self.value - self.half) / (divisor.value + divisor.half);
        let below = divisor.value - divisor.half;
        let high =
            if below > 0.0 { factor * (self.value + self.half) / below } else { f64::INFINITY };
        let slack = 1e-9 * quotient.value.abs().max(1.0);
        low <= quotient.value + quotient.half + slack
            && high >= quotient.value - quotient.half - slack
    }
}

/// Identities between columns of a metrics row: column, numerator, factor, and true if the divisor
/// is the insert rate in every step (`wpi`, `wkbpi`), false if it is the rate of the step.
const IDENTITIES: [(&str, &str, f64, bool); 6] = [
    ("rpq", "rps", 1.0, false),
    ("rkbpq", "rmbps", 1024.0, false),
    ("wpi", "wps", 1.0, true),
    ("wkbpi", "wmbps", 1024.0, true),
    ("cspq", "csps", 1.0, false),
    ("cpupq", "cpups", 10_000.0, false),
];

/// Columns of a metrics row that contradict the others. `get` returns the cell of a column. Missing
/// columns and `NA` are not checked, nor is `cpupq` without the number of CPUs of the host.
pub fn broken_identities<'a>(
    is_query: bool,
    cpus: Option<u32>,
    get: impl Fn(&str) -> Option<&'a str>,
) -> Vec<String> {
    let number = |column: &str| get(column).and_then(PrintedNumber::read);
    let mut broken = Vec::new();
    for (column, from, factor, by_inserts) in IDENTITIES {
        let by = if is_query && !by_inserts { "qps" } else { "ips" };
        let factor = match (column, cpus) {
            ("cpupq", None) => continue,
            ("cpupq", Some(cpus)) => factor * f64::from(cpus),
            _ => factor,
        };
        let (Some(quotient), Some(numerator), Some(divisor)) =
            (number(column), number(from), number(by))
        else {
            continue;
        };
        if !numerator.over(factor, divisor, quotient) {
            broken.push(format!(
                "{column} is {}, but {factor} x {from} / {by} is {:.4}",
                quotient.value,
                factor * numerator.value / divisor.value
            ));
        }
    }
    broken
}

/// CPUs of the host computed from `cpupq`: the number that fits all rows, if there is one.
pub fn cpus_of_rows<'a>(
    rows: impl Iterator<Item = (&'a str, &'a str, &'a str)> + Clone,
) -> Option<u32> {
    let fits = |cpus: &u32| {
        let mut any = false;
        let all = rows.clone().all(|(cpups, rate, cpupq)| {
            let cells =
                (PrintedNumber::read(cpups), PrintedNumber::read(rate), PrintedNumber::read(cpupq));
            let (Some(cpups), Some(rate), Some(cpupq)) = cells else { return true };
            any = true;
            cpups.over(10_000.0 * f64::from(*cpus), rate, cpupq)
        });
        all && any
    };
    let mut found = (1..=1024).filter(fits);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Shade::{Blue, Gray, Green, Plain, Red, Yellow};

    #[test]
    fn targets_come_from_the_names_of_steps() {
        let check = |step: &str, expected| assert_eq!(target_rate(step, 2), expected, "{step}");
        check("q100.1", Some(200.0));
        check("qr500.L3", Some(1000.0));
        check("qp1000.L6", Some(2000.0));
        check("l.i1", None);
        check("query", None);
        // 950 is met by 950 and missed by 949; 0.95 × 500 = 475.
        assert!(meets_sla(950.0, 1000.0) && !meets_sla(949.0, 1000.0));
        assert!(meets_sla(475.0, 500.0) && !meets_sla(474.0, 500.0));
    }

    fn column(rates: &[f64], meets_sla: Option<bool>) -> Vec<Throughput> {
        rates.iter().map(|rate| Throughput { rate: *rate, meets_sla }).collect()
    }

    #[test]
    fn published_columns_have_their_published_colours() {
        // Load of 20M rows on seven versions of MySQL, November 2021.
        let load = [122699.0, 109890.0, 77220.0, 77220.0, 78125.0, 77220.0, 76923.0];
        let expected = [Green, Plain, Red, Red, Red, Red, Red];
        assert_eq!(absolute_shades(&column(&load, None)), expected);
        let index = [300000.0, 304545.0, 295588.0];
        assert_eq!(absolute_shades(&column(&index, None)), [Plain, Green, Plain]);
        // Queries of the same reports: gray although all met their targets, but for the lowest.
        let queries = [881.0, 885.0, 753.0, 936.0, 953.0, 955.0, 951.0];
        let shades = absolute_shades_2021(&column(&queries, Some(true)));
        assert_eq!(shades, [Gray, Gray, Red, Gray, Gray, Gray, Gray]);
        let shades = absolute_shades(&column(&queries, Some(true)));
        assert_eq!(shades, [Plain, Plain, Red, Green, Green, Green, Green]);
    }

    #[test]
    fn what_missed_its_target_sets_no_mark() {
        let mut cells = column(&[300.0, 369.0, 360.0, 362.0], Some(true));
        cells[1].meets_sla = Some(false);
        // The largest that counts is 362; 300 is within 80 % of it or not: 0.829.
        assert_eq!(absolute_shades(&cells), [Plain, Gray, Green, Green]);
        cells[0].rate = 100.0;
        assert_eq!(absolute_shades(&cells), [Red, Gray, Green, Green]);
        let none = column(&[1.0, 2.0], Some(false));
        assert_eq!(absolute_shades(&none), [Red, Gray]);
        assert_eq!(absolute_shades(&[]), []);
    }

    #[test]
    fn relative_cells_are_coloured_beyond_five_per_cent() {
        let check = |ratio, expected| assert_eq!(relative_shade(ratio), expected, "{ratio}");
        check(1.054, Plain);
        check(1.056, Blue);
        check(0.946, Plain);
        check(0.944, Yellow);
        assert_eq!(insert_rate_shade(949.0, 1000.0), Red);
    }

    #[test]
    fn longest_times_and_shares() {
        assert_eq!(longest_shades(&[0.037, 0.321, 0.696]), [Green, Plain, Red]);
        // Close together: no green.
        assert_eq!(longest_shades(&[0.098, 0.100, 0.103]), [Plain, Plain, Red]);
        assert_eq!(share_gray(0.0), None);
        assert_eq!((share_gray(0.1), share_gray(100.0)), (Some("#fefefe"), Some("#d6d6d6")));
        // 254 − 2 × round(12.5 / 5)
        assert_eq!(share_gray(12.5), Some("#f8f8f8"));
        for (step, gray) in GRAYS.iter().enumerate() {
            let level = 254 - 2 * step;
            assert_eq!(*gray, format!("#{level:02x}{level:02x}{level:02x}"));
        }
    }

    #[test]
    fn a_published_row_keeps_its_identities() {
        // l.i0 of 5.6.49: 46.3 % × 4 CPUs × 10⁴ / 122699 = 15.09.
        let row = [("ips", "122699"), ("rps", "1085"), ("rpq", "0.009"), ("rmbps", "4.2")];
        let more = [("rkbpq", "0.035"), ("csps", "14134"), ("cspq", "0.115"), ("cpups", "46.3")];
        let get = |cpupq: &'static str| {
            move |column: &str| {
                let mut all = row.to_vec();
                all.extend(more);
                all.push(("cpupq", cpupq));
                all.into_iter().find(|(name, _)| *name == column).map(|(_, cell)| cell)
            }
        };
        assert_eq!(broken_identities(false, Some(4), get("15")), [""; 0]);
        let broken = broken_identities(false, Some(4), get("16"));
        assert!(broken.len() == 1 && broken[0].contains("cpupq is 16"), "{broken:?}");
        let rows = [("46.3", "122699", "15"), ("34.1", "42553", "32")];
        assert_eq!(cpus_of_rows(rows.into_iter()), Some(4));
    }
}
