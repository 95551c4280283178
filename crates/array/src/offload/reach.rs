//! Tracks the volumes that copies reach through another logical unit than the command's own.
//!
//! Invariants:
//! - Whoever takes a volume away from hosts has such copies stopped, and waits for them: nothing
//!   that they write follows.
//! - Nobody waits for a copy that began later.

use super::Offload;
use base::Uuid;
use engine::World;
use scsi::offload::CancelToken;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What copies reach, by number.
#[derive(Default)]
pub(super) struct Reaches {
    next: u64,
    all: BTreeMap<u64, (Uuid, CancelToken)>,
}

/// A copy reaches a volume as long as this is kept.
pub(super) struct Reach<W: World> {
    offload: Arc<Offload<W>>,
    number: u64,
}

impl<W: World> Reach<W> {
    pub(super) fn new(offload: &Arc<Offload<W>>, volume: Uuid, cancel: &CancelToken) -> Self {
        let mut state = offload.state();
        let reaches = &mut state.reaches;
        reaches.next += 1;
        let number = reaches.next;
        reaches.all.insert(number, (volume, cancel.clone()));
        drop(state);
        Reach {
            offload: Arc::clone(offload),
            number,
        }
    }
}

impl<W: World> Drop for Reach<W> {
    fn drop(&mut self) {
        self.offload.state().reaches.all.remove(&self.number);
        self.offload.left.notify(usize::MAX);
    }
}

impl<W: World> Offload<W> {
    /// Stops the copies that reach this volume by now, and ends when they have left it.
    pub async fn leave_alone(&self, volume: Uuid) {
        let stopped: Vec<u64> = {
            let state = self.state();
            let of = state
                .reaches
                .all
                .iter()
                .filter(|(_, (at, _))| *at == volume);
            of.map(|(number, (_, cancel))| {
                cancel.stop();
                *number
            })
            .collect()
        };
        loop {
            let left = self.left.listen();
            let is_there = |number: &u64| self.state().reaches.all.contains_key(number);
            if !stopped.iter().any(is_there) {
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
    use scsi::offload::Limits;
    use world_sim::SimWorld;

    #[test]
    fn copies_are_stopped_and_waited_for_and_later_ones_are_not() {
        let offload = Arc::new(Offload::<SimWorld>::new(None, Limits::default()));
        let (one, other) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
        let cancels = [
            CancelToken::default(),
            CancelToken::default(),
            CancelToken::default(),
        ];
        let reach = |volume, at: usize| Reach::new(&offload, volume, &cancels[at]);
        let (first, second, third) = (reach(one, 0), reach(one, 1), reach(other, 2));
        let mut wait = Box::pin(offload.leave_alone(one));
        assert!((&mut wait).now_or_never().is_none());
        let goes_on = cancels.iter().map(CancelToken::goes_on).collect::<Vec<_>>();
        assert_eq!(goes_on, [false, false, true]);
        let _later = reach(one, 2);
        drop(first);
        assert!((&mut wait).now_or_never().is_none());
        drop(second);
        assert!(wait.now_or_never().is_some());
        drop(third);
        assert!(offload.leave_alone(other).now_or_never().is_some());
    }
}
