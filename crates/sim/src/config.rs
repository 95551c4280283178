//! The configuration that a seed draws before its run: pool, drives, mix of requests.

use crate::kinds::Kind;
use crate::seed::Seed;
use crate::shapes::{draw_lanes, draw_shape, draw_spread, drive_sizes, suit_spread};
use base::{BLOCK_BYTES, Prng, SECTOR_BYTES};
use engine::label::Spacing;
use engine::layout::Layout;
use engine::pool::maintenance::Rates;
use engine::pool::maintenance::fullness::Thresholds;
use engine::pool::maintenance::health::Limits;
use engine::raid::{Code, Geometry, Protection, Spread};
use engine::{Level, PoolSpec};
use std::collections::BTreeSet;
use std::time::Duration;

/// Faults that only some runs have, beside those of all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Theme {
    /// Victims hang for ever, at once or after they were slow for a while.
    Hangs,
    /// Flushes fail, writes of sums fail, everything fails for a while.
    Errors,
    /// Victims are dead device nodes at an opening, or not there, and come back later.
    Openings,
    /// Damage spreads to the neighbours within a unit of flash.
    FlashUnits,
    /// More is lost, while the pool runs or for moments of an opening, than it can do without,
    /// and comes back.
    Outages,
    /// The process stands still for up to a minute.
    Pauses,
    /// Pools are closed while requests are under way.
    Closes,
    /// Long rests, and many small writes: the intent log has moved on when the data log
    /// has not.
    Rests,
    /// Drives fail under moves and under initiators, too.
    Beside,
    /// A group for the logs comes, loses drives and goes.
    LogGroups,
    /// Drives are copied to new ones, and leave. Also those that must not be lost.
    Copies,
    /// As `Copies`, and the power goes soon after a copy has begun or ended.
    CopyCuts,
    /// Victims take turns, at nearly every opening.
    Turns,
    /// As `Turns`, and the power goes soon after a drive goes out of use, before or after
    /// anybody knows of it.
    Losses,
    /// As `Losses`, and labels take long: others may be answered before them.
    Labels,
    /// As `Turns` after `Rests`, and the power goes while the tails of logs move: of one
    /// log, and not of the other.
    Tails,
    /// As `LogGroups`, labels take long, and the power goes soon after the logs were copied to other
    /// drives.
    LogMoves,
    /// Groups leave; logs are damaged, and the power goes soon after one was moved.
    Departures,
    /// Many small writes at the same few places, and the power goes soon after some were
    /// put into one batch.
    Appends,
    /// Drives are rebuilt, and no drive takes sums for a moment.
    Rebuilds,
    /// Readers in order beside writers, with all that is read ahead in RAM.
    Scans,
    /// Lanes of a pool that is nearly full ask each other for zones.
    Lanes,
    /// Groups with distributed spares; once what a failed drive held is on these, others fail.
    Spread,
    /// As `Spread`, and the power goes soon after a place came to stand on another drive.
    SpreadCuts,
    /// The run of initiators, of every seed, and no other; its pools run full.
    Initiators,
    /// The run of hosts with paths, of every seed, and no other.
    Paths,
    /// The run of administrators, of every seed, and no other.
    Operations,
    /// The run of drives that come and go, of every seed, and no other.
    Drives,
    /// The run of pools that come and go, of every seed, and no other.
    Pools,
    /// The run of site files that are applied, of every seed, and no other.
    Sites,
}

impl Theme {
    /// Whether no seed draws it: one that has it is a run of that kind, and no other.
    pub fn is_on_request(self) -> bool {
        THEMES.contains(&(self, 0))
    }
}

/// Among how many runs that can have it one has a theme. Those with 0 are there on request
/// only: they are kinds of runs rather than faults, for what needs many things at once.
pub const THEMES: &[(Theme, u64)] = &[
    (Theme::Hangs, 4),
    (Theme::Errors, 4),
    (Theme::Openings, 4),
    (Theme::FlashUnits, 4),
    (Theme::Outages, 3),
    (Theme::Pauses, 8),
    (Theme::Closes, 4),
    (Theme::Rests, 8),
    (Theme::Beside, 3),
    (Theme::LogGroups, 6),
    (Theme::Copies, 4),
    (Theme::CopyCuts, 0),
    (Theme::Turns, 0),
    (Theme::Losses, 0),
    (Theme::Labels, 0),
    (Theme::Tails, 0),
    (Theme::LogMoves, 0),
    (Theme::Departures, 0),
    (Theme::Appends, 0),
    (Theme::Rebuilds, 0),
    (Theme::Scans, 0),
    (Theme::Lanes, 0),
    (Theme::Spread, 0),
    (Theme::SpreadCuts, 0),
    (Theme::Initiators, 0),
    (Theme::Paths, 0),
    (Theme::Operations, 0),
    (Theme::Drives, 0),
    (Theme::Pools, 0),
    (Theme::Sites, 0),
];

