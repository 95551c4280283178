//! Reads loads that the file describes itself, `[[profile]]`, and the tables that `ashlar capture`
//! writes: `[capture]` and `[[measured]]`.

use crate::diagnostic::Lines;
use crate::hardware::{between, counted, word};
use crate::plan::{Capture, Measured, MeasuredFlow, Profile, Stream};
use crate::quantity::{TIME_RULE, number, time};
use crate::read::{name, size_of, tables, whole};
use crate::size::SIZE_RULE;
use crate::table::{Row, TableReader};
use toml::de::DeValue;

/// The version of captures that is written and read.
pub const CAPTURE_VERSION: u16 = 1;

/// The largest operation of a stream, and what sizes are multiples of.
const IO_BYTES_MAX: u64 = 1 << 20;
const IO_GRAIN_BYTES: u64 = 4096;

/// What the shares of all sizes of a stream may add up to: so many entries the sizes of a load have.
const SHARES_MAX: u32 = 1000;

/// The most sizes of a stream, streams of a load, and loads of a file: a file is read and run in bounded
/// space.
const SIZES_MAX: usize = 64;
const STREAMS_MAX: usize = 64;
const PROFILES_MAX: usize = 10_000;

/// Operations per second of a stream. A rarer one has none in any run; one more frequent queues
/// without bound.
pub const RATE_MIN: f64 = 1e-4;
pub const RATE_MAX: f64 = 1e6;

/// The most operations per second that a measurement says.
const PER_S_MAX: f64 = 1e8;

/// The longest latency that a measurement says: a day.
const MS_MAX: f64 = 86_400_000.0;

/// Keys of a measurement: rate, mean, and three percentiles.
const READS: [&str; 5] = [
    "reads_per_s",
    "read_mean_ms",
    "read_p50_ms",
    "read_p95_ms",
    "read_p99_ms",
];
const WRITES: [&str; 5] = [
    "writes_per_s",
    "write_mean_ms",
    "write_p50_ms",
    "write_p95_ms",
    "write_p99_ms",
];

/// The loads of a file, and what was measured.
pub(crate) struct Loads {
    pub(crate) profiles: Vec<Profile>,
    pub(crate) capture: Option<Capture>,
    pub(crate) measured: Vec<Measured>,
}

/// Reads them.
pub(crate) fn read(file: &mut TableReader<'_, '_>, lines: &Lines) -> Loads {
    let profiles = profiles(file, lines);
    let capture = capture(file, lines);
    let measured = tables(file, lines, "measured", measured);
    Loads {
        profiles,
        capture,
        measured: measured.into_iter().map(|row| row.item).collect(),
    }
}

fn profiles(file: &mut TableReader<'_, '_>, lines: &Lines) -> Vec<Profile> {
    let profiles = tables(file, lines, "profile", profile);
    let profiles: Vec<Profile> = profiles.into_iter().map(|row| row.item).collect();
    if let Some(first) = profiles.get(PROFILES_MAX) {
        let rule = format!("{PROFILES_MAX} at most");
        file.report(
            first.line,
            "profile",
            format!("{} tables", profiles.len()),
            &rule,
        );
    }
    profiles
}

fn capture(file: &mut TableReader<'_, '_>, lines: &Lines) -> Option<Capture> {
    let (line, table) = file.table("capture")?;
    let mut reader = TableReader::new("capture", line, table, lines, file.found());
    let rule = format!("{CAPTURE_VERSION}: the version of captures that this Ashlar reads");
    reader.required("version", &rule, |value| {
        whole(value).filter(|version| *version == CAPTURE_VERSION)
    });
    let rule = "\"sha256:\" and 64 hexadecimal digits";
    reader.required("content", rule, |value| {
        let digits = value.as_str()?.strip_prefix("sha256:")?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        (digits.len() == 64 && is_hex).then_some(())
    });
    reader.required("ashlar", "the version of Ashlar, as text", |value| {
        value.as_str().map(drop)
    });
    reader.required("taken_unix_s", "seconds since 1970", |value| {
        number(value).filter(|seconds| *seconds >= 0.0)
    });
    let rule = format!("{TIME_RULE}, above zero");
    let duration = reader.required("duration", &rule, |value| {
        time(value).filter(|time| !time.is_zero())
    });
    let duration = duration.unwrap_or_default();
    Some(reader.finish(Capture { line, duration }).item)
}

fn profile(mut reader: TableReader<'_, '_>) -> Row<Profile> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let disk_bytes = reader.required("disk", SIZE_RULE, size_of);
    let rule = "a list of streams, such as { name = \"reads\", rate = 120, reads = 100, \
                random = 80, sizes = [\"8 KiB\"] }";
    let tables = reader.tables_as("streams", rule);
    if tables.is_empty() {
        let line_of = reader.line_of("streams").unwrap_or(line);
        reader.report(line_of, "streams", "none".to_owned(), rule);
    }
    if tables.len() > STREAMS_MAX {
        let line_of = reader.line_of("streams").unwrap_or(line);
        let rule = format!("{STREAMS_MAX} streams at most");
        reader.report(
            line_of,
            "streams",
            format!("{} streams", tables.len()),
            &rule,
        );
    }
    let streams = tables.into_iter().take(STREAMS_MAX);
    let streams = streams.map(|at| stream(reader.nested("profile.streams", at)).item);
    let streams: Vec<Stream> = streams.collect();
    for (place, stream) in streams.iter().enumerate() {
        if streams[..place].iter().any(|one| one.name == stream.name) {
            let found = format!("two streams called {:?}", stream.name);
            reader.report(line, "streams", found, "each name once");
        }
    }
    reader.finish(Profile {
        name,
        line,
        disk_bytes: disk_bytes.unwrap_or(1 << 30),
        streams,
    })
}

