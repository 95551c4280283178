//! Keeps events on record, so that the history of a drive survives a restart.
//!
//! The record is a file of JSON lines in the data directory.
//!
//! Invariants:
//! - Lines are only added. A file of too many is written anew beside it, with the newest
//!   events, and renamed over it.
//! - Nothing that is in the file keeps the server from starting: a line that can't be
//!   understood, such as one that a power cut tore, is left out, and the file is written
//!   anew before anything is added.

use super::{PoolEvent, ROUTINE};
use crate::record::{self, EVENTS_FILE};
use ::array::control::EventRecord;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Events kept.
const KEPT: usize = 1000;

/// A file of more lines is written anew.
const LINES_MAX: usize = 2 * KEPT;

/// The file, and what it should hold.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    kept: VecDeque<PoolEvent>,
    lines: usize,
    /// Lines can be added: those there are whole, and have been written.
    is_whole: bool,
}

impl History {
    /// What is in the file at `path`, as far as it can be understood.
    pub fn read(path: PathBuf) -> Self {
        let mut history = History {
            path,
            kept: VecDeque::new(),
            lines: 0,
            is_whole: false,
        };
        let bytes = match fs::read(&history.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return history,
            Err(error) => {
                let path = history.path.display();
                tracing::warn!("{path}: can't read it, so events of before are gone: {error}");
                return history;
            }
        };
        history.take_in(&bytes);
        history
    }

    fn take_in(&mut self, bytes: &[u8]) {
        let mut left_out = 0;
        for line in bytes.split(|byte| *byte == b'\n') {
            match serde_json::from_slice::<PoolEvent>(line) {
                Ok(event) => self.kept.push_back(PoolEvent {
                    before_start: true,
                    ..event
                }),
                Err(_) if line.is_empty() => {}
                Err(_) => left_out += 1,
            }
        }
        if left_out > 0 {
            let path = self.path.display();
            tracing::warn!("{path}: left out {left_out} lines that can't be understood");
        }
        self.lines = self.kept.len();
        self.is_whole = left_out == 0 && bytes.ends_with(b"\n");
        self.let_go();
    }

    /// Those kept, oldest first.
    pub fn kept(&self) -> Vec<PoolEvent> {
        self.kept.iter().cloned().collect()
    }

    /// Adds events, durably.
    ///
    /// # Errors
    /// They are not in the file then; the next ones bring them along.
    pub(super) fn add(&mut self, events: Vec<PoolEvent>) -> io::Result<()> {
        let text = lines(&events)?;
        self.lines += events.len();
        self.kept.extend(events);
        self.let_go();
        let whole = std::mem::take(&mut self.is_whole) && self.lines <= LINES_MAX;
        if whole {
            let mut file = File::options().append(true).open(&self.path)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
        } else {
            record::replace(&self.path, lines(&self.kept)?.as_bytes())?;
            self.lines = self.kept.len();
        }
        self.is_whole = true;
        Ok(())
    }

    fn let_go(&mut self) {
        while self.kept.len() > KEPT {
            let routine = |event: &PoolEvent| event.kind == ROUTINE;
            let goes = self.kept.iter().position(routine).unwrap_or(0);
            self.kept.remove(goes);
        }
    }
}

/// The record in its file, which is written where that holds up no task.
#[derive(Debug)]
pub(super) struct EventFile(Arc<Mutex<History>>);

impl EventFile {
    pub(super) fn new(history: History) -> Self {
        EventFile(Arc::new(Mutex::new(history)))
    }
}

impl EventRecord for EventFile {
    fn add(&self, events: Vec<PoolEvent>) -> BoxFuture<'static, Result<(), String>> {
        let history = Arc::clone(&self.0);
        let writing = tokio::task::spawn_blocking(move || {
            // Whoever panicked with this lock held has left it to be written anew.
            let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
            history.add(events)
        });
        let written = async move {
            let why = match writing.await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            Err(format!(
                "{EVENTS_FILE}: can't write it, events come with the next: {why}"
            ))
        };
        written.boxed()
    }
}

