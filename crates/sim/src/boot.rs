//! Runs one boot: opens the pool, uses it, and leaves it as planned.

use crate::answers::{Asked, WRONG};
use crate::config::Theme;
use crate::kinds::SLOW_BLOCK;
use crate::lanes::{Lanes, doors};
use crate::scenario::{End, OnMedia, Plan};
use crate::session::{Books, Session, is_blank};
use crate::{admin, client, damage, heal, regroup, themes};
use base::{BLOCK_BYTES, Prng};
use engine::fsck::{self, Options, Severity};
use engine::ring::RingSpec;
use engine::{GroupInfo, GroupRole, Lane, PoolInfo, World};
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, SimWorld};

/// After so long nothing is under way any more that was begun in an outage.
const AFTER_AN_OUTAGE: Duration = Duration::from_secs(2);

/// What runs inside one boot.
pub(crate) struct Boot {
    pub asked: Asked,
    pub world: SimWorld,
    pub books: Rc<Books>,
    pub on_media: Rc<Cell<OnMedia>>,
    pub prng: RefCell<Prng>,
}

impl Boot {
    pub fn draw<T>(&self, draw: impl FnOnce(&mut Prng) -> T) -> T {
        draw(&mut self.prng.borrow_mut())
    }

    /// From the opening of the pool to the end that is planned.
    pub async fn run(self, plan: Plan) {
        if !plan.create && self.draw(|prng| prng.chance(1, 8)) {
            self.look_through(|_| true).await;
        }
        let pool = if plan.create {
            self.create().await
        } else {
            self.open().await
        };
        let (mut opened, mut looks) = (pool, plan.verify_first);
        let left = Cell::new(plan.operations);
        let mut reopened = 0;
        while let Some(pool) = opened {
            let session = self.session(pool, &left);
            session.upset.reopened.set(reopened);
            reopened += 1;
            opened = match self.live(&session, &plan, looks).await {
                true => self.open_again(&session).await,
                false => None,
            };
            left.set(session.operations_left.get());
            looks = true;
        }
    }

    fn session(&self, pool: Lanes, left: &Cell<u64>) -> Rc<Session> {
        Rc::new(Session {
            world: self.world.clone(),
            books: Rc::clone(&self.books),
            pool,
            volumes: Default::default(),
            operations_left: left.clone(),
            asked: self.asked.clone(),
            upset: Default::default(),
        })
    }

    /// From an open pool to the planned end; true when it has stopped, as it may, and is
    /// to be opened again.
    async fn live(&self, session: &Rc<Session>, plan: &Plan, looks: bool) -> bool {
        self.settle_in(session).await;
        if looks {
            client::verify(session, &mut self.world.prng("verify")).await;
        }
        let closed = self.tasks(session, plan.closes_after).await;
        if closed {
            return false;
        }
        if session.upset.outages.get() > 0 {
            self.answered().await;
            // What was begun in the outage may fail after it.
            self.world.sleep(AFTER_AN_OUTAGE).await;
            if session.has_stopped() {
                return true;
            }
        }
        self.look_at_all(session, plan).await;
        false
    }

    /// The pool has stopped, and its drives are back: what was acknowledged is there when
    /// it is opened again in the same world, by the same process as it were. Nobody writes
    /// any more for the one that has stopped.
    async fn open_again(&self, session: &Session) -> Option<Lanes> {
        self.end_stopped(&session.pool).await;
        self.books.oracle.borrow_mut().power_cut();
        self.world.note(|| "the pool is opened again".to_owned());
        self.asked
            .set_bound(self.books.config.patience_at_openings());
        self.open().await
    }

    /// Closes a pool that has stopped, and waits until none of its I/O is under way.
    pub async fn end_stopped(&self, pool: &Lanes) {
        let closed = self.asked.ask(WRONG, "close".to_owned(), pool.close());
        if closed.await.is_ok() {
            self.books.fail("a pool that has stopped was closed well");
        }
        let media = self.books.media.borrow().clone();
        while media.iter().any(|media| media.running() > 0) {
            self.world.sleep(Duration::from_millis(1)).await;
        }
        media.iter().for_each(|media| media.hand_over());
    }

    /// The tail of a log moves long after it was told to.
    fn slow_down_superblocks(&self, log: &RingSpec) {
        let blocks = [0, 1].map(|version| log.superblock_at(version).0 / BLOCK_BYTES as u64);
        for media in self.books.media.borrow().iter() {
            media.with_faults(|faults| {
                faults.slow_blocks.extend(blocks);
                faults.slow_by = SLOW_BLOCK;
            });
        }
    }

