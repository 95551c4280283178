//! The log of `ashlar serve`, on standard error.
//!
//! Invariants:
//! - Nobody waits for whoever reads the log, and nothing ends for it: lines that it does not take
//!   are lost, and a later line says how many.
//! - What was logged before the process ends is written, if that takes no longer than a moment.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait to be written, at most.
const WAITING_MAX: usize = 1024;

/// How long the end of the process waits for them.
const MOMENT: Duration = Duration::from_millis(500);

enum Order {
    Line(Vec<u8>),
    /// Answered when all before it is written, and a loss is told where it can be.
    Flush(Sender<()>),
}

/// Takes lines, and drops those that there is no room for.
#[derive(Clone)]
pub struct Log {
    orders: SyncSender<Order>,
    lost: Arc<AtomicU64>,
}

/// Logs from now on, at the level that RUST_LOG says.
///
/// # Errors
/// The system has no thread for it.
pub fn begin() -> io::Result<Log> {
    let log = Log::to(io::stderr())?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would be told on standard error.
        .log_internal_errors(false)
        .with_writer(log.clone())
        .init();
    Ok(log)
}

impl Log {
    fn to(out: impl Write + Send + 'static) -> io::Result<Log> {
        let (orders, taken) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let ours = Arc::clone(&lost);
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(move || write(taken, &ours, out))?;
        Ok(Log { orders, lost })
    }

    /// Waits until all is written, for a moment.
    pub fn flush(&self) {
        let (done, written) = channel();
        // When there is no room for this, nobody reads.
        if self.orders.try_send(Order::Flush(done)).is_ok() {
            let _ = written.recv_timeout(MOMENT);
        }
    }
}

/// The thread that writes.
fn write(taken: Receiver<Order>, lost: &AtomicU64, mut out: impl Write) {
    while let Ok(order) = taken.recv() {
        let (failed, asked) = match order {
            Order::Line(line) => (out.write_all(&line).is_err(), None),
            Order::Flush(done) => (false, Some(done)),
        };
        let missing = lost.swap(0, Relaxed) + u64::from(failed);
        // Each time until it can be said.
        if missing > 0 && (failed || writeln!(out, "{missing} lines of the log are lost").is_err())
        {
            lost.fetch_add(missing, Relaxed);
        }
        if let Some(done) = asked {
            // Whoever asked may have stopped waiting.
            let _ = done.send(());
        }
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.orders.try_send(Order::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Takes nothing while `is_full`.
    #[derive(Clone, Default)]
    struct Disk {
        is_full: Arc<Mutex<bool>>,
        data: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if *self.is_full.lock().unwrap() {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.data.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_lost_is_counted_and_told_when_it_can_be() {
        let disk = Disk::default();
        let mut log = Log::to(disk.clone()).unwrap();
        log.write_all(b"one\n").unwrap();
        log.flush();
        *disk.is_full.lock().unwrap() = true;
        log.write_all(b"two\n").unwrap();
        log.write_all(b"three\n").unwrap();
        log.flush();
        *disk.is_full.lock().unwrap() = false;
        log.write_all(b"four\n").unwrap();
        Log::flush(&log);
        let said = String::from_utf8(disk.data.lock().unwrap().clone()).unwrap();
        assert_eq!(said, "one\nfour\n2 lines of the log are lost\n");
    }

    #[test]
    fn nobody_waits_when_it_is_stuck() {
        let disk = Disk::default();
        let stuck = disk.is_full.lock().unwrap();
        let mut log = Log::to(disk.clone()).unwrap();
        for _ in 0..2 * WAITING_MAX {
            log.write_all(b"a line\n").unwrap();
        }
        assert!(log.lost.load(Relaxed) >= WAITING_MAX as u64 - 1);
        Log::flush(&log);
        drop(stuck);
    }
}
