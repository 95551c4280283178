//! Spans of time as people write them: "24 h", "90 s".

use std::time::Duration;

/// What [`parse`] takes, for messages.
pub const SPAN_RULE: &str =
    "a whole number and a unit (s, min, h, d), such as \"24 h\", up to 3650 d";

/// The longest span: ten years.
const SPAN_S_MAX: u64 = 3650 * 86_400;

/// In the order in which [`words`] tries them.
const UNITS: [(&str, u64); 5] = [("d", 86_400), ("h", 3600), ("min", 60), ("m", 60), ("s", 1)];

/// The span that `text` says; `None` when it says none, or more than ten years.
pub fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    let seconds = number.parse::<u64>().ok()?.checked_mul(*seconds)?;
    (seconds <= SPAN_S_MAX).then(|| Duration::from_secs(seconds))
}

/// `span` for people, in the largest unit that says it whole: what [`parse`] takes.
pub fn words(span: Duration) -> String {
    let seconds = span.as_secs();
    let whole = |(_, unit): &&(&str, u64)| seconds > 0 && seconds.is_multiple_of(*unit);
    let (name, unit) = UNITS.iter().find(whole).unwrap_or(&("s", 1));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_back_as_they_are_written() {
        for (text, seconds, again) in [
            ("24 h", 86_400, "1 d"),
            ("90s", 90, "90 s"),
            ("5 min", 300, "5 min"),
            ("5m", 300, "5 min"),
            ("0 s", 0, "0 s"),
            ("3650 d", SPAN_S_MAX, "3650 d"),
        ] {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)), "{text}");
            assert_eq!(words(Duration::from_secs(seconds)), again);
        }
        for text in [
            "",
            "h",
            "1",
            "1.5 h",
            "-1 h",
            "1 y",
            "3651 d",
            "99999999999999999999 s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
