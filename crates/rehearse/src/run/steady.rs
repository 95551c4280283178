//! The test that a site has settled: a window of rounds without excursion and without slope.
//!
//! As SNIA's Solid State Storage Performance Test Specification (Enterprise, version 2.0.2,
//! clause 2.1.24) has it: over [`ROUNDS`] rounds in a row, of a figure `y`,
//!
//! ```text
//! max(y) - min(y) ≤ 20 % of mean(y)
//! |slope of the line of least squares| × (rounds - 1) ≤ 10 % of mean(y)
//! ```
//!
//! Both operations per second and mean response time have to. The figures of a site that has
//! settled are those of that window.

use crate::error::RehearseError;
use crate::plan::profiles::Profiles;
use crate::run::{self, Outcome};
use crate::timeline::log::RunEvent;
use site::plan::Plan;

/// Rounds of the window.
pub const ROUNDS: usize = 5;
const EXCURSION: f64 = 0.20;
const SLOPE: f64 = 0.10;

/// A run does not settle if it has not by so many rounds.
const ROUNDS_MAX: u32 = 100;

/// Runs `plan` until it has settled, and measures the window in which it has: rounds are a
/// fifth of what the plan measures, the first after its warm-up. One that does not settle
/// is measured as the plan says, and says so.
///
/// # Errors
/// As [`crate::run()`].
pub fn run(plan: &Plan, seed: u64, profiles: Profiles<'_>) -> Result<Outcome, RehearseError> {
    let round = plan.run.measure / ROUNDS as u32;
    let mut rounds = Rounds::default();
    run::rounds(
        plan,
        (seed, profiles),
        round,
        ROUNDS_MAX,
        |iops, response_ms| {
            rounds.iops.push(iops);
            rounds.response_ms.push(response_ms);
            is_steady(&rounds.iops) && is_steady(&rounds.response_ms)
        },
    )?;
    let count = rounds.iops.len() as u32;
    let mut settled = plan.clone();
    let is_settled = is_steady(&rounds.iops) && is_steady(&rounds.response_ms);
    if is_settled {
        settled.run.warmup = plan.run.warmup + round * (count - ROUNDS as u32);
        settled.run.measure = round * ROUNDS as u32;
    }
    let mut outcome = run::run(&settled, seed, profiles)?;
    let seconds = round.as_secs_f64() * f64::from(count) + plan.run.warmup.as_secs_f64();
    outcome.told.insert(
        0,
        RunEvent {
            at: std::time::Duration::ZERO,
            text: match is_settled {
                true => format!("settled by {seconds:.0} s: the last five rounds are measured"),
                false => format!("has not settled by {seconds:.0} s: measured as the file says"),
            },
        },
    );
    Ok(outcome)
}

#[derive(Default)]
struct Rounds {
    iops: Vec<f64>,
    response_ms: Vec<f64>,
}

/// Whether the last [`ROUNDS`] of these rounds are steady.
pub fn is_steady(rounds: &[f64]) -> bool {
    let Some(first) = rounds.len().checked_sub(ROUNDS) else {
        return false;
    };
    let window = &rounds[first..];
    let count = ROUNDS as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = window.iter().sum::<f64>() / count;
    let max = window.iter().copied().fold(f64::MIN, f64::max);
    let min = window.iter().copied().fold(f64::MAX, f64::min);
    let (mut products, mut squares) = (0.0, 0.0);
    for (number, figure) in window.iter().enumerate() {
        let x = number as f64 - middle;
        products += x * figure;
        squares += x * x;
    }
    let rise = (products / squares * (count - 1.0)).abs();
    max - min <= EXCURSION * mean && rise <= SLOPE * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_rounds_are_steady_and_rising_or_jumping_ones_are_not() {
        assert!(!is_steady(&[100.0; 4]), "too few");
        assert!(
            is_steady(&[7.0, 100.0, 101.0, 99.0, 100.0, 100.0]),
            "what was before is over"
        );
        // Excursions of 19 % without a slope, and of 21 %.
        assert!(is_steady(&[100.0, 110.0, 91.0, 110.0, 100.0]));
        assert!(!is_steady(&[100.0, 110.0, 89.0, 110.0, 100.0]));
        // 12 % up from first to last, all within 20 %.
        assert!(!is_steady(&[94.0, 97.0, 100.0, 103.0, 106.0]));
        assert!(is_steady(&[96.0, 98.0, 100.0, 102.0, 104.0]));
    }
}
