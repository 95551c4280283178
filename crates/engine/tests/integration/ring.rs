//! The circular log by itself: random appends and trims, cut off at any poll, over one to three
//! copies of which one may be damaged or gone. An acknowledged entry that is held comes back, once,
//! in order and unchanged; an entry that once did not come back never does.

use base::{BLOCK_BYTES, BufPool, DriveOffset, Prng, Time, Uuid};
use engine::drives::{DriveFault, Member};
use engine::label::MemberEntry;
use engine::lane::{Part, View};
use engine::layout::Layout;
use engine::ring::{Appended, Entry, Hold, Losses, Recovered, Ring, RingError, RingSpec};
use engine::{DriveError, MemberState, World};
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join, try_join_all};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

const BOOTS: u64 = 24;

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nobody was told that it is durable.
    Sent,
    /// It is, and is held.
    Held,
    /// Nobody holds it any more.
    Loose,
    /// A recovery did not find it.
    Gone,
}

#[derive(Default)]
struct Books {
    fates: RefCell<BTreeMap<u64, Fate>>,
    last: Cell<u64>,
    holds: RefCell<Vec<(u64, Hold)>>,
    wrong: RefCell<Option<String>>,
}

impl Books {
    /// The next entry, on its way.
    fn next(&self) -> u64 {
        let id = self.last.get() + 1;
        self.last.set(id);
        self.fates.borrow_mut().insert(id, Fate::Sent);
        id
    }

    /// What has become of these entries; none was appended where there was no room.
    fn note(&self, ids: Vec<u64>, appended: Option<Result<Vec<Appended>, RingError>>) {
        let mut fates = self.fates.borrow_mut();
        let Some(appended) = appended else {
            return fates.extend(ids.into_iter().map(|id| (id, Fate::Gone)));
        };
        for (id, appended) in ids.into_iter().zip(appended.expect("appends")) {
            fates.insert(id, Fate::Held);
            self.holds.borrow_mut().push((id, appended.hold));
        }
    }

    fn fail(&self, what: String) {
        self.wrong.borrow_mut().get_or_insert(what);
    }

    /// Compares what a recovery gives with what must be there.
    fn take_up(&self, recovered: Vec<Recovered>) {
        let mut fates = self.fates.borrow_mut();
        let mut found = BTreeMap::new();
        let mut last: Option<u64> = None;
        for entry in recovered {
            if last.is_some_and(|last| entry.stamp != last + 1) {
                self.fail(format!("stamp {} comes after {last:?}", entry.stamp));
            }
            last = Some(entry.stamp);
            let id = u64::from_le_bytes(*entry.head.first_chunk().unwrap());
            let data: Vec<u8> = entry
                .data
                .iter()
                .flat_map(|slice| slice.bytes().unwrap().to_vec())
                .collect();
            if (entry.head, data) != content(id) {
                self.fail(format!("entry {id} is not what was appended"));
            }
            match fates.get(&id) {
                None => self.fail(format!("entry {id} was never appended")),
                Some(Fate::Gone) => self.fail(format!("entry {id} is there again")),
                Some(_) => {}
            }
            if found.insert(id, entry.hold).is_some() {
                self.fail(format!("entry {id} comes twice"));
            }
        }
        for (id, fate) in fates.iter_mut() {
            *fate = match (found.contains_key(id), *fate) {
                (true, _) => Fate::Held,
                (false, Fate::Held) => {
                    self.fail(format!("entry {id} is lost"));
                    Fate::Gone
                }
                (false, _) => Fate::Gone,
            };
        }
        self.holds.replace(found.into_iter().collect());
    }
}

/// What entry `id` holds: head and data.
fn content(id: u64) -> (Vec<u8>, Vec<u8>) {
    let prng = &mut Prng::from_seed(id).stream("content");
    let mut head = id.to_le_bytes().to_vec();
    head.resize(8 + prng.below(200) as usize, id as u8);
    let mut data = vec![0; prng.below(4) as usize * BLOCK_BYTES];
    prng.fill(&mut data);
    (head, data)
}

/// Takes a drive out of use while there is another.
struct Expel(Vec<Rc<Member<SimWorld>>>);

impl Losses<SimWorld> for Expel {
    fn are_durable(&self) -> bool {
        true
    }

    fn absorb(
        &self,
        faults: Vec<DriveFault<SimWorld>>,
    ) -> LocalBoxFuture<'_, Result<(), DriveError>> {
        let expel = move || {
            for fault in faults {
                let others = self.0.iter().filter(|member| member.is_writable()).count();
                if fault.member.is_writable() && others == 1 {
                    return Err(fault.error);
                }
                fault.member.set_state(MemberState::Failed);
            }
            Ok(())
        };
        async move { expel() }.boxed_local()
    }
}

