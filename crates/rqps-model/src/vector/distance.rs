//! Distances of vectors.

use serde::{Deserialize, Serialize};

/// The distance between two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// Square root of the sum of squared differences.
    Euclidean,
    /// 1 − a·b / (|a| |b|), the `angular` of ann-benchmarks.
    Cosine,
}

impl Distance {
    /// The distance of two vectors, in double precision.
    pub fn between(self, a: &[f32], b: &[f32]) -> f64 {
        match self {
            Distance::Euclidean => {
                let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
                a.iter().zip(b).map(square).sum::<f64>().sqrt()
            }
            Distance::Cosine => 1.0 - dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
        }
    }
}

/// The inner product of two vectors, in double precision.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
