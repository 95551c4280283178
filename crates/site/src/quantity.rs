//! Numbers, rates and times of hardware and load.

use std::time::Duration;
use toml::de::DeValue;

/// What [`rate`] takes, for messages.
pub(crate) const RATE_RULE: &str =
    "a number above zero and a unit (Mb/s, Gb/s), such as \"10 Gb/s\"";

/// What [`time`] takes, for messages.
pub(crate) const TIME_RULE: &str =
    "a number and a unit (ms, s, min, h, d), such as \"90 s\", up to 30 d";

/// The longest time.
const TIME_MAX: Duration = Duration::from_secs(30 * 86_400);

/// A number that is one: not infinite, not NaN.
pub(crate) fn number(value: &DeValue<'_>) -> Option<f64> {
    let number = match value {
        DeValue::Integer(number) => number.to_string().parse::<f64>().ok()?,
        DeValue::Float(number) => number.as_str().replace('_', "").parse::<f64>().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Number and unit of a text.
fn with_unit(value: &DeValue<'_>, units: &[(&str, f64)]) -> Option<f64> {
    let text = value.as_str()?.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    Some(number.parse::<f64>().ok()? * factor)
}

/// Bits per second.
pub(crate) fn rate(value: &DeValue<'_>) -> Option<u64> {
    let bits_per_s = with_unit(value, &[("Mb/s", 1e6), ("Gb/s", 1e9)])?;
    // Above what any link does, and below what any arithmetic minds.
    (1.0..=1e13)
        .contains(&bits_per_s)
        .then_some(bits_per_s as u64)
}

/// A time.
pub(crate) fn time(value: &DeValue<'_>) -> Option<Duration> {
    let units = [
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let seconds = with_unit(value, &units)?;
    (seconds <= TIME_MAX.as_secs_f64()).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> DeValue<'static> {
        DeValue::String(text.to_owned().into())
    }

    #[test]
    fn times_and_rates_have_units() {
        assert_eq!(time(&text("20 ms")), Some(Duration::from_millis(20)));
        assert_eq!(time(&text("1.5min")), Some(Duration::from_secs(90)));
        assert_eq!(rate(&text("10 Gb/s")), Some(10_000_000_000));
        for wrong in [
            "20", "ms", "-1 s", "NaN s", "31 d", "1..2 s", "1 year", "1 mi", "1 ",
        ] {
            assert_eq!(time(&text(wrong)), None, "{wrong}");
        }
        for wrong in [
            "10",
            "0 Gb/s",
            "inf Gb/s",
            "10 GB/s",
            "99999 Gb/s",
            "10 G",
            "10 ",
        ] {
            assert_eq!(rate(&text(wrong)), None, "{wrong}");
        }
    }
}