struct Run {
    spec: RingSpec,
    media: Vec<Rc<Media>>,
    /// Which are out of use for good.
    failed: RefCell<Vec<bool>>,
    formatted: Cell<bool>,
    books: Rc<Books>,
}

impl Run {
    fn new(prng: &mut Prng) -> Run {
        let copies = prng.between(1, 3) as usize;
        let blocks = prng.between(18, 60);
        let layout = match prng.chance(1, 4) {
            true => Layout::Adjacent,
            false => Layout::Apart,
        };
        Run::with(copies, blocks, layout, prng)
    }

    /// So many copies of a ring of so many blocks.
    fn with(copies: usize, blocks: u64, layout: Layout, prng: &Prng) -> Run {
        let media = |copy: usize| {
            let spec = MediaSpec::new(format!("copy{copy}"), (blocks + 8) * BLOCK_BYTES as u64);
            Rc::new(Media::new(
                spec,
                prng.clone().stream(&format!("media {copy}")),
            ))
        };
        Run {
            spec: RingSpec {
                label: "log",
                pool: Uuid::from_u128(3),
                salt: 4,
                at: DriveOffset(4 * BLOCK_BYTES as u64),
                len_bytes: blocks * BLOCK_BYTES as u64,
                layout,
            },
            media: (0..copies).map(media).collect(),
            failed: RefCell::new(vec![false; copies]),
            formatted: Cell::new(false),
            books: Rc::default(),
        }
    }

    /// Another drive that can take the same ring.
    fn beside(&self, media: Rc<Media>) -> Run {
        Run {
            spec: self.spec.clone(),
            media: vec![media],
            failed: RefCell::new(vec![false]),
            formatted: Cell::new(true),
            books: Rc::clone(&self.books),
        }
    }

    fn members(&self, world: &SimWorld) -> Vec<Rc<Member<SimWorld>>> {
        let failed = self.failed.borrow();
        let member = |(place, media): (usize, &Rc<Media>)| {
            let entry = MemberEntry {
                uuid: Uuid::from_u128(place as u128),
                group: 0,
                place: place as u16,
                state: match failed[place] {
                    true => MemberState::Failed,
                    false => MemberState::Healthy,
                },
                metadata: false,
                log: true,
                ordered_out: false,
                reserved: false,
                succeeds: None,
                capacity_bytes: media.spec().capacity_bytes,
                name: media.spec().name.clone(),
            };
            Rc::new(Member::new(
                world,
                View::new(Rc::new(SimDrive::adversarial(world, media)), Part::WHOLE),
                &entry,
            ))
        };
        self.media.iter().enumerate().map(member).collect()
    }

    /// A new ring.
    async fn format(
        &self,
        world: &SimWorld,
        members: Vec<Rc<Member<SimWorld>>>,
    ) -> Rc<Ring<SimWorld>> {
        let (stamps, losses) = (Rc::new(Cell::new(0)), Rc::new(Expel(members.clone())));
        let made = Ring::format(world.clone(), self.spec.clone(), members, stamps, losses);
        let ring = made.await.expect("a ring is made");
        self.formatted.set(true);
        ring
    }

    /// From format or recovery to the end, or to the cut.
    async fn boot(&self, world: &SimWorld, members: Vec<Rc<Member<SimWorld>>>) {
        let ring = if self.formatted.get() {
            let (stamps, losses) = (Rc::new(Cell::new(0)), Rc::new(Expel(members.clone())));
            // As the pool does: what a killed owner left in caches may be given out.
            for member in &members {
                if let Err(error) = member.flush().await {
                    let member = Rc::clone(member);
                    let fault = DriveFault { member, error };
                    losses.absorb(vec![fault]).await.expect("one is left");
                }
            }
            let recovered =
                Ring::recover(world.clone(), self.spec.clone(), members, stamps, losses).await;
            let (ring, entries) = recovered.expect("there is a ring");
            self.books.take_up(entries);
            ring
        } else {
            self.format(world, members).await
        };
        ring.set_reserve(world.prng("reserve").below(4) * BLOCK_BYTES as u64);
        let left = Rc::new(Cell::new(40));
        let clients = (0..3).map(|client| {
            let prng = world.prng(&format!("client {client}"));
            append(world, &ring, Rc::clone(&self.books), Rc::clone(&left), prng)
        });
        let trimmer = trim(world, &ring, &self.books, &left);
        let clients = futures_util::future::join_all(clients);
        futures_util::future::join(clients, trimmer).await;
    }
}

/// The entry `id`, in buffers of that world.
fn entry(world: &SimWorld, id: u64) -> Entry {
    let (head, data) = content(id);
    let data = match data.is_empty() {
        true => Default::default(),
        false => [world.buffers().copy_of(&data).freeze()]
            .into_iter()
            .collect(),
    };
    Entry { head, data }
}

