//! Judges the health of pools and of the array, and gives the reasons.

use crate::array::{Array, Glance, KnownDrive, Loss, WaitingReplacement, in_brief};
use crate::calendar::utc;
use ::array::pool::distributed_spares;
use api::{ClosedPool, Health};
use engine::pool::maintenance::ScrubInfo;
use engine::pool::maintenance::fullness::Fullness;
use engine::pool::{MemberInfo, MemberState, PoolInfo};
use site::human;

/// What is to be said of a drive for which distributed spares make up.
const REDUNDANT: &str = "its data is redundant on distributed spares";

/// A word, and a line for each reason of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) health: Health,
    pub(super) why: Vec<String>,
}

impl Condition {
    fn ok() -> Self {
        Condition {
            health: Health::Ok,
            why: Vec::new(),
        }
    }

    fn add(&mut self, health: Health, why: String) {
        self.health = self.health.max(health);
        self.why.push(why);
    }
}

/// How a pool is.
pub(super) fn of_pool(info: &PoolInfo, array: &Array) -> Condition {
    let mut found = Condition::ok();
    if let Some(failure) = &info.failure {
        found.add(Health::Stopped, format!("stopped: {failure}"));
    }
    if let Some((health, why)) = fullness(info) {
        found.add(health, why);
    }
    of_drives(info, &mut found);
    warnings(info, array, &mut found);
    for drive in array.departed_failures(info) {
        found.add(Health::Attention, departed(info, &drive));
    }
    if info.copies_are_short {
        let why = "too few drives carry its metadata or its log: replace those that are out of use"
            .to_owned();
        found.add(Health::Degraded, why);
    }
    if let Some(why) = lost(info, array.loss_of(&info.uuid.to_string())) {
        found.add(Health::Attention, why);
    }
    found
}

/// What is to be said of the drives of a pool, those that wait to stand in among them.
fn of_drives(info: &PoolInfo, found: &mut Condition) {
    for (state, health, word) in [
        (MemberState::Failed, Health::Degraded, ""),
        (
            MemberState::Rebuilding,
            Health::Degraded,
            "is being rebuilt",
        ),
        (MemberState::Suspect, Health::Attention, "is suspect"),
    ] {
        let members = info.members.iter().filter(|member| member.state == state);
        let named = |member: &MemberInfo| match member.state {
            MemberState::Failed => failed(info, member),
            MemberState::Suspect => {
                let why = member.trouble.as_deref().map(|why| format!(": {why}"));
                let why = why.unwrap_or_default();
                let name = &member.name;
                let replace = || format!("if that stays so: `ashlar drive replace {name}`");
                let then = copied(member).unwrap_or_else(replace);
                format!("drive {name} {word}{why}; {then}")
            }
            _ if distributed_spares::make_up_for(info, member) => {
                format!("drive {} {word}, and {REDUNDANT}", member.name)
            }
            _ => format!("drive {} {word}", member.name),
        };
        members.for_each(|member| found.add(weighed(info, member, health), named(member)));
    }
    for spare in &info.spares {
        if let Some(why) = &spare.trouble {
            let name = &spare.name;
            let why = format!(
                "spare {name} can't stand in: {why}; if that stays so: `ashlar drive replace {name}`"
            );
            found.add(Health::Attention, why);
        }
    }
}

/// How bad it is that a drive is out of use: with its data redundant elsewhere, it can wait.
fn weighed(info: &PoolInfo, member: &MemberInfo, health: Health) -> Health {
    match distributed_spares::make_up_for(info, member) {
        true => health.min(Health::Attention),
        false => health,
    }
}

/// What drives of a pool warn of, if they are in use or are to be.
fn warnings(info: &PoolInfo, array: &Array, found: &mut Condition) {
    let all = info.members.iter().chain(&info.spares);
    for drive in all.filter(|drive| drive.state != MemberState::Failed) {
        let Some(health) = array.health_of(&drive.uuid.to_string()) else {
            continue;
        };
        for warning in health.warnings() {
            found.add(Health::Attention, warns(drive, &warning.text));
        }
    }
}

