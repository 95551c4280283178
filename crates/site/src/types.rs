//! A site in checked types.

use crate::api_address::ApiAddress;
use crate::schedule::Schedule;
use crate::secret::ChapAccount;
use engine::qos;
use engine::raid::{Protection, Spread};
use engine::{GroupRole, Level};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most volumes behind one target (LUN 0 to 255).
pub const LUNS_MAX: usize = 256;

/// All that a site file describes, checked and with its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// What people call it.
    pub name: String,
    /// Data-path threads; as many as fit the machine when `None`.
    pub shards: Option<u16>,
    /// How long a deleted volume stays in the trash; zero is no trash.
    pub trash: Duration,
    /// Where the REST API listens.
    pub api: Api,
    /// Images of disks, in files.
    pub images: Images,
    /// How initiators prove who they are.
    pub chap: Chap,
    /// What peers can make it hold.
    pub limits: Limits,
    /// Where targets are served; at least one.
    pub portals: Vec<Portal>,
    /// Drives that pools are made of, by the names that people know.
    pub drives: Vec<Drive>,
    /// Pools that are made of these drives.
    pub pools: Vec<Pool>,
    /// Volumes in the pools; names are unique over the site.
    pub volumes: Vec<Volume>,
    /// Volumes that are snapshotted together; a volume is in one group at most.
    pub groups: Vec<ConsistencyGroup>,
    /// Hosts, by the names of their initiators; an initiator is of one host at most.
    pub hosts: Vec<Host>,
    /// Groups of hosts, by which exports admit all of them.
    pub host_groups: Vec<HostGroup>,
    /// Targets and what is behind them.
    pub exports: Vec<Export>,
    /// VMs whose disks are here, with their workloads.
    pub vms: Vec<Vm>,
}

/// The REST API's place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Api {
    /// Who starts the array chooses when the file says nothing.
    pub listen: Option<ApiAddress>,
    /// Drives are added under these directories only, by requests of the API; absolute. Beside
    /// them, the directories of the file's own drives.
    pub drive_directories: Vec<PathBuf>,
}

/// Where images of disks may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Images {
    /// Images are read and made under these only; absolute. None: nowhere.
    pub directories: Vec<PathBuf>,
}

/// An iSCSI portal: an address at which targets are served.
#[derive(Clone, Debug, PartialEq)]
pub struct Portal {
    /// An address of this machine; port 0 lets the system choose.
    pub address: SocketAddr,
    /// Tag of its portal group (RFC 7143 clause 4.1).
    pub group: u16,
}

/// CHAP, as far as it is the same for all targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Chap {
    /// Algorithms that are allowed, those preferred first.
    pub algorithms: Vec<ChapAlgorithm>,
    /// What has to be proved before targets are listed; nothing when `None`.
    pub discovery: Option<ChapAccount>,
}

impl Default for Chap {
    fn default() -> Self {
        Chap {
            algorithms: ChapAlgorithm::ALL.to_vec(),
            discovery: None,
        }
    }
}

/// A hash that CHAP is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChapAlgorithm {
    /// SHA3-256.
    Sha3_256,
    /// SHA-256.
    Sha256,
    /// SHA-1.
    Sha1,
    /// MD5.
    Md5,
}

impl ChapAlgorithm {
    /// All of them, the strongest first.
    pub const ALL: [ChapAlgorithm; 4] = [
        ChapAlgorithm::Sha3_256,
        ChapAlgorithm::Sha256,
        ChapAlgorithm::Sha1,
        ChapAlgorithm::Md5,
    ];

    /// As the site file writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            ChapAlgorithm::Sha3_256 => "SHA3-256",
            ChapAlgorithm::Sha256 => "SHA-256",
            ChapAlgorithm::Sha1 => "SHA-1",
            ChapAlgorithm::Md5 => "MD5",
        }
    }
}

/// What peers can make the server hold, and how long it waits for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Sessions in all; each has one connection.
    pub sessions: u16,
    /// Sessions of one initiator.
    pub sessions_per_initiator: u16,
    /// Logins under way, and discovery sessions.
    pub logins: u16,
    /// Those from one address.
    pub logins_per_address: u16,
    /// A login that takes longer is cut.
    pub login_time: Duration,
    /// A peer that is silent for this long is pinged, and given up after as long again.
    pub silence: Duration,
    /// How long an initiator that is asked to log out has for that.
    pub logout_time: Duration,
    /// An initiator that keeps a command waiting for its data for so long, or does not take its
    /// answers, is parted with.
    pub data_time: Duration,
    /// Memory that all connections may hold together, in bytes; a quarter of what there is
    /// when the file says nothing.
    pub memory_bytes: Option<u64>,
    /// Memory for checksums of blocks in all pools together, in bytes; an eighth of what there is
    /// when the file says nothing.
    pub checksum_memory_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: 1024,
            sessions_per_initiator: 256,
            logins: 64,
            logins_per_address: 32,
            login_time: Duration::from_secs(15),
            silence: Duration::from_secs(30),
            logout_time: Duration::from_secs(3),
            data_time: Duration::from_secs(30),
            memory_bytes: None,
            checksum_memory_bytes: None,
        }
    }
}

