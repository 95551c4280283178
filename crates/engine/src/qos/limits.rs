//! What a volume is limited to, and the text in which its attribute keeps it.

use std::fmt;

/// I/Os a second of a limit, at most.
pub const IOS_MAX: u64 = 100_000_000;
/// Bytes a second of a limit, at most: 100 GB/s.
pub const BYTES_MAX: u64 = 100_000_000_000;
/// Bytes a second of a limit, at least: the longest commands, of 16 MiB, take two minutes. Linux
/// gives up what it cannot begin for three.
pub const BYTES_MIN: u64 = 128 << 10;
/// Bytes that count as one I/O, at least.
pub const IO_BYTES_MIN: u32 = 512;
/// Bytes that count as one I/O, at most.
pub const IO_BYTES_MAX: u32 = 16 << 20;
/// Seconds of a burst, at most.
pub const BURST_S_MAX: u32 = 3600;

/// A rate that may be exceeded for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Units a second in the long run.
    pub per_s: u64,
    /// Units a second while credits last; equal to `per_s` where nothing is saved up.
    pub peak_per_s: u64,
}

impl Rate {
    /// A rate that is never exceeded.
    pub const fn even(per_s: u64) -> Rate {
        Rate {
            per_s,
            peak_per_s: per_s,
        }
    }

    /// Units a second while credits last, where that is more than in the long run.
    pub fn peak(self) -> Option<u64> {
        Some(self.peak_per_s).filter(|peak| *peak > self.per_s)
    }
}

/// What hosts get of a volume, at most. Everything absent: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// I/Os a second, as `io_bytes` counts them.
    pub ios: Option<Rate>,
    /// Bytes that are read and written a second.
    pub bytes: Option<Rate>,
    /// Bytes that count as one I/O, and a longer command as several: 8 KiB as Hyper-V counts,
    /// 32 KiB as ESXi does. Absent, each command counts as one.
    pub io_bytes: Option<u32>,
    /// Seconds for which an idle volume may run at its peak rate; credits come back at the limit.
    /// Zero where there is no burst.
    pub burst_s: u32,
}

