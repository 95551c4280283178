//! Task management functions under way on a session, and the tasks that they have aborted.
//!
//! Several may want the same task aborted at once. Answers are judged as they come, in the order of
//! the session: those who wait for them are woken together, and in any order.

use futures_channel::oneshot;
use std::collections::{BTreeMap, BTreeSet};

/// A function (RFC 7143 clause 11.5.1).
pub(super) const ABORT_TASK: u8 = 1;

/// Responses (clause 11.6.1).
pub(crate) const DONE: u8 = 0;
pub(super) const NO_TASK: u8 = 1;

/// What a target says of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Managed {
    pub(super) response: u8,
    /// By what had come before, the task that was meant had been answered or aborted.
    pub(super) was_over: bool,
}

/// One that has no answer yet.
struct Function {
    /// The tag of the task that it is about, as on the wire.
    referenced: u32,
    done: oneshot::Sender<Managed>,
}

/// Those of a session, by their own tags.
#[derive(Default)]
pub(super) struct Functions {
    under_way: BTreeMap<u32, Function>,
    /// Tags of tasks that the target has aborted, as it says.
    aborted: BTreeSet<u32>,
}

impl Functions {
    /// One is sent; `done` is to get its answer.
    pub(super) fn begin(&mut self, tag: u32, referenced: u32, done: oneshot::Sender<Managed>) {
        self.under_way.insert(tag, Function { referenced, done });
    }

    /// An answer comes. `is_there` says of a tag whether its task has none. False where no function
    /// waits for an answer.
    pub(super) fn end(&mut self, tag: u32, response: u8, is_there: impl Fn(u32) -> bool) -> bool {
        let Some(Function { referenced, done }) = self.under_way.remove(&tag) else {
            return false;
        };
        let was_over = !is_there(referenced) || self.aborted.contains(&referenced);
        if response == DONE {
            self.aborted.insert(referenced);
        }
        // Whoever asked may have gone.
        let _ = done.send(Managed { response, was_over });
        true
    }

    /// Nobody hears of them any more.
    pub(super) fn clear(&mut self) {
        self.under_way.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(functions: &mut Functions, tag: u32) -> oneshot::Receiver<Managed> {
        let (done, ended) = oneshot::channel();
        functions.begin(tag, 7, done);
        ended
    }

    /// Whether task 7 was over at the answers to two functions, looked at when both have come.
    fn both(responses: [u8; 2], is_there: bool) -> [bool; 2] {
        let mut functions = Functions::default();
        let ended = [20, 21].map(|tag| begin(&mut functions, tag));
        for (tag, response) in [20, 21].into_iter().zip(responses) {
            assert!(functions.end(tag, response, |tag| tag == 7 && is_there));
        }
        ended.map(|mut ended| ended.try_recv().unwrap().unwrap().was_over)
    }

    #[test]
    fn a_task_that_another_function_has_aborted_is_over_and_none_other() {
        assert_eq!(both([DONE, NO_TASK], true), [false, true]);
        assert_eq!(both([NO_TASK, DONE], true), [false, false], "before that");
        assert_eq!(both([NO_TASK, NO_TASK], true), [false, false]);
        assert_eq!(both([NO_TASK, NO_TASK], false), [true, true], "answered");
    }

    #[test]
    fn an_answer_is_of_a_function_that_waits_for_it() {
        let mut functions = Functions::default();
        assert!(!functions.end(20, DONE, |_| true));
        let mut ended = begin(&mut functions, 20);
        functions.clear();
        assert!(!functions.end(20, DONE, |_| true));
        ended.try_recv().unwrap_err();
    }
}