/// The themes of these names, in any case; empty names are none.
///
/// # Errors
/// The name that is none.
pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<BTreeSet<Theme>, String> {
    let named = |name: &str| {
        let mut all = THEMES.iter().map(|(theme, _)| *theme);
        let found = all.find(|theme| format!("{theme:?}").eq_ignore_ascii_case(name));
        found.ok_or_else(|| format!("there is no theme '{name}'"))
    };
    let names = names.into_iter().map(str::trim);
    names.filter(|name| !name.is_empty()).map(named).collect()
}

/// The themes that `seed` draws, whether its run can have them or not.
pub fn themes(seed: &Seed) -> BTreeSet<Theme> {
    if let Some(wished) = seed.wished() {
        return wished.clone();
    }
    let drawn = |(theme, one_of): &(Theme, u64)| {
        // Each has a stream of its own: another one's weight changes nothing.
        let mut prng = seed.stream(&format!("theme {theme:?}"));
        (*one_of > 0 && prng.chance(1, *one_of)).then_some(*theme)
    };
    THEMES.iter().filter_map(drawn).collect()
}

/// Everything about a run that is settled before it begins.
#[derive(Clone, Debug)]
pub struct Config {
    /// The pool to create.
    pub pool: PoolSpec,
    /// Lanes of the pool.
    pub lanes: u16,
    /// Groups of that many drives, all of the pool's level.
    pub groups: usize,
    /// Drives of each group.
    pub drives_of_group: usize,
    /// Distributed spares of these groups.
    pub spread: Option<Spread>,
    /// Drives that wait to stand in.
    pub spares: usize,
    /// Capacity of each drive, by its place; then of each spare.
    pub drive_bytes: Vec<u64>,
    /// Whether the drives take discards.
    pub discards: bool,
    /// Whether the drives lie about flushes. Only to prove that the checker works.
    pub drives_ignore_flush: bool,
    /// Whether drives fail, within what the redundancy allows.
    pub damage: bool,
    /// Whether drives only go away, fail to write or answer late, and hide nothing: so
    /// that those which were sound may go next, while these are back.
    pub turns: bool,
    /// Whether more is damaged, between two boots, than the redundancy covers.
    pub beyond: bool,
    /// The level that groups go to while they are used.
    pub level_later: Option<Level>,
    /// A group that is added: level and drives, as large as the smallest of the others.
    pub group_later: Option<(Level, usize)>,
    /// A group for the logs: level and drives, and whether the pool is made with it.
    pub log_group: Option<(Level, usize, bool)>,
    /// Whether groups may leave.
    pub groups_leave: bool,
    /// Whether boots are short: what one recovery leaves, the next one finds.
    pub hasty: bool,
    /// Writes of whole pages among 8 writes.
    pub whole_pages_of_8: u64,
    /// Among 16 changes of the administrator's, those that clone a volume.
    pub clones_of_16: u64,
    /// Among 16 changes of the administrator's, those of the attributes of volumes. Drawn
    /// from the stream "words", whose name stays: all seeds would change.
    pub attributes_of_16: u64,
    /// Among 8 writes, those that copy a range instead.
    pub copies_of_8: u64,
    /// Among 16 changes of the administrator's, those that shrink a volume.
    pub shrinks_of_16: u64,
    /// Among 8 writes, those that clear instead.
    pub clears_of_8: u64,
    /// Among 8 writes, those that are zeroes, as a whole or from some page on.
    pub zeroes_of_8: u64,
    /// Among 16 changes of the administrator's, those of how a volume takes space.
    pub conversions_of_16: u64,
    /// From which percentages on the pool tells that it gets full.
    pub thresholds: Thresholds,
    /// How often pages are looked for that lie over others, in microseconds.
    pub fill_pause_us: u64,
    /// Blocks of sums kept in RAM.
    pub sums_blocks: usize,
    /// Bytes of the read cache.
    pub cache_bytes: u64,
    /// How blocks and their sums go in place.
    pub destage: Destage,
    /// Requests in the whole run.
    pub operations: u64,
    /// Clients that issue requests side by side.
    pub clients: u64,
    /// Reads among 100 requests.
    pub reads_of_100: u64,
    /// Reads among 100 that go on in order from where they began.
    pub scans_of_100: u64,
    /// The most sectors of one read or write.
    pub request_sectors_max: u64,
    /// Whether clients rest for longer than the log waits, now and then: what is in place
    /// is in the log, too, for a while.
    pub rests: bool,
    /// The longest pause of a client between two requests, beside other pauses, in
    /// microseconds; none as a rule.
    pub think_us_max: u64,
    /// Runs of sectors that most requests start in; few make overlaps common.
    pub hot_spots: u64,
    /// How fast work in the background is to be.
    pub rates: Rates,
    /// The most bytes of a volume.
    pub volume_bytes_max: u64,
    /// The most volumes at a time.
    pub volumes: u64,
    /// Deletions among 16 changes of volumes.
    pub deletions_of_16: u64,
    /// The longest pause between changes of volumes, in microseconds.
    pub pause_us_max: u64,
    /// How many times slower than others each drive is, by its place.
    pub slowdown: Vec<u32>,
    /// From when on a drive is not trusted.
    pub health: Limits,
    /// Faults that only some runs have.
    pub themes: BTreeSet<Theme>,
}

