//! A line that people stand in: one of them has its turn, or a few, those behind in the order they
//! came.

use futures_channel::oneshot;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The line.
#[derive(Debug)]
pub(crate) struct Line {
    /// Of so many places at its head.
    places: usize,
    standing: Mutex<Standing>,
}

impl Default for Line {
    fn default() -> Self {
        Line::with_places(1)
    }
}

#[derive(Debug, Default)]
struct Standing {
    taken: usize,
    behind: VecDeque<oneshot::Sender<LinePlace>>,
}

/// A place at the head of a line. Dropped, it goes to the next.
#[derive(Debug)]
pub(crate) struct LinePlace(Arc<Line>);

impl Line {
    /// A line in which so many have their turn at once.
    pub(super) fn with_places(places: usize) -> Self {
        Line {
            places,
            standing: Mutex::default(),
        }
    }

    // Whoever panicked with this lock held has left a whole line behind.
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends at the head of the line. Who goes away before is passed over.
    pub(crate) async fn stand(self: &Arc<Self>) -> LinePlace {
        loop {
            let comes = {
                let mut standing = self.standing();
                if standing.taken < self.places {
                    standing.taken += 1;
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
            standing.taken -= usize::from(next.is_none());
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

    #[test]
    fn as_many_have_their_turn_as_there_are_places() {
        let line = Arc::new(Line::with_places(2));
        let first = line.stand().now_or_never().expect("nobody is there");
        let second = line.stand().now_or_never().expect("one place is free");
        let mut third = Box::pin(line.stand());
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        let third = third.now_or_never().expect("it is its turn");
        assert!(line.stand().now_or_never().is_none());
        drop((second, third));
        assert!(line.stand().now_or_never().is_some());
    }
}