fn lines<'a>(events: impl IntoIterator<Item = &'a PoolEvent>) -> io::Result<String> {
    let mut text = String::new();
    for event in events {
        text += &serde_json::to_string(event)?;
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize, kind: &str) -> PoolEvent {
        PoolEvent {
            pool: "p".to_owned(),
            pool_uuid: String::new(),
            lane: 0,
            sequence: number as u64,
            at_unix_us: 0,
            kind: kind.to_owned(),
            text: format!("number {number}\n"),
            lost_blocks: None,
            before_start: false,
        }
    }

    /// The numbers in a file, and whether all of it is of before.
    fn numbers(path: &std::path::Path) -> Vec<u64> {
        let kept = History::read(path.to_owned()).kept();
        assert!(kept.iter().all(|event| event.before_start));
        kept.iter().map(|event| event.sequence).collect()
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        (dir, path)
    }

    #[test]
    fn events_are_there_at_the_next_start_and_the_one_after() {
        let (_dir, path) = place();
        for start in 0..3 {
            let mut history = History::read(path.clone());
            assert_eq!(history.kept().len(), 2 * start);
            history.add(vec![event(2 * start, "scrub")]).unwrap();
            history.add(vec![event(2 * start + 1, "scrub")]).unwrap();
        }
        assert_eq!(numbers(&path), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_torn_tail_is_left_out_wherever_it_is_torn() {
        let (_dir, path) = place();
        let mut history = History::read(path.clone());
        history.add(vec![event(0, "a"), event(1, "a")]).unwrap();
        let whole = fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let mut history = History::read(path.clone());
            let there: Vec<u64> = history.kept().iter().map(|event| event.sequence).collect();
            // Only the end of the line is missing after its last byte.
            let lines = usize::from(end + 1 >= first) + usize::from(end + 1 >= whole.len());
            assert_eq!(there, [0, 1][..lines], "torn at {end}");
            history.add(vec![event(7, "a")]).unwrap();
            let wanted = [&there[..], &[7]].concat();
            assert_eq!(numbers(&path), wanted, "torn at {end}");
            assert!(History::read(path.clone()).is_whole);
        }
    }

    #[test]
    fn what_is_no_event_is_left_out() {
        let (_dir, path) = place();
        let mut history = History::read(path.clone());
        history.add(vec![event(0, "a")]).unwrap();
        let good = fs::read(&path).unwrap();
        let garbage = [b"\0\0\0\n{}\n\xff\n", &good[..], b"[1]\n"].concat();
        fs::write(&path, garbage).unwrap();
        assert_eq!(numbers(&path), [0]);
    }

    #[test]
    fn the_file_stays_small_and_keeps_what_matters() {
        let (_dir, path) = place();
        let mut history = History::read(path.clone());
        history.add(vec![event(0, "drive_failed")]).unwrap();
        let mut most = 0;
        let many: Vec<usize> = (1..3 * KEPT).collect();
        for some in many.chunks(50) {
            let events = some.iter().map(|number| event(*number, ROUTINE));
            history.add(events.collect()).unwrap();
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            most = most.max(lines);
        }
        assert!((LINES_MAX - 50..=LINES_MAX).contains(&most), "{most}");
        let there = numbers(&path);
        assert_eq!((there.len(), there[0]), (KEPT, 0));
        assert_eq!(there[KEPT - 1], 3 * KEPT as u64 - 1);
    }

    #[test]
    fn what_can_not_be_written_comes_with_the_next() {
        let (_dir, path) = place();
        // A directory where the file would be written.
        let beside = path.with_extension("new");
        fs::create_dir(&beside).unwrap();
        let mut history = History::read(path.clone());
        assert!(history.add(vec![event(0, "a")]).is_err());
        fs::remove_dir(&beside).unwrap();
        history.add(vec![event(1, "a")]).unwrap();
        assert_eq!(numbers(&path), [0, 1]);
        fs::remove_file(&path).unwrap();
        assert!(history.add(vec![event(2, "a")]).is_err());
        history.add(vec![event(3, "a")]).unwrap();
        assert_eq!(numbers(&path), [0, 1, 2, 3]);
    }
}
