//! Axes of charts: the position of each value, and the values that have a label.

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Evenly, from zero to the last tick.
    Linear,
    /// By powers of ten.
    Log,
}

/// An axis with its range, scale and ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What and in which unit; empty where the caption says it.
    pub label: String,
    /// Values and their texts.
    pub ticks: Vec<(f64, String)>,
    /// First and last value.
    pub range: (f64, f64),
    /// How values lie between them.
    pub scale: Scale,
}

/// An axis has about so many ticks.
const TICKS: f64 = 5.0;

impl Axis {
    /// An axis from zero to a round value that is at least `max`.
    pub fn linear(label: &str, max: f64) -> Axis {
        let max = if max > 0.0 { max } else { 1.0 };
        let step = round_step(max / TICKS);
        let last = (max / step).ceil();
        let ticks = (0..=last as u32)
            .map(|n| f64::from(n) * step)
            .map(|v| (v, number(v)));
        let (label, ticks) = (label.into(), ticks.collect());
        Axis {
            label,
            ticks,
            range: (0.0, last * step),
            scale: Scale::Linear,
        }
    }

    /// An axis from zero to `end`, with round ticks up to there.
    pub fn until(label: &str, end: f64) -> Axis {
        let mut axis = Axis::linear(label, end);
        if end > 0.0 {
            axis.range.1 = end;
            axis.ticks.retain(|(value, _)| *value <= end);
        }
        axis
    }

    /// An axis around `min` and `max` whose ends are 1, 2 or 5 times a power of ten.
    pub fn log(label: &str, min: f64, max: f64) -> Axis {
        let low = round_below(min.max(1e-3));
        let mut high = round_step(max.max(1e-3));
        if high <= low * 1.001 {
            high = round_step(low * 1.5);
        }
        let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
        let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|times| times * 10f64.powi(power)));
        let inside = |value: &f64| *value >= low * 0.999 && *value <= high * 1.001;
        let mut values: Vec<f64> = all.filter(inside).collect();
        // Where many powers fit, 2 and 5 times them are too many.
        if values.len() as f64 > TICKS + 2.0 {
            values.retain(|value| (value.log10() - value.log10().round()).abs() < 1e-6);
        }
        let ticks = values.into_iter().map(|value| (value, number(value)));
        Axis {
            label: label.into(),
            ticks: ticks.collect(),
            range: (low, high),
            scale: Scale::Log,
        }
    }

    /// The same axis where the caption says what it is.
    pub fn unlabelled(mut self) -> Axis {
        self.label.clear();
        self
    }

    /// Where `value` lies, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let share = match self.scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log => (value.max(low) / low).ln() / (high / low).ln(),
        };
        share.clamp(0.0, 1.0)
    }
}

/// 1, 2 or 5 times a power of ten, not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|times| times * power >= step * 0.999);
    times.unwrap_or(10.0) * power
}

/// 1, 2 or 5 times a power of ten, not above `value`.
fn round_below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let times = [5.0, 2.0]
        .into_iter()
        .find(|times| times * power <= value * 1.001);
    times.unwrap_or(1.0) * power
}

fn number(value: f64) -> String {
    match value {
        v if v >= 1000.0 && v % 100.0 == 0.0 => format!("{}k", v / 1000.0),
        v => {
            let text = format!("{v:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn axes_are_round_and_hold_their_values() {
        let axis = Axis::linear("x", 437.0);
        assert_eq!(axis.range, (0.0, 500.0));
        assert_eq!(axis.ticks.len(), 6);
        assert_eq!(axis.share(500.0), 1.0);
        assert_eq!(Axis::linear("none", 0.0).range.0, 0.0);
        let axis = Axis::until("s", 42.0);
        assert_eq!(
            (axis.range, texts(&axis)),
            ((0.0, 42.0), vec!["0", "10", "20", "30", "40"])
        );
    }

    #[test]
    fn axes_by_powers_have_ends_and_ticks_near_their_values() {
        let axis = Axis::log("y", 0.3, 12.0);
        assert_eq!(axis.range, (0.2, 20.0));
        assert_eq!(texts(&axis), ["0.2", "0.5", "1", "2", "5", "10", "20"]);
        assert!((axis.share(2.0) - 0.5).abs() < 1e-9);
        let axis = Axis::log("y", 0.03, 1200.0);
        assert_eq!(texts(&axis), ["0.1", "1", "10", "100", "1k"]);
        // A single value, and a range within one step.
        for (min, max) in [(5.0, 5.0), (1.0, 1.0), (0.21, 0.24)] {
            let axis = Axis::log("y", min, max);
            assert!(
                axis.range.0 <= min && axis.range.1 >= max,
                "{:?}",
                axis.range
            );
            assert!(axis.ticks.len() >= 2, "{:?}", axis.ticks);
        }
    }
}
