//! What runs inside one boot: the pool is opened, used, and left as planned.

use crate::lanes::doors;
use crate::scenario::{End, OnMedia, Plan};
use crate::session::{Books, Session};
use crate::{admin, client, damage, heal, regroup};
use base::Prng;
use engine::fsck::{self, Options, Severity};
use engine::{Pool, World};
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world::sim::{Media, SimWorld};

/// What runs inside one boot.
pub(crate) struct Boot {
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
        let Some(pool) = pool else { return };
        let session = Rc::new(Session {
            world: self.world.clone(),
            books: Rc::clone(&self.books),
            pool,
            volumes: Default::default(),
            operations_left: Cell::new(plan.operations),
        });
        session.check_pool();
        let info = session.pool.info();
        let group = &info.groups[0];
        self.books.layout.set(damage::Layout {
            data_start: info.data_start,
            zone_stride_bytes: group.zone_stride_bytes,
            zone_bytes: group.zone_bytes,
            twins: self.books.config.pool.layout,
        });
        for pool in session.pool.all() {
            let store = pool.store();
            store.integrity.set_budget(self.books.config.sums_blocks);
            store.cache.set_capacity(self.books.config.cache_bytes);
            pool.set_health_limits(self.books.config.health);
            pool.set_thresholds(self.books.config.thresholds);
            pool.set_fill_pause(Duration::from_micros(self.books.config.fill_pause_us));
        }
        if info.lanes > 1 {
            let config = &self.books.config;
            let level = config
                .group_later
                .map_or(config.pool.level, |(level, _)| level);
            let (later, all) = (self.books.later_drives(), self.books.media.borrow().clone());
            let all = self.named(&all);
            session
                .pool
                .complete(&self.world, (level, &later), &all)
                .await;
        }
        self.find_volumes(&session);
        if plan.verify_first {
            client::verify(&session, &mut self.world.prng("verify")).await;
        }
        self.tasks(&session).await;
        session.check_pool();
        if plan.last || self.draw(|prng| prng.chance(1, 16)) {
            session.check_fullness().await;
        }
        if plan.last {
            heal::everything(&session).await;
            client::verify(&session, &mut self.world.prng("verify again")).await;
            heal::pages(&session).await;
            self.delete_all(&session).await;
            session.check_fullness().await;
            heal::groups(&session).await;
        }
        let infos = session.pool.all().iter().map(Pool::info);
        let members = infos.flat_map(|info| info.members.into_iter().chain(info.spares));
        let names: Vec<String> = members.map(|member| member.name).collect();
        if plan.end == End::Close {
            match session.pool.close().await {
                Ok(()) => self.books.closed.set(true),
                Err(error) => session.fail(format!("closing: {error}")),
            }
        }
        if plan.last {
            self.look_through(|media| {
                !self.books.config.damage || names.contains(&media.spec().name)
            })
            .await;
        }
    }

    /// Has the pool looked through offline: what the engine trusts must be right also
    /// for a reader that trusts nothing. Not where damage may be there to be found.
    async fn look_through(&self, in_use: impl Fn(&Media) -> bool) {
        let config = &self.books.config;
        let sound = !config.damage && !config.beyond;
        let healed = self.books.closed.get() && self.books.operations_left.get() == 0;
        if self.on_media.get() != OnMedia::Pool || !(sound || (healed && !config.beyond)) {
            return;
        }
        let mut media = self.books.media.borrow().clone();
        media.retain(|media| in_use(media));
        let drives = doors(&self.world, &self.named(&media));
        match fsck::check(&self.world, drives, Options { deep: true }).await {
            Ok(report) => {
                let bad = report.findings.iter();
                // Drives of a group that was to be added, and of one that has left.
                let regroups = config.group_later.is_some() || config.groups_leave;
                let bad = bad.filter(|finding| {
                    finding.severity > Severity::Note
                        && !(regroups && finding.text.contains("has no label"))
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
        for model in oracle.volumes().filter(|model| !model.words.is_trashed) {
            match session.pool.volume(&model.name) {
                Some(volume) => {
                    session.volumes.borrow_mut().insert(model.id, volume);
                }
                None => session.fail(format!("volume {:?} can't be found", model.name)),
            }
        }
    }

    /// Runs clients, the administrator and the damage side by side to their ends.
    async fn tasks(&self, session: &Rc<Session>) {
        let mut ends = Vec::new();
        for index in 0..self.books.config.clients {
            let prng = self.world.prng(&format!("client {index}"));
            ends.push(self.spawn(client::run(Rc::clone(session), prng)));
        }
        let prng = self.world.prng("administrator");
        ends.push(self.spawn(admin::run(Rc::clone(session), prng)));
        if self.books.config.damage {
            let prng = self.world.prng("damage");
            ends.push(self.spawn(damage::run(Rc::clone(session), prng)));
        }
        if self.books.config.groups_leave {
            let watched = Rc::downgrade(session);
            self.world.spawn(regroup::take_free_drives(watched));
        }
        for end in ends {
            if end.await.is_err() {
                session.fail("a task of the simulator was dropped before its end");
            }
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) -> oneshot::Receiver<()> {
        let (done, end) = oneshot::channel();
        self.world.spawn(async move {
            task.await;
            // Nobody waits any more when the boot was cut.
            let _ = done.send(());
        });
        end
    }

    async fn delete_all(&self, session: &Session) {
        let names: Vec<String> = session
            .pool
            .volumes()
            .into_iter()
            .map(|info| info.name)
            .collect();
        for name in names {
            let (before, held) = (session.pool.info(), session.pool.holdings(&name).await);
            if let Err(error) = session.pool.delete_volume(&name).await {
                session.fail(format!("deleting {name:?} at the end: {error}"));
            }
            // Nothing else is under way: exactly what it held alone comes back.
            let after = session.pool.info();
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
