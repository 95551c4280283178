//! Opens the pool of a boot: creates it, opens it from its drives, or finds it refused.

use crate::boot::Boot;
use crate::config::Theme;
use crate::damage;
use crate::lanes::{Lanes, NamedMedia};
use crate::scenario::OnMedia;
use base::Prng;
use engine::pool::METADATA_COPIES;
use engine::raid::Geometry;
use engine::{PoolError, PoolErrorKind, World};
use futures_util::future::{Either, pending, select};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Faults, Media};

/// After so long a pool has stopped that a moment at the end of its opening stops.
const AFTER_BLIPS: Duration = Duration::from_millis(20);

/// Drives that were dead at an opening are none any more.
fn revive(media: &[Rc<Media>]) {
    for drive in media {
        drive.with_faults(|faults| faults.dead = false);
    }
}

/// Takes back all faults but for how fast the drive is.
fn calm(media: &Media) {
    media.with_faults(|faults| {
        *faults = Faults {
            slowdown: faults.slowdown,
            slow_blocks: std::mem::take(&mut faults.slow_blocks),
            slow_by: faults.slow_by,
            ..Faults::default()
        }
    });
}

impl Boot {
    /// A new pool over blank drives.
    pub async fn create(&self) -> Option<Lanes> {
        self.on_media.set(OnMedia::Perhaps);
        let spec = self.books.config.pool.clone();
        self.world.note(|| format!("creation of {spec:?} begins"));
        let drives = self.named(&self.books.media.borrow());
        let created = Lanes::create(&self.world, &self.books.config, &drives);
        match self.asked.ask("create pool", String::new(), created).await {
            Ok(pool) => {
                self.on_media.set(OnMedia::Pool);
                Some(pool)
            }
            Err(why) => {
                self.books.fail(format!("creating the pool: {}", why.error));
                None
            }
        }
    }

    /// Drives and what they are called. Where nobody needs to name a drive later, names change with
    /// every opening.
    pub fn named(&self, media: &[Rc<Media>]) -> Vec<NamedMedia> {
        let named = |(place, media): (usize, &Rc<Media>)| {
            let name = match self.books.config.is_struck() {
                true => media.spec().name.clone(),
                false => format!("slot{place}"),
            };
            (name, Rc::clone(media))
        };
        media.iter().enumerate().map(named).collect()
    }

    fn shuffled(&self) -> Vec<Rc<Media>> {
        let mut media = self.books.media.borrow().clone();
        for last in (1..media.len()).rev() {
            media.swap(last, self.draw(|prng| prng.below(last as u64 + 1) as usize));
        }
        media
    }

    /// Opens the pool from its drives in any order. After a creation that was cut
    /// off there may be none.
    pub async fn open(&self) -> Option<Lanes> {
        // One that was cut short may have left some.
        revive(&self.books.victims.borrow());
        if self.books.config.has(Theme::Outages) {
            // Who goes away at an opening after another went is used apart from it.
            self.books
                .media
                .borrow()
                .iter()
                .for_each(|media| calm(media));
        }
        let sure = self.on_media.get() == OnMedia::Pool;
        let config = &self.books.config;
        let cut = config.cuts().is_some();
        let turns_of_4 = match cut || config.has(Theme::Turns) {
            true => 3,
            false => 1,
        };
        if sure
            && self.books.config.damage
            && self.books.config.turns
            && (!cut || self.books.at_mark.take())
            && self.draw(|prng| prng.chance(turns_of_4, 4))
            && let Some(pool) = self.open_by_turns().await
        {
            return Some(pool);
        }
        let config = &self.books.config;
        let settled = self.books.keeps_places();
        if sure && settled && !config.damage && self.draw(|prng| prng.chance(1, 16)) {
            self.open_with_too_few().await;
        }
        let there = match config.has(Theme::Openings) {
            true => self.without_the_late(self.shuffled()),
            false => self.shuffled(),
        };
        let mut opened = match config.has(Theme::Outages) && self.draw(|prng| prng.chance(1, 4)) {
            true => self.open_through_blips(there).await,
            false => self.try_open(there).await,
        };
        revive(&self.books.victims.borrow());
        if let Err(error) = &opened
            && self.books.config.damage
        {
            if sure && !self.may_be_refused(&[]) {
                let kind = error.kind;
                self.books
                    .fail(format!("refused within the budget: {kind:?}: {error}"));
                return None;
            }
            // All that carry something may have gone at once.
            damage::mend(&self.books.victims.borrow());
            opened = self.try_open(self.shuffled()).await;
        }
        match opened {
            Ok(pool) => {
                self.on_media.set(OnMedia::Pool);
                Some(pool)
            }
            Err(error) if sure => {
                self.books
                    .fail(format!("opening the pool: {:?}: {error}", error.kind));
                None
            }
            Err(_) => {
                self.on_media.set(OnMedia::Nothing);
                None
            }
        }
    }

