//! Reads and writes the limits of a volume: `limits = { iops = 500, bandwidth = "100 MB" }`.

use crate::size;
use crate::span;
use crate::table::TableReader;
use engine::qos::{
    BURST_S_MAX, BYTES_MAX, BYTES_MIN, IO_BYTES_MAX, IO_BYTES_MIN, IOS_MAX, Limits, Rate,
};
use toml::de::DeValue;

const IOPS_RULE: &str = "a whole number from 1 to 100000000";
const BANDWIDTH_RULE: &str = "a size from 128 KiB to 100 GB, such as \"100 MB\"";
const IO_SIZE_RULE: &str = "a size from 512 B to 16 MiB, such as \"8 KiB\"";
const BURST_RULE: &str = "a time from 1 s to 1 h in whole seconds, such as \"30 s\"";

/// Reads `limits` of a volume.
pub(crate) fn limits(reader: &mut TableReader<'_, '_>) -> Option<Limits> {
    let (line, table) = reader.table_in_line("limits", "{ iops = 500 }")?;
    let before = reader.found().len();
    let mut reader = reader.nested("volume.limits", (line, table));
    let mut of = |key| reader.optional(key, IOPS_RULE, iops);
    let ios = (of("iops"), of("burst_iops"));
    let mut of = |key| reader.optional(key, BANDWIDTH_RULE, bandwidth);
    let bytes = (of("bandwidth"), of("burst_bandwidth"));
    let io_bytes = reader.optional("io_size", IO_SIZE_RULE, io_size);
    let burst_s = reader.optional("burst", BURST_RULE, burst);
    let limits = Limits {
        ios: rate(ios),
        bytes: rate(bytes),
        io_bytes,
        burst_s: burst_s.unwrap_or(0),
    };
    // One message for one mistake.
    if reader.found().len() == before
        && let Some((key, rule)) = wrong(&limits, (ios, bytes))
    {
        let (at, found) = (reader.line_of(key).unwrap_or(line), reader.said(key));
        reader.report(at, key, found, &rule);
    }
    Some(reader.finish(limits).item)
}

/// A rate and its peak, as far as they are there.
type Said = (Option<u64>, Option<u64>);

fn rate((per_s, peak): Said) -> Option<Rate> {
    per_s.map(|per_s| Rate {
        per_s,
        peak_per_s: peak.unwrap_or(per_s),
    })
}

/// The key that does not go with the others, and what would.
fn wrong(limits: &Limits, (ios, bytes): (Said, Said)) -> Option<(&'static str, String)> {
    for ((per_s, peak), peak_key, key) in [
        (ios, "burst_iops", "iops"),
        (bytes, "burst_bandwidth", "bandwidth"),
    ] {
        if peak.is_some_and(|peak| per_s.is_none_or(|per_s| peak <= per_s)) {
            return Some((
                peak_key,
                format!("more than `{key}`, which has to be there"),
            ));
        }
    }
    let (part, rule) = limits.check().err()?;
    let key = match part {
        "io_bytes" => "io_size",
        "burst_s" => "burst",
        part => part,
    };
    Some((key, rule))
}

fn iops(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    let number = u64::from_str_radix(number.as_str(), number.radix()).ok();
    number.filter(|number| (1..=IOS_MAX).contains(number))
}

fn bandwidth(value: &DeValue<'_>) -> Option<u64> {
    let bytes = value.as_str().and_then(size::parse);
    bytes.filter(|bytes| (BYTES_MIN..=BYTES_MAX).contains(bytes))
}

fn io_size(value: &DeValue<'_>) -> Option<u32> {
    let bytes = value.as_str().and_then(size::parse);
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    bytes.filter(|bytes| (IO_BYTES_MIN..=IO_BYTES_MAX).contains(bytes))
}

fn burst(value: &DeValue<'_>) -> Option<u32> {
    let span = value.as_str().and_then(span::parse)?;
    let seconds = u32::try_from(span.as_secs()).ok()?;
    let is_whole = span.subsec_nanos() == 0;
    Some(seconds).filter(|seconds| is_whole && (1..=BURST_S_MAX).contains(seconds))
}

/// The parts of the table that says them; `size` writes bytes.
pub(crate) fn parts(limits: &Limits, size: fn(u64) -> String) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rate = |rate: Option<Rate>, (key, peak): (&str, &str), text: fn(u64) -> String| {
        let long = rate.map(|rate| (key, rate.per_s));
        let peak = rate.and_then(|rate| Some((peak, rate.peak()?)));
        let both = long.into_iter().chain(peak);
        parts.extend(both.map(|(key, value)| format!("{key} = {}", text(value))));
    };
    rate(limits.ios, ("iops", "burst_iops"), |number| {
        number.to_string()
    });
    rate(limits.bytes, ("bandwidth", "burst_bandwidth"), size);
    if limits.burst_s > 0 {
        parts.push(format!("burst = \"{} s\"", limits.burst_s));
    }
    if let Some(io_bytes) = limits.io_bytes {
        parts.push(format!("io_size = {}", size(u64::from(io_bytes))));
    }
    parts
}
