//! Vectors in memory: bytes if all values are whole numbers from 0 to 255, otherwise floats.

/// Vectors of equal length, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Dimensions of each vector.
    pub dims: usize,
    /// The values, vector after vector.
    pub values: Numbers,
}

/// Values of a [`Matrix`].
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Whole numbers from 0 to 255.
    Bytes(Vec<u8>),
    /// Single precision.
    Floats(Vec<f32>),
}

impl Matrix {
    /// Makes a matrix of floats. If all are whole numbers from 0 to 255, they become bytes, which
    /// are exact and four times as fast.
    pub fn of_floats(dims: usize, values: Vec<f32>) -> Matrix {
        let is_byte = |value: &f32| *value >= 0.0 && *value <= 255.0 && value.fract() == 0.0;
        let values = if values.iter().all(is_byte) {
            Numbers::Bytes(values.iter().map(|value| *value as u8).collect())
        } else {
            Numbers::Floats(values)
        };
        Matrix { dims, values }
    }

    /// Number of vectors.
    pub fn rows(&self) -> usize {
        let values = match &self.values {
            Numbers::Bytes(values) => values.len(),
            Numbers::Floats(values) => values.len(),
        };
        values.checked_div(self.dims).unwrap_or(0)
    }

    /// Keeps the first `rows` vectors.
    pub fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            Numbers::Bytes(values) => values.truncate(rows * self.dims),
            Numbers::Floats(values) => values.truncate(rows * self.dims),
        }
    }

    /// Copies vector `row` as floats.
    pub fn copy_row(&self, row: usize, out: &mut [f32]) {
        let place = row * self.dims..(row + 1) * self.dims;
        match &self.values {
            Numbers::Bytes(values) => {
                for (out, value) in out.iter_mut().zip(&values[place]) {
                    *out = f32::from(*value);
                }
            }
            Numbers::Floats(values) => out.copy_from_slice(&values[place]),
        }
    }

    /// Value `dim` of vector `row`.
    pub fn at(&self, row: usize, dim: usize) -> f32 {
        match &self.values {
            Numbers::Bytes(values) => f32::from(values[row * self.dims + dim]),
            Numbers::Floats(values) => values[row * self.dims + dim],
        }
    }

    /// The vectors as floats, with `shift` added to each.
    pub fn shifted(&self, shift: &[f32]) -> Matrix {
        let mut values = vec![0.0; self.rows() * self.dims];
        for (row, out) in values.chunks_mut(self.dims.max(1)).enumerate() {
            self.copy_row(row, out);
            out.iter_mut().zip(shift).for_each(|(value, shift)| *value += shift);
        }
        Matrix { dims: self.dims, values: Numbers::Floats(values) }
    }

    /// Mean of each dimension.
    pub fn mean(&self) -> Vec<f32> {
        let mut sums = vec![0.0f64; self.dims];
        for row in 0..self.rows() {
            for (dim, sum) in sums.iter_mut().enumerate() {
                *sum += f64::from(self.at(row, dim));
            }
        }
        sums.iter().map(|sum| (sum / self.rows().max(1) as f64) as f32).collect()
    }

    /// The first value that is infinite or NaN: vector and dimension.
    pub fn first_not_finite(&self) -> Option<(usize, usize)> {
        let Numbers::Floats(values) = &self.values else { return None };
        let place = values.iter().position(|value| !value.is_finite())?;
        Some((place / self.dims, place % self.dims))
    }

    /// The first vector of zeros only, which has no direction.
    pub fn first_zero(&self) -> Option<usize> {
        (0..self.rows()).find(|row| (0..self.dims).all(|dim| self.at(*row, dim) == 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_become_bytes() {
        let whole = Matrix::of_floats(2, vec![0.0, 255.0, 7.0, 1.0]);
        assert_eq!(whole.values, Numbers::Bytes(vec![0, 255, 7, 1]));
        for other in [0.5, -1.0, 256.0, f32::NAN] {
            let matrix = Matrix::of_floats(1, vec![1.0, other]);
            assert!(matches!(matrix.values, Numbers::Floats(_)), "{other}");
        }
    }

    #[test]
    fn what_cannot_be_searched_is_found() {
        let matrix = Matrix::of_floats(2, vec![1.0, 2.0, 3.0, f32::NAN]);
        assert_eq!(matrix.first_not_finite(), Some((1, 1)));
        assert_eq!(Matrix::of_floats(2, vec![1.0, 0.0, 0.0, 0.0]).first_zero(), Some(1));
        assert_eq!(Matrix::of_floats(2, vec![1.0, 0.0]).first_zero(), None);
    }

    #[test]
    fn the_mean_centres() {
        let matrix = Matrix::of_floats(2, vec![1.0, 2.0, 3.0, 6.0]);
        assert_eq!(matrix.mean(), [2.0, 4.0]);
        let centred = matrix.shifted(&[-2.0, -4.0]);
        assert_eq!(centred.values, Numbers::Floats(vec![-1.0, -2.0, 1.0, 2.0]));
    }
}
