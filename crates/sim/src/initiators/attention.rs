//! The unit attentions that a host is owed at a unit, and those that it was told.
//!
//! Invariants:
//! - The first command that is run after a reset, or in a new session, is told of it. Which one that
//!   is of several under way, nobody knows; nor what one was told that nobody heard of.
//! - Nobody is told more than there was at the unit.

/// When a command was sent, and in which session.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    at: u64,
    session: u64,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was told a unit attention.
    Told,
    /// It was run.
    Run,
    /// It was not run, so it would not have been told.
    NotRun,
    /// Nobody has heard of it.
    Unheard,
}

/// How it was before something that may tell hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    session: u64,
    heard: u64,
    unheard: u64,
}

/// The attentions of one host at one unit.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Number of the session.
    session: u64,
    /// Commands of this session at the unit that have no answer yet.
    under_way: u64,
    /// What is sent after this instant is to be told, unless something unheard was: so many were,
    /// then.
    due: Option<(u64, u64)>,
    heard: u64,
    unheard: u64,
    owed: u64,
}

impl Told {
    pub(super) fn owe(&mut self, attentions: u64) {
        self.owed += attentions;
    }

    /// Whatever is sent from `now` on is to be told of a reset, or that the unit is another.
    pub(super) fn is_due(&mut self, now: u64) {
        self.due = Some((now, self.unheard));
    }

    /// A session begins: its first command is told so, and the rest is forgotten.
    pub(super) fn session_begins(&mut self, now: u64) {
        self.session += 1;
        self.under_way = 0;
        self.owe(1);
        self.is_due(now);
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            session: self.session,
            heard: self.heard,
            unheard: self.unheard,
        }
    }

    /// As [`Told::is_due`], when nobody can have been told since `mark`.
    pub(super) fn is_due_since(&mut self, mark: Mark, now: u64) {
        if self.mark() == mark {
            self.is_due(now);
        }
    }

    /// A command is about to be sent.
    pub(super) fn begin(&mut self, now: u64) -> Sent {
        self.under_way += 1;
        Sent {
            at: now,
            session: self.session,
        }
    }

    /// A command has ended.
    ///
    /// # Errors
    /// It should have been told something, or should not.
    pub(super) fn end(&mut self, sent: Sent, fate: Fate) -> Result<(), &'static str> {
        self.heard += u64::from(fate == Fate::Told);
        if self.heard > self.owed {
            return Err("is told of what was not there");
        }
        if sent.session != self.session {
            return Ok(());
        }
        self.under_way -= 1;
        self.unheard += u64::from(fate == Fate::Unheard);
        let Some((since, unheard)) = self.due else {
            return Ok(());
        };
        match fate {
            Fate::Told => self.due = None,
            Fate::Run if sent.at > since && self.under_way == 0 => {
                self.due = None;
                if unheard == self.unheard {
                    return Err("is not told of a reset");
                }
            }
            Fate::Run | Fate::NotRun | Fate::Unheard => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Told {
        let mut told = Told::default();
        told.session_begins(1);
        told
    }

    #[test]
    fn the_first_command_of_a_session_is_told_and_no_other() {
        let mut first = told();
        let sent = first.begin(2);
        first.end(sent, Fate::Run).unwrap_err();
        let mut second = told();
        for (fate, is_right) in [(Fate::Told, true), (Fate::Run, true), (Fate::Told, false)] {
            let sent = second.begin(3);
            assert_eq!(second.end(sent, fate).is_ok(), is_right, "{fate:?}");
        }
    }

    #[test]
    fn any_of_those_under_way_may_be_told_and_so_may_one_that_is_unheard() {
        let mut told = told();
        let (one, other) = (told.begin(2), told.begin(3));
        told.end(one, Fate::Run).unwrap();
        told.end(other, Fate::Told).unwrap();
        told.is_due(4);
        let (one, other) = (told.begin(5), told.begin(6));
        told.end(one, Fate::Unheard).unwrap();
        told.end(other, Fate::Run).unwrap();
        told.is_due(7);
        let sent = told.begin(8);
        told.end(sent, Fate::NotRun).unwrap();
        let sent = told.begin(9);
        told.end(sent, Fate::Run).unwrap_err();
    }

    #[test]
    fn commands_of_before_say_nothing_of_a_new_session() {
        let mut told = told();
        let old = told.begin(2);
        told.session_begins(3);
        told.end(old, Fate::Unheard).unwrap();
        let new = told.begin(4);
        told.end(new, Fate::Run).unwrap_err();
    }

    #[test]
    fn a_reset_that_somebody_was_told_of_meanwhile_is_not_due() {
        let mut told = told();
        let mark = told.mark();
        let sent = told.begin(2);
        told.end(sent, Fate::Told).unwrap();
        told.is_due_since(mark, 3);
        let sent = told.begin(4);
        told.end(sent, Fate::Run).unwrap();
        told.is_due_since(told.mark(), 5);
        let sent = told.begin(6);
        told.end(sent, Fate::Run).unwrap_err();
    }
}
