//! A drive of the roster.

use engine::drives::SPARE_GROUP;
use engine::pool::{MemberInfo, MemberState, PoolInfo};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A drive that a pool has, or had until it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDrive {
    /// Name of the pool that has or had it.
    pub pool: String,
    /// Identity of that pool, as text: another pool may get its name.
    pub pool_uuid: String,
    /// Name of the drive in that pool.
    pub name: String,
    /// Its identity, from its label.
    pub uuid: String,
    /// Its group; 65535 of a spare.
    pub group: u16,
    /// Its place in the group.
    pub place: u16,
    /// Where it was opened last, where that is known.
    pub path: Option<PathBuf>,
    /// It is a device.
    #[serde(default)]
    pub is_device: bool,
    /// Its serial number, as it was read while the drive was there.
    pub serial: Option<String>,
    /// Size of the whole drive in bytes.
    pub capacity_bytes: u64,
    /// Set while it is out of use.
    pub failure: Option<Failure>,
    /// Somebody has replaced it: nothing is told of it once another has its place. One whose copy was
    /// given up, and that stays in use, is not replaced.
    #[serde(default)]
    pub is_replaced: bool,
}

/// Why a drive is out of use, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// For people, to be read after the drive's name.
    pub why: String,
    /// In seconds since 1970.
    pub since_unix_s: u64,
}

impl KnownDrive {
    /// Whether it was a spare.
    pub fn is_spare(&self) -> bool {
        self.group == SPARE_GROUP
    }

    /// The drive that has its place by now.
    pub fn stand_in<'a>(&self, info: &'a PoolInfo) -> Option<&'a MemberInfo> {
        let is_there = |member: &&MemberInfo| {
            (member.group, member.place) == (self.group, self.place)
                && member.uuid.to_string() != self.uuid
        };
        info.members.iter().find(is_there)
    }

    /// A drive that a pool has, as far as that says.
    pub fn new(info: &PoolInfo, member: &MemberInfo) -> Self {
        KnownDrive {
            pool: info.name.clone(),
            pool_uuid: info.uuid.to_string(),
            name: member.name.clone(),
            uuid: member.uuid.to_string(),
            group: member.group,
            place: member.place,
            path: None,
            is_device: false,
            serial: None,
            capacity_bytes: member.capacity_bytes,
            failure: None,
            is_replaced: false,
        }
    }

    /// The drive, with its place named in another way.
    pub fn at(self, named: impl Fn(&Path) -> PathBuf) -> Self {
        KnownDrive {
            path: self.path.as_deref().map(named),
            ..self
        }
    }

    /// The drive as its pool has it now.
    pub(super) fn seen_as(self, member: &MemberInfo, why: impl Fn(&Self) -> Failure) -> Self {
        let failure = (member.state == MemberState::Failed)
            .then(|| self.failure.clone().unwrap_or_else(|| why(&self)));
        KnownDrive {
            name: member.name.clone(),
            group: member.group,
            place: member.place,
            serial: member.serial.clone().or(self.serial),
            failure,
            is_replaced: self.is_replaced && (!is_in_use(member) || member.successor.is_some()),
            ..self
        }
    }
}

fn is_in_use(member: &MemberInfo) -> bool {
    matches!(member.state, MemberState::Healthy | MemberState::Suspect)
}