/// What is done to groups in a run.
struct Later {
    level: Option<Level>,
    group: Option<(Level, usize)>,
    leave: bool,
}

impl Later {
    const NOTHING: Later = Later {
        level: None,
        group: None,
        leave: false,
    };

    fn draw(prng: &mut Prng, level: Level, drives: usize) -> Later {
        let mut levels = Vec::new();
        if matches!(level, Level::Raid10 { .. } | Level::Raid50) && drives >= 4 {
            levels.push(Level::Raid6);
        }
        if level == (Level::Raid10 { copies: 2 }) && drives >= 6 {
            levels.push(Level::Raid50);
        }
        let goes = prng.chance(1, 3) && !levels.is_empty();
        let groups = [
            (Level::Raid10 { copies: 2 }, 2),
            (Level::Raid5, 3),
            (Level::Raid6, 4),
            (Level::Raid10 { copies: 3 }, 3),
        ];
        let grows = prng.chance(1, 4);
        let group = *prng.pick(&groups);
        Later {
            level: goes.then(|| *prng.pick(&levels)),
            group: grows.then_some(group),
            leave: prng.chance(1, 4),
        }
    }

    /// What of it a run of this kind has.
    fn of_kind(self, kind: &Kind) -> Later {
        match (kind.turns, kind.leave) {
            (true, _) => Later::NOTHING,
            (false, leave) => Later {
                leave: self.leave || leave,
                ..self
            },
        }
    }

    /// What of it such groups can have: those with distributed spares keep their level.
    fn beside(self, spread: Option<Spread>) -> Later {
        Later {
            level: self.level.filter(|_| spread.is_none()),
            ..self
        }
    }

    fn is_nothing(&self) -> bool {
        self.level.is_none() && self.keeps_groups()
    }

    /// Whether groups stay as many as they are.
    fn keeps_groups(&self) -> bool {
        self.group.is_none() && !self.leave
    }
}

