//! The outcome of the last SANITIZE of a unit (SBC-4 clause 4.11), kept in the memo of the volume,
//! before its reservations.
//!
//! Invariants:
//! - A unit is being erased, on record, before the first block of it is; and until all of it
//!   has been. So no start shows what is half erased as sound.
//! - Where there is nothing to say the memo is that of the reservations alone.
//!
//! One byte of version, one of what has become of it, and the memo of the reservations.

use crate::reservation::Unreadable;

const VERSION: u8 = 2;

/// What has become of the last SANITIZE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Erasure {
    /// There was none, or it has ended well.
    #[default]
    None,
    /// It is under way.
    Running {
        /// AUSE: when it fails, EXIT FAILURE MODE ends that (unrestricted completion mode).
        may_exit: bool,
    },
    /// It has failed: nobody knows which blocks are erased.
    Failed {
        /// As above; else a SANITIZE that ends well is the only way out.
        may_exit: bool,
    },
}

impl Erasure {
    const KEPT: [(Erasure, u8); 4] = [
        (Erasure::Running { may_exit: false }, 1),
        (Erasure::Running { may_exit: true }, 2),
        (Erasure::Failed { may_exit: false }, 3),
        (Erasure::Failed { may_exit: true }, 4),
    ];

    /// The memo that says this and `reservations`, a memo of theirs.
    pub(crate) fn memo(self, reservations: Vec<u8>) -> Vec<u8> {
        match Erasure::KEPT.iter().find(|(one, _)| *one == self) {
            None => reservations,
            Some((_, code)) => [&[VERSION, *code], &reservations[..]].concat(),
        }
    }

    /// What a memo says, and the memo of the reservations.
    ///
    /// # Errors
    /// It is of another version, or damaged.
    pub(crate) fn of_memo(memo: &[u8]) -> Result<(Self, &[u8]), Unreadable> {
        match memo {
            [VERSION, code, rest @ ..] => {
                let mut kept = Erasure::KEPT.iter();
                let (erasure, _) = kept.find(|(_, kept)| kept == code).ok_or(Unreadable)?;
                Ok((*erasure, rest))
            }
            _ => Ok((Erasure::None, memo)),
        }
    }
}

/// Whether a volume with this memo is being erased, or that has failed: its data is not sound.
/// So it is of a memo that nobody can read.
pub fn has_unended_erasure(memo: &[u8]) -> bool {
    !matches!(Erasure::of_memo(memo), Ok((Erasure::None, _)))
}

/// The memo without what it says of an erasure, for a volume that has been given other data.
/// Reservations stay in it.
///
/// # Errors
/// It is of another version, or damaged.
pub fn without_erasure(memo: &[u8]) -> Result<Vec<u8>, Unreadable> {
    Erasure::of_memo(memo).map(|(_, reservations)| reservations.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_read_as_it_was_kept_beside_reservations() {
        for reservations in [&[][..], &[1, 5, 0, 0]] {
            for (erasure, code) in Erasure::KEPT {
                let memo = erasure.memo(reservations.to_vec());
                assert_eq!(memo[..2], [2, code]);
                assert_eq!(Erasure::of_memo(&memo), Ok((erasure, reservations)));
                assert!(has_unended_erasure(&memo));
                assert_eq!(without_erasure(&memo), Ok(reservations.to_vec()));
            }
            let memo = Erasure::None.memo(reservations.to_vec());
            assert_eq!(memo, reservations);
            assert_eq!(Erasure::of_memo(&memo), Ok((Erasure::None, reservations)));
            assert!(!has_unended_erasure(&memo));
            assert_eq!(without_erasure(&memo), Ok(reservations.to_vec()));
        }
        for damaged in [&[2, 0][..], &[2, 5], &[2, 0xff, 1]] {
            assert_eq!(Erasure::of_memo(damaged), Err(Unreadable));
            assert!(has_unended_erasure(damaged));
            assert_eq!(without_erasure(damaged), Err(Unreadable));
        }
    }
}
