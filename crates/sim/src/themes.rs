//! Faults that only some runs have ([`Theme`]), each a task of its own in a boot.
//!
//! What victims may do beside the usual is in [`crate::damage`]'s budget; an outage is
//! not, and says so ([`crate::session::Upset`]).

use crate::config::Theme;
use crate::copied_drives;
use crate::next_drives;
use crate::regroup;
use crate::session::Session;
use array::error::ArrayErrorKind;
use base::{BLOCK_BYTES, Prng};
use engine::{MemberState, World};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Faults, Media};

type Task = fn(Rc<Session>, Prng) -> LocalBoxFuture<'static, ()>;

/// The tasks of all themes that have one, by name.
fn all() -> [(Theme, &'static str, Task); 14] {
    [
        (Theme::Hangs, "hangs", |s, p| {
            strikes(s, p, hang).boxed_local()
        }),
        (Theme::Errors, "errors", |s, p| {
            strikes(s, p, fail).boxed_local()
        }),
        (Theme::FlashUnits, "flash units", |s, p| {
            strikes(s, p, spread).boxed_local()
        }),
        (Theme::Openings, "late drives", |s, p| {
            come_back(s, p).boxed_local()
        }),
        (Theme::Outages, "outage", |s, p| outage(s, p).boxed_local()),
        (Theme::Pauses, "pauses", |s, p| pauses(s, p).boxed_local()),
        (Theme::Departures, "logs", |s, p| {
            spoil_logs(s, p).boxed_local()
        }),
        (Theme::Appends, "early cut", |s, p| {
            cut_early(s, p).boxed_local()
        }),
        (Theme::Rebuilds, "sums", |s, p| no_sums(s, p).boxed_local()),
        (Theme::LogGroups, "log groups", |s, p| {
            regroup::log_groups(s, p).boxed_local()
        }),
        (Theme::Copies, "copied drives", |s, p| {
            copied_drives::copy(s, p).boxed_local()
        }),
        (Theme::CopyCuts, "copied drives", |s, p| {
            copied_drives::copy(s, p).boxed_local()
        }),
        (Theme::Spread, "next drives", |s, p| {
            next_drives::lose(s, p).boxed_local()
        }),
        (Theme::SpreadCuts, "next drives", |s, p| {
            next_drives::lose(s, p).boxed_local()
        }),
    ]
}

/// The tasks of the themes that the run has, by name.
pub(crate) fn tasks(session: &Session) -> Vec<(&'static str, Task)> {
    let config = &session.books.config;
    let has = |theme| config.has(theme) || theme == Theme::LogGroups && config.log_group.is_some();
    let drawn = all().into_iter().filter(|(theme, ..)| has(*theme));
    // That one brings outages of its own.
    let drawn =
        drawn.filter(|(theme, ..)| *theme != Theme::Outages || !config.has(Theme::Rebuilds));
    drawn.map(|(_, name, task)| (name, task)).collect()
}

/// Strikes victims at random times until the run has no more requests.
async fn strikes(
    session: Rc<Session>,
    mut prng: Prng,
    strike: fn(&Session, &Media, &mut Prng) -> String,
) {
    while session.take_operation() {
        let pause = Duration::from_micros(prng.below(20_000));
        session.world.sleep(pause).await;
        let victims = session.books.victims.borrow().clone();
        if victims.is_empty() {
            continue;
        }
        let victim = prng.pick(&victims);
        let what = strike(&session, victim, &mut prng);
        let name = &victim.spec().name;
        session.books.struck.borrow_mut().insert(name.clone());
        session.world.note(|| format!("{name} is struck: {what}"));
    }
}

/// It hangs for ever, or is slow for a while and hangs then.
fn hang(session: &Session, victim: &Media, prng: &mut Prng) -> String {
    let mut from = session.world.now();
    victim.with_faults(|faults| {
        if prng.chance(1, 2) {
            faults.slowdown = *prng.pick(&[10, 100, 2_000]);
            from = from + Duration::from_millis(prng.between(10, 1_000));
        }
        faults.hangs_from = Some(from);
        format!(
            "{} times slower, and no answer from {from} on",
            faults.slowdown
        )
    })
}

/// Something fails, for a while as a rule.
fn fail(session: &Session, victim: &Media, prng: &mut Prng) -> String {
    let layout = session.books.layout.get();
    victim.with_faults(|faults| match prng.below(4) {
        0 => {
            faults.failing_flushes = prng.between(1, 4) as u32;
            format!("{} flushes fail", faults.failing_flushes)
        }
        1 => {
            faults
                .unwritable
                .extend(layout.sums(victim.spec().capacity_bytes));
            "sums can't be written".to_owned()
        }
        2 => {
            *faults = Faults::default();
            "as sound as ever".to_owned()
        }
        _ => {
            faults.failing = 1 << prng.below(6);
            format!("{} operations fail", faults.failing)
        }
    })
}

/// Much of what lies before the data of victims changes: metadata, logs.
async fn spoil_logs(session: Rc<Session>, mut prng: Prng) {
    let victims = session.books.victims.borrow().clone();
    while !victims.is_empty() && session.take_operation() {
        let pause = Duration::from_micros(prng.below(100_000));
        session.world.sleep(pause).await;
        let victim = prng.pick(&victims);
        let end = session.books.layout.get().data_start / BLOCK_BYTES as u64;
        let start = prng.below(end.max(1));
        let run = start..(start + prng.between(1, end.max(1))).min(end);
        run.clone().for_each(|block| victim.corrupt(block));
        let name = &victim.spec().name;
        session.books.struck.borrow_mut().insert(name.clone());
        session
            .world
            .note(|| format!("{name} is struck: blocks {run:?} change"));
    }
}

/// The power goes while the first writes of this boot are under way.
async fn cut_early(session: Rc<Session>, mut prng: Prng) {
    let most = 1 << prng.between(5, 10);
    let wait = Duration::from_micros(prng.below(most));
    if session.take_operation() && prng.chance(7, 8) {
        session.world.sleep(wait).await;
        session.world.cut();
    }
}

/// A drive is taken out of use, so that a spare stands in, and while that is rebuilt the
/// others take no sums. When they do again the log is emptied, and the power goes: what is
/// not in the sums by then is known to nobody.
async fn no_sums(session: Rc<Session>, mut prng: Prng) {
    if !session.take_operation() {
        return;
    }
    // What was written is in place by then, as a rule, and its sums are in RAM only.
    let wait = Duration::from_micros(prng.below(2_000_000));
    session.world.sleep(wait).await;
    let places = session.books.config.groups * session.books.config.drives_of_group;
    let mut media = session.books.media.borrow()[..places].to_vec();
    let failed = media.swap_remove(prng.below(places as u64) as usize);
    let name = &failed.spec().name;
    let outages = &session.upset.outages;
    outages.set(outages.get() + 1);
    let layout = session.books.layout.get();
    for drive in &media {
        let sums = layout.sums(drive.spec().capacity_bytes);
        drive.with_faults(|faults| faults.unwritable.extend(sums));
    }
    // Another may be missing already, and then it is needed.
    let order = session.pool.fail_drive(name).await;
    session
        .world
        .note(|| format!("sums can't be written, and {name} is to fail: {order:?}"));
    let length = Duration::from_micros(1 << prng.between(8, 16));
    session.world.sleep(length).await;
    for drive in &media {
        drive.with_faults(|faults| faults.unwritable.clear());
    }
    session
        .world
        .note(|| "sums can be written again".to_owned());
    outages.set(outages.get() + 1);
    if !session.has_stopped() && session.pool.drain().await.is_ok() {
        session.world.cut();
    }
}

/// Blocks that a unit of flash has.
const UNIT: u64 = 4;

/// What a unit of flash holds is damaged, as a whole or most of it.
fn spread(_: &Session, victim: &Media, prng: &mut Prng) -> String {
    let units = victim.spec().capacity_bytes / BLOCK_BYTES as u64 / UNIT;
    let unit = prng.below(units.max(1)) * UNIT;
    let all = prng.chance(1, 2);
    let readable = prng.chance(1, 2);
    for block in unit..unit + UNIT {
        match all || prng.chance(2, 3) {
            true if readable => victim.corrupt(block),
            true => victim.with_faults(|faults| faults.unreadable.extend(block..=block)),
            false => {}
        }
    }
    format!("blocks {unit} to {} are damaged together", unit + UNIT - 1)
}

/// Whether a drive is one of a group that is yet to be added, which is as it should be, or of a log
/// group, which may have left the pool.
fn is_apart(session: &Session, media: &Rc<Media>) -> bool {
    let (later, logs) = (session.books.later.borrow(), session.books.logs.borrow());
    let mut apart = later.iter().chain(logs.iter());
    apart.any(|other| Rc::ptr_eq(other, media))
}

/// Drives that are out of use come back as they were then, to be used anew.
async fn come_back(session: Rc<Session>, mut prng: Prng) {
    while session.take_operation() {
        let pause = Duration::from_micros(prng.below(40_000));
        session.world.sleep(pause).await;
        let mut victims = session.books.victims.borrow().clone();
        victims.retain(|media| !is_apart(&session, media));
        let infos = session.pool.all().iter().map(|pool| pool.info());
        let members: Vec<_> = infos
            .flat_map(|info| info.members.into_iter().chain(info.spares))
            .collect();
        let in_use = |media: &&Rc<Media>| {
            let named = |one: &&engine::MemberInfo| one.name == media.spec().name;
            let mut of_it = members.iter().filter(named);
            of_it.any(|member| member.state != MemberState::Failed)
        };
        let on_offer = |media: &Rc<Media>| session.pool.on_offer.has(&media.spec().name);
        let is_out = |media: &&Rc<Media>| !in_use(media) && !on_offer(media);
        let mut out: Vec<_> = victims.iter().filter(is_out).collect();
        if out.is_empty() {
            continue;
        }
        let media = out.swap_remove(prng.below(out.len() as u64) as usize);
        media.with_faults(|faults| *faults = Faults::default());
        let name = media.spec().name.clone();
        session.world.note(|| format!("{name} comes back"));
        let drive = (name.clone(), Rc::clone(media));
        let added = session.pool.add_spare(drive, None);
        let added = session.ask("late drive", name.clone(), added).await;
        // It may be too small to stand in anywhere, be struck, or be in use in a lane.
        if let Err(error) = added
            && !matches!(
                error.kind,
                ArrayErrorKind::Internal | ArrayErrorKind::Exists | ArrayErrorKind::Invalid
            )
        {
            session.fail(format!("{name} comes back: {:?}: {error}", error.kind));
        }
    }
}

/// The process stands still now and then.
async fn pauses(session: Rc<Session>, mut prng: Prng) {
    while session.take_operation() {
        let pause = Duration::from_micros(prng.below(20_000));
        session.world.sleep(pause).await;
        let most = *prng.pick(&[1_000, 60_000]);
        session
            .world
            .pause(Duration::from_millis(prng.between(1, most)));
    }
}

/// How drives are lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Gone,
    Hung,
    /// Every operation fails.
    Failing,
    /// The same, as if each block were damaged: a cable that is pulled.
    CutOff,
    /// Data can't be written.
    ReadOnly,
    /// The drive says that it has become smaller.
    Shrunk,
}

