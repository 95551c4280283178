//! A queue between two shards that carries many messages for one lock and one wake.
//!
//! Invariants:
//! - Messages come out in the order they went in.
//! - A receiver that found nothing is woken once for all that is sent together; one that
//!   is at work already is not woken at all.
//! - When either end is dropped the other hears of it: a receiver by the end of the
//!   stream, behind all that was flushed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A queue with its two ends.
pub(crate) fn queue<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(SharedQueue {
        state: Mutex::new(State {
            messages: VecDeque::new(),
            waker: None,
            closed: false,
        }),
    });
    let sender = Sender {
        shared: Arc::clone(&shared),
        pending: VecDeque::new(),
    };
    let receiver = Receiver {
        shared,
        taken: VecDeque::new(),
    };
    (sender, receiver)
}

struct SharedQueue<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    messages: VecDeque<T>,
    /// Of a receiver that found nothing.
    waker: Option<Waker>,
    /// One end is gone.
    closed: bool,
}

impl<T> SharedQueue<T> {
    // Whoever panicked with this lock held has left a whole queue behind.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end that messages go into.
pub(crate) struct Sender<T> {
    shared: Arc<SharedQueue<T>>,
    pending: VecDeque<T>,
}

impl<T> Sender<T> {
    /// Puts `message` behind those before it. It leaves with the next
    /// [`Sender::flush`].
    pub(crate) fn put(&mut self, message: T) {
        self.pending.push_back(message);
    }

    /// Sends what was put. Lost when the receiver is gone.
    pub(crate) fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        if state.closed {
            drop(state);
            return self.pending.clear();
        }
        if state.messages.is_empty() {
            // Both keep their allocations.
            std::mem::swap(&mut state.messages, &mut self.pending);
        } else {
            state.messages.append(&mut self.pending);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.flush();
        let mut state = self.shared.lock();
        state.closed = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The end that messages come out of.
pub(crate) struct Receiver<T> {
    shared: Arc<SharedQueue<T>>,
    taken: VecDeque<T>,
}

impl<T> Receiver<T> {
    /// The next message; `None` when the sender is gone and there are no more.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if let Some(message) = self.taken.pop_front() {
            return Poll::Ready(Some(message));
        }
        let mut state = self.shared.lock();
        if state.messages.is_empty() {
            if state.closed {
                return Poll::Ready(None);
            }
            if !state
                .waker
                .as_ref()
                .is_some_and(|w| w.will_wake(cx.waker()))
            {
                state.waker = Some(cx.waker().clone());
            }
            return Poll::Pending;
        }
        std::mem::swap(&mut state.messages, &mut self.taken);
        drop(state);
        Poll::Ready(self.taken.pop_front())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        // Messages may hold much, and their ends may call back here.
        let left = std::mem::take(&mut state.messages);
        drop(state);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker_ref;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn many_messages_ring_once_and_come_in_order() {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut cx = Context::from_waker(&waker);
        let (mut sender, mut receiver) = queue();
        assert!(receiver.poll_next(&mut cx).is_pending());
        (0..3).for_each(|n| sender.put(n));
        assert!(receiver.poll_next(&mut cx).is_pending(), "not flushed yet");
        sender.flush();
        sender.put(3);
        sender.flush();
        assert_eq!(bell.0.load(Ordering::SeqCst), 1);
        for n in 0..4 {
            assert_eq!(receiver.poll_next(&mut cx), Poll::Ready(Some(n)));
        }
        assert!(receiver.poll_next(&mut cx).is_pending());
        sender.flush();
        assert_eq!(bell.0.load(Ordering::SeqCst), 1, "nothing was put");
    }

    #[test]
    fn a_sender_that_goes_leaves_its_messages_and_rings() {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut cx = Context::from_waker(&waker);
        let (mut sender, mut receiver) = queue();
        assert!(receiver.poll_next(&mut cx).is_pending());
        sender.put(7);
        drop(sender);
        assert_eq!(bell.0.load(Ordering::SeqCst), 1);
        assert_eq!(receiver.poll_next(&mut cx), Poll::Ready(Some(7)));
        assert_eq!(receiver.poll_next(&mut cx), Poll::Ready(None));
    }

    #[test]
    fn what_nobody_will_receive_is_dropped() {
        let mut cx = Context::from_waker(noop_waker_ref());
        let (mut sender, mut receiver) = queue();
        let message = Arc::new(());
        sender.put(Arc::clone(&message));
        sender.flush();
        assert!(receiver.poll_next(&mut cx).is_ready());
        sender.put(Arc::clone(&message));
        sender.flush();
        drop(receiver);
        sender.put(Arc::clone(&message));
        sender.flush();
        assert_eq!(Arc::strong_count(&message), 1);
    }
}
