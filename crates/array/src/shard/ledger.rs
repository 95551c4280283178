//! Sums of the I/O of ended sessions, by volume and by initiator.
//!
//! Invariant: what is remembered is bounded; whose last session ended longest ago is
//! forgotten first.

use super::tally::Totals;
use base::Uuid;
use std::collections::BTreeMap;

/// Volumes that are remembered on one shard.
const VOLUMES_MAX: usize = 4096;

/// Initiators that are remembered on one shard.
const INITIATORS_MAX: usize = 1024;

struct Entry {
    totals: Totals,
    /// Grows with every session that ends.
    number: u64,
}

/// Totals by key, so many at most.
struct Remembered<K> {
    entries: BTreeMap<K, Entry>,
    most: usize,
    ended: u64,
}

impl<K: Ord + Clone> Remembered<K> {
    fn new(most: usize) -> Self {
        Remembered {
            entries: BTreeMap::new(),
            most,
            ended: 0,
        }
    }

    fn add(&mut self, key: K, totals: &Totals) {
        self.ended += 1;
        let entry = self.entries.entry(key).or_insert_with(|| Entry {
            totals: Totals::default(),
            number: 0,
        });
        entry.totals.merge(totals);
        entry.number = self.ended;
        if self.entries.len() > self.most {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.number);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
    }
}

/// Totals of ended sessions of one shard.
pub struct Ledger {
    volumes: Remembered<Uuid>,
    initiators: Remembered<String>,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger {
            volumes: Remembered::new(VOLUMES_MAX),
            initiators: Remembered::new(INITIATORS_MAX),
        }
    }
}

impl Ledger {
    /// Remembers what a session did: at each volume, and at none.
    pub fn keep(&mut self, initiator: &str, done: &[(Option<Uuid>, Totals)]) {
        let mut all = Totals::default();
        for (volume, totals) in done {
            all.merge(totals);
            if let Some(volume) = volume {
                self.volumes.add(*volume, totals);
            }
        }
        self.initiators.add(initiator.to_owned(), &all);
    }

    /// The volumes that ended sessions did something at, with their sums.
    pub fn volumes(&self) -> impl Iterator<Item = (&Uuid, &Totals)> {
        let entries = self.volumes.entries.iter();
        entries.map(|(volume, entry)| (volume, &entry.totals))
    }

    /// The initiators of ended sessions, with their sums.
    pub fn initiators(&self) -> impl Iterator<Item = (&String, &Totals)> {
        let entries = self.initiators.entries.iter();
        entries.map(|(name, entry)| (name, &entry.totals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(commands: u64) -> Totals {
        Totals {
            commands,
            ..Totals::default()
        }
    }

    #[test]
    fn sessions_add_up_by_volume_and_by_initiator() {
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut ledger = Ledger::default();
        let done = [
            (Some(one), commands(1)),
            (Some(two), commands(2)),
            (None, commands(4)),
        ];
        ledger.keep("a", &done);
        ledger.keep("b", &done[..1]);
        let volumes: Vec<_> = ledger.volumes().map(|(u, t)| (*u, t.commands)).collect();
        assert_eq!(volumes, [(one, 2), (two, 2)]);
        let initiators = ledger.initiators();
        let initiators: Vec<_> = initiators.map(|(n, t)| (&n[..], t.commands)).collect();
        assert_eq!(initiators, [("a", 7), ("b", 1)]);
    }

    #[test]
    fn who_ended_longest_ago_is_forgotten_first() {
        let mut remembered = Remembered::new(2);
        for key in ["a", "b", "a", "c"] {
            remembered.add(key, &commands(1));
        }
        let left: Vec<_> = remembered.entries.keys().copied().collect();
        assert_eq!(left, ["a", "c"], "b ended before a's second");
        assert_eq!(remembered.entries["a"].totals.commands, 2);
    }
}