    /// The drives struck so far are back, others go away. A drive that has missed
    /// something must not be taken for one that has it: such a pool is not opened, and
    /// one that is opened has everything.
    async fn open_by_turns(&self) -> Option<Lanes> {
        let books = &self.books;
        let next = self.draw(|prng| {
            let (media, sound) = (books.media.borrow(), books.sound.borrow());
            damage::next_to_go(&media, &books.config, &sound, prng)
        });
        if next.is_empty() {
            return None;
        }
        // Cut off in between, it may be either's turn: nobody is struck any more.
        let before = books.victims.take();
        damage::mend(&before);
        let is_next = |media: &Rc<Media>| next.iter().any(|next| Rc::ptr_eq(next, media));
        let mut left = self.shuffled();
        left.retain(|media| !is_next(media));
        for media in &next {
            // Whatever comes of this opening, they may have missed something.
            books.struck.borrow_mut().insert(media.spec().name.clone());
        }
        self.world.note(|| {
            let names: Vec<_> = next.iter().map(|media| &media.spec().name).collect();
            format!("now {names:?} are away")
        });
        // Cut short, it may have said that they are out.
        let sound_before = books.sound.borrow().clone();
        for (sound, media) in books
            .sound
            .borrow_mut()
            .iter_mut()
            .zip(books.media.borrow().iter())
        {
            *sound &= !is_next(media);
        }
        match self.try_open(left).await {
            Ok(pool) => {
                books.victims.replace(next);
                books.turned.set(true);
                Some(pool)
            }
            Err(error) => {
                if !self.may_be_refused(&next) {
                    let kind = error.kind;
                    books.fail(format!("refused within the budget: {kind:?}: {error}"));
                }
                books.victims.replace(before);
                books.sound.replace(sound_before);
                None
            }
        }
    }

    /// Whether a pool may be refused while `away` is not there: with what was ever struck,
    /// those are more drives of a span than it can lose (and the logs are in one span), or
    /// where there are several spans, perhaps all that carry metadata.
    fn may_be_refused(&self, away: &[Rc<Media>]) -> bool {
        let (books, config) = (&self.books, &self.books.config);
        let Some(shape) = config.spans(config.pool.level) else {
            return true;
        };
        let (media, struck) = (books.media.borrow(), books.struck.borrow());
        let replaced = books.replaced.borrow();
        let is_out = |one: &Rc<Media>| {
            // What it held is on others.
            let is_needed = !replaced.contains(&one.spec().name);
            is_needed && struck.contains(&one.spec().name)
                || away.iter().any(|away| Rc::ptr_eq(away, one))
        };
        let places = config.groups * config.drives_of_group;
        let out: Vec<bool> = media[..places].iter().map(is_out).collect();
        let lost = |span: &[bool]| span.iter().filter(|out| **out).count();
        let several = out.len() > shape.width || config.group_later.is_some();
        (several && lost(&out) > shape.redundancy().max(METADATA_COPIES - 1))
            || out
                .chunks(shape.width)
                .any(|span| lost(span) > shape.redundancy())
    }

    /// Victims that are late are not there at this opening, or dead.
    fn without_the_late(&self, mut media: Vec<Rc<Media>>) -> Vec<Rc<Media>> {
        let victims = self.books.victims.borrow();
        for victim in victims.iter() {
            let how = self.draw(|prng| prng.below(6));
            let note = |what: &str| {
                self.world
                    .note(|| format!("{} is {what} at this opening", victim.spec().name))
            };
            match how {
                0 => {
                    let name = victim.spec().name.clone();
                    self.books.struck.borrow_mut().insert(name);
                    note("not there");
                    media.retain(|media| !Rc::ptr_eq(media, victim));
                }
                1 => {
                    let name = victim.spec().name.clone();
                    self.books.struck.borrow_mut().insert(name);
                    note("dead");
                    victim.with_faults(|faults| faults.dead = true);
                }
                _ => {}
            }
        }
        media
    }

