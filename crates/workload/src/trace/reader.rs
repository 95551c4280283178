//! Records of a trace in order of time, line by line.

use super::{DISORDER_MAX, Format, SECTOR_BYTES, TraceError, TraceFile, blkparse, msr};
use crate::generator::Kind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// Longer lines are no lines of a trace.
const LINE_BYTES_MAX: u64 = 4096;

/// What one line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// When, from some instant of the trace's own.
    pub at_ns: u128,
    /// Which disk, in the words of the trace.
    pub disk: &'a str,
    /// Whether it reads or writes.
    pub kind: Kind,
    /// Offset on the disk in bytes.
    pub offset_bytes: u64,
    /// Size in bytes, as the trace says.
    pub bytes: u64,
}

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// An operation.
    Record(Record<'a>),
    /// Nothing to replay.
    Nothing,
    /// The end of the trace.
    End,
}

/// An operation of the trace, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    /// When, from some instant of the trace's own.
    pub at_ns: u128,
    /// The line, which also keeps those of one instant in their order.
    pub line: u64,
    /// Index of its disk among those that were met, in the order in which they were.
    pub disk: usize,
    /// Whether it reads or writes.
    pub kind: Kind,
    /// Offset on the disk in bytes.
    pub offset_bytes: u64,
    /// Size in bytes, as the trace says.
    pub bytes: u64,
}

/// Reads a trace.
pub(super) struct Reader {
    path: PathBuf,
    format: Format,
    text_left: Box<dyn BufRead>,
    text: Vec<u8>,
    line: u64,
    ended: bool,
    /// Names of disks as they were met.
    disks: Vec<String>,
    /// What was read and may not be the earliest yet.
    waiting: BinaryHeap<Reverse<Event>>,
    newest_ns: u128,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({}:{})", self.path.display(), self.line)
    }
}

impl Reader {
    pub(super) fn open(file: &TraceFile, format: Format) -> Result<Reader, TraceError> {
        let opened = (file.open)(&file.path);
        Ok(Reader {
            path: file.path.clone(),
            format,
            text_left: opened.map_err(|error| unreadable(&file.path, &error))?,
            text: Vec::new(),
            line: 0,
            ended: false,
            disks: Vec::new(),
            waiting: BinaryHeap::new(),
            newest_ns: 0,
        })
    }

    /// The disks that were met so far.
    pub(super) fn disks(&self) -> &[String] {
        &self.disks
    }

    /// The next operation in order of time.
    pub(super) fn next(&mut self) -> Result<Option<Event>, TraceError> {
        while !self.ended && !self.is_first_certain() {
            self.read_line()?;
        }
        Ok(self.waiting.pop().map(|Reverse(event)| event))
    }

    /// Whether nothing can come any more that is earlier than all that waits.
    fn is_first_certain(&self) -> bool {
        let first = self.waiting.peek();
        first.is_some_and(|Reverse(event)| event.at_ns + DISORDER_MAX.as_nanos() < self.newest_ns)
    }

    fn read_line(&mut self) -> Result<(), TraceError> {
        self.text.clear();
        self.line += 1;
        let mut limited = self.text_left.by_ref().take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.text);
        read.map_err(|error| unreadable(&self.path, &error))?;
        if self.text.is_empty() {
            self.ended = true;
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        let taken = self.take(&text);
        self.text = text;
        taken.map_err(|what| TraceError {
            path: self.path.clone(),
            line: Some(self.line),
            what,
        })
    }

    /// Takes a line in.
    fn take(&mut self, text: &[u8]) -> Result<(), String> {
        if text.len() as u64 == LINE_BYTES_MAX && !text.ends_with(b"\n") {
            return Err(format!("a line of more than {LINE_BYTES_MAX} bytes"));
        }
        let text = std::str::from_utf8(text).map_err(|_| "it is not text".to_owned())?;
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        let record = match line(self.format, text, self.line)? {
            Line::Record(record) => record,
            Line::Nothing => return Ok(()),
            Line::End => {
                self.ended = true;
                return Ok(());
            }
        };
        check(&record)?;
        let late_ns = self.newest_ns.saturating_sub(record.at_ns);
        if late_ns > DISORDER_MAX.as_nanos() {
            return Err(format!(
                "it is {:.3} s earlier than a line before it; up to {} s are put in order",
                late_ns as f64 / 1e9,
                DISORDER_MAX.as_secs()
            ));
        }
        self.newest_ns = self.newest_ns.max(record.at_ns);
        let disk = self.disk(record.disk);
        self.waiting.push(Reverse(Event {
            at_ns: record.at_ns,
            line: self.line,
            disk,
            kind: record.kind,
            offset_bytes: record.offset_bytes,
            bytes: record.bytes,
        }));
        Ok(())
    }

    fn disk(&mut self, name: &str) -> usize {
        let known = self.disks.iter().position(|disk| disk == name);
        known.unwrap_or_else(|| {
            self.disks.push(name.to_owned());
            self.disks.len() - 1
        })
    }
}

fn line(format: Format, text: &str, number: u64) -> Result<Line<'_>, String> {
    match format {
        Format::Msr => Ok(msr::record(text, number)?.map_or(Line::Nothing, Line::Record)),
        Format::Blkparse => blkparse::record(text),
    }
}

fn check(record: &Record<'_>) -> Result<(), String> {
    let Record {
        offset_bytes,
        bytes,
        ..
    } = *record;
    if bytes == 0 {
        return Err("an operation of 0 bytes".into());
    }
    for (what, value) in [("offset", offset_bytes), ("size", bytes)] {
        if !value.is_multiple_of(SECTOR_BYTES) {
            return Err(format!(
                "the {what} {value} is not a multiple of {SECTOR_BYTES} bytes"
            ));
        }
    }
    // 8 EiB, what a file or a LUN can have.
    match offset_bytes.checked_add(bytes) {
        Some(end) if i64::try_from(end).is_ok() => Ok(()),
        _ => Err(format!("{bytes} bytes at {offset_bytes} are on no disk")),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> TraceError {
    TraceError {
        path: path.to_owned(),
        line: None,
        what: format!("cannot be read: {error}"),
    }
}

/// What the first line looks like.
pub(super) fn guessed_format(file: &TraceFile) -> Result<Format, TraceError> {
    let unreadable = |error| unreadable(&file.path, &error);
    let mut limited = (file.open)(&file.path)
        .map_err(unreadable)?
        .take(LINE_BYTES_MAX);
    let mut first = Vec::new();
    limited.read_until(b'\n', &mut first).map_err(unreadable)?;
    let commas = first.iter().filter(|&&byte| byte == b',').count();
    Ok(if commas == 6 {
        Format::Msr
    } else {
        Format::Blkparse
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A trace is longer than memory: what waits is what may be out of order.
    #[test]
    fn no_more_is_kept_than_may_be_out_of_order() {
        let file = TraceFile {
            path: "trace.csv".into(),
            open: |_| {
                let ticks_per_ms = 10_000;
                let line = |ms: u64| format!("{},h,0,Read,0,512,1\n", ms * ticks_per_ms);
                let text: String = (0..20_000).map(line).collect();
                Ok(Box::new(Cursor::new(text)))
            },
        };
        let mut reader = Reader::open(&file, Format::Msr).unwrap();
        let (mut count, mut most) = (0, 0);
        while let Some(event) = reader.next().unwrap() {
            assert_eq!(event.at_ns, count * 1_000_000);
            most = most.max(reader.waiting.len());
            count += 1;
        }
        assert_eq!(count, 20_000);
        assert!((900..1100).contains(&most), "{most} records waited");
    }
}
