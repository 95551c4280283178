//! Tracks volumes that copies reach through another logical unit than the command's own.

use super::Offload;
use crate::directory::Directory;
use base::Uuid;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// How many copies reach each volume.
#[derive(Default)]
pub(super) struct Reaches(BTreeMap<Uuid, usize>);

/// A copy reaches a volume as long as this is kept.
pub(super) struct Reach {
    directory: Arc<Directory>,
    volume: Uuid,
}

impl Reach {
    pub(super) fn new(directory: &Arc<Directory>, volume: Uuid) -> Self {
        directory.offload().state().reaches.begin(volume);
        Reach {
            directory: Arc::clone(directory),
            volume,
        }
    }
}

impl Drop for Reach {
    fn drop(&mut self) {
        let offload = self.directory.offload();
        offload.state().reaches.end(self.volume);
        offload.left.notify_waiters();
    }
}

impl Reaches {
    fn begin(&mut self, volume: Uuid) {
        *self.0.entry(volume).or_default() += 1;
    }

    fn end(&mut self, volume: Uuid) {
        if let Entry::Occupied(mut count) = self.0.entry(volume) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Offload {
    /// Ends when no copy reaches these volumes any more. Nobody is shown them by now.
    pub(crate) async fn left_alone(&self, volumes: &[Uuid]) {
        loop {
            let left = self.left.notified();
            let is_reached = {
                let state = self.state();
                let mut volumes = volumes.iter();
                volumes.any(|volume| state.reaches.0.contains_key(volume))
            };
            if !is_reached {
                return;
            }
            left.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn whoever_waits_goes_on_when_the_last_copy_has_left() {
        let directory = Arc::new(Directory::new());
        let (one, other) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
        let (first, second) = (Reach::new(&directory, one), Reach::new(&directory, one));
        let offload = directory.offload();
        offload.left_alone(&[other]).await;
        let both = [other, one];
        let mut wait = Box::pin(offload.left_alone(&both));
        assert!((&mut wait).now_or_never().is_none());
        drop(first);
        assert!((&mut wait).now_or_never().is_none());
        drop(second);
        wait.await;
    }
}
