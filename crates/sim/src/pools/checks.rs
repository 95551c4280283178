//! What holds when nothing is under way.

use super::Boot;
use super::bays::NOT_READY;
use super::oracle::{Outcome, Seen};
use super::request::{self, NAMES, Request, VOLUME_BYTES, Wanted};
use super::shelf::Bay;
use crate::pattern::{self, SectorPlace};
use array::control::{ArrayError, ArrayErrorKind};
use array::openings::{DriveContent, DrivePlace, READY_TIME};
use base::{SECTOR_BYTES, Time, VolumeOffset};
use engine::{Lane, Level, World};
use site::{Group, Pool};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

/// What a start finds.
const START: &str = "start";

/// What a start does beside waiting for drives takes no longer.
const OTHERS_TIME: Duration = Duration::from_secs(20);

/// Pools whose drives are there are open after so many looks, so far apart.
const LOOKS: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// Why a pool is not made when what an earlier making of it left can't be taken back yet.
const NOT_TAKEN_BACK: &str = "could not be made before";

/// What is wrong with an answer, if anything is.
pub(super) fn judge(request: &Request, done: &Result<(), ArrayError>) -> Option<String> {
    let is_barred = matches!(request, Request::Create(wanted) if wanted.is_barred);
    let brief = request.brief();
    match done {
        Ok(()) if is_barred => Some(format!("a pool is made of a drive of others: {brief}")),
        // A drive that the making before has left labelled may be of another request now.
        Err(error) if error.context.contains(NOT_TAKEN_BACK) => None,
        Err(error) if !is_barred && error.kind != ArrayErrorKind::Internal => {
            Some(format!("{brief}: refused without a reason: {error:?}"))
        }
        _ => None,
    }
}

/// Whether only the next start says what became of a pool: records could not be written while it was
/// destroyed, or settings name a pool that is not open.
fn is_unsure(name: &str, seen: &Seen, asked: &[(Request, Outcome)]) -> bool {
    let mut failed = asked.iter().filter(|(request, outcome)| {
        request.pool() == name && matches!(outcome, Outcome::Refused(ArrayErrorKind::Internal))
    });
    match seen {
        Seen::Open(_) => false,
        Seen::Closed => failed.next().is_some(),
        Seen::Nothing => failed.any(|(request, _)| matches!(request, Request::Destroy { .. })),
    }
}

/// The number in the name of a volume.
fn number_of(volume: &str) -> u64 {
    volume.trim_start_matches('v').parse().unwrap_or(1)
}

/// What a volume is filled with.
pub(super) fn filling(volume: &str) -> Vec<u8> {
    let mut bytes = vec![0; VOLUME_BYTES as usize];
    let number = number_of(volume);
    let first = SectorPlace {
        volume: number,
        sector: 0,
    };
    pattern::fill(&mut bytes, number, first);
    bytes
}

impl Boot {
    /// The start waited for drives that were ready in time, and for no other longer than that.
    pub(super) fn check_readiness(&self, began: Time) {
        let took = self.world.now().since(began);
        if took > READY_TIME + OTHERS_TIME {
            let what = format!("the start took {took:?}");
            self.books.fail(&self.world, what);
        }
        for name in NAMES {
            for drive in self.array.came_without(name) {
                let bay = self.books.shelf.called(&drive.name);
                let is_there = bay.is_some_and(|bay| bay.is_there());
                let told = [NOT_READY, "it does not answer"];
                if is_there && told.iter().any(|text| drive.why.contains(text)) {
                    let what =
                        format!("pool {name} was opened before its drive was ready: {drive}");
                    self.books.fail(&self.world, what);
                }
            }
        }
    }

    /// Nothing is under way: the array says what it should, and all that it holds is right.
    pub(super) async fn settle(&self, when: &str) {
        let books = &self.books;
        if books.failure.borrow().is_some() {
            return;
        }
        let checked = self.check(when).await;
        if let Err(what) = checked {
            books.fail(&self.world, format!("{when}: {what}"));
        }
    }

    async fn check(&self, when: &str) -> Result<(), String> {
        let books = &self.books;
        if let Some(changed) = books.shelf.changed() {
            return Err(format!("{changed}, a drive of others, is changed"));
        }
        self.settle_record().await;
        let away = books.away();
        if away.is_empty() {
            self.wait_until_open().await;
        }
        let asked = books.under_way.borrow().clone();
        let mut unsure = BTreeSet::new();
        for name in NAMES {
            let seen = self.see(name).await?;
            self.world.note(|| format!("pool {name} is {seen:?}"));
            if when != START && is_unsure(name, &seen, &asked) {
                unsure.insert(name.to_owned());
                books.oracle.borrow_mut().open.remove(name);
                continue;
            }
            let known = (&asked[..], &away);
            books.oracle.borrow_mut().observe(name, &seen, known)?;
            let is_other = |(request, _): &(Request, Outcome)| request.pool() != name;
            books.under_way.borrow_mut().retain(is_other);
            self.check_volumes(name, &seen).await?;
        }
        books.oracle.borrow_mut().unsure = unsure.clone();
        if !unsure.is_empty() {
            return Ok(());
        }
        if let Some(unlisted) = self.array.unlisted_pools().first() {
            return Err(unlisted.clone());
        }
        match when {
            START => self.check_free_drives().await,
            _ => Ok(()),
        }
    }

