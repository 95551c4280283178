//! A second implementation of persistent reservations, to check the first.
//!
//! It holds the reservations after each command, and the initiators that may write then, in as few
//! lines as it can.

use std::collections::BTreeMap;

/// Types (SPC-4 table 213).
pub(super) const TYPES: [u8; 6] = [1, 3, 5, 6, 7, 8];

/// A PERSISTENT RESERVE OUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// With the key to be; zero to go.
    Register {
        key: u64,
        keep: bool,
    },
    Reserve {
        kind: u8,
    },
    Release {
        kind: u8,
    },
    Clear,
    /// The key that goes, and what is held afterwards.
    Preempt {
        victim: u64,
        kind: u8,
        abort: bool,
    },
}

/// Registrations and the reservation of a unit. Hosts are numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) keys: BTreeMap<u64, u64>,
    /// Who made it, and its type.
    pub(super) held: Option<(u64, u8)>,
    keep: bool,
}

impl Fence {
    fn is_of_all(&self) -> bool {
        self.held.is_some_and(|(_, kind)| kind >= 7)
    }

    fn holds(&self, host: u64) -> bool {
        match self.held {
            None => false,
            Some((holder, _)) => {
                holder == host || self.is_of_all() && self.keys.contains_key(&host)
            }
        }
    }

    /// What it becomes; nothing for a conflict, or for what is refused.
    pub(super) fn after(&self, host: u64, call: Call) -> Option<Fence> {
        let mut next = self.clone();
        let known = self.keys.contains_key(&host);
        match call {
            Call::Register { key, keep } => {
                match key {
                    0 => drop(next.keys.remove(&host)),
                    key => drop(next.keys.insert(host, key)),
                }
                next.keep = keep;
            }
            _ if !known => return None,
            Call::Reserve { kind } => match self.held {
                Some((_, held)) if held == kind && self.holds(host) => {}
                Some(_) => return None,
                None => next.held = Some((host, kind)),
            },
            Call::Release { kind } => match self.held {
                Some((_, held)) if self.holds(host) && held != kind => return None,
                Some(_) if self.holds(host) => next.held = None,
                _ => {}
            },
            Call::Clear => {
                next.keys.clear();
                next.held = None;
            }
            Call::Preempt { victim, kind, .. } => {
                let takes = match self.held {
                    Some(_) if self.is_of_all() => victim == 0,
                    Some((holder, _)) => self.keys.get(&holder) == Some(&victim),
                    None => false,
                };
                let goes = |one: u64, key: u64| match takes {
                    true => one != host && (victim == 0 || key == victim),
                    false => key == victim,
                };
                next.keys.retain(|one, key| !goes(*one, *key));
                if !takes && next.keys.len() == self.keys.len() {
                    return None;
                }
                if takes {
                    next.held = Some((host, kind));
                }
            }
        }
        next.tidy();
        Some(next)
    }

    /// A reservation has a holder who is registered, or none.
    fn tidy(&mut self) {
        let Some((holder, kind)) = self.held else {
            return;
        };
        if !self.keys.contains_key(&holder) {
            let heir = self.keys.keys().next().filter(|_| kind >= 7);
            self.held = heir.map(|heir| (*heir, kind));
        }
    }

    /// What is left of it after a loss of power.
    pub(super) fn after_a_restart(&self) -> Fence {
        match self.keep && !self.keys.is_empty() {
            true => self.clone(),
            false => Fence::default(),
        }
    }

    /// Whether a command of this host runs.
    pub(super) fn admits(&self, host: u64, writes: bool) -> bool {
        let Some((_, kind)) = self.held else {
            return true;
        };
        let readers = matches!(kind, 1 | 5 | 7);
        let registrants = kind >= 5;
        self.holds(host) || !writes && readers || registrants && self.keys.contains_key(&host)
    }
}

/// Keys in ascending order, and key and type of what is held, as initiators are told.
pub(super) type Shown = (Vec<u64>, Option<(u64, u8)>);

impl Fence {
    /// What initiators are told of it. Of a type for all there is no key.
    pub(super) fn shown(&self) -> Shown {
        let mut keys: Vec<u64> = self.keys.values().copied().collect();
        keys.sort_unstable();
        let held = self.held.map(|(holder, kind)| match kind >= 7 {
            true => (0, kind),
            false => (self.keys.get(&holder).copied().unwrap_or(0), kind),
        });
        (keys, held)
    }
}
