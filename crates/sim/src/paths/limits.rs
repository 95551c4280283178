//! Limits of volumes, as an administrator sets them, and what hosts get.
//!
//! What is checked:
//! - After a start, limits are as they were acknowledged; those of a change that was cut short are
//!   those before or after it.
//! - Of the commands that are sent from the acknowledgement on, hosts get no more than the limits
//!   let go. The array's own sums have no part in that.

use super::array::Array;
use super::{Books, Unit};
use array::control::limits;
use base::{Prng, SECTOR_BYTES, Time};
use engine::World;
use engine::qos::{Limits, Rate};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use world_sim::SimWorld;

/// Among so many boots one has new limits.
const ONE_OF: u64 = 3;

/// A volume may be ahead of its limit by so long.
const SLACK: Duration = Duration::from_millis(10);

/// The limits of one unit's volume, and what hosts got.
#[derive(Default)]
pub(super) struct Limited {
    /// What was acknowledged, and what may have come instead.
    said: Cell<Limits>,
    coming: Cell<Option<Limits>>,
    /// What commands sent since then got; none while that is not known.
    got: RefCell<Option<Got>>,
}

/// What commands got.
struct Got {
    since: Time,
    ios: u64,
    bytes: u64,
    /// Of one command: the first goes whatever it costs.
    most_ios: u64,
    most_bytes: u64,
}

impl Limited {
    /// All that is sent from now on counts.
    fn begin(&self, now: Time) {
        self.got.replace(Some(Got {
            since: now,
            ios: 0,
            bytes: 0,
            most_ios: 0,
            most_bytes: 0,
        }));
    }

    /// Nothing counts until the next [`Limited::begin`].
    fn forget(&self) {
        self.got.replace(None);
    }

    /// A command of so many bytes was sent at an instant, and has ended well.
    ///
    /// # Errors
    /// Hosts got more than the limits let go.
    fn ended(&self, sent: Time, bytes: u64, now: Time) -> Result<(), String> {
        let (limits, mut got) = (self.said.get(), self.got.borrow_mut());
        let Some(got) = got.as_mut().filter(|got| got.since <= sent) else {
            return Ok(());
        };
        let ios = match limits.io_bytes {
            Some(unit) => bytes.div_ceil(u64::from(unit)).max(1),
            None => 1,
        };
        (got.ios, got.most_ios) = (got.ios + ios, got.most_ios.max(ios));
        (got.bytes, got.most_bytes) = (got.bytes + bytes, got.most_bytes.max(bytes));
        let time_s = (now.since(got.since) + SLACK).as_secs_f64();
        let check = |rate: Option<Rate>, went: u64, what: &str| {
            let Some(rate) = rate else {
                return Ok(());
            };
            let credits = (rate.peak_per_s - rate.per_s) * u64::from(limits.burst_s);
            let may = rate.per_s as f64 * time_s + credits as f64;
            let may = may.min(rate.peak_per_s as f64 * time_s);
            match went as f64 <= may + 1.0 {
                true => Ok(()),
                false => Err(format!(
                    "{went} {what} in {time_s} s, where {limits} lets {may} go"
                )),
            }
        };
        check(limits.ios, got.ios - got.most_ios, "I/Os")?;
        check(limits.bytes, got.bytes - got.most_bytes, "bytes")
    }
}

/// Limits that keep nobody waiting for long.
fn draw(prng: &mut Prng) -> Limits {
    if prng.chance(1, 4) {
        return Limits::default();
    }
    let has_burst = prng.chance(1, 3);
    let rate = |per_s: u64| Rate {
        per_s,
        peak_per_s: if has_burst { per_s + per_s / 20 } else { per_s },
    };
    let (counts_ios, counts_bytes) =
        *prng.pick(&[(true, false), (true, false), (false, true), (true, true)]);
    let in_units = counts_ios && prng.chance(1, 2);
    Limits {
        ios: counts_ios.then(|| rate(prng.between(200, 4000))),
        bytes: counts_bytes.then(|| rate(prng.between(1 << 20, 32 << 20))),
        io_bytes: in_units.then_some(8192),
        burst_s: u32::from(has_burst),
    }
}

impl Books {
    /// A command to a unit that was sent at an instant has ended well.
    pub(super) fn went(&self, world: &SimWorld, unit: usize, (sent, cdb): (Time, &[u8; 16])) {
        let of = &self.units[unit];
        // COMPARE AND WRITE has its length elsewhere, and counts without bytes.
        let sectors = u32::from_be_bytes([cdb[10], cdb[11], cdb[12], cdb[13]]);
        let bytes = match cdb[0] {
            0x89 => 0,
            _ => u64::from(sectors) * SECTOR_BYTES as u64,
        };
        if let Err(what) = of.limited.ended(sent, bytes, world.now()) {
            self.fail(world, format!("{}: {what}", of.name));
        }
    }

    /// The units of a target are shown anew, or no more: so is what counts for them.
    pub(super) fn count_anew(&self, target: usize, from: Option<Time>) {
        let of_target = |unit: &&Unit| unit.target == target;
        for unit in self.units.iter().filter(of_target) {
            match from {
                Some(now) => unit.limited.begin(now),
                None => unit.limited.forget(),
            }
        }
    }
}

impl Array {
    /// Limits a volume in every other round of a boot that has limits.
    pub(super) async fn limit_now_and_then(&self) {
        let mut prng = self.world.prng("limits of volumes");
        let round = self.books.rounds_left.get();
        let of_round = &mut prng.stream(&format!("round {round}"));
        if prng.chance(1, ONE_OF) && of_round.chance(1, 2) {
            self.limit_one(of_round).await;
        }
    }

    /// Limits a volume in another way.
    async fn limit_one(&self, prng: &mut Prng) {
        let pause = Duration::from_nanos(prng.below(300_000));
        self.world.sleep(pause).await;
        let unit = &self.books.units[prng.below(self.books.units.len() as u64) as usize];
        let wanted = draw(prng);
        let name = unit.name.clone();
        self.world
            .note(|| format!("{name} becomes limited to {wanted:?}"));
        unit.limited.forget();
        unit.limited.coming.set(Some(wanted));
        let changed = self.control.limit_volume(name, wanted).await;
        unit.limited.coming.set(None);
        match changed {
            Ok(_) => {
                unit.limited.said.set(wanted);
                unit.limited.begin(self.world.now());
                self.world.note(|| format!("{} is limited so", unit.name));
            }
            Err(error) => self
                .books
                .fail(&self.world, format!("{}: {error}", unit.name)),
        }
    }

    /// After a start: limits are as it was said.
    pub(super) async fn check_limits(&self) {
        let volumes = match self.control.volumes().await {
            Ok(volumes) => volumes,
            Err(error) => return self.books.fail(&self.world, format!("volumes: {error}")),
        };
        for unit in &self.books.units {
            let found = volumes.iter().find(|one| one.info.name == unit.name);
            let found = found.map(|one| limits(&one.properties));
            let (said, coming) = (unit.limited.said.get(), unit.limited.coming.take());
            match found.filter(|found| *found == said || Some(*found) == coming) {
                Some(found) => {
                    unit.limited.said.set(found);
                    unit.limited.begin(self.world.now());
                }
                None => {
                    let what = format!("{} is limited to {found:?}, not {said:?}", unit.name);
                    self.books.fail(&self.world, what);
                }
            }
        }
    }
}
