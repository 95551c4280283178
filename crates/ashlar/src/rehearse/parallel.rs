//! Runs rehearsals on all cores, with a progress bar on a terminal.
//!
//! Each run is a world of its own. Results come in the order of the jobs, whichever ends first.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How far all jobs are.
pub struct Progress {
    all: usize,
    done: AtomicUsize,
    began: Instant,
    shown: bool,
    /// What the jobs are, for people.
    what: String,
}

impl Progress {
    /// Of so many jobs.
    pub fn new(all: usize) -> Progress {
        Progress::of(all, "")
    }

    /// Of so many jobs that are called `what`.
    pub fn of(all: usize, what: &str) -> Progress {
        Progress {
            what: what.to_owned(),
            all,
            done: AtomicUsize::new(0),
            began: Instant::now(),
            shown: std::io::stderr().is_terminal(),
        }
    }

    fn show(&self) {
        const WIDTH: usize = 30;
        let done = self.done.load(Ordering::Relaxed);
        let filled = WIDTH * done / self.all.max(1);
        let (bar, rest) = ("#".repeat(filled), " ".repeat(WIDTH - filled));
        let seconds = self.began.elapsed().as_secs();
        // A terminal that is gone is nobody's loss.
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[K[{bar}{rest}] {done} of {} runs, {seconds} s  {}",
            self.all,
            self.what
        );
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Does all `jobs`, as many at a time as there are cores.
pub fn all<J: Sync, T: Send>(
    jobs: &[J],
    progress: &Progress,
    work: impl Fn(&J) -> T + Sync,
) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let put = |index: usize, result: T| {
        let mut place = results[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(result);
        progress.done.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let crew: Vec<_> = (0..cores.min(jobs.len()))
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(index) else { break };
                        put(index, work(job));
                    }
                })
            })
            .collect();
        while progress.shown && !crew.iter().all(|worker| worker.is_finished()) {
            progress.show();
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    progress.clear();
    let taken = results.into_iter().map(|place| {
        let result = place.into_inner().unwrap_or_else(PoisonError::into_inner);
        match result {
            Some(result) => result,
            None => unreachable!("every job was done"),
        }
    });
    taken.collect()
}
