//! Scores answers: recall by distance and by row number.

use crate::data::VectorSet;
use crate::data::truth::Truth;

/// Distance beyond the true k-th within which a row is a hit: the rule of ann-benchmarks.
pub(crate) const SLACK: f64 = 1e-3;

/// The score of answers to a set of queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// Mean share of the k rows that are as near as the true k-th.
    pub recall: f64,
    /// Mean share of the k rows that are true neighbours.
    pub recall_ids: f64,
    /// Standard deviation of `recall` over the queries.
    pub deviation: f64,
    /// Mean number of returned rows / k.
    pub rows_per_k: f64,
    /// Queries whose answer repeats a row.
    pub duplicates: usize,
    /// Number of queries.
    pub queries: usize,
}

/// Scores one answer per query: `k` row numbers, `u32::MAX` for a missing row.
pub(crate) fn score(data: &VectorSet, truth: &Truth, answers: &[u32]) -> Score {
    let k = truth.k;
    let (mut query, mut row) = (vec![0.0; data.train.dims], vec![0.0; data.train.dims]);
    let (mut sum, mut squares, mut by_id, mut returned) = (0.0, 0.0, 0usize, 0usize);
    let mut score = Score { queries: answers.len() / k, ..Score::default() };
    for (index, answer) in answers.chunks(k).enumerate() {
        data.test.copy_row(index, &mut query);
        let limit = truth.threshold(index) + SLACK;
        let mut hits = 0;
        for (place, id) in answer.iter().enumerate().filter(|(_, id)| **id != u32::MAX) {
            if answer[..place].contains(id) {
                // A repeated row counts once.
                score.duplicates += 1;
                continue;
            }
            returned += 1;
            if (*id as usize) < data.train.rows() {
                data.train.copy_row(*id as usize, &mut row);
                hits += usize::from(data.distance.between(&query, &row) <= limit);
            }
            by_id += usize::from(truth.ids_of(index).contains(id));
        }
        let recall = hits as f64 / k as f64;
        sum += recall;
        squares += recall * recall;
    }
    let queries = score.queries.max(1) as f64;
    score.recall = sum / queries;
    score.deviation = (squares / queries - score.recall * score.recall).max(0.0).sqrt();
    score.recall_ids = by_id as f64 / (queries * k as f64);
    score.rows_per_k = returned as f64 / (queries * k as f64);
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::matrix::Matrix;
    use crate::data::truth::exact;
    use rqps_model::vector::Distance;

    /// Rows 0, 1, 2, 2, 3 on a line, queried from 0.
    fn scene() -> (VectorSet, Truth) {
        let train = Matrix::of_floats(1, vec![0.0, 1.0, 2.0, 2.0, 3.0]);
        let test = Matrix::of_floats(1, vec![0.0, 0.0]);
        let data = VectorSet::new("line".to_owned(), train, test, Distance::Euclidean);
        let truth = exact(&data.train, &data.test, data.distance, None, 3, 1);
        (data, truth)
    }

    #[test]
    fn a_tie_with_the_last_counts_by_distance_and_not_by_number() {
        let (data, truth) = scene();
        assert_eq!(truth.ids_of(0), [0, 1, 2]);
        let score = score(&data, &truth, &[0, 1, 2, 0, 1, 3]);
        assert_eq!((score.recall, score.rows_per_k), (1.0, 1.0));
        assert!((score.recall_ids - 5.0 / 6.0).abs() < 1e-12);
        assert_eq!(score.deviation, 0.0);
    }

    #[test]
    fn missing_foreign_and_repeated_rows_are_misses() {
        let (data, truth) = scene();
        let score = score(&data, &truth, &[0, u32::MAX, u32::MAX, 0, 0, 4]);
        assert!((score.recall - 1.0 / 3.0).abs() < 1e-12, "{score:?}");
        assert!((score.rows_per_k - 0.5).abs() < 1e-12, "{score:?}");
        assert_eq!(score.duplicates, 1);
        assert_eq!(super::score(&data, &truth, &[99; 6]).recall, 0.0, "rows that do not exist");
    }
}