/// What is to be said of a drive that warns.
fn warns(drive: &MemberInfo, text: &str) -> String {
    let name = &drive.name;
    let replace = || format!("before it fails: `ashlar drive replace {name} --with NEW` copies it");
    let then = copied(drive).unwrap_or_else(replace);
    format!("drive {name} warns: {text}; {then}")
}

/// Of a drive that is copied: what comes of it.
fn copied(drive: &MemberInfo) -> Option<String> {
    let successor = drive.successor.as_ref()?;
    Some(format!("it leaves when {successor} holds everything"))
}

/// What is to be said of lost blocks, by what the pool says since it was opened and what is on
/// record.
fn lost(info: &PoolInfo, on_record: Option<Loss>) -> Option<String> {
    let what = match info.lost_bytes {
        0 => "blocks were found lost".to_owned(),
        bytes => format!("{} were found lost since it was opened", human(bytes)),
    };
    let told = match on_record {
        Some(loss) => {
            let since = utc(loss.since_unix_us / 1_000_000);
            match loss.events {
                0 => format!(" ({} by a scrub on {since})", loss.scrubbed_blocks),
                1 => format!(" (1 event on {since})"),
                events => format!(" ({events} events since {since})"),
            }
        }
        // It comes on record soon, unless a scrub has found all whole again.
        None => {
            let is_whole = |scrub: ScrubInfo| scrub.found.lost == 0;
            let last = info.last_scrub.filter(|_| info.scrubs_ended > 0);
            if info.lost_bytes == 0 || last.is_some_and(is_whole) {
                return None;
            }
            String::new()
        }
    };
    Some(format!("{what}{told}; see ashlar events"))
}

/// What is to be said of a failed drive in its place.
fn failed(info: &PoolInfo, member: &MemberInfo) -> String {
    let name = &member.name;
    match WaitingReplacement::of(info, (member.group, member.place)) {
        Some(WaitingReplacement { spare, rebuilding }) => {
            let who = match spare == name {
                true => format!("the new {spare}"),
                false => format!("spare {spare}"),
            };
            format!(
                "drive {name} is out of use: {who} takes its place once drive {rebuilding} is \
                 rebuilt"
            )
        }
        None => format!(
            "drive {name} is out of use{}: `ashlar drive replace {name}`",
            on_distributed_spares(info, member)
        ),
    }
}

/// How the group of a failed drive stands, if it has distributed spares.
fn on_distributed_spares(info: &PoolInfo, member: &MemberInfo) -> String {
    match distributed_spares::group_of(info, member) {
        None => String::new(),
        Some(group) if group.places.lost == 0 => format!(", and {REDUNDANT}"),
        Some(group) => format!(
            ", and {} of group {} {} redundancy",
            site::counted(group.places.lost, "place"),
            group.index,
            if group.places.lost == 1 {
                "lacks"
            } else {
                "lack"
            }
        ),
    }
}

/// How much of a pool nobody else can have.
fn used(info: &PoolInfo) -> String {
    let (mapped, capacity) = (human(info.mapped_bytes), human(info.capacity_bytes));
    let taken = info.mapped_bytes + info.promised_bytes;
    let percent = taken as f64 * 100.0 / info.capacity_bytes.max(1) as f64;
    match info.promised_bytes {
        0 => format!("{percent:.1} % of {capacity} are used ({mapped} mapped)"),
        promised => format!(
            "{percent:.1} % of {capacity} are used ({mapped} mapped, {} promised to thick volumes)",
            human(promised)
        ),
    }
}

