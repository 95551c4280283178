//! The operations of a trace on disks of given capacities.

use super::reader::{Event, Reader};
use super::{BeyondEnd, Trace, TraceError, nanoseconds, piece_bytes};
use crate::generator::Operation;
use base::Time;
use std::sync::Arc;

/// A source of operations that replays a trace.
#[derive(Debug)]
pub struct Replay {
    trace: Arc<Trace>,
    reader: Reader,
    capacities_bytes: Vec<u64>,
    /// When the first operation was, by the trace's own clock.
    origin_ns: Option<u128>,
    /// What is left of an operation that is too large for one.
    rest: Option<Event>,
}

impl Replay {
    /// The operations of `trace` on disks of these capacities, in bytes.
    ///
    /// # Errors
    /// When the file cannot be opened.
    ///
    /// # Panics
    /// When the number of capacities is not that of the trace's disks.
    pub fn new(trace: &Arc<Trace>, capacities_bytes: &[u64]) -> Result<Replay, TraceError> {
        assert_eq!(
            trace.survey.disks.len(),
            capacities_bytes.len(),
            "{}: one capacity per disk",
            trace.file.path.display()
        );
        Ok(Replay {
            reader: Reader::open(&trace.file, trace.format)?,
            trace: Arc::clone(trace),
            capacities_bytes: capacities_bytes.to_vec(),
            origin_ns: None,
            rest: None,
        })
    }

    /// The next operation, or `None` at the end.
    ///
    /// # Errors
    /// When the file is not what it was when it was surveyed, or an operation is beyond
    /// the end of its disk and may not wrap.
    pub fn draw(&mut self) -> Result<Option<Operation>, TraceError> {
        let event = match self.rest.take() {
            Some(rest) => Some(rest),
            None => self.reader.next()?,
        };
        let Some(event) = event else { return Ok(None) };
        let bytes = piece_bytes(event.offset_bytes, event.bytes);
        if bytes < event.bytes {
            self.rest = Some(Event {
                offset_bytes: event.offset_bytes + bytes,
                bytes: event.bytes - bytes,
                ..event
            });
        }
        let disk = self.disk(&event)?;
        Ok(Some(Operation {
            at: self.at(event.at_ns),
            disk,
            kind: event.kind,
            offset_bytes: self.place(&event, disk, bytes)?,
            bytes: bytes as u32,
        }))
    }

    fn at(&mut self, at_ns: u128) -> Time {
        let origin_ns = *self.origin_ns.get_or_insert(at_ns);
        let since = nanoseconds(at_ns - origin_ns);
        if self.trace.speed == 1.0 {
            return Time(0) + since;
        }
        Time((since.as_nanos() as f64 / self.trace.speed) as u64)
    }

    /// The disk's number in the survey's order.
    fn disk(&self, event: &Event) -> Result<usize, TraceError> {
        let name = &self.reader.disks()[event.disk];
        let disks = &self.trace.survey.disks;
        let known = disks.iter().position(|disk| disk.name == *name);
        known.ok_or_else(|| {
            let what = format!("disk {name} was not in it before: it has changed");
            self.error(event, what)
        })
    }

    fn place(&self, event: &Event, disk: usize, bytes: u64) -> Result<u64, TraceError> {
        let capacity_bytes = self.capacities_bytes[disk];
        let offset_bytes = event.offset_bytes;
        if offset_bytes + bytes <= capacity_bytes {
            return Ok(offset_bytes);
        }
        let name = &self.trace.survey.disks[disk].name;
        if self.trace.beyond_end == BeyondEnd::Refuse || bytes > capacity_bytes {
            let what = format!(
                "{bytes} bytes at {offset_bytes} are beyond the end of disk {name}, which has \
                 {capacity_bytes}"
            );
            return Err(self.error(event, what));
        }
        Ok((offset_bytes % capacity_bytes).min(capacity_bytes - bytes))
    }

    fn error(&self, event: &Event, what: String) -> TraceError {
        TraceError {
            path: self.trace.file.path.clone(),
            line: Some(event.line),
            what,
        }
    }
}