impl Limits {
    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        self.ios.is_none() && self.bytes.is_none()
    }

    /// I/Os that a command of so many bytes counts as.
    pub fn ios_of(&self, bytes: u64) -> u64 {
        match self.io_bytes {
            Some(unit) => bytes.div_ceil(u64::from(unit).max(1)).max(1),
            None => 1,
        }
    }

    /// Whether limits can be so.
    ///
    /// # Errors
    /// The part that is wrong, as its name in the API and the rule for it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(rate) = self.ios {
            check_rate(rate, ("iops", "burst_iops"), (1, IOS_MAX))?;
        }
        if let Some(rate) = self.bytes {
            let names = ("bytes_per_s", "burst_bytes_per_s");
            check_rate(rate, names, (BYTES_MIN, BYTES_MAX))?;
        }
        let sizes = IO_BYTES_MIN..=IO_BYTES_MAX;
        if self.io_bytes.is_some_and(|unit| !sizes.contains(&unit)) {
            return Err(("io_bytes", "512 bytes to 16 MiB".to_owned()));
        }
        match (self.io_bytes, self.ios) {
            (Some(_), None) => return Err(("io_bytes", "only together with iops".to_owned())),
            (Some(unit), Some(rate)) if u64::from(unit) * rate.per_s < BYTES_MIN => {
                let rule = format!("{BYTES_MIN} or more bytes in all I/Os of a second");
                return Err(("io_bytes", rule));
            }
            _ => {}
        }
        let mut rates = [self.ios, self.bytes].into_iter().flatten();
        let has_peak = rates.any(|rate| rate.peak().is_some());
        match (has_peak, self.burst_s) {
            (true, 1..=BURST_S_MAX) | (false, 0) => Ok(()),
            (true, _) => Err(("burst_s", format!("1 to {BURST_S_MAX} seconds"))),
            (false, _) => Err(("burst_s", "only together with a burst rate".to_owned())),
        }
    }

    /// Reads what [`fmt::Display`] writes; `None` when it is nothing of that kind. Limits that an
    /// older version took count, whatever [`Limits::check`] says.
    pub fn parse(text: &str) -> Option<Limits> {
        let mut limits = Limits::default();
        for word in text.split_whitespace() {
            let (key, value) = word.split_at_checked(1)?;
            match key {
                "i" => limits.ios = Some(rate(value)?),
                "b" => limits.bytes = Some(rate(value)?),
                "u" => limits.io_bytes = Some(value.parse().ok()?),
                "s" => limits.burst_s = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(limits)
    }
}

fn check_rate(
    rate: Rate,
    (name, peak): (&'static str, &'static str),
    (least, most): (u64, u64),
) -> Result<(), (&'static str, String)> {
    if !(least..=most).contains(&rate.per_s) {
        return Err((name, format!("{least} to {most}")));
    }
    match (rate.per_s..=most).contains(&rate.peak_per_s) {
        true => Ok(()),
        false => Err((peak, format!("more than the limit, up to {most}"))),
    }
}

fn rate(text: &str) -> Option<Rate> {
    let (per_s, peak) = text.split_once('/').unwrap_or((text, text));
    Some(Rate {
        per_s: per_s.parse().ok()?,
        peak_per_s: peak.parse().ok()?,
    })
}

/// Up to 64 bytes, such as `i500/1000 b104857600 u8192 s30`.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates = [("i", self.ios), ("b", self.bytes)];
        let rates = rates.into_iter().filter_map(|(key, rate)| {
            let rate = rate?;
            let per_s = rate.per_s;
            Some(match rate.peak() {
                Some(peak) => format!("{key}{per_s}/{peak}"),
                None => format!("{key}{per_s}"),
            })
        });
        let unit = self.io_bytes.map(|unit| format!("u{unit}"));
        let burst = (self.burst_s > 0).then(|| format!("s{}", self.burst_s));
        let words: Vec<String> = rates.chain(unit).chain(burst).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::properties::VALUE_BYTES_MAX;

    fn largest() -> Limits {
        let rate = |most: u64| {
            Some(Rate {
                per_s: most - 1,
                peak_per_s: most,
            })
        };
        Limits {
            ios: rate(IOS_MAX),
            bytes: rate(BYTES_MAX),
            io_bytes: Some(IO_BYTES_MAX),
            burst_s: BURST_S_MAX,
        }
    }

    #[test]
    fn a_limit_lets_the_longest_command_go_in_time() {
        let limits = |ios, unit| Limits {
            ios: Some(Rate::even(ios)),
            io_bytes: Some(unit),
            ..Limits::default()
        };
        assert_eq!(limits(16, 8192).check(), Ok(()));
        let small = limits(15, 8192).check();
        assert_eq!(small.map_err(|(name, _)| name), Err("io_bytes"));
    }

    #[test]
    fn limits_come_back_from_their_text_which_fits_an_attribute() {
        let capped = Limits {
            ios: Some(Rate::even(50)),
            ..Limits::default()
        };
        for limits in [largest(), capped, Limits::default()] {
            let text = limits.to_string();
            assert!(text.len() <= VALUE_BYTES_MAX, "{text}: {}", text.len());
            assert_eq!(Limits::parse(&text), Some(limits), "{text}");
        }
        assert_eq!(capped.to_string(), "i50");
        for text in ["x1", "i", "i-1", "i5/", "ä", "i5 s", "u1.5"] {
            assert_eq!(Limits::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |change: fn(&mut Limits)| {
            let mut limits = largest();
            change(&mut limits);
            limits.check().map_err(|(name, _)| name)
        };
        assert_eq!(wrong(|_| ()), Ok(()));
        assert_eq!(wrong(|of| of.ios = Some(Rate::even(0))), Err("iops"));
        assert_eq!(
            wrong(|of| of.bytes = Some(Rate::even(9))),
            Err("bytes_per_s")
        );
        assert_eq!(wrong(|of| of.io_bytes = Some(511)), Err("io_bytes"));
        assert_eq!(wrong(|of| of.ios = None), Err("io_bytes"));
        assert_eq!(wrong(|of| of.burst_s = 0), Err("burst_s"));
        let lower = |of: &mut Limits| {
            of.ios = Some(Rate {
                per_s: 5,
                peak_per_s: 4,
            });
        };
        assert_eq!(wrong(lower), Err("burst_iops"));
    }

    #[test]
    fn a_long_command_counts_as_several() {
        let limits = |io_bytes| Limits {
            io_bytes,
            ..largest()
        };
        for (unit, bytes, ios) in [
            (Some(8192), 0, 1),
            (Some(8192), 4096, 1),
            (Some(8192), 8193, 2),
            (Some(32_768), 65_536, 2),
            (None, 1 << 20, 1),
        ] {
            assert_eq!(limits(unit).ios_of(bytes), ios, "{unit:?} {bytes}");
        }
    }
}