fn stream(mut reader: TableReader<'_, '_>) -> Row<Stream> {
    let name = name(&mut reader, "name");
    let rule = format!("operations per second, a number from {RATE_MIN} to {RATE_MAX}");
    let per_second = reader.required("rate", &rule, |value| {
        number(value).filter(|rate| (RATE_MIN..=RATE_MAX).contains(rate))
    });
    let mut percent = |key, min| {
        let rule = format!("a whole number from {min} to 100, in percent");
        reader.optional(key, &rule, |value| between(value, min, 100))
    };
    let read_percent = percent("reads", 0);
    let random_percent = percent("random", 0);
    let active_percent = percent("active", 1);
    let rule = "a whole number from 50 (no skew) to 99, in percent";
    let hot_percent = reader.optional("hot", rule, |value| between(value, 50, 99));
    let rule = "a whole number from 1 to 4096";
    let outstanding = reader.optional("outstanding", rule, |value| between(value, 1, 4096));
    let sizes = sizes(&mut reader);
    reader.finish(Stream {
        sizes,
        name,
        per_second: per_second.unwrap_or(1.0),
        read_percent: read_percent.unwrap_or(100),
        random_percent: random_percent.unwrap_or(100),
        hot_percent: hot_percent.unwrap_or(50),
        active_percent: active_percent.unwrap_or(100),
        outstanding: outstanding.unwrap_or(64),
    })
}

/// The sizes of operations with their shares.
fn sizes(reader: &mut TableReader<'_, '_>) -> Vec<(u32, u16)> {
    let rule = format!(
        "a list of up to {SIZES_MAX} sizes, multiples of 4 KiB up to 1 MiB, such as [\"8 KiB\", \"64 KiB\"]"
    );
    let sizes = reader.required("sizes", &rule, |value| {
        list(value, SIZES_MAX, operation_bytes)
    });
    let rule = format!(
        "a list of whole numbers above zero, one for each of sizes, that add up to {SHARES_MAX} \
         at most"
    );
    let count = sizes.as_ref().map(Vec::len);
    let shares = reader.optional("shares", &rule, |value| {
        let shares = list(value, SIZES_MAX, |share| counted(share, 1, SHARES_MAX))?;
        let fits = count.is_none_or(|count| count == shares.len());
        let sum: u64 = shares.iter().copied().map(u64::from).sum();
        (fits && sum <= u64::from(SHARES_MAX)).then_some(shares)
    });
    let sizes = sizes.unwrap_or_default();
    let shares = shares.unwrap_or_else(|| vec![1; sizes.len()]);
    let pair = |(bytes, share): (u32, u32)| (bytes, share as u16);
    sizes.into_iter().zip(shares).map(pair).collect()
}

/// A list that is neither empty nor longer than `most`.
pub(crate) fn list<T>(
    value: &DeValue<'_>,
    most: usize,
    read: impl Fn(&DeValue<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let elements = value.as_array().filter(|elements| elements.len() <= most)?;
    let elements = elements.iter().map(|element| read(element.get_ref()));
    let all: Option<Vec<T>> = elements.collect();
    all.filter(|all| !all.is_empty())
}

fn operation_bytes(value: &DeValue<'_>) -> Option<u32> {
    let bytes = size_of(value)?;
    let fits = (1..=IO_BYTES_MAX).contains(&bytes) && bytes.is_multiple_of(IO_GRAIN_BYTES);
    u32::try_from(bytes).ok().filter(|_| fits)
}

fn measured(mut reader: TableReader<'_, '_>) -> Row<Measured> {
    let line = reader.header_line();
    let vm_group = word(&mut reader, "vm_group", "a VM group's name");
    let (reads, writes) = (flow(&mut reader, READS), flow(&mut reader, WRITES));
    for (key, most) in [
        ("queue", PER_S_MAX),
        ("hottest_tenth_percent", 100.0),
        ("read_bursts", PER_S_MAX),
        ("write_bursts", PER_S_MAX),
    ] {
        figure(&mut reader, key, most);
    }
    reader.optional("working_set", SIZE_RULE, size_of);
    reader.finish(Measured {
        vm_group,
        line,
        reads,
        writes,
    })
}

/// A figure from zero to `most`; zero where it is missing.
fn figure(reader: &mut TableReader<'_, '_>, key: &'static str, most: f64) -> f64 {
    let rule = format!("a number from 0 to {most}");
    let figure = reader.optional(key, &rule, |value| {
        number(value).filter(|figure| (0.0..=most).contains(figure))
    });
    figure.unwrap_or_default()
}

/// Reads or writes, whose percentiles grow.
fn flow(reader: &mut TableReader<'_, '_>, keys: [&'static str; 5]) -> MeasuredFlow {
    let [per_s, mean_ms, p50_ms, p95_ms, p99_ms] = keys;
    let flow = MeasuredFlow {
        per_s: figure(reader, per_s, PER_S_MAX),
        mean_ms: figure(reader, mean_ms, MS_MAX),
        p50_ms: figure(reader, p50_ms, MS_MAX),
        p95_ms: figure(reader, p95_ms, MS_MAX),
        p99_ms: figure(reader, p99_ms, MS_MAX),
    };
    let pairs = [
        (p50_ms, flow.p50_ms, p95_ms, flow.p95_ms),
        (p95_ms, flow.p95_ms, p99_ms, flow.p99_ms),
    ];
    for (lower, low, higher, high) in pairs {
        if let Some(line) = reader.line_of(higher).filter(|_| low > high) {
            let rule = format!("at least {lower}, which is {low}");
            reader.report(line, higher, format!("the number {high}"), &rule);
        }
    }
    flow
}