async fn append(
    world: &SimWorld,
    ring: &Rc<Ring<SimWorld>>,
    books: Rc<Books>,
    left: Rc<Cell<u64>>,
    mut prng: Prng,
) {
    while left.get() > 0 {
        left.set(left.get() - 1);
        let ids: Vec<u64> = match prng.chance(1, 5) {
            true => (0..prng.between(1, 3)).map(|_| books.next()).collect(),
            false => vec![books.next()],
        };
        let entries: Vec<Entry> = ids.iter().map(|id| entry(world, *id)).collect();
        let appended = match prng.chance(1, 5) {
            true => ring.append_with_reserve(entries, prng.below(9000)).await,
            false => {
                let appends = entries.into_iter().map(|entry| ring.append(entry));
                Some(try_join_all(appends).await)
            }
        };
        books.note(ids, appended);
        let pause = Duration::from_nanos(prng.below(50_000));
        world.sleep(pause).await;
    }
    left.set(0);
}

/// Lets go of entries, mostly old ones, until nobody appends any more.
async fn trim(world: &SimWorld, ring: &Rc<Ring<SimWorld>>, books: &Books, left: &Cell<u64>) {
    let mut prng = world.prng("trim");
    while left.get() > 0 || ring.waits_for_room() {
        world.sleep(Duration::from_nanos(prng.below(100_000))).await;
        for _ in 0..prng.below(8) {
            let held = books.holds.borrow().len() as u64;
            if held > 0 {
                let which = prng.below(held).min(prng.below(held)) as usize;
                let (id, hold) = books.holds.borrow_mut().remove(which);
                books.fates.borrow_mut().insert(id, Fate::Loose);
                drop(hold);
            }
        }
        ring.trim().await.expect("a trim");
    }
}

/// One seed: what was wrong, if anything.
fn run(seed: u64, planted: Option<&str>) -> Option<String> {
    let prng = &mut Prng::from_seed(seed).stream("ring");
    let run = Run::new(prng);
    let victim = Rc::clone(prng.pick(&run.media));
    let mut now = Time(0);
    for boot in 0..BOOTS {
        if run.media.len() > 1 && run.formatted.get() {
            match prng.below(12) {
                0 => victim.with_faults(|faults| faults.gone = true),
                1..4 => {
                    let blocks = victim.spec().capacity_bytes / BLOCK_BYTES as u64;
                    (0..prng.between(1, 6)).for_each(|_| victim.corrupt(prng.below(blocks)));
                }
                _ => {}
            }
        }
        let stream = Prng::from_seed(seed).stream(&format!("boot {boot}"));
        let world = SimWorld::new(stream, Order::Shuffled, BufPool::new(), now);
        world.plant(planted);
        let members = run.members(&world);
        let polls_max = *prng.pick(&[40, 120, 400, u64::MAX]);
        let polls_max = prng.between(1, polls_max.min(4_000));
        let ended = world.run(polls_max, run.boot(&world, members.clone()));
        assert!(ended.is_ok(), "seed {seed}: it waits for ever");
        run.books.holds.take();
        for (place, member) in members.iter().enumerate() {
            run.failed.borrow_mut()[place] |= !member.is_writable();
        }
        match prng.chance(1, 4) {
            true => world.power_off(),
            false => world.power_cut(&run.media),
        }
        now = world.now() + Duration::from_secs(1);
        if run.books.wrong.borrow().is_some() {
            break;
        }
    }
    run.books.wrong.take()
}

