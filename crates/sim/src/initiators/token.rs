//! The tokens that a run knows of, over boots.

use base::Time;
use std::time::Duration;

/// Tokens that are remembered.
pub(super) const TOKENS_MAX: usize = 12;

#[derive(Clone)]
pub(super) struct Token {
    pub(super) bytes: Vec<u8>,
    /// What it stands for, sector by sector.
    pub(super) values: Vec<u64>,
    /// The boot that it was made in.
    pub(super) boot: u64,
    /// The unit that it was made of.
    pub(super) unit: usize,
    pub(super) inactivity: Duration,
    /// It lives until the first of these for certain, and not after the second.
    pub(super) expires: (Time, Time),
    /// Commands that use it now.
    pub(super) users: u64,
    /// Who has used it may be made to give it up.
    pub(super) was_used: bool,
    /// How often tokens had gone that nobody had asked to go, when it was made.
    pub(super) evictions: u64,
    /// It was taken back.
    pub(super) is_revoked: bool,
}

/// What has to come of using a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    Good,
    None,
    Doubtful,
}

impl Token {
    /// Whether it is good but for having been used: nobody has taken it back, and its time, which
    /// was that of its making, is not over.
    pub(super) fn still_holds(&self, boot: u64, now: Time) -> bool {
        self.boot == boot && !self.is_revoked && now < self.expires.0
    }

    /// Whether it may be called revoked. Tokens had gone that nobody had asked to go so often by now,
    /// and its unit `is_going`: what is made while a unit is being hidden goes with it.
    pub(super) fn may_be_revoked(&self, evictions: u64, is_going: bool) -> bool {
        self.evictions != evictions || is_going
    }

    pub(super) fn worth(&self, boot: u64, now: Time) -> Worth {
        let is_over = self.users == 0 && now >= self.expires.1;
        if self.boot != boot || self.is_revoked || is_over {
            return Worth::None;
        }
        match !self.was_used && now < self.expires.0 {
            true => Worth::Good,
            false => Worth::Doubtful,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_may_be_revoked_while_its_unit_is_being_hidden_and_after_others_went() {
        let token = Token {
            bytes: Vec::new(),
            values: Vec::new(),
            boot: 0,
            unit: 0,
            inactivity: Duration::from_secs(1),
            expires: (Time(1), Time(1)),
            users: 0,
            was_used: false,
            evictions: 7,
            is_revoked: false,
        };
        assert!(!token.may_be_revoked(7, false));
        assert!(token.may_be_revoked(8, false));
        assert!(token.may_be_revoked(7, true), "hiding had begun before it");
    }
}