/// The pool is opened again so often in a boot, because of outages. They come alike: each may
/// leave little time for requests, and all of them take time.
const REOPENED_MAX: u64 = 8;

/// Once in an opening more drives of a span are lost than it can do without, and come back
/// with all that they had.
async fn outage(session: Rc<Session>, mut prng: Prng) {
    let spared = session.upset.reopened.get() >= REOPENED_MAX;
    if prng.chance(1, 4) || spared || !session.take_operation() {
        return;
    }
    let longest = 1 << prng.between(8, 15);
    let wait = Duration::from_micros(prng.below(longest));
    session.world.sleep(wait).await;
    let lost = to_lose(&session, &mut prng);
    let before: Vec<Faults> = lost
        .iter()
        .map(|media| media.with_faults(|faults| faults.clone()))
        .collect();
    let hung = session.books.config.health.hung.as_millis() as u64;
    let most = *prng.pick(&[1, 50, 1_000, 3 * hung]);
    let length = Duration::from_millis(prng.below(most) + 1);
    let upset = &session.upset;
    upset.outages.set(upset.outages.get() + 1);
    let each = *prng.pick(&[0, 0, 100, 3_000]);
    let all = *prng.pick(&[None, Some(Loss::Gone), Some(Loss::ReadOnly)]);
    for media in &lost {
        let loss = all.unwrap_or(*prng.pick(&[
            Loss::Gone,
            Loss::Hung,
            Loss::Failing,
            Loss::CutOff,
            Loss::ReadOnly,
            Loss::Shrunk,
        ]));
        session
            .world
            .note(|| format!("outage of {}: {loss:?}", media.spec().name));
        lose(&session, media, loss);
        if matches!(loss, Loss::Hung) {
            session.asked.allow(length);
        }
        let pause = Duration::from_micros(prng.below(each + 1));
        session.world.sleep(pause).await;
    }
    session.world.sleep(length).await;
    for (media, faults) in lost.iter().zip(before) {
        media.with_faults(|now| *now = faults);
    }
    session.world.note(|| "the outage is over".to_owned());
    upset.outages.set(upset.outages.get() + 1);
}

