//! A small pool for runs that test something other than drives.
//!
//! Its drives lose nothing that was flushed. Its boots end by a power cut or a kill at any poll.

use crate::config::{Theme, themes};
use crate::damage;
use crate::pool_changes::Door;
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::shards::in_one_task;
use array::pool::Paces;
use array::pool::opening::{NotOpened, Opening};
use array::shard::ShardState;
use base::{BufPool, Prng, Time};
use engine::{Lane, Level, NamedDrive, PoolError, PoolInfo, PoolSpec, World};
use futures_channel::oneshot;
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Deadlock, Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

/// Polls after which a boot that nobody cuts should long have ended.
const POLLS_OF_LIFE: u64 = 20_000_000;

/// A pool called `name` that is yet to be made, and its drives.
pub(crate) fn draw(prng: &mut Prng, name: &str, drive_bytes: u64) -> (PoolSpec, Vec<Rc<Media>>) {
    let (level, drives) = *prng.pick(&[
        (Level::Simple, 1),
        (Level::Raid10 { copies: 2 }, 2),
        (Level::Raid5, 3),
    ]);
    let spec = PoolSpec {
        stripe_unit_bytes: 8 << 10,
        page_bytes: 4096 << prng.between(0, 3),
        journal_bytes: Some(4096 * *prng.pick(&[2, 4, 16])),
        zone_bytes: Some(64 << 10),
        log_bytes: Some(256 << 10),
        volumes_max: 8,
        ..PoolSpec::new(name, level)
    };
    let media = |n| {
        let spec = MediaSpec::new(format!("{name}{n}"), drive_bytes);
        Rc::new(Media::new(spec, prng.stream(&format!("{name}{n}"))))
    };
    let media: Vec<Rc<Media>> = (0..drives).map(media).collect();
    (spec, media)
}

/// Drives of these pools that may be struck in a run that has that: of each as many as it
/// can lose.
pub(crate) fn victims(seed: &Seed, specs: &[PoolSpec], media: &[Vec<Rc<Media>>]) -> Vec<Rc<Media>> {
    let mut prng = seed.stream("victims beside");
    if !themes(seed).contains(&Theme::Beside) {
        return Vec::new();
    }
    some_of_each(&mut prng, specs, media)
}

/// As many drives of each pool as it can lose.
pub(crate) fn some_of_each(
    prng: &mut Prng,
    specs: &[PoolSpec],
    media: &[Vec<Rc<Media>>],
) -> Vec<Rc<Media>> {
    let redundant = specs.iter().zip(media);
    let redundant = redundant.filter(|(spec, _)| spec.level != Level::Simple);
    redundant
        .map(|(_, drives)| Rc::clone(prng.pick(drives)))
        .collect()
}

/// Strikes them at random times of this boot, while `goes_on`.
pub(crate) fn strike(
    world: &SimWorld,
    victims: &[Rc<Media>],
    goes_on: impl Fn() -> bool + 'static,
) {
    if victims.is_empty() {
        return;
    }
    let (here, victims, mut prng) = (world.clone(), victims.to_vec(), world.prng("strikes"));
    world.spawn(async move {
        while goes_on() {
            let pause = Duration::from_micros(prng.below(10_000));
            here.sleep(pause).await;
            let victim = prng.pick(&victims);
            let what = damage::strike(victim, here.now(), &mut prng);
            here.note(|| format!("{} is struck: {what}", victim.spec().name));
            // Not for as long as a boot goes on that does nothing but wait.
            here.sleep(Duration::from_millis(prng.below(200))).await;
        }
    });
}

/// The drives in this world.
pub(crate) fn drives(world: &SimWorld, media: &[Rc<Media>]) -> Vec<NamedDrive<SimWorld>> {
    let drive = |media: &Rc<Media>| NamedDrive {
        name: media.spec().name.clone(),
        drive: SimDrive::adversarial(world, media),
    };
    media.iter().map(drive).collect()
}

/// A pool that is made on these drives at the `first` boot, and opened at all others.
///
/// # Errors
/// What the pool says.
pub(crate) async fn open(
    world: &SimWorld,
    spec: &PoolSpec,
    media: &[Rc<Media>],
    first: bool,
) -> Result<Lane<SimWorld>, PoolError> {
    let drives = drives(world, media);
    match first {
        true => Lane::create(world.clone(), spec.clone(), drives).await,
        false => Lane::open(world.clone(), drives).await,
    }
}

