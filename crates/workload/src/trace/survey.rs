//! The survey of a trace: its disks, operations and duration, found by reading it to the end.

use super::reader::{Event, Reader};
use super::{Format, TraceError, TraceFile, piece_bytes};
use crate::generator::Kind;
use std::time::Duration;

/// What is in a trace. Operations count as they will be issued: in pieces, where one is
/// too large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Its disks, by host and number.
    pub disks: Vec<DiskOf>,
    /// Operations in the trace, reads and writes together.
    pub operations: u64,
    /// Those of them that read.
    pub reads: u64,
    /// Those of them that do not begin where the one before on that disk ended.
    pub random: u64,
    /// From the first to the last.
    pub duration: Duration,
    /// The largest, in bytes.
    pub bytes_max: u32,
}

/// A disk of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOf {
    /// Its name in the trace: `host,number` or `major,minor`.
    pub name: String,
    /// Where the operation ends that is furthest behind, in bytes.
    pub end_bytes: u64,
}

/// Reads the trace through.
pub(super) fn survey(file: &TraceFile, format: Format) -> Result<Survey, TraceError> {
    let mut reader = Reader::open(file, format)?;
    let mut survey = Survey::default();
    // Ends of the furthest and of the last operation, of disks as they are met.
    let mut ends: Vec<(u64, u64)> = Vec::new();
    let mut span: Option<(u128, u128)> = None;
    while let Some(event) = reader.next()? {
        if ends.len() <= event.disk {
            ends.resize(event.disk + 1, (0, 0));
        }
        survey.count(&event, &mut ends[event.disk]);
        span = Some((span.map_or(event.at_ns, |span| span.0), event.at_ns));
    }
    let Some((first_ns, last_ns)) = span else {
        return Err(TraceError {
            path: file.path.clone(),
            line: None,
            what: "has no operation in it".into(),
        });
    };
    survey.duration = super::nanoseconds(last_ns - first_ns);
    let named = reader.disks().iter().zip(ends);
    let disk = |(name, (end_bytes, _)): (&String, (u64, u64))| DiskOf {
        name: name.clone(),
        end_bytes,
    };
    survey.disks = named.map(disk).collect();
    survey
        .disks
        .sort_by(|a, b| order(&a.name).cmp(&order(&b.name)));
    Ok(survey)
}

impl Survey {
    fn count(&mut self, event: &Event, (furthest, last): &mut (u64, u64)) {
        let end = event.offset_bytes + event.bytes;
        let mut offset_bytes = event.offset_bytes;
        self.random += u64::from(offset_bytes != *last);
        while offset_bytes < end {
            let piece = piece_bytes(offset_bytes, end - offset_bytes);
            self.operations += 1;
            self.reads += u64::from(event.kind == Kind::Read);
            self.bytes_max = self.bytes_max.max(piece as u32);
            offset_bytes += piece;
        }
        *last = end;
        *furthest = end.max(*furthest);
    }
}

/// By host or major number, then by disk number.
fn order(name: &str) -> (u64, &str, u64) {
    let (host, number) = name.rsplit_once(',').unwrap_or((name, ""));
    let number_of = |text: &str| text.trim().parse().unwrap_or(u64::MAX);
    (number_of(host), host, number_of(number))
}
