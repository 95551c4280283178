//! Sums of I/O on a shard by volume, by initiator and by session.

use super::session::SessionInfo;
use super::state::ShardState;
use super::tally::Totals;
use base::Uuid;
use engine::World;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counters summed over sessions: those of a volume, or those of an initiator.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Those that are connected.
    pub sessions: u64,
    /// Of those that have ended, too.
    pub totals: Totals,
}

impl Counted {
    /// Adds what another shard counted.
    pub fn merge(&mut self, other: &Counted) {
        self.sessions += other.sessions;
        self.totals.merge(&other.totals);
    }

    fn connected(&mut self, totals: &Totals) {
        self.sessions += 1;
        self.totals.merge(totals);
    }
}

/// What one session did.
#[derive(Clone, Debug)]
pub struct CountedSession {
    /// The session's names and addresses, as of now.
    pub info: SessionInfo,
    /// How long it has been there.
    pub age: Duration,
    /// Counters since its login, over all its LUNs.
    pub totals: Totals,
}

impl<W: World> ShardState<W> {
    /// By volume that a session did something at.
    pub fn volume_totals(&self) -> BTreeMap<Uuid, Counted> {
        let mut all: BTreeMap<Uuid, Counted> = BTreeMap::new();
        for (volume, totals) in self.ledger.borrow().volumes() {
            all.entry(*volume).or_default().totals.merge(totals);
        }
        for session in self.connected() {
            for (volume, totals) in session.done() {
                if let Some(volume) = volume {
                    all.entry(volume).or_default().connected(&totals);
                }
            }
        }
        all
    }

    /// By name of the initiator.
    pub fn initiator_totals(&self) -> BTreeMap<String, Counted> {
        let mut all: BTreeMap<String, Counted> = BTreeMap::new();
        for (name, totals) in self.ledger.borrow().initiators() {
            all.entry(name.clone()).or_default().totals.merge(totals);
        }
        for session in self.connected() {
            let name = session.initiator().to_owned();
            all.entry(name).or_default().connected(&session.totals());
        }
        all
    }

    /// Counters of each connected session.
    pub fn session_totals(&self) -> Vec<CountedSession> {
        let sessions = self.connected().into_iter();
        let counted = sessions.map(|session| CountedSession {
            info: session.info(),
            age: session.age(self.world().now()),
            totals: session.totals(),
        });
        counted.collect()
    }
}