    async fn try_open(&self, media: Vec<Rc<Media>>) -> Result<Lanes, PoolError> {
        let drives = self.named(&media);
        let opened = Lanes::open(&self.world, &self.books.config, &drives);
        let opened = self.asked.ask("open", String::new(), opened).await;
        let opened = opened.map_err(|why| {
            if why.left_open > 0 {
                let left = why.left_open;
                self.books
                    .fail(format!("{left} lanes stay open of a pool that is not"));
            }
            why.error
        });
        self.world.note(|| match &opened {
            Ok(pool) => format!("opened under epoch {}", pool.info().epoch),
            Err(error) => format!("not opened: {error}"),
        });
        opened
    }

    /// For moments of the opening all drives call their blocks damaged. It may be refused for
    /// that, and is tried again then; it must not take what it can't read for lost.
    async fn open_through_blips(&self, media: Vec<Rc<Media>>) -> Result<Lanes, PoolError> {
        let moments = self.draw(|prng| {
            let moment = |prng: &mut Prng| (prng.below(8_000), prng.between(1, 4) as u32);
            (0..prng.between(1, 4))
                .map(|_| moment(prng))
                .collect::<Vec<_>>()
        });
        let blips = async {
            for (pause_us, failures) in moments {
                self.world.sleep(Duration::from_micros(pause_us)).await;
                self.world
                    .note(|| format!("{failures} operations of each drive fail"));
                for drive in &media {
                    drive.with_faults(|faults| {
                        faults.failing = failures;
                        faults.failing_as_damaged = true;
                    });
                }
            }
            pending::<()>().await;
        };
        let opening = self.try_open(media.clone());
        let opened = match select(pin!(opening), pin!(blips)).await {
            Either::Left((opened, _)) => opened,
            Either::Right(_) => unreachable!("blips do not end before the opening"),
        };
        media.iter().for_each(|media| calm(media));
        if let Ok(pool) = opened {
            self.world.sleep(AFTER_BLIPS).await;
            if pool.all().iter().all(|lane| lane.info().failure.is_none()) {
                return Ok(pool);
            }
            self.end_stopped(&pool).await;
        }
        self.try_open(media).await
    }

    /// The places of more drives of a span than it can lose.
    fn too_few(&self, geometry: &Geometry) -> Vec<usize> {
        let span = self.draw(|prng| prng.below(geometry.spans as u64) as usize);
        let mut missing: Vec<usize> = geometry.span_places(span).collect();
        let spares = self.books.config.spread.map_or(0, |spread| spread.spares);
        while missing.len() > geometry.redundancy() + usize::from(spares) + 1 {
            let at = self.draw(|prng| prng.below(missing.len() as u64) as usize);
            missing.swap_remove(at);
        }
        missing
    }

    /// Without more drives of a span than it can lose, a pool is not opened.
    async fn open_with_too_few(&self) {
        let config = &self.books.config;
        let Some(geometry) = config.spans(config.pool.level) else {
            return;
        };
        let missing = self.too_few(&geometry);
        let media = self.books.media.borrow().clone();
        let left = media.into_iter().enumerate();
        let left = left.filter(|(place, _)| !missing.contains(place));
        let left: Vec<Rc<Media>> = left.map(|(_, media)| media).collect();
        if left.is_empty() {
            return;
        }
        let refused = self.books.refused.borrow().clone();
        let are_refused = left
            .iter()
            .all(|media| refused.contains(&media.spec().name));
        match self.try_open(left).await {
            // A victim among those given may be why, too.
            Err(error)
                if matches!(
                    error.kind,
                    PoolErrorKind::Missing
                        | PoolErrorKind::Unlabelled
                        | PoolErrorKind::Drive
                        | PoolErrorKind::Stale
                ) && error.context.contains("missing") => {}
            // What is left are drives that the pool has refused.
            Err(error) if are_refused && error.kind == PoolErrorKind::Unlabelled => {}
            Err(error) => self.books.fail(format!(
                "opening without {missing:?}: {:?}: {error}",
                error.kind
            )),
            Ok(_) => self
                .books
                .fail(format!("the pool was opened without {missing:?}")),
        }
    }
}
