//! Attempts to open a target again, in a thread of their own: opening waits, and the VM's other
//! disks must not.
//!
//! Invariants: the first attempt is made at once; between two, a tenth of the time since the
//! loss passes, at least [`PAUSE_MIN`] and at most [`PAUSE_MAX`], so that an outage is told at
//! most so much too long. Attempts that are dropped end with the one under way.

use crate::endpoint::{self, AnyEndpoint, OpenOptions, TargetError, TargetErrorKind};
use crate::os::Event;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::Thread;
use std::time::{Duration, Instant};
use workload::url::TargetUrl;

/// The shortest pause between two attempts.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest one.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long one attempt may take.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);

type Opened = Result<AnyEndpoint, TargetError>;

/// Attempts in a thread to open a target, until it opens, time is up or this is dropped.
pub struct Attempts {
    came: Receiver<Opened>,
    event: Arc<Event>,
    called_off: Arc<AtomicBool>,
    thread: Thread,
}

impl Attempts {
    /// Begins to open `url`, for up to `within`.
    ///
    /// # Errors
    /// `Lost` when the process has no descriptors or threads left.
    pub fn begin(
        url: &TargetUrl,
        options: &OpenOptions,
        within: Duration,
    ) -> Result<Attempts, TargetError> {
        let cannot = |error: std::io::Error| {
            let detail = format!("cannot try to open it again: {error}");
            TargetError::new(TargetErrorKind::Lost, url, detail)
        };
        let event = Arc::new(Event::new().map_err(cannot)?);
        let called_off = Arc::new(AtomicBool::new(false));
        let (tell, came) = mpsc::channel();
        let (url_there, mut options) = (url.clone(), options.clone());
        let (signal, stop) = (Arc::clone(&event), Arc::clone(&called_off));
        let body = move || {
            let opened = keep_trying(&url_there, &mut options, within, &stop);
            // Nobody listens any more when they were called off.
            let _ = tell.send(opened);
            signal.signal();
        };
        let thread = std::thread::Builder::new()
            .name("load-reopen".into())
            .spawn(body)
            .map_err(cannot)?;
        Ok(Attempts {
            came,
            event,
            called_off,
            thread: thread.thread().clone(),
        })
    }

    /// Readable when there is an end.
    pub fn fd(&self) -> RawFd {
        self.event.fd()
    }

    /// The end, if there is one: the open target, or why the last attempt failed.
    pub fn ended(&mut self) -> Option<Opened> {
        match self.came.try_recv() {
            Ok(opened) => Some(opened),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => panic!("attempts tell how they ended, once"),
        }
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        self.called_off.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// Any error may be gone a moment later: a server that starts refuses logins at first.
fn keep_trying(
    url: &TargetUrl,
    options: &mut OpenOptions,
    within: Duration,
    called_off: &AtomicBool,
) -> Opened {
    let lost = Instant::now();
    loop {
        let left = within.saturating_sub(lost.elapsed());
        options.timeout = ATTEMPT_MAX.min(left).max(PAUSE_MIN);
        let opened = endpoint::open(url, options);
        let away = lost.elapsed();
        if opened.is_ok() || away >= within || called_off.load(Ordering::Relaxed) {
            return opened;
        }
        let pause = (away / 10).clamp(PAUSE_MIN, PAUSE_MAX);
        std::thread::park_timeout(pause.min(within - away));
    }
}