/// As [`open`], of a pool whose lanes go to the shards at `homes`.
///
/// # Errors
/// What the first lane that fails says.
pub(crate) async fn open_lanes(
    states: &[Rc<ShardState<SimWorld>>],
    (homes, first): (&[usize], bool),
    (spec, media, paces): (&PoolSpec, &[Rc<Media>], Paces),
) -> Result<PoolInfo, NotOpened> {
    let drive = |media: &Rc<Media>| Door::from(&(media.spec().name.clone(), Rc::clone(media)));
    let drives: Vec<Door> = media.iter().map(drive).collect();
    let homes: Vec<_> = homes.iter().map(|home| Rc::clone(&states[*home])).collect();
    in_one_task(&homes, async |handles| {
        let opening = Opening::new(spec.name.clone(), handles).paced(paces);
        match first {
            true => opening.create(spec, &[(spec.level, drives)], &[]).await,
            false => opening.open(&drives).await,
        }
    })
    .await
}

/// Begins `task` beside others. What this gives ends when the task has.
pub(crate) fn begin(
    world: &SimWorld,
    task: impl Future<Output = ()> + 'static,
) -> oneshot::Receiver<()> {
    let (done, end) = oneshot::channel();
    world.spawn(async move {
        task.await;
        // Nobody waits any more when the boot was cut.
        let _ = done.send(());
    });
    end
}

/// The most polls of a boot, which `is_whole` when it is never cut short.
fn draw_polls(prng: &mut Prng, is_whole: bool) -> u64 {
    match prng.below(4) {
        _ if is_whole => POLLS_OF_LIFE,
        0 => prng.between(1, 2_000),
        1 => 1 << prng.between(8, 15),
        _ => prng.between(2_000, 60_000),
    }
}

/// A run in boots.
pub(crate) struct Life<'a> {
    /// Of its streams.
    pub(crate) name: &'a str,
    pub(crate) media: Vec<Rc<Media>>,
    /// The first thing that is wrong.
    pub(crate) failure: &'a RefCell<Option<String>>,
}

impl Life<'_> {
    /// Runs boots, which hear whether they are the first and the last one, until `is_done`
    /// or something is wrong. The count of operations is the caller's to say.
    pub(crate) fn live<F>(
        &self,
        (seed, prng): (&Prng, &mut Prng),
        (listener, bug): (Option<Listener>, Option<&str>),
        is_done: impl Fn() -> bool,
        boot: impl Fn(SimWorld, (bool, bool)) -> F,
        after_the_cut: impl Fn(),
    ) -> Verdict
    where
        F: Future<Output = ()>,
    {
        let mut verdict = Verdict::default();
        let mut now = Time(0);
        loop {
            let (first, last) = (verdict.boots == 0, is_done());
            let polls_max = draw_polls(prng, first || last);
            let name = format!("{}, boot {}", self.name, verdict.boots);
            let world = SimWorld::new(seed.stream(&name), Order::Shuffled, BufPool::new(), now);
            if let Some(listener) = listener.clone() {
                world.listen(move |now, line| listener(now, line));
            }
            world.plant(bug);
            world.note(|| format!("{name}, up to {polls_max} polls"));
            let outcome = world.run(polls_max, boot(world.clone(), (first, last)));
            self.judge(outcome, polls_max);
            match prng.chance(2, 3) {
                true => world.power_cut(&self.media),
                false => world.power_off(),
            }
            after_the_cut();
            for (mark, count) in world.marks() {
                *verdict.marks.entry(mark).or_default() += count;
            }
            now = world.now() + Duration::from_secs(1);
            verdict.trace_hash = verdict.trace_hash.rotate_left(7) ^ world.trace_hash();
            verdict.boots += 1;
            verdict.failure = self.failure.borrow().clone();
            if verdict.failure.is_some() || last {
                return verdict;
            }
        }
    }

    /// Says what is wrong with the end of a boot.
    fn judge(&self, outcome: Result<Outcome<()>, Deadlock>, polls_max: u64) {
        let wrong = match outcome {
            Err(deadlock) => deadlock.to_string(),
            Ok(Outcome::Cut) if polls_max == POLLS_OF_LIFE => {
                format!("no end after {polls_max} polls: a livelock")
            }
            Ok(_) => return,
        };
        self.failure.borrow_mut().get_or_insert(wrong);
    }
}
