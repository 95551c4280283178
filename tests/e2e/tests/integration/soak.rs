//! Many sessions at once, for a while. `cargo run --release -p ashlar-e2e --example soak` does
//! so for as long as one likes.

use e2e::array::Array;
use e2e::soak;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SESSIONS: usize = 64;
/// Logins of all of them together.
const LOGINS: u64 = 200;

#[test]
fn sixty_four_sessions_come_and_go_and_no_byte_is_wrong() {
    let array = Array::start_with(&soak::site(SESSIONS));
    let left = AtomicU64::new(LOGINS);
    let goes_on = || {
        left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
            .is_ok()
    };
    let done = soak::run(array.portal(), SESSIONS, 1, goes_on);
    assert!(done.logins.into_inner() >= LOGINS);
    assert!(done.commands.into_inner() > 10 * LOGINS);
    assert!(done.resets.into_inner() > 0, "nobody reset anything");
    array.wait_for(&["session", "list"], |said| {
        said.as_array().is_some_and(Vec::is_empty)
    });
}
