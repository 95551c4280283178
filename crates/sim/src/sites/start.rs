//! A start of the array, as the server makes it.

use super::sockets::SimSockets;
use super::{Books, Boot, LOOK_PAUSE, LOOKS};
use crate::control::{Start, look_late};
use crate::pools::bays::SimBays;
use crate::pools::shelf::DATA;
use crate::shards::Shards;
use array::openings::Openings;
use base::Prng;
use engine::World;
use site::Site;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use world_sim::SimWorld;

impl Books {
    /// Names of the drives that nobody finds.
    pub(super) fn away(&self) -> BTreeSet<String> {
        let away = self.shelf.own().filter(|bay| bay.is_away.get());
        away.map(|bay| bay.name.clone()).collect()
    }

    /// Whether a start that began then may have failed.
    fn is_excused(&self, began_unix_s: u64) -> bool {
        self.records.failed_unix_s() >= began_unix_s || !self.away().is_empty()
    }

    /// Notes that a boot begins, with a file or without one, and whether it makes what is missing.
    fn begin_with(&self, world: &SimWorld, (file, has_file, completes): (&Site, bool, bool)) {
        let completed = completes.then(|| file.clone());
        self.did.borrow_mut().files.extend(completed);
        if has_file {
            world.note(|| format!("starts with {}", site::text(file)));
        }
    }

    /// What becomes of a boot whose array did not start.
    fn no_start(
        &self,
        world: &SimWorld,
        began_unix_s: u64,
        why: &str,
    ) -> Result<Option<Boot>, String> {
        world.note(|| format!("no start: {why}"));
        let is_excused = self.is_excused(began_unix_s);
        is_excused
            .then_some(None)
            .ok_or(format!("the start: {why}"))
    }

    /// The pools of the site file that are there, before any start has come to its end.
    fn made_by_first_start(&self) -> Vec<site::Pool> {
        let made = self.records.made.kept().pools;
        let is_made = |pool: &&site::Pool| {
            let state = made.get(&pool.name);
            state.is_some_and(|state| !state.is_being_made())
        };
        let file = self.file.borrow();
        file.pools.iter().filter(is_made).cloned().collect()
    }

    /// The drives of a pool that was open are away when a boot begins.
    pub(super) fn draw_away(&self, prng: &mut Prng) {
        let oracle = self.oracle.borrow();
        let open: Vec<site::Pool> = match oracle.last() {
            Some(seen) => {
                let all = seen.settings.pools.iter();
                let open = all.filter(|pool| !seen.closed.contains(&pool.name));
                open.cloned().collect()
            }
            None => self.made_by_first_start(),
        };
        let thirds = if oracle.last().is_some() { 1 } else { 2 };
        if open.is_empty() || !prng.chance(thirds, 3) {
            return;
        }
        let drives = prng.pick(&open).drives();
        for bay in drives.filter_map(|name| self.shelf.called(name)) {
            bay.is_away.set(true);
        }
    }
}

impl Boot {
    /// Starts the array; nothing where that ends for a reason that there is.
    pub(super) async fn start(
        world: &SimWorld,
        books: &Rc<Books>,
        prng: &mut Prng,
        last: bool,
    ) -> Result<Option<Boot>, String> {
        let shards = Shards::new(world, books.shards);
        let start = Start::new(world, &books.records, last);
        let began_unix_s = start.runtime().unix_s();
        let is_first = start.found.settings.is_none();
        let file = books.file.borrow().clone();
        let has_file = is_first || prng.chance(3, 4);
        let completes = has_file && (is_first || !start.found.is_complete);
        books.begin_with(world, (&file, has_file, completes));
        let bays = Arc::new(SimBays::new(world, &books.shelf));
        let openings = Arc::new(Openings::new(bays, start.made(), DATA.into()));
        let began = start.bring_up(&shards, &openings, has_file.then_some(&file));
        let (array, site) = match began.await {
            Ok(began) => began,
            Err(error) => return books.no_start(world, began_unix_s, &error.to_string()),
        };
        if completes {
            *books.completes.borrow_mut() = site.clone();
        }
        let sockets = SimSockets::open(&array, books.is_gentle, prng);
        look_late(world, (&openings, &array), site);
        let has_failed = books.records.failed_unix_s() >= began_unix_s;
        // A record that can't be written is a reason for a group not to be as said.
        if is_first && array.closed_names().is_none() && !has_failed {
            books.applied.replace(Some(file));
        }
        Ok(Some(Boot {
            world: world.clone(),
            books: Rc::clone(books),
            array,
            sockets,
            openings,
            began_unix_s,
        }))
    }

    /// Pools whose drives are all there open by themselves.
    pub(super) async fn wait_until_open(&self) {
        for _ in 0..LOOKS {
            let closed = self.array.closed_pools();
            if closed.is_empty() && self.array.unsettled_pools().is_empty() {
                return;
            }
            self.world.sleep(LOOK_PAUSE).await;
        }
        let closed = self.array.closed_pools();
        let what = format!("pools do not open, and their drives are there: {closed:?}");
        self.books.fail(&self.world, what);
    }

    /// A record that could not be written may be what a start finds all the same: it is written again,
    /// so that there is one truth.
    pub(super) async fn settle_records(&self) {
        while self.openings.made().settle().await.is_err() {
            self.world
                .note(|| "the record of pools is not written".to_owned());
        }
        while self.books.records.configuration.take_failures() > 0 {
            let is_complete = self.array.is_complete();
            // However that ends, the next look says.
            let _ = self.array.settle_configuration(is_complete).await;
        }
    }
}