impl Config {
    /// What `seed` draws. `operations` replaces its own count of requests.
    pub fn draw(seed: &Seed, operations: Option<u64>) -> Config {
        let (prng, themes) = (&mut seed.stream("config"), &mut seed.stream("themes"));
        let of_seed = self::themes(seed);
        let kind = Kind::of(&of_seed);
        let drawn = draw_shape(prng, &kind);
        let (level, drives_of_group, spread) =
            draw_spread(&mut seed.stream("spread"), drawn, &kind);
        let (pool, volumes) = draw_pool((prng, themes), seed, level, &kind);
        let pool = suit_spread(suit_rests(pool, &of_seed), spread);
        let page_bytes = pool.page_bytes;
        let groups = draw_groups(prng, drives_of_group, &kind);
        let damage = level != Level::Simple && (prng.chance(1, 2) || kind.damage) && !kind.sound;
        let hasty = themes.chance(1, 5);
        let drawn = match hasty {
            true => prng.between(40, 300),
            false => prng.between(200, 1200),
        };
        let spares = kind.spares_of(if damage { prng.below(3) } else { 0 });
        let drives = drives_of_group * groups;
        let lanes = draw_lanes(&mut seed.stream("lanes"), &pool, drives);
        let drive_bytes = drive_sizes(prng, &pool, (drives, spread), (spares, lanes));
        let page_sectors = u64::from(page_bytes) / SECTOR_BYTES as u64;
        let later = Later::draw(&mut seed.stream("later"), level, drives_of_group as usize);
        let later = later.of_kind(&kind).beside(spread);
        let space = &mut seed.stream("space");
        let copies = &mut seed.stream("copies");
        let copies_of_8 = *copies.pick(&[0, 0, 1, 3]);
        let chunks = has_chunks(copies, page_bytes, copies_of_8);
        Config {
            drive_bytes,
            lanes: lanes as u16,
            groups: groups as usize,
            drives_of_group: drives_of_group as usize,
            spread,
            spares: spares as usize,
            discards: prng.chance(1, 2),
            drives_ignore_flush: false,
            damage,
            turns: damage
                && (themes.chance(1, 2) || kind.turns)
                && !kind.leave
                && later.is_nothing(),
            beyond: !damage && loses_blocks(prng, &later),
            hasty,
            whole_pages_of_8: *themes.pick(&[0, 0, 2, 6]),
            clones_of_16: *seed.stream("clones").pick(&[0, 0, 3, 6]),
            attributes_of_16: *seed.stream("words").pick(&[0, 0, 3, 6]),
            copies_of_8,
            shrinks_of_16: *copies.pick(&[0, 0, 2, 4]),
            clears_of_8: *seed.stream("clears").pick(&[0, 0, 1, 3]),
            zeroes_of_8: *space.pick(&[0, 0, 1, 3]),
            conversions_of_16: *space.pick(&[0, 1, 4]),
            thresholds: thresholds(space),
            fill_pause_us: *seed.stream("fills").pick(&[20, 500, 500_000]),
            level_later: later.level,
            group_later: later.group,
            groups_leave: later.leave,
            log_group: None,
            sums_blocks: *prng.pick(&[1, 2, 8, 1000]),
            cache_bytes: *prng.pick(&[0, 20_000, 200_000, 1 << 20, 4 << 20]),
            destage: Destage::of(seed),
            operations: operations.unwrap_or(drawn),
            clients: prng.between(1, 8),
            reads_of_100: *prng.pick(&[10, 30, 50, 70]),
            scans_of_100: *seed.stream("scans").pick(&[0, 1, 20]),
            rests: seed.stream("rests").chance(1, 4),
            rates: rates(&mut seed.stream("rates")),
            think_us_max: 0,
            request_sectors_max: (page_sectors * prng.between(1, 4)).clamp(8, 512),
            hot_spots: prng.between(1, 12),
            volume_bytes_max: volume_bytes(u64::from(page_bytes) * prng.between(1, 16), chunks),
            volumes,
            deletions_of_16: *prng.pick(&[1, 3, 8]),
            pause_us_max: *prng.pick(&[50, 500, 3_000]),
            slowdown: slowdowns(prng, drives + spares),
            health: Limits::default(),
            themes: BTreeSet::new(),
            pool,
        }
        .with_themes(seed)
    }