#[test]
fn what_was_acknowledged_comes_back_once_in_order() {
    for seed in 1..120 {
        if let Some(wrong) = run(seed, None) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

#[test]
fn bugs_of_the_log_are_noticed() {
    for (bug, seeds) in [
        ("ack before the second log copy", 100),
        ("log copies not made equal", 100),
        ("log incarnation not checked", 300),
        ("log trimmed before it is durable", 100),
    ] {
        // A bug may also show as an assertion that fails.
        let noticed = |seed| {
            let outcome = std::panic::catch_unwind(|| run(seed, Some(bug)));
            outcome.map_or(true, |wrong| wrong.is_some())
        };
        assert!((1..seeds).any(noticed), "{bug} in {seeds} seeds");
    }
}

/// Appends an entry and holds it.
async fn append_held(world: &SimWorld, ring: &Rc<Ring<SimWorld>>, run: &Run, id: u64) {
    let (head, data) = content(id);
    let data = data.chunks(BLOCK_BYTES);
    let data = data.map(|block| world.buffers().copy_of(block).freeze());
    let entry = Entry {
        head,
        data: data.collect(),
    };
    let appended = ring.append(entry).await.expect("it is durable");
    run.books.fates.borrow_mut().insert(id, Fate::Held);
    run.books.holds.borrow_mut().push((id, appended.hold));
}

/// Compares what these drives alone have with what must be there.
async fn recover_from(world: &SimWorld, run: &Run, drives: Vec<Rc<Member<SimWorld>>>) {
    let losses = Rc::new(Expel(drives.clone()));
    let (stamps, spec) = (Rc::new(Cell::new(0)), run.spec.clone());
    match Ring::recover(world.clone(), spec, drives, stamps, losses).await {
        Ok((_, entries)) => run.books.take_up(entries),
        Err(error) => run.books.fail(error.to_string()),
    }
}

/// Appends to a ring over two copies, damages all that the first has of it, takes in a
/// third drive, and recovers from that one alone.
fn copied_from_a_damaged_copy(planted: Option<&str>) -> Option<String> {
    let mut run = Run::new(&mut Prng::from_seed(5));
    let mut all = run.media.clone();
    while all.len() < 3 {
        let more = Run::new(&mut Prng::from_seed(5).stream("more"));
        all.extend(more.media);
    }
    all.truncate(3);
    run.media = all;
    let third = run.media.pop().unwrap();
    run.failed = RefCell::new(vec![false; 2]);
    let world = SimWorld::new(Prng::from_seed(6), Order::Shuffled, BufPool::new(), Time(0));
    world.plant(planted);
    let outcome = world.run(u64::MAX, async {
        let ring = run.format(&world, run.members(&world)).await;
        for id in 1..=5 {
            append_held(&world, &ring, &run, id).await;
        }
        let first = run.spec.at.0 / BLOCK_BYTES as u64;
        let end = first + run.spec.len_bytes / BLOCK_BYTES as u64;
        (first + 2..end).for_each(|block| run.media[0].corrupt(block));
        let taken_in = run.beside(third).members(&world);
        let added = ring.add_member(Rc::clone(&taken_in[0])).await;
        added.expect("the drive takes the log");
        recover_from(&world, &run, taken_in).await;
    });
    world.power_off();
    assert!(matches!(outcome, Ok(Outcome::Done(()))), "it has an end");
    run.books.wrong.take()
}

#[test]
fn another_drive_gets_whole_batches_only() {
    assert_eq!(copied_from_a_damaged_copy(None), None);
    let bug = Some("log copied unverified");
    assert!(copied_from_a_damaged_copy(bug).is_some(), "nobody noticed");
}

/// How long it took a slow drive to take a ring in, the longest append meanwhile, and what was wrong
/// with what that drive has afterwards.
fn copied_beside_appends(planted: Option<&str>) -> (Duration, Duration, Option<String>) {
    const BLOCKS: u64 = 2000;
    let mut run = Run::with(2, BLOCKS, Layout::Apart, &Prng::from_seed(7));
    let slow = Run::with(1, BLOCKS, Layout::Apart, &Prng::from_seed(8)).media;
    slow[0].with_faults(|faults| faults.slowdown = 10);
    let slow = run.beside(Rc::clone(&slow[0]));
    run.failed = RefCell::new(vec![false; 2]);
    let world = SimWorld::new(Prng::from_seed(9), Order::Shuffled, BufPool::new(), Time(0));
    world.plant(planted);
    let (took, longest) = (Cell::new(Duration::ZERO), Cell::new(Duration::ZERO));
    let outcome = world.run(u64::MAX, async {
        let ring = run.format(&world, run.members(&world)).await;
        for id in 1..=200 {
            append_held(&world, &ring, &run, id).await;
        }
        let (taken_in, is_added) = (slow.members(&world), Cell::new(false));
        let add = async {
            let begin = world.now();
            let added = ring.add_member(Rc::clone(&taken_in[0])).await;
            added.expect("the drive takes the log");
            took.set(world.now().since(begin));
            is_added.set(true);
        };
        let append = async {
            for id in (201..=700).take_while(|_| !is_added.get()) {
                let begin = world.now();
                append_held(&world, &ring, &run, id).await;
                longest.set(longest.get().max(world.now().since(begin)));
                world.sleep(Duration::from_millis(50)).await;
            }
        };
        join(add, append).await;
        recover_from(&world, &run, taken_in).await;
    });
    world.power_off();
    assert!(matches!(outcome, Ok(Outcome::Done(()))), "it has an end");
    (took.get(), longest.get(), run.books.wrong.take())
}

#[test]
fn appends_wait_for_the_last_part_of_a_copy_only() {
    let (took, longest, wrong) = copied_beside_appends(None);
    assert_eq!(wrong, None);
    assert!(longest < took / 4, "{longest:?} of {took:?}");
    let bug = Some("log moved without what came meanwhile");
    let (_, _, wrong) = copied_beside_appends(bug);
    assert!(wrong.is_some(), "nobody noticed");
}
