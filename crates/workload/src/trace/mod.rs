//! Traces of real hosts, to be replayed.
//!
//! ```text
//! file ─► lines ─► records in order of time ─► operations
//!         (msr, blkparse)    (reader)             (replay)
//! ```
//!
//! A trace is read once before it is used ([`Trace::survey`]), which finds everything
//! that is wrong with it and what disks it is of, and again as it is replayed; never is
//! more of it in memory than what may still be out of order. It is a source of operations
//! like a generator: an open loop with the trace's own times.
//!
//! Invariants:
//! - Times of operations never go back. A record that is up to [`DISORDER_MAX`] late is
//!   put where it belongs; one that is later is refused.
//! - Offsets and sizes are multiples of [`SECTOR_BYTES`], and no operation, widened to
//!   whole units of [`IO_GRAIN_BYTES`], is larger than [`IO_BYTES_MAX`]: larger ones
//!   are cut at multiples of that, as a host's adapter does.
//! - The same file gives the same operations: nothing is drawn.

mod blkparse;
mod msr;
mod reader;
mod replay;
mod survey;

pub use replay::Replay;
pub use survey::{DiskOf, Survey};

use crate::profile::{
    Compute, DiskProfile, IO_BYTES_MAX, IO_GRAIN_BYTES, Limits, Mix, Pacing, Profile, Stream,
    VmProfile,
};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// What offsets and sizes of a trace are multiples of.
pub const SECTOR_BYTES: u64 = 512;

/// By how much a record may be behind the newest one before it.
pub const DISORDER_MAX: Duration = Duration::from_secs(1);

/// Operations of a trace under way at most; further ones wait and keep their times.
const OUTSTANDING_MAX: usize = 256;

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The CSV of the traces of MSR Cambridge (SNIA IOTTA 388): `Timestamp, Hostname,
    /// DiskNumber, Type, Offset, Size, ResponseTime`, times in units of 100 ns.
    Msr,
    /// What `blkparse` prints unless told otherwise. Requests count when they are
    /// queued (action Q): that is when and how somebody asked for them, before the
    /// traced machine merged, sorted or delayed them for its own drives.
    Blkparse,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "msr" => Ok(Format::Msr),
            "blkparse" => Ok(Format::Blkparse),
            other => Err(format!("the format {other:?} is not one of msr, blkparse")),
        }
    }
}

/// What happens to an operation beyond the end of its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BeyondEnd {
    /// The trace is refused.
    #[default]
    Refuse,
    /// It goes on from the start of the disk.
    Wrap,
}

impl FromStr for BeyondEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<BeyondEnd, String> {
        match text {
            "refuse" => Ok(BeyondEnd::Refuse),
            "wrap" => Ok(BeyondEnd::Wrap),
            other => Err(format!("{other:?} is not one of refuse, wrap")),
        }
    }
}

/// What is wrong with a trace, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {what}", path.display(), line.map_or(String::new(), |line| format!(":{line}")))]
pub struct TraceError {
    /// The trace file that is at fault.
    pub path: PathBuf,
    /// The line, from 1, where it is one line's fault.
    pub line: Option<u64>,
    /// What was found, for people.
    pub what: String,
}

/// Opens the text of a trace at its start. Who reads files brings it.
pub type Open = fn(&Path) -> io::Result<Box<dyn BufRead>>;

/// The text of a trace. It is the same again whenever it is opened.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The file that the trace is read from.
    pub path: PathBuf,
    /// How it is opened.
    pub open: Open,
}

impl PartialEq for TraceFile {
    fn eq(&self, other: &TraceFile) -> bool {
        self.path == other.path
    }
}

/// A trace to be replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where its text is.
    pub file: TraceFile,
    /// How it is written.
    pub format: Format,
    /// Times of the trace are divided by this.
    pub speed: f64,
    /// What becomes of operations beyond the end of a disk.
    pub beyond_end: BeyondEnd,
    /// What is in it.
    pub survey: Survey,
}

/// A file and, behind a comma, its format: what names a trace on a command line. A comma
/// that no format is behind belongs to the file's name.
pub fn file_and_format(text: &str) -> (PathBuf, Option<Format>) {
    let said = text.rsplit_once(',').and_then(|(path, format)| {
        let format = format.parse().ok()?;
        Some((path.into(), Some(format)))
    });
    said.unwrap_or((text.into(), None))
}

impl Trace {
    /// Reads the text through. Without a format, the first line tells.
    ///
    /// # Errors
    /// When the file cannot be read or has no operation, or the first line that makes no
    /// sense.
    pub fn survey(
        file: TraceFile,
        format: Option<Format>,
        beyond_end: BeyondEnd,
    ) -> Result<Trace, TraceError> {
        let format = match format {
            Some(format) => format,
            None => reader::guessed_format(&file)?,
        };
        let survey = survey::survey(&file, format)?;
        Ok(Trace {
            file,
            format,
            speed: 1.0,
            beyond_end,
            survey,
        })
    }

    /// How long it takes, at its speed.
    pub fn duration(&self) -> Duration {
        let seconds = self.survey.duration.as_secs_f64() / self.speed;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// One VM that replays it, with a disk for each of the trace's, in their order.
    pub fn profile(self) -> Profile {
        let survey = &self.survey;
        let percent = |part: u64| (part * 100 / survey.operations.max(1)) as u32;
        let mix = Mix {
            sizes: vec![survey.bytes_max.next_multiple_of(IO_GRAIN_BYTES)],
            random_percent: percent(survey.random),
            read_percent: percent(survey.reads),
        };
        let seconds = survey.duration.as_secs_f64().max(1.0);
        let pacing = Pacing::Open {
            per_second: survey.operations as f64 / seconds,
        };
        let megabyte = 1_000_000;
        let disk = |disk: &DiskOf| DiskProfile {
            nominal_bytes: disk.end_bytes.next_multiple_of(megabyte),
        };
        let disks: Vec<DiskProfile> = survey.disks.iter().map(disk).collect();
        let path = &self.file.path;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = format!("trace {}", name.to_string_lossy());
        let stream = Stream {
            outstanding_max: OUTSTANDING_MAX,
            ..Stream::alone(mix, pacing, &vec![1; disks.len()])
        };
        let vm = VmProfile {
            name: "trace".into(),
            role: "trace".into(),
            compute: Compute::UNTOLD,
            disks,
            streams: vec![Stream {
                trace: Some(Arc::new(self)),
                ..stream
            }],
        };
        Profile {
            name,
            vms: vec![vm],
            limits: Limits::default(),
        }
    }
}

/// The largest piece of an operation of `bytes` at `offset_bytes`, from its start, that
/// is not too large: all of it, or up to a multiple of [`IO_BYTES_MAX`].
fn piece_bytes(offset_bytes: u64, bytes: u64) -> u64 {
    let grain = u64::from(IO_GRAIN_BYTES);
    let most = u64::from(IO_BYTES_MAX);
    let widened = (offset_bytes + bytes).next_multiple_of(grain) - offset_bytes / grain * grain;
    if widened <= most {
        bytes
    } else {
        bytes.min(most - offset_bytes % most)
    }
}

fn nanoseconds(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