    /// Takes what it can have of the themes that `seed` draws.
    fn with_themes(mut self, seed: &Seed) -> Config {
        let redundant = self.pool.level != Level::Simple;
        let can = |theme: &Theme| match theme {
            Theme::Hangs | Theme::Errors | Theme::Openings => self.damage,
            // What is lost so comes back as something else.
            Theme::FlashUnits => self.damage && !self.turns,
            Theme::Outages => redundant && !self.damage && !self.beyond,
            Theme::Pauses | Theme::Closes | Theme::Rests => true,
            Theme::LogGroups | Theme::LogMoves | Theme::Copies | Theme::CopyCuts => true,
            Theme::Turns | Theme::Losses | Theme::Labels | Theme::Tails => self.turns,
            Theme::Departures => self.groups_leave && self.damage,
            Theme::Rebuilds => redundant,
            Theme::Appends | Theme::Scans | Theme::Lanes => true,
            Theme::Spread | Theme::SpreadCuts => {
                self.spread.is_some() && self.damage && !self.turns
            }
            // Of the other runs of a seed.
            Theme::Beside | Theme::Initiators | Theme::Paths => false,
            Theme::Operations | Theme::Drives | Theme::Pools | Theme::Sites => false,
        };
        self.themes = themes(seed).into_iter().filter(can).collect();
        if self.has(Theme::Rests) || self.has(Theme::Tails) {
            let page_sectors = u64::from(self.pool.page_bytes) / SECTOR_BYTES as u64;
            self.rests = true;
            self.whole_pages_of_8 = 3;
            self.request_sectors_max = self.request_sectors_max.max(page_sectors);
        }
        if self.has(Theme::LogGroups) || self.has(Theme::LogMoves) {
            self.log_group = Some(log_group(&mut seed.stream("log group"), &self));
        }
        self.suit_kind(seed);
        let may_fail = self.damage || self.has(Theme::Outages);
        self.health = health(seed, may_fail);
        self.suit_copies(may_fail);
        self
    }
}

impl Config {
    /// Whether the run has these faults.
    pub fn has(&self, theme: Theme) -> bool {
        self.themes.contains(&theme)
    }

    /// Whether drives go away, fail or are damaged.
    pub fn is_struck(&self) -> bool {
        self.damage || self.beyond || self.has(Theme::Outages)
    }

    /// The longest that an operation of few steps may take: time-outs one after the other,
    /// since a drive may begin to hang after another was given up.
    pub fn patience(&self) -> Duration {
        patience(&self.health, self.is_struck())
    }

    /// The same, while the pool has the usual limits: until it is open.
    pub fn patience_at_openings(&self) -> Duration {
        patience(&Limits::default(), self.is_struck())
    }

    /// How the drives of its groups protect each other.
    pub fn protection(&self) -> Protection {
        Protection {
            level: self.pool.level,
            spread: self.spread,
        }
    }

    /// The sets of a group's drives of which so many may fail at once, at that level. In a spread group
    /// any drives meet in some zone.
    pub fn spans(&self, level: Level) -> Option<Geometry> {
        let (drives, unit) = (self.drives_of_group, BLOCK_BYTES as u64);
        let code = match level.redundancy() {
            1 => Code::P,
            _ => Code::PQ,
        };
        match self.spread {
            None => Geometry::of(level, drives, unit).ok(),
            Some(_) => Some(Geometry {
                spans: 1,
                width: drives,
                code,
                unit_bytes: unit,
            }),
        }
    }

    /// Whether groups neither come nor go.
    pub fn keeps_groups(&self) -> bool {
        self.group_later.is_none() && self.log_group.is_none() && !self.groups_leave
    }

    /// Whether volumes may share pages.
    pub fn shares(&self) -> bool {
        self.clones_of_16 > 0 || self.copies_of_8 > 0
    }
}

/// The longest that an operation on a drive takes that fails by nothing else.
const SLOWEST: Duration = Duration::from_millis(5 * 30);

/// Operations on drives that one of a volume may have to wait for, one after the other:
/// those that are answered, and those that a drive hangs in.
const IN_TURN: u32 = 64;
const HANG_IN_TURN: u32 = 4;

/// See [`Config::patience`]: with these limits, on drives that may fail or never do.
pub fn patience(limits: &Limits, may_fail: bool) -> Duration {
    // A drive that hangs is looked for several times in a window.
    let given_up = limits.hung + limits.window;
    let hangs = if may_fail { HANG_IN_TURN } else { 0 };
    SLOWEST * IN_TURN + given_up * hangs
}

