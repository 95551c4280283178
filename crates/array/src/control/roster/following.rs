//! What becomes of the drives of the roster as their pool changes, and why they are out of use.

use super::known::{Failure, KnownDrive};
use crate::control::PoolEvent;
use engine::pool::{MemberInfo, PoolInfo};

/// What events say of a drive that was found where no drive of the pool is any more: it failed
/// before that.
const LEFTOVER: &str = "is not a member of";

pub(super) fn members(info: &PoolInfo) -> impl Iterator<Item = &MemberInfo> {
    info.members.iter().chain(&info.spares)
}

pub(super) fn is_it(drive: &KnownDrive, member: &MemberInfo) -> bool {
    drive.uuid == member.uuid.to_string()
}

/// The drives of a pool: those that it has now, and of those `known` those that have failed.
pub(super) fn followed(
    known: &[KnownDrive],
    info: &PoolInfo,
    why: impl Fn(&KnownDrive) -> Failure,
) -> Vec<KnownDrive> {
    let uuid = info.uuid.to_string();
    let of_pool = |drive: &&KnownDrive| drive.pool == info.name && drive.pool_uuid == uuid;
    let known: Vec<&KnownDrive> = known.iter().filter(of_pool).collect();
    let now = members(info).map(|member| {
        let before = known.iter().find(|drive| is_it(drive, member));
        let drive = before.map_or_else(|| KnownDrive::new(info, member), |drive| (*drive).clone());
        drive.seen_as(member, &why)
    });
    let mut all: Vec<KnownDrive> = now.collect();
    for drive in &known {
        let is_there =
            members(info).any(|member| is_it(drive, member) || member.name == drive.name);
        // A group that has left has no places.
        let is_missed = drive.is_spare() || drive.stand_in(info).is_some();
        if is_there || drive.is_replaced || !is_missed {
            continue;
        }
        let mut drive = (*drive).clone();
        drive.failure = drive.failure.take().or_else(|| Some(why(&drive)));
        all.push(drive);
    }
    all
}

/// Why a drive is out of use, as the newest event says that is about it.
pub(super) fn told(drive: &KnownDrive, events: &[PoolEvent], now_unix_s: u64) -> Failure {
    let quoted = format!("'{}'", drive.name);
    let mut newest = events.iter().rev();
    let found = newest.find_map(|event| {
        let is_failure = matches!(event.kind.as_str(), "drive_failed" | "drive_missing");
        let (before, after) = event.text.split_once(&quoted)?;
        // The first name in a text is that of the drive which it is about.
        let is_about = event.pool == drive.pool && !before.contains('\'');
        let is_reason = is_failure && is_about && !after.contains(LEFTOVER);
        is_reason.then(|| Failure {
            why: after.trim().to_owned(),
            since_unix_s: event.at_unix_us / 1_000_000,
        })
    });
    found.unwrap_or_else(|| untold(now_unix_s))
}

/// What there is to say before an event was read.
pub(super) fn untold(now_unix_s: u64) -> Failure {
    Failure {
        why: "is out of use".to_owned(),
        since_unix_s: now_unix_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, text: &str, at_s: u64) -> PoolEvent {
        PoolEvent {
            pool: "p0".to_owned(),
            pool_uuid: String::new(),
            lane: 0,
            sequence: 1,
            at_unix_us: at_s * 1_000_000,
            kind: kind.to_owned(),
            text: text.to_owned(),
            lost_blocks: None,
            before_start: false,
        }
    }

    #[test]
    fn the_newest_event_about_a_drive_says_why_it_failed() {
        let drive = KnownDrive {
            pool: "p0".to_owned(),
            pool_uuid: String::new(),
            name: "d1".to_owned(),
            uuid: String::new(),
            group: 0,
            place: 1,
            path: None,
            is_device: false,
            serial: None,
            capacity_bytes: 0,
            failure: None,
            is_replaced: false,
        };
        let mut events = vec![
            event("drive_failed", "drive 'd1' is out of use: first", 1),
            event("drive_failed", "lane 1: drive 'd1' is out of use: then", 2),
            event("drive_failed", "drive 'd10' is out of use: another", 3),
            event("drive_missing", "drive 'd2' is not 'd1'", 4),
            event(
                "drive_missing",
                "drive 'd1' is not a member of pool 'p0'",
                5,
            ),
            event("spare_taken", "drive 's0' stands in for 'd1'", 5),
        ];
        let of_another_pool = PoolEvent {
            pool: "p1".to_owned(),
            ..event("drive_failed", "drive 'd1' is out of use: there", 6)
        };
        events.push(of_another_pool);
        let found = told(&drive, &events, 7);
        assert_eq!(found.why, "is out of use: then");
        assert_eq!(found.since_unix_s, 2);
        let unsaid = told(&drive, &[], 7);
        assert_eq!((&unsaid.why[..], unsaid.since_unix_s), ("is out of use", 7));
    }
}