/// A host: one or more initiators under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Unique over the site.
    pub name: String,
    /// iSCSI names of its initiators.
    pub initiators: Vec<String>,
    /// What they have to prove; nothing of their own when `None`.
    pub chap: Option<ChapAccount>,
}

/// Hosts under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// Unique over the site.
    pub name: String,
    /// Names of one or more hosts.
    pub hosts: Vec<String>,
}

/// A drive under the name that people know it by.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// For messages; a pool finds its drives by their labels.
    pub name: String,
    /// The file or device that holds its bytes.
    pub source: DriveSource,
}

/// Where a drive's bytes are.
#[derive(Clone, Debug, PartialEq)]
pub enum DriveSource {
    /// A file, made when it is new.
    File {
        /// Relative to the data directory, or absolute.
        path: PathBuf,
        /// Size it is made with, a multiple of 4096.
        size_bytes: u64,
    },
    /// A block device, used whole.
    Device {
        /// Absolute path of the device.
        path: PathBuf,
    },
}

impl DriveSource {
    /// Its file or device; a file's is relative to the data directory, or absolute.
    pub fn path(&self) -> &Path {
        let (DriveSource::File { path, .. } | DriveSource::Device { path }) = self;
        path
    }
}

/// A RAID group of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// How it protects data against failing drives.
    pub level: Level,
    /// How it is wider than its stripes, if it is: with distributed spares.
    pub spread: Option<Spread>,
    /// Whether it is for data or for the logs.
    pub role: GroupRole,
    /// Names of its drives.
    pub drives: Vec<String>,
}

impl Group {
    /// A group for data.
    pub fn of_data(protection: impl Into<Protection>, drives: Vec<String>) -> Self {
        let Protection { level, spread } = protection.into();
        Group {
            level,
            spread,
            role: GroupRole::Data,
            drives,
        }
    }

    /// Its level, and how it is wider than its stripes.
    pub fn protection(&self) -> Protection {
        Protection {
            level: self.level,
            spread: self.spread,
        }
    }
}

/// A pool of RAID groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Unique over the site.
    pub name: String,
    /// Its groups; the first is one of data.
    pub groups: Vec<Group>,
    /// Names of drives that stand in for those that fail.
    pub spares: Vec<String>,
    /// Lanes that it is made with, which go to different shards.
    pub lanes: u16,
    /// A power of two.
    pub stripe_unit_bytes: u32,
    /// A power of two.
    pub page_bytes: u32,
    /// RAM for reads; 0 is none.
    pub cache_bytes: u64,
    /// What the data log takes of each drive that carries it; none leaves it to the
    /// engine.
    pub log_bytes: Option<u64>,
    /// Bytes a second that a rebuild writes; none leaves it to the engine.
    pub rebuild_rate: Option<RateLimit>,
    /// Bytes of drives a second that a scrub looks through; none leaves it to the
    /// engine.
    pub scrub_rate: Option<RateLimit>,
    /// Hours that a rebuild takes at most; none leaves it to the engine.
    pub rebuild_hours: Option<TimeLimit>,
    /// Days that a scrub takes which begins by itself; none leaves it to the engine.
    pub scrub_days: Option<TimeLimit>,
    /// Whether both make way for commands.
    pub background: Background,
    /// Percent of its capacity from which on it warns; none leaves it to the engine.
    pub warn_at: Option<u8>,
    /// Percent of its capacity from which on it raises an alarm, from `warn_at` on.
    pub alarm_at: Option<u8>,
}

/// The most hours that a site can give a rebuild: a year.
pub const REBUILD_HOURS_MAX: u16 = 8760;

/// The most days that a site can give a scrub: a year.
pub const SCRUB_DAYS_MAX: u16 = 365;

/// How long work in the background may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// There is no limit; of scrubs, none begins by itself.
    Off,
    /// So many hours, or days.
    Of(u16),
}

/// How fast work in the background may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// As fast as it goes.
    Unlimited,
    /// So many bytes a second at most.
    BytesPerS(u64),
}

/// Whether work in the background makes way for commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// It rests while commands come in.
    Yield,
    /// It takes what it can get.
    Full,
}

/// How a volume takes space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioning {
    /// Pages are allocated on first write.
    Thin,
    /// All pages are set aside at creation, and allocated on first write.
    Thick,
}

