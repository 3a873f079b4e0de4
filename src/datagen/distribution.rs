//! How a benchmark picks one of many: zipfian, pareto, gaussian and special, as sysbench defines
//! them. The formulas are those of the published program, the sampling is exact where it can be.

use crate::datagen::rng::Rng;

/// Draws ids, keys and range starts in 1..=rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampler {
    /// Every value alike.
    Uniform {
        /// The largest value.
        rows: u64,
    },
    /// Rank k with probability ∝ 1/k^θ, hottest value 1.
    Zipfian(Zipfian),
}

impl Sampler {
    /// The next value.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Sampler::Uniform { rows } => rng.uniform(1, *rows),
            Sampler::Zipfian(zipfian) => zipfian.draw(rng),
        }
    }
}

/// Zipf's distribution over 1..=n by rejection inversion (Hörmann and Derflinger, "Rejection-
/// inversion to generate variates from monotone discrete distributions", 1996): constant time and
/// memory for any n, no approximation.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipfian {
    n: u64,
    theta: f64,
    /// H(1.5) - 1: the lower end of the inverted area.
    area_first: f64,
    /// H(n + 0.5): its upper end.
    area_last: f64,
    /// A draw within this distance below its rank is accepted without computing a power.
    squeeze: f64,
}

impl Zipfian {
    /// Over 1..=`n` with P(k) ∝ k^-`theta`. `n` of 0 counts as 1, a negative or undefined `theta`
    /// as 0, which is the uniform distribution.
    pub fn new(n: u64, theta: f64) -> Zipfian {
        let n = n.max(1);
        let theta = theta.max(0.0);
        let squeeze = 2.0 - area_inverse(area(2.5, theta) - 2f64.powf(-theta), theta);
        Zipfian {
            n,
            theta,
            area_first: area(1.5, theta) - 1.0,
            area_last: area(n as f64 + 0.5, theta),
            squeeze,
        }
    }

    /// The next rank, which is the value too: the hottest is 1, nothing is scrambled.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let v = self.area_first + rng.unit() * (self.area_last - self.area_first);
            let x = area_inverse(v, self.theta);
            let k = x.round().clamp(1.0, self.n as f64);
            if k - x <= self.squeeze || v >= area(k + 0.5, self.theta) - k.powf(-self.theta) {
                return k as u64;
            }
        }
    }
}

/// H(x) = (x^(1-θ) - 1) / (1 - θ), the integral of x^-θ from 1; ln x where θ is 1.
fn area(x: f64, theta: f64) -> f64 {
    let power = 1.0 - theta;
    if power == 0.0 { x.ln() } else { (x.powf(power) - 1.0) / power }
}

/// The inverse of [`area`].
fn area_inverse(v: f64, theta: f64) -> f64 {
    let power = 1.0 - theta;
    if power == 0.0 { v.exp() } else { (1.0 + v * power).powf(1.0 / power) }
}

/// Irwin-Hall: `first` + floor of the mean of twelve uniform numbers times the width; standard
/// deviation about a twelfth of the width.
pub fn gaussian(rng: &mut Rng, first: u64, last: u64) -> u64 {
    let width = (last - first) as f64 + 1.0;
    first + (mean_of_twelve(rng) * width) as u64
}

/// `first` + floor(width × u^p) with p = ln h / ln(1 - h): a share h of the values, the smallest,
/// gets a share 1 - h of the draws. sysbench's h is [`PARETO_H`]: 80 per cent on the first 20.
pub fn pareto(rng: &mut Rng, first: u64, last: u64, h: f64) -> u64 {
    let width = (last - first) as f64 + 1.0;
    let power = h.ln() / (1.0 - h).ln();
    (first + (width * rng.unit().powf(power)) as u64).min(last)
}

/// sysbench's default h of [`pareto`].
pub const PARETO_H: f64 = 0.2;

/// The default distribution of sysbench 1.0, with its default parameters (spec-res 75, spec-pct 1,
/// spec-iter 12).
///
/// A quarter of the draws is [`gaussian`] over the whole width. The others fall on a band that is
/// 1 per cent wide and centred. Because the original uses one uniform number for both the choice
/// and the place in the band, they fall on its upper three quarters only: 75 per cent of the draws
/// on about 0.75 per cent of the values. That is kept, for results to be comparable.
pub fn special(rng: &mut Rng, first: u64, last: u64) -> u64 {
    let t = (last - first) as f64;
    let u = rng.unit();
    let offset = if u < 0.25 {
        t * mean_of_twelve(rng)
    } else {
        let band = t * 0.01;
        u * (band + 1.0) + t / 2.0 - band / 2.0
    };
    (first + offset as u64).min(last)
}

/// The mean of twelve uniform numbers.
fn mean_of_twelve(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() / 12.0
}
