//! Ends the process after a panic, unless a caller waits for the outcome and reports it.
//!
//! A failed assertion says that what is in memory is not what this program believes. Nothing
//! that is still to come can be trusted then, least of all what a shard writes next; what is
//! on the drives can be: it is as after a power cut, and every acknowledged write is there. So
//! the process aborts at once, and the start that follows recovers.
//!
//! Invariants:
//! - A panic on a thread of the data path (a shard's, the front's) ends the process, and so
//!   does one of a task that nobody waits for: it would be gone, and nobody would miss it.
//! - A panic while a request of the API is answered, outside of those threads, ends the
//!   request: who asked is told.

use futures_util::FutureExt;
use std::any::Any;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::sync::Once;
use std::time::Duration;

/// How long last words may take.
const LAST_WORDS: Duration = Duration::from_secs(3);

thread_local! {
    /// What this thread does just now is heard of when it panics.
    static HEARD: Cell<bool> = const { Cell::new(false) };
    /// Moves data: nothing on it may panic and go on.
    static DATA_PATH: Cell<bool> = const { Cell::new(false) };
}

/// From now on panics of this process end it, but those that are [`heard`]. The message, the
/// place and, where it is asked for, the backtrace are on standard error before, and so is what
/// `flush` has written; where that takes nothing, nobody waits for it.
pub fn end_the_process(flush: impl Fn() + Send + Sync + 'static) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let ends = !HEARD.get() || DATA_PATH.get();
            if ends {
                end_soon();
                flush();
            }
            if !ends {
                return report(panic);
            }
            // By itself: the log may be what has panicked. First: a backtrace may take longer than
            // there is time for.
            let words = "a failed assertion: what is in memory can't be trusted, so the process \
                         ends; start it again, and it recovers what it has acknowledged\n";
            // There is nobody left to tell.
            let _ = std::io::stderr().write_all(words.as_bytes());
            report(panic);
            std::process::abort();
        }));
    });
}

/// Ends the process in a moment, whatever its last words wait for.
fn end_soon() {
    let end = || {
        std::thread::sleep(LAST_WORDS);
        std::process::abort()
    };
    // Without a thread there is only the other way to the end.
    let _ = std::thread::Builder::new().spawn(end);
}

/// This thread is of the data path, for good.
pub(crate) fn on_the_data_path() {
    DATA_PATH.set(true);
}

/// What `work` gives, or what it panicked with: whoever asks for this hears of it.
pub(crate) async fn heard<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = pin!(work);
    let listened = poll_fn(|cx| {
        let before = HEARD.replace(true);
        let polled = panic::catch_unwind(AssertUnwindSafe(|| work.poll_unpin(cx)));
        HEARD.set(before);
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(words(panic.as_ref()))),
        }
    });
    listened.await
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it does not say what".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_asks_hears_of_a_panic() {
        let fine = heard(async { 7 }).await;
        assert_eq!(fine, Ok(7));
        let failed = heard::<()>(async {
            tokio::task::yield_now().await;
            panic!("a number is wrong")
        });
        assert_eq!(failed.await, Err("a number is wrong".to_owned()));
        assert!(!HEARD.get());
    }
}