/// What is to be said of how full a pool is, and how it gets room.
fn fullness(info: &PoolInfo) -> Option<(Health, String)> {
    let (used, thresholds) = (used(info), info.fullness.thresholds);
    let (health, why) = match info.fullness.fullness {
        Fullness::Ample => return None,
        Fullness::Warn => {
            let warn = thresholds.warn_percent;
            let why = format!("gets full: {used}; the warning threshold is {warn} %");
            (Health::Attention, why)
        }
        Fullness::Alarm => {
            let alarm = thresholds.alarm_percent;
            let why = format!("is nearly full: {used}; the alarm threshold is {alarm} %");
            (Health::Attention, why)
        }
        Fullness::Full => {
            let why = format!("full: {used}; writes to new pages are refused");
            (Health::Full, why)
        }
    };
    let room = format!(
        "`ashlar pool grow {}`, `ashlar trash empty`, `ashlar volume delete` or `ashlar snapshot \
         delete` gives room",
        info.name
    );
    Some((health, format!("{why}; {room}")))
}

/// What is to be said of a failed drive that has no place any more.
fn departed(info: &PoolInfo, drive: &KnownDrive) -> String {
    let name = &drive.name;
    let when = drive.failure.as_ref().map_or_else(String::new, |failure| {
        format!(" on {}", utc(failure.since_unix_s))
    });
    let who = match drive.stand_in(info) {
        Some(member) => format!("; {} stands in", member.name),
        None => String::new(),
    };
    let is_left = |spare: &MemberInfo| spare.state == MemberState::Spare;
    let left = match info.spares.iter().any(is_left) {
        true => "",
        false => "; no spare is left",
    };
    let kind = if drive.is_spare() { "spare" } else { "drive" };
    format!(
        "{kind} {name} failed{when}{who}{left}: `ashlar drive replace {name}`, or `ashlar drive \
         remove {name}`"
    )
}

/// What is to be said of a shard that does not answer. Its pools serve nobody meanwhile.
fn silent(shard: usize, pools: &[String]) -> (Health, String) {
    let (health, of) = match pools {
        [] => (Health::Attention, "it".to_owned()),
        [one] => (Health::Stopped, format!("pool {one}")),
        all => (Health::Stopped, format!("pools {}", all.join(", "))),
    };
    let why = format!("shard {shard} does not answer: what is shown of {of} is what it said last");
    (health, why)
}

/// Adds what of the array is not on record, and portals that are not open.
fn add_unlisted_and_unopened(found: &mut Condition, array: &Array) {
    if array.is_lost() {
        let why = "the record of targets and hosts was lost, so nobody can log in: put \
                   ashlar-configuration.json back and start again, or `ashlar site apply`";
        found.add(Health::Attention, why.to_owned());
    }
    for why in array.unlisted_pools() {
        found.add(Health::Attention, why);
    }
    for portal in array.closed_portals() {
        let why = format!(
            "portal {} is not open: the machine may not have the address, or another program has \
             it; tried again by itself",
            portal.address
        );
        found.add(Health::Attention, why);
    }
}

/// How the array is: the worst of its pools, those that are not open included.
pub(super) fn of_array(glance: &Glance, closed: &[ClosedPool], array: &Array) -> Condition {
    let mut found = Condition::ok();
    for pool in closed {
        let (name, why) = (&pool.name, in_brief(&pool.name, &pool.why));
        found.add(Health::Stopped, format!("pool {name} is not open: {why}"));
    }
    for shard in &glance.silent {
        let (health, why) = silent(*shard, &array.pools_at(*shard));
        found.add(health, why);
    }
    for (_, info) in &glance.pools {
        let of_pool = of_pool(info, array);
        for why in of_pool.why {
            found.add(of_pool.health, format!("pool {}: {why}", info.name));
        }
    }
    add_unlisted_and_unopened(&mut found, array);
    for export in array.exports() {
        if let Some(why) = export.withheld {
            let target = export.target;
            found.add(
                Health::Attention,
                format!("target {target} is withheld: {why}"),
            );
        }
    }
    found
}