/// The pool to create, and how many volumes it has at a time.
fn draw_pool(
    (prng, themes): (&mut Prng, &mut Prng),
    seed: &Prng,
    level: Level,
    kind: &Kind,
) -> (PoolSpec, u64) {
    let power = |prng: &mut Prng, low, high| 1u32 << prng.between(low, high);
    let largest = if prng.chance(1, 8) { 18 } else { 15 };
    let page_bytes = power(prng, 12, largest);
    let volumes = match themes.chance(1, 8) {
        true => prng.between(8, 40),
        false => prng.between(1, 5),
    };
    let volumes = kind.volumes.unwrap_or(volumes);
    let stripe_unit_bytes = power(prng, 12, 15);
    let zone_bytes = u64::from(stripe_unit_bytes.max(page_bytes)) * *prng.pick(&[1, 2, 4]);
    // Smaller ones would drown in what the metadata keeps for each.
    let zone_bytes = zone_bytes.max(16 << 10);
    let (layout, spacing) = version(seed);
    let pool = PoolSpec {
        stripe_unit_bytes,
        page_bytes,
        journal_bytes: Some(4096 * *prng.pick(&[2, 2, 3, 4, 8, 64])),
        zone_bytes: Some(zone_bytes),
        log_bytes: Some(4096 * *prng.pick(&[32, 40, 64, 200])),
        intent_bytes: Some(4096 * *prng.pick(&[16, 32, 100])),
        volumes_max: (volumes + prng.below(3)) as u32,
        map_page_bytes: map_page_bytes(seed),
        layout,
        spacing,
        ..PoolSpec::new("sim", level)
    };
    (pool, volumes)
}

/// The same pool, as runs of themes with rests need it.
fn suit_rests(pool: PoolSpec, themes: &BTreeSet<Theme>) -> PoolSpec {
    let has_tails = themes.contains(&Theme::Tails);
    let pool = match pool.level {
        Level::Raid5 | Level::Raid50 | Level::Raid6
            if has_tails || themes.contains(&Theme::Rests) =>
        {
            of_long_rests(pool)
        }
        _ => pool,
    };
    match has_tails {
        // A stripe has blocks of several.
        true => PoolSpec {
            page_bytes: 4096,
            zone_bytes: Some(128 << 10),
            ..pool
        },
        false => pool,
    }
}

/// How many groups there are.
fn draw_groups(prng: &mut Prng, drives_of_group: u64, kind: &Kind) -> u64 {
    let most = if drives_of_group > 4 { 1 } else { 3 };
    let groups = match prng.chance(1, 3) {
        true => prng.between(1, most),
        false => 1,
    };
    match (kind.leave, kind.alone) {
        (true, _) => most,
        (false, true) => 1,
        (false, false) => groups,
    }
}

/// Room for maps in the checkpoints: as usual, or hardly enough, or too little.
fn map_page_bytes(seed: &Prng) -> Option<u32> {
    let mut prng = seed.stream("room for maps");
    prng.chance(1, 6).then(|| *prng.pick(&[1, 2, 4]))
}

/// Where twins lie, and how page numbers are spaced: as in a pool of this version, or of one before.
fn version(seed: &Prng) -> (Layout, Spacing) {
    if seed.stream("layout").chance(1, 4) {
        return (Layout::Adjacent, Spacing::Widest);
    }
    match seed.stream("spacing").chance(1, 4) {
        true => (Layout::Apart, Spacing::Widest),
        false => (Layout::Apart, Spacing::Own),
    }
}

/// Whole stripes go around the log, whose entries outlive those of the intents: small units
/// in larger pages, many data blocks to each intent.
fn of_long_rests(pool: PoolSpec) -> PoolSpec {
    let page_bytes = pool.page_bytes.clamp(16 << 10, 64 << 10);
    PoolSpec {
        stripe_unit_bytes: 4096,
        page_bytes,
        zone_bytes: Some(2 * u64::from(page_bytes)),
        log_bytes: Some(4096 * 400),
        intent_bytes: Some(4096 * 16),
        ..pool
    }
}

/// Whether blocks are damaged beyond redundancy: often where zones are emptied for another level.
fn loses_blocks(prng: &mut Prng, later: &Later) -> bool {
    let is_drawn = match later.level {
        Some(_) => prng.chance(2, 3),
        None => prng.chance(1, 6),
    };
    is_drawn && later.keeps_groups()
}

/// Whether volumes are large enough for whole chunks of maps.
fn has_chunks(prng: &mut Prng, page_bytes: u32, copies_of_8: u64) -> bool {
    page_bytes == 4096 && copies_of_8 > 0 && prng.chance(1, 3)
}

/// The most bytes of a volume, of so many drawn.
fn volume_bytes(drawn: u64, has_chunks: bool) -> u64 {
    match has_chunks {
        true => 3 << 20,
        false => drawn.min(1 << 20),
    }
}

