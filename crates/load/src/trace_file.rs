//! Traces in files.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Traces are long; lines are short.
const BUFFER_BYTES: usize = 256 << 10;

/// Opens the file at `path` as a trace's [`workload::trace::Open`].
///
/// # Errors
/// When the file cannot be opened.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = File::open(path)?;
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
}
