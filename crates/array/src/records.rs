//! What keeps the records of an array: its configuration, jobs, drives, pools and scrubs.
//!
//! Invariant: a record is the one before or the new one, whole, whatever happens.

use futures_util::future::BoxFuture;

/// Keeps one record, beside the drives.
pub trait Store<T>: Send + Sync {
    /// Keeps this, durably. What has begun goes on when nobody waits for it any more.
    ///
    /// # Errors
    /// Why it can't be, for people. What was there is still kept then, unless only the last sync
    /// failed.
    fn keep(&self, record: T) -> BoxFuture<'static, Result<(), String>>;
}
