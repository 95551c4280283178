//! Reservations as they are kept over a restart (APTPL): in the memo of the volume, behind the
//! outcome of a SANITIZE.
//!
//! One byte of version, one of the kind that is held or zero, two with the place of its
//! holder, two with the number of registrants; of each its key, target port, ISID, length of
//! its name and name. Numbers are big-endian.

use super::{
    HeldReservation, InitiatorPort, Kind, NexusId, REGISTRANTS_MAX, Registrant, Reservations,
};

const VERSION: u8 = 1;

/// A memo that is none of this version's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its reservations, or what has become of a SANITIZE, can't be understood: serve it with the \
     version of Ashlar that it was last served with, and clear them there"
)]
pub struct Unreadable;

impl Reservations {
    /// What is to be kept; nothing, where nothing is.
    pub(crate) fn memo(&self) -> Vec<u8> {
        if !self.is_kept || self.registrants.is_empty() {
            return Vec::new();
        }
        let place = |held: &HeldReservation| {
            let mut all = self.registrants.iter();
            all.position(|one| one.nexus == held.by).unwrap_or(0) as u16
        };
        let mut memo = vec![VERSION, self.held_kind().unwrap_or(0)];
        memo.extend(self.held.as_ref().map_or(0, place).to_be_bytes());
        memo.extend((self.registrants.len() as u16).to_be_bytes());
        for one in &self.registrants {
            let name = one.nexus.initiator.name.as_bytes();
            memo.extend(one.key.to_be_bytes());
            memo.extend(one.nexus.target_port.to_be_bytes());
            memo.extend(one.nexus.initiator.isid);
            // A name has 223 bytes at most.
            memo.push(name.len() as u8);
            memo.extend(name);
        }
        memo
    }

    /// What was kept.
    ///
    /// # Errors
    /// The memo is of another version, or damaged.
    pub(crate) fn of_memo(memo: &[u8]) -> Result<Self, Unreadable> {
        if memo.is_empty() {
            return Ok(Reservations::default());
        }
        let mut rest = memo;
        let [VERSION, kind] = take::<2>(&mut rest)? else {
            return Err(Unreadable);
        };
        let place = usize::from(u16::from_be_bytes(take(&mut rest)?));
        let count = usize::from(u16::from_be_bytes(take(&mut rest)?));
        if count == 0 || count > REGISTRANTS_MAX {
            return Err(Unreadable);
        }
        let mut registrants = Vec::new();
        for _ in 0..count {
            registrants.push(registrant(&mut rest)?);
        }
        let held = match (kind, registrants.get(place)) {
            (0, _) => None,
            (code, Some(holder)) => Some(HeldReservation {
                kind: Kind::of(code).ok_or(Unreadable)?,
                by: holder.nexus.clone(),
            }),
            (_, None) => return Err(Unreadable),
        };
        if !rest.is_empty() {
            return Err(Unreadable);
        }
        Ok(Reservations {
            registrants,
            held,
            is_kept: true,
            ..Reservations::default()
        })
    }
}

fn registrant(rest: &mut &[u8]) -> Result<Registrant, Unreadable> {
    let key = u64::from_be_bytes(take(rest)?);
    let target_port = u16::from_be_bytes(take(rest)?);
    let isid = take(rest)?;
    let [len] = take(rest)?;
    let (name, after) = rest.split_at_checked(usize::from(len)).ok_or(Unreadable)?;
    *rest = after;
    let name = std::str::from_utf8(name).map_err(|_| Unreadable)?;
    let nexus = NexusId {
        initiator: InitiatorPort::new(name, isid),
        target_port,
    };
    Ok(Registrant { nexus, key })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Unreadable> {
    let (first, after) = rest.split_first_chunk().ok_or(Unreadable)?;
    *rest = after;
    Ok(*first)
}