/// Rebuilds that have to hurry, from their beginning or later; scrubs that begin by themselves.
fn rates(prng: &mut Prng) -> Rates {
    let ms = Duration::from_millis;
    let usual = Rates::default();
    Rates {
        rebuild_within: *prng.pick(&[None, usual.rebuild_within, Some(ms(1)), Some(ms(500))]),
        scrub_within: *prng.pick(&[None, None, None, Some(ms(100)), Some(ms(3_000))]),
        ..usual
    }
}

/// How blocks and their sums go in place.
#[derive(Clone, Copy, Debug)]
pub struct Destage {
    /// Stripes on their way at the same time; as the drives say, where none is given. As few as one:
    /// then all stripes wait for each other.
    pub window_stripes: Option<usize>,
    /// Blocks of sums that are written together; as the drives say, where none is given.
    pub part_blocks: Option<usize>,
    /// Whether what changes in sums is recorded in the log, as on disks.
    pub records_sums: Option<bool>,
}

impl Destage {
    fn of(seed: &Prng) -> Self {
        let window = [None, None, Some(1), Some(2), Some(9)];
        Destage {
            window_stripes: *seed.stream("window").pick(&window),
            part_blocks: *seed.stream("parts").pick(&[None, Some(1), Some(3)]),
            records_sums: *seed.stream("records").pick(&[None, Some(true), Some(true)]),
        }
    }
}

/// As strong as every group that the pool has or comes to have, as a rule.
fn log_group(prng: &mut Prng, config: &Config) -> (Level, usize, bool) {
    let level = config.pool.level;
    let later = config.group_later.map(|(level, _)| level);
    let later = later.into_iter().chain(config.level_later);
    let strongest = later.map(|level| level.redundancy()).max();
    let strongest = strongest.filter(|_| prng.chance(7, 8)).unwrap_or(0);
    let triple = (Level::Raid10 { copies: 3 }, 3);
    let shapes = match level.redundancy().max(strongest) {
        0 => vec![(Level::Simple, 1), (Level::Raid10 { copies: 2 }, 2)],
        1 => vec![
            (Level::Raid10 { copies: 2 }, 2),
            (Level::Raid10 { copies: 2 }, 4),
            triple,
        ],
        _ => vec![triple],
    };
    let (level, drives) = *prng.pick(&shapes);
    (level, drives, prng.chance(1, 2))
}

/// Windows short enough for a boot to have many. Only drives that are struck
/// (`damage`) may be given up; the others never take as long as `hung` for anything.
fn health(seed: &Prng, damage: bool) -> Limits {
    let (prng, hedges) = (
        &mut seed.stream("health limits"),
        &mut seed.stream("hedges"),
    );
    let usual = Limits {
        // A spare may be struck, and a drive that it succeeds must not be.
        copied_after: Limits::default().copied_after.filter(|_| !damage),
        ..Limits::default()
    };
    if prng.chance(1, 3) {
        return usual;
    }
    Limits {
        window: Duration::from_millis(*prng.pick(&[2, 10, 50])),
        bad_windows: prng.between(1, 2) as u32,
        quiet_windows: prng.between(1, 4) as u32,
        errors: prng.between(1, 4),
        errors_out: if damage {
            *prng.pick(&[4, 20, 1_000])
        } else {
            usual.errors_out
        },
        slow: Duration::from_micros(*prng.pick(&[300, 2_000, 20_000])),
        ratio: prng.between(2, 8) as u32,
        operations: prng.between(2, 8),
        hung: Duration::from_millis(if damage {
            *prng.pick(&[200, 1_000, 6_000])
        } else {
            30_000
        }),
        hedge: Duration::from_millis(*hedges.pick(&[1, 20, 300])),
        copied_after: usual.copied_after,
    }
}

fn thresholds(prng: &mut Prng) -> Thresholds {
    let warn_percent = prng.between(5, 90);
    Thresholds {
        warn_percent: warn_percent as u8,
        alarm_percent: prng.between(warn_percent, 100) as u8,
    }
}

/// Drives of one speed, or some that lag behind their copies.
fn slowdowns(prng: &mut Prng, drives: u64) -> Vec<u32> {
    let uneven = prng.chance(1, 3);
    let slowdown = |_| match uneven {
        true => *prng.pick(&[1, 1, 5, 30]),
        false => 1,
    };
    (0..drives).map(slowdown).collect()
}