    /// What is known of the pool fits what it is, and it gets the limits of this run.
    async fn settle_in(&self, session: &Rc<Session>) {
        session.check_pool();
        let info = session.pool.info();
        let mut groups = info.groups.iter();
        let of_data = |group: &&GroupInfo| group.role == GroupRole::Data;
        let Some(group) = groups.find(of_data) else {
            return session.fail("a pool without a group for data");
        };
        self.books.layout.set(damage::Layout {
            data_start: info.data_start,
            zone_stride_bytes: group.zone_stride_bytes,
            zone_bytes: group.zone_bytes,
            twins: self.books.config.pool.layout,
        });
        for pool in session.pool.all() {
            let store = pool.store();
            if self.books.config.has(Theme::Tails) {
                self.slow_down_superblocks(store.log.spec());
            }
            store.integrity.set_budget(self.books.config.sums_blocks);
            store.cache.set_capacity(self.books.config.cache_bytes);
            let destage = self.books.config.destage;
            store.set_window_stripes(destage.window_stripes);
            store.integrity.set_part_blocks(destage.part_blocks);
            store.integrity.set_keeps_records(destage.records_sums);
            pool.set_health_limits(self.books.config.health);
            pool.set_thresholds(self.books.config.thresholds);
            pool.set_fill_pause(Duration::from_micros(self.books.config.fill_pause_us));
            pool.set_rates(self.books.config.rates);
        }
        self.go_on_scrubbing(session);
        // What only the first lane had came into the others at the opening.
        let is_sound = !self.books.config.is_struck();
        if info.lanes > 1 && is_sound && session.pool.groups_missing() > 0 {
            session.fail("a lane lacks a group after the opening");
        }
        self.find_volumes(session);
        self.asked.set_bound(self.books.config.patience());
    }

    /// Scrubs that go on by themselves go on where they were.
    fn go_on_scrubbing(&self, session: &Rc<Session>) {
        if self.books.config.rates.scrub_within.is_none() {
            return;
        }
        for pool in session.pool.all() {
            let kept = self.books.scrubs.borrow().get(&pool.lane()).copied();
            pool.go_on_scrubbing(kept.unwrap_or_default());
        }
        let noting = Session::note_scrubs(Rc::downgrade(session), self.world.clone());
        self.world.spawn(noting);
    }

    /// Everything is as it should be, and the pool is left as planned.
    async fn look_at_all(&self, session: &Rc<Session>, plan: &Plan) {
        session.check_pool();
        if plan.last || self.draw(|prng| prng.chance(1, 16)) {
            session.check_fullness().await;
        }
        if plan.last {
            let expected = heal::everything(session).await;
            client::verify(session, &mut self.world.prng("verify again")).await;
            heal::pages(session).await;
            self.delete_all(session).await;
            session.check_fullness().await;
            heal::groups(session, expected).await;
        }
        let infos = session.pool.all().iter().map(Lane::info);
        let members = infos.flat_map(|info| info.members.into_iter().chain(info.spares));
        let names: Vec<String> = members.map(|member| member.name).collect();
        if plan.end == End::Close {
            self.close(session).await;
        }
        if plan.last {
            self.look_through(|media| {
                !self.books.config.is_struck() || names.contains(&media.spec().name)
            })
            .await;
        }
    }

    /// Has the pool looked through offline: what the engine trusts must be right also
    /// for a reader that trusts nothing. Not where damage may be there to be found.
    async fn look_through(&self, in_use: impl Fn(&Media) -> bool) {
        let config = &self.books.config;
        let sound = !config.is_struck();
        let healed = self.books.closed.get() && self.books.operations_left.get() == 0;
        if self.on_media.get() != OnMedia::Pool || !(sound || (healed && !config.beyond)) {
            return;
        }
        let mut media = self.books.media.borrow().clone();
        media.retain(|media| in_use(media));
        let named = self.named(&media);
        let refused = self.books.refused.borrow().clone();
        // One that a drive was to be copied to may not be part of the pool yet, or no more.
        let may_have_none = |name: &String| refused.contains(name) || is_blank(name);
        let refused = named
            .iter()
            .filter(|(_, media)| may_have_none(&media.spec().name));
        let refused: Vec<String> = refused.map(|(name, _)| format!("'{name}'")).collect();
        let drives = doors(&self.world, &named);
        match fsck::check(&self.world, drives, Options { deep: true }).await {
            Ok(report) => {
                let bad = report.findings.iter();
                // Drives of a group that was to be added, and of one that has left; and those that
                // were refused.
                let regroups = !config.keeps_groups();
                let bad = bad.filter(|finding| {
                    finding.severity > Severity::Note
                        && !((regroups || refused.iter().any(|name| finding.place.contains(name)))
                            && finding.text.contains("has no label"))
                });
                let bad: Vec<_> = bad.map(|f| format!("{}: {}", f.place, f.text)).collect();
                if !bad.is_empty() {
                    self.books.fail(format!("fsck: {}", bad.join("; ")));
                }
            }
            Err(error) => self.books.fail(format!("fsck: {error}")),
        }
    }

    fn find_volumes(&self, session: &Session) {
        let oracle = self.books.oracle.borrow();
        for model in oracle
            .volumes()
            .filter(|model| !model.properties.is_trashed)
        {
            match session.pool.volume(&model.name) {
                Some(volume) => {
                    session.volumes.borrow_mut().insert(model.id, volume);
                }
                None => session.fail(format!("volume {:?} can't be found", model.name)),
            }
        }
    }

