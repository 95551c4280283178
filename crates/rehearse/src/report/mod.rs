//! The report of a rehearsal, for people and for programs.

mod beside;
mod document;
pub mod html;
mod proposal;
pub mod schema;
mod text;

pub use beside::{beside, measured};
pub use document::{document, rehearsed, searched};
pub use proposal::{proposal, sized};
pub use text::{assumed, compared, found, one};

use crate::run::confidence::Estimate;

/// A figure with its interval: `7,812 ± 40`.
pub fn figure(estimate: &Estimate) -> String {
    let mean = plain(estimate.mean);
    match estimate.half_width {
        Some(half) => format!("{mean} ± {}", plain(half)),
        None => mean,
    }
}

/// As many digits as a measurement carries.
fn plain(value: f64) -> String {
    match value {
        v if v >= 1000.0 => grouped(v.round() as u64),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// Thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_exact_as_they_are_sure() {
        let estimate = |mean, half_width| Estimate { mean, half_width };
        assert_eq!(figure(&estimate(7812.4, Some(40.04))), "7,812 ± 40.0");
        assert_eq!(figure(&estimate(0.305, None)), "0.30");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
    }
}
