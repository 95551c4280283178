//! Runs calls that may block for ever, each on a thread of its own.
//!
//! Invariants:
//! - Who asked waits no longer than it said; what the call gives after that is dropped.
//! - A path has one such call at a time: one that hangs costs one thread, however often the
//!   path is looked at.

use super::{OpenError, OpenErrorKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The paths with a call under way.
static BUSY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

// Whoever panicked with this lock held has left a whole set behind.
fn busy() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    BUSY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The call is over when this goes, however it ends.
struct Turn(PathBuf);

impl Drop for Turn {
    fn drop(&mut self) {
        busy().remove(&self.0);
    }
}

/// Has `call` done with `path`.
///
/// # Errors
/// What it says, and `Silent` when it does not come back in time, or has not since before.
pub async fn within<T: Send + 'static>(
    path: &Path,
    patience: Duration,
    call: impl FnOnce(&Path) -> Result<T, OpenError> + Send + 'static,
) -> Result<T, OpenError> {
    let silent = |context: String| OpenError::new(OpenErrorKind::Silent, path, context);
    let began = tokio::time::Instant::now();
    // One that has just been given up may be about to end.
    while !busy().insert(path.to_owned()) {
        if began.elapsed() >= patience {
            return Err(silent("nor has it since it was tried before".to_owned()));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let turn = Turn(path.to_owned());
    let (answer, answered) = oneshot::channel();
    let thread = std::thread::Builder::new().name("open".to_owned());
    let started = thread.spawn(move || {
        let outcome = call(&turn.0);
        drop(turn);
        // Who does not want it any more has it closed.
        let _ = answer.send(outcome);
    });
    if let Err(error) = started {
        let context = format!("no thread to open it: {error}");
        return Err(OpenError::new(OpenErrorKind::Other, path, context));
    }
    match tokio::time::timeout(patience, answered).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(silent("the call ended without an answer".to_owned())),
        Err(_) => Err(silent(format!("it has not within {patience:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_hangs_is_left_behind_and_not_tried_again_before_it_ends() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        runtime.block_on(async {
            let path = Path::new("/nowhere/hangs");
            let patience = Duration::from_millis(50);
            let (release, held) = channel::<()>();
            let hangs = move |_: &Path| {
                let _ = held.recv();
                Ok(())
            };
            let first = within(path, patience, hangs).await.unwrap_err();
            assert_eq!(first.kind, OpenErrorKind::Silent, "{first}");
            let second = within(path, patience, |_| -> Result<(), _> {
                panic!("a second thread")
            });
            let second = second.await.unwrap_err();
            assert_eq!(second.kind, OpenErrorKind::Silent, "{second}");
            // Others are not held by it.
            let other = Path::new("/nowhere/else");
            within(other, patience, |_| Ok(())).await.unwrap();
            drop(release);
            let again = within(path, Duration::from_secs(60), |_| Ok(7));
            assert_eq!(again.await.unwrap(), 7);
        });
    }
}