/// A volume that the site is to have.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// Unique over the site.
    pub name: String,
    /// The pool that holds it.
    pub pool: String,
    /// Size that initiators see, a multiple of 512.
    pub size_bytes: u64,
    /// How it takes space: thin or thick.
    pub provisioning: Provisioning,
    /// What it is for; what it was said to be for, when `None`.
    pub description: Option<String>,
    /// Tags that it has at least, by key.
    pub tags: BTreeMap<String, String>,
    /// Whether pages that are written as zeroes take no space; as it is, when `None`.
    pub detect_zeroes: Option<bool>,
    /// What hosts get of it, at most; as it is, when `None`.
    pub limits: Option<qos::Limits>,
    /// Schedules that it has at least.
    pub schedules: Vec<Schedule>,
}

/// Volumes that are snapshotted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistencyGroup {
    /// Unique over the site.
    pub name: String,
    /// Names of volumes that it has at least; one or more.
    pub volumes: Vec<String>,
    /// Schedules that it has at least.
    pub schedules: Vec<Schedule>,
}

/// Who may log in to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initiators {
    /// Every initiator may log in.
    Any,
    /// These iSCSI names; none of them unless it is said otherwise.
    Named(Vec<String>),
}

/// A target and the volumes behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// iSCSI qualified name of the target, unique over the site.
    pub target: String,
    /// Names of the volumes that it shows as its LUNs.
    pub volumes: Vec<String>,
    /// The LUN of each of them, in their order; below [`LUNS_MAX`], none twice.
    pub luns: Vec<u16>,
    /// Who may log in.
    pub initiators: Initiators,
    /// Names of hosts that may, too.
    pub hosts: Vec<String>,
    /// Names of groups of hosts that may.
    pub host_groups: Vec<String>,
    /// What everybody has to prove who has nothing of their own to prove.
    pub chap: Option<ChapAccount>,
    /// Addresses of the portals that it is seen through; all when there are none.
    pub portals: Vec<SocketAddr>,
    /// How long initiators are told that physical blocks are, where that is not 4 KiB.
    pub physical_block_bytes: Option<u32>,
    /// Whether initiators may erase thin LUNs with SANITIZE.
    pub may_sanitize: bool,
    /// Whether initiators may do what affects the others of the target: change mode pages, and
    /// reset the target.
    pub may_affect_others: bool,
}

/// A VM and the load that stands for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    /// Unique over the site.
    pub name: String,
    /// The export its disks are behind: disk n is volume n of it.
    pub target: String,
    /// Name of the workload profile.
    pub profile: String,
    /// Its role in that profile.
    pub role: String,
    /// Factor on the role's rate, above zero.
    pub rate_scale: f64,
}

impl Export {
    /// The LUNs of `count` volumes for which a site file names none: 0, 1, and so on.
    pub fn usual_luns(count: usize) -> Vec<u16> {
        (0..).take(count).collect()
    }
}

impl Site {
    /// The export of `target`.
    pub fn export(&self, target: &str) -> Option<&Export> {
        self.exports.iter().find(|export| export.target == target)
    }

    /// What an array keeps as its settings: all but volumes, who may log in, and VMs.
    pub fn settings(&self) -> Site {
        Site {
            chap: Chap {
                discovery: None,
                ..self.chap.clone()
            },
            volumes: Vec::new(),
            groups: Vec::new(),
            hosts: Vec::new(),
            host_groups: Vec::new(),
            exports: Vec::new(),
            vms: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether there are secrets in it, which others must not read.
    pub fn has_secrets(&self) -> bool {
        let hosts = self.hosts.iter().any(|host| host.chap.is_some());
        let exports = self.exports.iter().any(|export| export.chap.is_some());
        hosts || exports || self.chap.discovery.is_some()
    }

    /// The pool called `name`.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == name)
    }

    /// The drive called `name`.
    pub fn drive(&self, name: &str) -> Option<&Drive> {
        self.drives.iter().find(|drive| drive.name == name)
    }
}

impl Pool {
    /// Which of its groups carries the logs.
    pub fn log_group(&self) -> Option<usize> {
        let mut groups = self.groups.iter();
        groups.position(|group| group.role == GroupRole::Log)
    }

    /// A pool that nothing is said of: without a name, and without drives.
    pub fn usual() -> Self {
        Pool {
            name: String::new(),
            groups: Vec::new(),
            spares: Vec::new(),
            lanes: 1,
            stripe_unit_bytes: 64 << 10,
            page_bytes: 256 << 10,
            cache_bytes: 64 << 20,
            log_bytes: None,
            rebuild_rate: None,
            scrub_rate: None,
            rebuild_hours: None,
            scrub_days: None,
            background: Background::Yield,
            warn_at: None,
            alarm_at: None,
        }
    }

    /// Names of all its drives, by group, the spares last.
    pub fn drives(&self) -> impl Iterator<Item = &String> {
        let of_groups = self.groups.iter().flat_map(|group| &group.drives);
        of_groups.chain(&self.spares)
    }
}

impl Provisioning {
    /// As the site file writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Provisioning::Thin => "thin",
            Provisioning::Thick => "thick",
        }
    }
}