/// More drives of a span than it can lose, in any order; or all there are.
fn to_lose(session: &Session, prng: &mut Prng) -> Vec<Rc<Media>> {
    let config = &session.books.config;
    let mut media = session.books.media.borrow().clone();
    media.truncate(config.groups * config.drives_of_group);
    for last in (1..media.len()).rev() {
        media.swap(last, prng.below(last as u64 + 1) as usize);
    }
    let shape = config.spans(config.pool.level);
    let (Some(shape), false) = (shape, prng.chance(1, 4)) else {
        return media;
    };
    let all = session.books.media.borrow();
    let first = prng.below(config.groups as u64) as usize * config.drives_of_group;
    let span = prng.below(shape.spans as u64) as usize;
    let places = shape.span_places(span).map(|place| first + place);
    let of_span: Vec<usize> = places.collect();
    media.retain(|one| of_span.iter().any(|place| Rc::ptr_eq(&all[*place], one)));
    media.truncate(prng.between(shape.redundancy() as u64 + 1, shape.width as u64) as usize);
    media
}

fn lose(session: &Session, media: &Media, loss: Loss) {
    let first = session.books.layout.get().data_start / BLOCK_BYTES as u64;
    let end = media.spec().capacity_bytes / BLOCK_BYTES as u64;
    media.with_faults(|faults| match loss {
        Loss::Gone => faults.gone = true,
        Loss::Hung => faults.hangs_from = Some(session.world.now()),
        Loss::Failing => faults.failing = u32::MAX,
        Loss::CutOff => {
            faults.failing = u32::MAX;
            faults.failing_as_damaged = true;
        }
        Loss::ReadOnly => faults.unwritable.extend(first..end),
        Loss::Shrunk => faults.shrunk = true,
    });
}
