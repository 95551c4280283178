//! A figure over several seeds: mean and 95 % interval by Student's t.
//!
//! ```text
//! mean ± t(0.975, n - 1) × s / √n        s² = Σ (x - mean)² / (n - 1)
//! ```
//!
//! Runs with different seeds are independent; their figures are taken to be near a normal
//! distribution, each being a mean over many operations. One seed has no interval.

/// A figure and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The arithmetic mean over all seeds, in the unit of the figure.
    pub mean: f64,
    /// Half of the 95 % interval's width; none with one seed.
    pub half_width: Option<f64>,
}

/// t(0.975) for 1 to 30 degrees of freedom: NIST/SEMATECH e-Handbook, table 1.3.6.7.2.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same for more, where it is this and less.
const T_MORE: f64 = 2.042;

/// The estimate from one figure for each seed.
///
/// # Panics
/// When there is no figure.
pub fn estimate(figures: &[f64]) -> Estimate {
    assert!(!figures.is_empty(), "an estimate of nothing");
    let count = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let half_width = (figures.len() > 1).then(|| {
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        let t = T.get(figures.len() - 2).copied().unwrap_or(T_MORE);
        t * deviation / count.sqrt()
    });
    Estimate { mean, half_width }
}

impl Estimate {
    /// Whether `figure` lies in the interval; true without one.
    pub fn holds(&self, figure: f64) -> bool {
        self.half_width
            .is_none_or(|half| (figure - self.mean).abs() <= half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_what_the_textbook_says() {
        // Mean 5, s = 2, n = 4: 3.182 × 2 / 2.
        let four = estimate(&[3.0, 3.0, 7.0, 7.0]);
        assert_eq!(four.mean, 5.0);
        let half = four.half_width.unwrap_or_default();
        assert!((half - 3.182 * (16.0_f64 / 3.0).sqrt() / 2.0).abs() < 1e-9);
        assert!(four.holds(8.0) && !four.holds(9.0));
        assert_eq!(estimate(&[4.0]).half_width, None);
        assert_eq!(estimate(&[4.0; 50]).half_width, Some(0.0));
    }
}