    /// A record of pools that could not be written may be what a start finds all the same: it is
    /// written again, so that there is one truth.
    async fn settle_record(&self) {
        while self.openings.made().settle().await.is_err() {
            self.world
                .note(|| "the record of pools is not written".to_owned());
        }
    }

    /// Pools whose drives are all there open by themselves. Whether they have, the oracle says.
    async fn wait_until_open(&self) {
        for _ in 0..LOOKS {
            let closed = self.array.closed_pools();
            if closed.is_empty() && self.array.unsettled_pools().is_empty() {
                return;
            }
            self.world.sleep(LOOK_PAUSE).await;
        }
    }

    /// What the array says of a pool.
    async fn see(&self, name: &str) -> Result<Seen, String> {
        if self.array.settings().pool(name).is_none() {
            return Ok(Seen::Nothing);
        }
        if let Err(error) = self.array.pool(name).await {
            self.world.note(|| format!("pool {name}: {error}"));
            return Ok(Seen::Closed);
        }
        let volumes = self.array.volumes().await.map_err(said)?.into_iter();
        let of_pool = volumes.filter(|volume| volume.pool == name);
        Ok(Seen::Open(of_pool.map(|volume| volume.info.name).collect()))
    }

    /// That volumes hold what was written: all of it, or, of writes that were cut off, a part.
    async fn check_volumes(&self, pool: &str, seen: &Seen) -> Result<(), String> {
        let Seen::Open(_) = seen else {
            return Ok(());
        };
        let known = self.books.oracle.borrow().pools.get(pool).cloned();
        let known = known.map(|pool| pool.volumes).unwrap_or_default();
        let volumes = self.array.volumes().await.map_err(said)?;
        for (name, is_known) in known {
            let Some(there) = volumes.iter().find(|one| one.info.name == name) else {
                continue;
            };
            let bytes = self.read(pool, there.lane, &name).await?;
            let wanted = filling(&name);
            let pairs = bytes.chunks(SECTOR_BYTES).zip(wanted.chunks(SECTOR_BYTES));
            let is_right = |(is, wanted): (&[u8], &[u8])| {
                is == wanted || (!is_known && is.iter().all(|byte| *byte == 0))
            };
            if let Some(sector) = pairs.map(is_right).position(|right| !right) {
                let at = sector * SECTOR_BYTES;
                let found = pattern::identify(&bytes[at..at + SECTOR_BYTES]);
                return Err(format!(
                    "volume {name} of pool {pool}: sector {sector} holds {found:?}"
                ));
            }
        }
        Ok(())
    }

    /// All that a volume holds.
    async fn read(&self, pool: &str, lane: u16, name: &str) -> Result<Vec<u8>, String> {
        let volume = name.to_owned();
        let read = move |_, lane: Lane<SimWorld>| async move {
            let Some(there) = lane.volume(&volume) else {
                return Err(ArrayError::no_volume(&volume));
            };
            let read = there.read(VolumeOffset(0), VOLUME_BYTES as usize).await;
            let failed = |error: engine::IoError| {
                ArrayError::new(ArrayErrorKind::Unavailable, error.to_string())
            };
            Ok(read.map_err(failed)?.to_vec())
        };
        let bytes = self.array.with_lane(pool, lane, read).await;
        bytes.map_err(|error| format!("volume {name}: {error}"))
    }

    /// That drives which no pool has are empty.
    async fn check_free_drives(&self) -> Result<(), String> {
        let free = request::free(&self.books.oracle.borrow(), &self.books.shelf);
        for bay in free {
            let place = DrivePlace::of(&bay.drive(), self.openings.data());
            let look = self.openings.glance(&self.array.shards()[0], place).await;
            match look.map_err(|gone| gone.to_string())?.found {
                DriveContent::Nothing(_) | DriveContent::Empty => {}
                found => return Err(format!("{} is free, and there is {found:?}", bay.name)),
            }
        }
        Ok(())
    }

    /// Makes a pool of all drives that no pool has.
    pub(super) async fn make_of_the_rest(&self) {
        let books = &self.books;
        if books.failure.borrow().is_some() {
            return;
        }
        let free = request::free(&books.oracle.borrow(), &books.shelf);
        let taken = books
            .oracle
            .borrow()
            .pools
            .keys()
            .cloned()
            .collect::<Vec<_>>();
        let Some(name) = NAMES
            .into_iter()
            .find(|name| !taken.contains(&(*name).to_owned()))
        else {
            return;
        };
        if free.is_empty() {
            return;
        }
        let group = |bay: &Rc<Bay>| Group::of_data(Level::Simple, vec![bay.name.clone()]);
        let request = Request::Create(Wanted {
            pool: Pool {
                name: name.to_owned(),
                groups: free.iter().map(group).collect(),
                lanes: 2,
                stripe_unit_bytes: 8 << 10,
                page_bytes: 8 << 10,
                cache_bytes: 0,
                ..Pool::usual()
            },
            drives: free.iter().map(|bay| bay.drive()).collect(),
            is_barred: false,
        });
        if self.begin(request, Duration::ZERO).await.is_err() {
            books.fail(&self.world, "a request was dropped before its end");
        }
        self.settle("the end").await;
    }
}

fn said(error: ArrayError) -> String {
    error.to_string()
}
