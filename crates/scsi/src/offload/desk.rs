//! The copies of a nexus that are under way, and their results, which it can ask for afterwards
//! (SPC-4 clauses 5.17.4, 6.23, 6.25, 6.28).
//!
//! Invariants:
//! - A list identifier is of one copy at a time.
//! - What is remembered is bounded: the oldest goes first. It goes, too, when it has been
//!   told as the standard says, when its list identifier is used again, and with the nexus.

use super::token::TOKEN_BYTES;
use super::{COPIES_MAX, CancelToken, Outcome, report};
use crate::sense::{Key, Sense};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Copies that are remembered, at most, of each kind.
const KEPT_MAX: usize = 64;

/// What came of an EXTENDED COPY.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// Segments that were copied whole.
    pub(super) segments: u16,
    pub(super) bytes: u64,
    /// Status code.
    pub(super) status: u8,
    pub(super) sense: Vec<u8>,
}

/// What came of a command of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transferred {
    /// Service action of the command.
    pub(super) action: u8,
    /// Blocks that were transferred, and that were asked for.
    pub(super) blocks: u64,
    pub(super) asked_blocks: u64,
    /// Status code.
    pub(super) status: u8,
    pub(super) sense: Vec<u8>,
    pub(super) token: Option<Box<[u8; TOKEN_BYTES]>>,
}

impl Transferred {
    /// Of a command that has done nothing yet.
    pub(super) fn of(action: u8, asked_blocks: u64) -> Self {
        Transferred {
            action,
            blocks: 0,
            asked_blocks,
            status: 0,
            sense: Vec::new(),
            token: None,
        }
    }
}

#[derive(Default)]
struct State {
    /// Copies that run, with their list identifiers, if they have one.
    running: Vec<(u64, Option<u32>, CancelToken)>,
    next: u64,
    copied: VecDeque<(u8, Copied)>,
    transferred: VecDeque<(u32, Transferred)>,
}

/// What a nexus knows of its copies.
#[derive(Default)]
pub(crate) struct Desk {
    state: RefCell<State>,
}

/// A copy that runs, until this is dropped.
pub(super) struct Begun<'a> {
    desk: &'a Desk,
    number: u64,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut state = self.desk.state.borrow_mut();
        state
            .running
            .retain(|(number, _, _)| *number != self.number);
    }
}

impl Desk {
    /// A copy begins. What was remembered of another one with its list identifier is
    /// forgotten.
    ///
    /// # Errors
    /// 00/16 OPERATION IN PROGRESS: one with this list identifier runs; 55/03 INSUFFICIENT
    /// RESOURCES: too many do.
    pub(super) fn begin(
        &self,
        list_id: Option<u32>,
        cancel: &CancelToken,
    ) -> Result<Begun<'_>, Sense> {
        let illegal = |code| Sense {
            key: Key::IllegalRequest,
            code,
            ..Sense::NONE
        };
        let mut state = self.state.borrow_mut();
        if state.running.len() >= COPIES_MAX {
            return Err(illegal((0x55, 0x03)));
        }
        if let Some(list_id) = list_id {
            if state
                .running
                .iter()
                .any(|(_, other, _)| *other == Some(list_id))
            {
                return Err(illegal((0x00, 0x16)));
            }
            state.transferred.retain(|(other, _)| *other != list_id);
            state
                .copied
                .retain(|(other, _)| u32::from(*other) != list_id);
        }
        let number = state.next;
        state.next += 1;
        state.running.push((number, list_id, cancel.clone()));
        Ok(Begun { desk: self, number })
    }

    /// COPY OPERATION ABORT: the copy ends after the piece that it is at.
    pub(super) fn abort(&self, list_id: u32) -> Outcome {
        let state = self.state.borrow();
        let mut running = state.running.iter();
        match running.find(|(_, other, _)| *other == Some(list_id)) {
            Some((_, _, cancel)) => {
                cancel.stop();
                Outcome::Done
            }
            None => Sense::invalid_field(2, None).into(),
        }
    }

    pub(super) fn keep_copied(&self, list_id: u8, copied: Copied) {
        keep(&mut self.state.borrow_mut().copied, list_id, copied);
    }

    pub(super) fn keep_transferred(&self, list_id: u32, transferred: Transferred) {
        keep(
            &mut self.state.borrow_mut().transferred,
            list_id,
            transferred,
        );
    }

    /// RECEIVE COPY STATUS(LID1).
    pub(super) fn copy_status(&self, list_id: u8) -> Outcome {
        let state = self.state.borrow();
        if state.is_running(u32::from(list_id)) {
            return Outcome::Data(report::copy_in_progress());
        }
        match state.copied.iter().find(|(other, _)| *other == list_id) {
            Some((_, copied)) => Outcome::Data(report::copy_status(copied)),
            None => Sense::invalid_field(2, None).into(),
        }
    }

    /// RECEIVE COPY FAILURE DETAILS(LID1); they are told once.
    pub(super) fn failed_segment(&self, list_id: u8) -> Outcome {
        let mut state = self.state.borrow_mut();
        let found = state.copied.iter_mut().find(|(other, _)| *other == list_id);
        let Some((_, copied)) = found else {
            return Sense::invalid_field(2, None).into();
        };
        let data = report::failed_segment(copied);
        copied.sense.clear();
        Outcome::Data(data)
    }

    /// RECEIVE ROD TOKEN INFORMATION. A token that was told whole is not told again, and
    /// nothing is remembered for who has no room for it (ALLOCATION LENGTH zero).
    pub(super) fn token_information(&self, list_id: u32, allocation: u32) -> Outcome {
        let mut state = self.state.borrow_mut();
        if state.is_running(list_id) {
            return Outcome::Data(report::token_in_progress());
        }
        let place = |(other, _): &(u32, Transferred)| *other == list_id;
        let Some(place) = state.transferred.iter().position(place) else {
            return Sense::invalid_field(2, None).into();
        };
        let data = report::token_information(&state.transferred[place].1);
        let has_token = state.transferred[place].1.token.is_some();
        let is_told = allocation as usize >= data.len();
        if allocation == 0 || has_token && is_told {
            state.transferred.remove(place);
        }
        Outcome::Data(data)
    }
}

