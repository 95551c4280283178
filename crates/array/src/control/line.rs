//! A line that people stand in: one of them has its turn, those behind in the order they came.

use futures_channel::oneshot;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The line.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<Standing>);

#[derive(Debug, Default)]
struct Standing {
    is_taken: bool,
    behind: VecDeque<oneshot::Sender<LinePlace>>,
}

/// The place at the head of a line. Dropped, it goes to the next.
#[derive(Debug)]
pub(super) struct LinePlace(Arc<Line>);

impl Line {
    // Whoever panicked with this lock held has left a whole line behind.
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends at the head of the line. Who goes away before is passed over.
    pub(super) async fn stand(self: &Arc<Self>) -> LinePlace {
        loop {
            let comes = {
                let mut standing = self.standing();
                if !standing.is_taken {
                    standing.is_taken = true;
                    return LinePlace(Arc::clone(self));
                }
                let (next, comes) = oneshot::channel();
                standing.behind.push_back(next);
                comes
            };
            if let Ok(place) = comes.await {
                return place;
            }
        }
    }
}

impl Drop for LinePlace {
    fn drop(&mut self) {
        let next = {
            let mut standing = self.0.standing();
            let next = standing.behind.pop_front();
            standing.is_taken = next.is_some();
            next
        };
        // One who has gone away drops the place at once, and so gives it on.
        if let Some(next) = next {
            let _ = next.send(LinePlace(Arc::clone(&self.0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn they_come_in_turn_and_who_went_away_is_passed_over() {
        let line = Arc::new(Line::default());
        let first = line.stand().now_or_never().expect("nobody is there");
        let mut second = Box::pin(line.stand());
        let mut third = Box::pin(line.stand());
        let mut fourth = Box::pin(line.stand());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert!(fourth.as_mut().now_or_never().is_none());
        drop(second);
        drop(first);
        assert!(
            fourth.as_mut().now_or_never().is_none(),
            "it is the third's turn"
        );
        let third = third.now_or_never().expect("it is its turn");
        // It has come, and nobody takes it.
        drop(third);
        drop(fourth);
        assert!(
            line.stand().now_or_never().is_some(),
            "nobody is there any more"
        );
    }
}
