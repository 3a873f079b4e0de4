//! One mean per version from values of blocks: versions and blocks add up.

/// A value of one version in one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlockValue {
    pub version: usize,
    pub block: usize,
    /// Natural logarithm of the metric.
    pub ln: f64,
}

/// Means of versions, free of what each block gave to all of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VersionFit {
    /// One for each version; `None` without a value.
    pub means: Vec<Option<f64>>,
    /// Number of values of each version.
    pub counts: Vec<usize>,
    /// Sum of squares of what versions and blocks do not explain.
    pub squares: f64,
    /// Its degrees of freedom; 0 if every version has one value.
    pub df: usize,
}

const ROUNDS_MAX: usize = 500;
const STILL: f64 = 1e-12;

/// Least squares of ln = version + block, by alternating means. Block effects average to 0.
pub(super) fn fit(values: &[BlockValue], versions: usize, blocks: usize) -> VersionFit {
    let mut counts = vec![0; versions];
    let mut in_blocks = vec![0; blocks];
    for value in values {
        counts[value.version] += 1;
        in_blocks[value.block] += 1;
    }
    let mut means = vec![0.0; versions];
    let mut offsets = vec![0.0; blocks];
    for _ in 0..ROUNDS_MAX {
        let old = means.clone();
        means.fill(0.0);
        for value in values {
            means[value.version] +=
                (value.ln - offsets[value.block]) / counts[value.version] as f64;
        }
        offsets.fill(0.0);
        for value in values {
            offsets[value.block] +=
                (value.ln - means[value.version]) / in_blocks[value.block] as f64;
        }
        if means.iter().zip(&old).all(|(new, old)| (new - old).abs() < STILL) {
            break;
        }
    }
    let rest = |value: &BlockValue| value.ln - means[value.version] - offsets[value.block];
    let squares = values.iter().map(|value| rest(value).powi(2)).sum();
    let used = |counts: &[usize]| counts.iter().filter(|count| **count > 0).count();
    let df = (values.len() + 1).saturating_sub(used(&counts) + used(&in_blocks));
    let known = |(mean, count): (f64, &usize)| (*count > 0).then_some(mean);
    VersionFit { means: means.into_iter().zip(&counts).map(known).collect(), counts, squares, df }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(table: &[&[Option<f64>]]) -> Vec<BlockValue> {
        let rows = table.iter().enumerate();
        let cells = rows.flat_map(|(block, row)| {
            row.iter()
                .enumerate()
                .filter_map(move |(version, ln)| ln.map(|ln| BlockValue { version, block, ln }))
        });
        cells.collect()
    }

    #[test]
    fn a_complete_table_gives_its_column_means() {
        let of = |row: [f64; 3]| row.map(Some);
        let (a, b) = (of([1.0, 2.0, 4.0]), of([2.0, 3.0, 5.3]));
        let fit = fit(&values(&[&a, &b]), 3, 2);
        let centre = |mean: Option<f64>| mean.map(|mean| mean - fit.means[0].unwrap_or(0.0));
        let means: Vec<f64> = fit.means.iter().filter_map(|mean| centre(*mean)).collect();
        let expected = [0.0, 1.0, 3.15];
        assert!(means.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{means:?}");
        // Residuals of ±.05 and ±.1 by hand: interactions of a 2 x 3 table.
        assert!((fit.squares - (4.0 * 0.05_f64.powi(2) + 2.0 * 0.1_f64.powi(2))).abs() < 1e-9);
        assert_eq!(fit.df, 2);
    }

    /// A version that lacks the slow block is not taken for a fast one.
    #[test]
    fn a_missing_block_moves_no_mean() {
        let fit = fit(
            &values(&[
                &[Some(1.0), Some(1.5), Some(1.0)],
                &[Some(0.0), Some(0.5), None],
                &[Some(1.0), Some(1.5), Some(1.0)],
            ]),
            3,
            3,
        );
        let means: Vec<f64> = fit.means.iter().map(|mean| mean.expect("a mean")).collect();
        assert!((means[1] - means[0] - 0.5).abs() < 1e-6, "{means:?}");
        assert!((means[2] - means[0]).abs() < 1e-6, "{means:?}");
        assert!(fit.squares < 1e-9);
        assert_eq!(fit.df, 3);
    }

    #[test]
    fn one_block_has_no_spread() {
        let fit = fit(&values(&[&[Some(1.0), Some(2.0), None]]), 3, 1);
        assert_eq!((fit.df, fit.means[2]), (0, None));
    }
}