    async fn close(&self, session: &Session) {
        let closed = session.pool.close();
        match self.asked.ask("close", String::new(), closed).await {
            Ok(()) => self.books.closed.set(true),
            // In an outage the pool may stop, also while it is closed.
            Err(_) if session.upset.outages.get() > 0 => {}
            Err(error) => session.fail(format!("closing: {error}")),
        }
    }

    /// Runs clients, the administrator and the damage side by side to their ends, or for
    /// so many polls, and then closes the pool: true.
    async fn tasks(&self, session: &Rc<Session>, closes_after: Option<u64>) -> bool {
        let mut ends = Vec::new();
        for index in 0..self.books.config.clients {
            let prng = self.world.prng(&format!("client {index}"));
            ends.push(self.spawn(session, client::run(Rc::clone(session), prng)));
        }
        let prng = self.world.prng("administrator");
        ends.push(self.spawn(session, admin::run(Rc::clone(session), prng)));
        if self.books.config.damage && !self.books.config.has(Theme::Departures) {
            let prng = self.world.prng("damage");
            ends.push(self.spawn(session, damage::run(Rc::clone(session), prng)));
        }
        if self.books.config.groups_leave || self.books.config.log_group.is_some() {
            let watched = Rc::downgrade(session);
            self.world.spawn(regroup::take_free_drives(watched));
        }
        for (name, task) in themes::tasks(session) {
            let prng = self.world.prng(name);
            ends.push(self.spawn(session, task(Rc::clone(session), prng)));
        }
        let all = pin!(async {
            for end in ends {
                if end.await.is_err() {
                    session.fail("a task of the simulator was dropped before its end");
                }
            }
        });
        let Some(polls) = closes_after else {
            all.await;
            return false;
        };
        let Either::Right(((), all)) = select(all, pin!(self.world.after_polls(polls))).await
        else {
            return false;
        };
        self.world.note(|| "the pool is closed now".to_owned());
        session.upset.closing.set(true);
        self.close(session).await;
        all.await;
        self.answered().await;
        true
    }

    /// Until everything that was asked is answered, which is in bounded time.
    async fn answered(&self) {
        while !self.asked.is_idle() {
            self.world.sleep(Duration::from_millis(1)).await;
        }
    }

    /// A task that has ended when it says so, or when it was left where it is.
    fn spawn(
        &self,
        session: &Rc<Session>,
        task: impl Future<Output = ()> + 'static,
    ) -> oneshot::Receiver<()> {
        let (done, end) = oneshot::channel();
        let session = Rc::clone(session);
        self.world.spawn(async move {
            let (mut task, mut done) = (pin!(task), Some(done));
            poll_fn(|context| {
                session.upset.parked.set(false);
                let polled = task.as_mut().poll(context);
                if (polled.is_ready() || session.upset.parked.get())
                    && let Some(done) = done.take()
                {
                    // Nobody waits any more when the boot was cut.
                    let _ = done.send(());
                }
                polled
            })
            .await;
        });
        end
    }

    async fn delete_all(&self, session: &Session) {
        for name in session.pool.volumes().into_iter().map(|info| info.name) {
            let (before, held) = (session.pool.info(), session.pool.holdings(&name).await);
            let deleted = session.pool.delete_volume(&name);
            let deleted = session.ask("delete", format!("of {name:?} at the end"), deleted);
            if let Err(error) = deleted.await {
                session.fail(format!("deleting {name:?} at the end: {error}"));
            }
            let after = session.pool.info();
            if [&before, &after].into_iter().any(empties_zones) {
                // A shared page that moves becomes a page of each of its owners, and a page
                // on its way lies at two places.
                continue;
            }
            // Nothing else is under way: exactly what it held alone comes back.
            let (back, unpromised) = (
                before.mapped_bytes - after.mapped_bytes,
                before.promised_bytes - after.promised_bytes,
            );
            match held {
                Ok(held)
                    if (held.exclusive_bytes, held.promised_bytes) == (back, unpromised) => {}
                held => session.fail(format!(
                    "deleting {name:?} gave {back} bytes back, and {unpromised} that were promised; it was said to hold {held:?}"
                )),
            }
        }
        for (info, _) in session.pool.trash() {
            if let Err(error) = session.pool.delete_trashed(info.uuid).await {
                session.fail(format!("emptying the trash at the end: {error}"));
            }
        }
        let info = session.pool.info();
        if info.mapped_bytes + info.promised_bytes + info.provisioned_bytes != 0 {
            session.fail(format!("an empty pool has pages: {info:?}"));
        }
    }
}

/// Whether pages are moved out of zones, or are yet to be.
fn empties_zones(info: &PoolInfo) -> bool {
    let mut groups = info.groups.iter();
    groups.any(|group| group.zones_to_empty > 0 || group.leaving)
}