impl State {
    fn is_running(&self, list_id: u32) -> bool {
        let mut running = self.running.iter();
        running.any(|(_, other, _)| *other == Some(list_id))
    }
}

fn keep<K: PartialEq, V>(kept: &mut VecDeque<(K, V)>, key: K, value: V) {
    kept.retain(|(other, _)| *other != key);
    if kept.len() >= KEPT_MAX {
        kept.pop_front();
    }
    kept.push_back((key, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transferred(token: bool) -> Transferred {
        Transferred {
            action: 0x10,
            blocks: 5,
            asked_blocks: 5,
            status: 0,
            sense: Vec::new(),
            token: token.then(|| Box::new([7; TOKEN_BYTES])),
        }
    }

    fn is_there(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Data(_))
    }

    #[test]
    fn a_list_identifier_is_of_one_copy_at_a_time() {
        let desk = Desk::default();
        let cancel = CancelToken::default();
        let begun = desk.begin(Some(5), &cancel).ok().unwrap();
        assert!(is_there(&desk.copy_status(5)), "in progress");
        assert!(is_there(&desk.token_information(5, 100)));
        let busy = desk.begin(Some(5), &CancelToken::default()).err().unwrap();
        assert_eq!(busy.code, (0x00, 0x16));
        let others: Vec<_> = (1..COPIES_MAX)
            .map(|_| desk.begin(None, &CancelToken::default()).ok().unwrap())
            .collect();
        let more = desk.begin(None, &CancelToken::default()).err().unwrap();
        assert_eq!(more.code, (0x55, 0x03));
        assert!(matches!(desk.abort(6), Outcome::Said(_)));
        assert!(cancel.goes_on());
        assert!(matches!(desk.abort(5), Outcome::Done));
        assert!(!cancel.goes_on());
        drop((begun, others));
        assert!(!is_there(&desk.copy_status(5)));
        assert!(desk.begin(Some(5), &cancel).is_ok());
    }

    #[test]
    fn a_token_is_told_once_and_the_oldest_is_forgotten_first() {
        let desk = Desk::default();
        desk.keep_transferred(1, transferred(true));
        assert!(is_there(&desk.token_information(1, 100)), "not all of it");
        assert!(is_there(&desk.token_information(1, 1000)));
        assert!(!is_there(&desk.token_information(1, 1000)), "it was told");
        desk.keep_transferred(2, transferred(false));
        assert!(is_there(&desk.token_information(2, 1000)));
        assert!(is_there(&desk.token_information(2, 1000)), "no token");
        desk.token_information(2, 0);
        assert!(!is_there(&desk.token_information(2, 1000)), "no room");
        for list_id in 0..=KEPT_MAX as u32 {
            desk.keep_transferred(100 + list_id, transferred(true));
        }
        assert!(!is_there(&desk.token_information(100, 10)));
        assert!(is_there(&desk.token_information(101, 10)));
        drop(desk.begin(Some(101), &CancelToken::default()));
        assert!(!is_there(&desk.token_information(101, 10)), "used again");
    }

    #[test]
    fn details_of_a_failure_are_told_once() {
        let desk = Desk::default();
        let copied = Copied {
            status: 2,
            sense: vec![0x70; 18],
            ..Copied::default()
        };
        desk.keep_copied(3, copied);
        let len = |outcome| match outcome {
            Outcome::Data(data) => data.len(),
            _ => 0,
        };
        assert_eq!(len(desk.failed_segment(3)), 60 + 18);
        assert_eq!(len(desk.failed_segment(3)), 4, "no more");
        assert!(is_there(&desk.copy_status(3)), "this stays");
        assert_eq!(len(desk.failed_segment(4)), 0);
    }
}
