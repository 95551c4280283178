//! The time that the arm takes over a distance.
//!
//! With `d` the distance in cylinders, up to `n`:
//!
//! ```text
//! t(d) = a + b·√d    for 1 ≤ d ≤ j    (the arm speeds up, then brakes)
//! t(d) = c + e·d     for d ≥ j        (it coasts at full speed in between)
//! ```
//!
//! The form is Ruemmler and Wilkes's ("An introduction to disk drive modeling",
//! IEEE Computer 27(3), 1994). The five unknowns come from what a manual prints:
//! `t(1)` is its single-track seek, `t(n)` its full stroke, the mean over random
//! pairs of cylinders, whose distance `x = d/n` has the density `2(1 - x)`, its
//! average; and the two pieces meet at the joint `j` in value and in slope.
//! Settling is part of all three, so a write, which must settle better, has a
//! curve of its own.

use std::time::Duration;

/// The three seek times of a manual, without controller overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekPoints {
    /// To the next cylinder, settled.
    pub single_track: Duration,
    /// The mean over random pairs of cylinders.
    pub average: Duration,
    /// From the outermost cylinder to the innermost.
    pub full_stroke: Duration,
}

/// The curve through three points. Coefficients in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    joint: f64,
    a: f64,
    b: f64,
    c: f64,
    e: f64,
}

impl Curve {
    /// # Panics
    /// When no such curve has these points: the average must lie between that of
    /// a straight line (a third of the way) and that of a root (8/15 of it).
    pub(super) fn new(points: &SeekPoints, cylinders: u32) -> Curve {
        assert!(cylinders > 2, "a seek curve needs cylinders to seek over");
        let longest = f64::from(cylinders - 1);
        let average = points.average.as_nanos() as f64;
        let through = |joint| Curve::with_joint(points, joint, longest);
        // The later the joint, the more the curve bulges: the mean grows with it.
        let (mut low, mut high) = (1.0, longest);
        assert!(
            through(low).mean(longest) <= average && average <= through(high).mean(longest),
            "no seek curve has these points: {points:?}"
        );
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if through(middle).mean(longest) < average {
                low = middle;
            } else {
                high = middle;
            }
        }
        let curve = through(high);
        assert!(
            curve.a >= 0.0,
            "a seek of no distance takes time: {curve:?}"
        );
        curve
    }

    /// Equal slopes give `e = b / 2√j`; equal values then `c = a + b√j / 2`.
    fn with_joint(points: &SeekPoints, joint: f64, longest: f64) -> Curve {
        let single = points.single_track.as_nanos() as f64;
        let full = points.full_stroke.as_nanos() as f64;
        let root = joint.sqrt();
        let b = (full - single) / (root / 2.0 + longest / (2.0 * root) - 1.0);
        let a = single - b;
        Curve {
            joint,
            a,
            b,
            c: a + b * root / 2.0,
            e: b / (2.0 * root),
        }
    }

    /// `∫ t(d) · 2(n - d)/n² dd` over both pieces, in nanoseconds.
    fn mean(&self, n: f64) -> f64 {
        let j = self.joint;
        let short = self.a * (n * j - j * j / 2.0)
            + self.b * (n * j * j.sqrt() / 1.5 - j * j * j.sqrt() / 2.5);
        let long = self.c * (n - j) * (n - j) / 2.0
            + self.e * (n * (n * n - j * j) / 2.0 - (n * n * n - j * j * j) / 3.0);
        (short + long) * 2.0 / (n * n)
    }

    /// Time of a seek over `distance` cylinders, in nanoseconds.
    pub(super) fn time_ns(&self, distance: u32) -> u64 {
        if distance == 0 {
            return 0;
        }
        let d = f64::from(distance);
        let time = if d <= self.joint {
            self.a + self.b * d.sqrt()
        } else {
            self.c + self.e * d
        };
        time.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::Hdd;
    use super::super::geometry::Geometry;
    use super::*;
    use base::Prng;

    fn curves() -> Vec<(SeekPoints, Curve, u32)> {
        let of = |drive: &Hdd, points: SeekPoints| {
            let cylinders = Geometry::new(drive).cylinders();
            (points, Curve::new(&points, cylinders), cylinders)
        };
        let both = |drive: &&Hdd| [of(drive, drive.read_seek), of(drive, drive.write_seek)];
        Hdd::ALL.iter().flat_map(both).collect()
    }

    #[test]
    fn the_ends_are_the_manuals_and_the_curve_never_falls() {
        for (points, curve, cylinders) in curves() {
            let near = |ns: u64, point: Duration| ns.abs_diff(point.as_nanos() as u64) <= 1;
            assert!(near(curve.time_ns(1), points.single_track), "{points:?}");
            assert!(near(curve.time_ns(cylinders - 1), points.full_stroke));
            let times: Vec<u64> = (0..cylinders).map(|d| curve.time_ns(d)).collect();
            assert!(times.is_sorted(), "{points:?} falls");
        }
    }

    #[test]
    fn random_pairs_of_cylinders_take_the_manuals_average() {
        let mut prng = Prng::from_seed(1);
        for (points, curve, cylinders) in curves() {
            let draws = 200_000;
            let mut draw = || prng.below(u64::from(cylinders)) as u32;
            let total: u64 = (0..draws)
                .map(|_| curve.time_ns(draw().abs_diff(draw())))
                .sum();
            let error = total as f64 / f64::from(draws) / points.average.as_nanos() as f64 - 1.0;
            assert!(error.abs() < 0.005, "{points:?}: off by {error}");
        }
    }

    #[test]
    fn the_pieces_meet_in_value_and_slope() {
        for (points, curve, _) in curves() {
            let j = curve.joint;
            let gap = curve.a + curve.b * j.sqrt() - (curve.c + curve.e * j);
            assert!(gap.abs() < 1.0, "{points:?}: a step of {gap} ns");
            assert!((curve.b / (2.0 * j.sqrt()) / curve.e - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    #[should_panic(expected = "no seek curve")]
    fn an_average_nearer_to_the_full_stroke_than_a_roots_is_refused() {
        let ms = Duration::from_millis;
        let points = SeekPoints {
            single_track: ms(1),
            average: ms(8),
            full_stroke: ms(10),
        };
        Curve::new(&points, 1000);
    }
}
