//! The tables and keys of a site file, with their meaning in a sentence.

/// A table.
pub(super) struct Section {
    /// As messages name it.
    pub(super) name: &'static str,
    /// As the file has it.
    pub(super) heading: &'static str,
    /// The heading of the table that it stands in, the key there, and whether that is a list.
    pub(super) inside: Option<(&'static str, &'static str, bool)>,
    /// What it is for.
    pub(super) about: &'static str,
    /// Its keys, the most important ones first.
    pub(super) keys: &'static [Key],
}

/// A key.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What it says.
    pub(super) about: &'static str,
    /// What counts when the file does not have it.
    pub(super) default: &'static str,
}

pub(super) const fn key(name: &'static str, about: &'static str, default: &'static str) -> Key {
    Key {
        name,
        about,
        default,
    }
}

pub(super) const fn table(
    name: &'static str,
    heading: &'static str,
    about: &'static str,
    keys: &'static [Key],
) -> Section {
    Section {
        name,
        heading,
        inside: None,
        about,
        keys,
    }
}

pub(super) const REQUIRED: &str = "required";

/// Name and secret of a CHAP account.
const CHAP: &[Key] = &[
    key("name", "The name that the initiator gives.", REQUIRED),
    key("secret", "The secret that the initiator proves.", REQUIRED),
    key(
        "mutual_name",
        "The name that the target gives, where the initiator asks for a proof.",
        "no mutual CHAP",
    ),
    key(
        "mutual_secret",
        "The secret that the target proves. It differs from every `secret`.",
        "no mutual CHAP",
    ),
];

const SITE: &[Key] = &[
    key("name", "The array's name.", REQUIRED),
    key(
        "about",
        "What it is, in a sentence: for reports of rehearsals.",
        "nothing",
    ),
    key(
        "shards",
        "Threads that serve I/O. Counts from the next start.",
        "the machine's processors, four at most",
    ),
    key(
        "trash",
        "How long a deleted volume or snapshot can be restored.",
        "24 h",
    ),
];

const PORTAL: &[Key] = &[
    key(
        "address",
        "Address and TCP port. iSCSI's port is 3260.",
        REQUIRED,
    ),
    key(
        "group",
        "Tag of the portal group: initiators see it as part of the target port.",
        "1",
    ),
];

const DRIVE: &[Key] = &[
    key("name", "The drive's name. Pools use it.", REQUIRED),
    key(
        "file",
        "The file. Ashlar creates it when it is missing.",
        "`file` or `device` is required",
    ),
    key(
        "device",
        "The block device. Use a name that stays, under `/dev/disk/by-id`.",
        "`file` or `device` is required",
    ),
    key("size", "Size of a file.", "required with `file`"),
    key(
        "model",
        "Its model in a rehearsal, such as `sas-10k-600`. A drive of a file is as large as the file, and at most as its model.",
        "`nvme-7680`",
    ),
    key(
        "bus",
        "The bus that it is behind, in a rehearsal.",
        "the first bus",
    ),
];

const POOL: &[Key] = &[
    key("name", "The pool's name.", REQUIRED),
    key(
        "level",
        "RAID level of the first group.",
        "required; not with `groups`",
    ),
    key(
        "stripe_width",
        STRIPE_WIDTH,
        "the copies of levels `10` and `10x3`; else required with `distributed_spares`",
    ),
    key("distributed_spares", DISTRIBUTED_SPARES, "none"),
    key(
        "drives",
        "Drives of the first group, in order.",
        "required to serve",
    ),
    key(
        "spares",
        "Drives that replace failed drives automatically.",
        "none",
    ),
    key("group", "Further groups: tables `[[pool.group]]`.", "none"),
    key(
        "groups",
        "Groups out of lots of drives, instead of `level` and `drives`: see `groups` below. Such a pool is only \
         rehearsed.",
        "none",
    ),
    key(
        "controller",
        "The controller that owns it, in a rehearsal.",
        "the first controller",
    ),
    key("cache", "RAM that caches reads.", "64 MiB"),
    key(
        "stripe_unit",
        "Data that one drive holds before the next drive's turn.",
        "64 KiB",
    ),
    key(
        "page",
        "Unit of thin allocation, snapshots and UNMAP.",
        "256 KiB",
    ),
    key(
        "log",
        "Size of the write log of each lane, on each drive that carries it. All drives of the pool keep this room, \
         so that any can take the log over.",
        "a sixteenth of the smallest drive; 64 MiB at most, 256 MiB with a log group",
    ),
    key("lanes", "Parts that different threads serve.", "1"),
    key(
        "rebuild_rate",
        "Limit of rebuilds, and of moves between groups.",
        "unlimited",
    ),
    key(
        "rebuild_hours",
        "Hours that a rebuild takes at most, while hosts do I/O, as far as the drives and `rebuild_rate` allow it. \
         `off`: it takes as long as hosts leave to it.",
        "48",
    ),
    key("scrub_rate", "Limit of a scrub.", "128 MiB"),
    key(
        "scrub_days",
        "Days in which Ashlar scrubs the whole pool, by itself, over and over. `off`: only by command.",
        "30",
    ),
    key(
        "background",
        "`yield`: rebuild and scrub rest while hosts do I/O. `full`: they use all that their rates allow.",
        "yield",
    ),
    key(
        "warn_at",
        "Percentage of mapped or promised space that raises the first event.",
        "80",
    ),
    key(
        "alarm_at",
        "Percentage of mapped or promised space that raises the second event.",
        "95",
    ),
];

/// The keys of a group with distributed spares.
pub(super) const STRIPE_WIDTH: &str = "Drives of a stripe, copies or parity included, in a group \
     with distributed spares: narrower than the group.";

pub(super) const DISTRIBUTED_SPARES: &str = "Spare drives' worth of room, spread over all drives of \
     the group. It has a multiple of `stripe_width` drives and these more, 64 at most; level `10`, \
     `10x3`, `5` or `6`.";

/// What a group may be for.
pub(super) const ROLE: &str = "`data`, or `log`: a group of levels `10`, `10x3` or `simple` that carries the logs of the pool, \
     and no data. It survives as many lost drives as every other group, or more.";

const POOL_GROUP: &[Key] = &[
    key("drives", "Drives of the group, in order.", REQUIRED),
    key(
        "level",
        "RAID level of the group. Required beside `groups` out of lots.",
        "the pool's level",
    ),
    key(
        "stripe_width",
        STRIPE_WIDTH,
        "the copies of levels `10` and `10x3`; else required with `distributed_spares`",
    ),
    key("distributed_spares", DISTRIBUTED_SPARES, "none"),
    key("role", ROLE, "data"),
];

const VOLUME: &[Key] = &[
    key("name", "The volume's name.", REQUIRED),
    key("pool", "The pool that holds it.", REQUIRED),
    key("size", "Its size.", REQUIRED),
    key(
        "provisioning",
        "`thin`: pages are allocated on first write. `thick`: all are also set aside at creation.",
        "thin",
    ),
    key(
        "description",
        "Text for people.",
        "unchanged; empty for a new volume",
    ),
    key(
        "tags",
        "Words for people and programs.",
        "unchanged; none for a new volume",
    ),
    key(
        "detect_zeroes",
        "Whether pages that a host writes as zeroes take no space.",
        "unchanged; false for a new volume",
    ),
    key(
        "limits",
        "What hosts get of it, at most. See the next table.",
        "unchanged; none for a new volume",
    ),
    key(
        "snapshots",
        "Schedules of snapshots.",
        "unchanged; none for a new volume",
    ),
];

const VOLUME_LIMITS: &[Key] = &[
    key("iops", "I/Os a second.", "no limit"),
    key(
        "burst_iops",
        "I/Os a second in a burst, above `iops`.",
        "no burst",
    ),
    key("bandwidth", "Bytes a second.", "no limit"),
    key(
        "burst_bandwidth",
        "Bytes a second in a burst, above `bandwidth`.",
        "no burst",
    ),
    key(
        "burst",
        "For so long a volume that was idle may run at its burst rates, up to an hour.",
        "required for a burst",
    ),
    key(
        "io_size",
        "Bytes that count as one I/O; a longer command counts as several: \"8 KiB\" as Hyper-V, \"32 KiB\" as ESXi.",
        "each command counts as one",
    ),
];

const GROUP: &[Key] = &[
    key("name", "The group's name.", REQUIRED),
    key(
        "volumes",
        "Its volumes. A volume is in one group at most.",
        REQUIRED,
    ),
    key(
        "snapshots",
        "Schedules of snapshots of all its volumes.",
        "none",
    ),
];

const HOST: &[Key] = &[
    key("name", "The host's name.", REQUIRED),
    key(
        "initiators",
        "Its initiator names. An initiator belongs to one host at most. A host without is only rehearsed.",
        "required to log in",
    ),
    key(
        "chap",
        "The CHAP account of its initiators. See the next table.",
        "the export's `chap`",
    ),
    key(
        "count",
        "Hosts that are alike. With more than one, each is `name` and its number from 1.",
        "1",
    ),
    key("cores", "Processor cores of each, in a rehearsal.", "32"),
    key("clock_ghz", "Clock of the cores, in a rehearsal.", "2.4"),
    key("memory", "Memory of each, in a rehearsal.", "512 GiB"),
    key(
        "numa_nodes",
        "Equal parts that cores and memory are in.",
        "not known",
    ),
    key(
        "witness",
        "Whether their cluster has one: a disk or share with a vote.",
        "false",
    ),
    key(
        "ports",
        "Ports of each into networks, in a rehearsal: see `ports` below.",
        "one, in the first network of the controllers",
    ),
    key(
        "initiator",
        "How it reaches the storage, in a rehearsal. `none` takes no time, as if its VMs ran in the array.",
        "iscsi",
    ),
    key(
        "balance",
        "How it chooses a link: multipath by `round-robin` or `least-queue`; a group of links by `port`, `mac` or \
         `ip-hash`.",
        "round-robin",
    ),
    key(
        "addresses",
        "Addresses of the storage that it uses, for `ip-hash`.",
        "1",
    ),
    key(
        "lun_queue",
        "Commands under way to a LUN.",
        "the initiator's",
    ),
];

const HOST_GROUP: &[Key] = &[
    key("name", "The host group's name.", REQUIRED),
    key("hosts", "Its hosts.", REQUIRED),
];

const EXPORT: &[Key] = &[
    key("target", "The target's iSCSI name.", REQUIRED),
    key(
        "volumes",
        "Volumes. A command can export snapshots, too; a site file cannot.",
        REQUIRED,
    ),
    key(
        "luns",
        "The LUN of each volume, in the order of `volumes`: `luns = [0, 2]`.",
        "0, 1, and so on",
    ),
    key(
        "initiators",
        "Initiator names that may log in. `\"any\"` admits every initiator.",
        "none",
    ),
    key("hosts", "Hosts that may log in.", "none"),
    key("host_groups", "Host groups that may log in.", "none"),
    key(
        "chap",
        "The CHAP account of initiators that have no account of their own.",
        "no CHAP",
    ),
    key("portals", "Portals that show the target.", "all portals"),
    key(
        "physical_block",
        "Physical block size that hosts see. The array always works with 4 KiB.",
        "4 KiB",
    ),
    key(
        "sanitize",
        "Whether initiators may erase thin LUNs with SANITIZE.",
        "false",
    ),
    key(
        "affect_others",
        "Whether an initiator may change mode pages and reset the target. Both affect all its hosts.",
        "false",
    ),
];

const VM: &[Key] = &[
    key("name", "The VM's name.", REQUIRED),
    key("target", "The target with its disks.", REQUIRED),
    key("profile", "The load profile.", REQUIRED),
    key("role", "The VM's role in that profile.", REQUIRED),
    key(
        "rate_scale",
        "Factor on the role's rate, or on what its threads ask for.",
        "1",
    ),
    key(
        "filled",
        "Percentage of each disk that is written before a rehearsal. The VM reads and writes this part; all, if it is 0.",
        "100",
    ),
];

const CHAP_TABLE: &[Key] = &[
    key(
        "algorithms",
        "Allowed digests, the preferred ones first.",
        "SHA3-256, SHA-256, SHA-1, MD5",
    ),
    key(
        "discovery",
        "The CHAP account that discovery asks for.",
        "discovery asks for none",
    ),
];

const API: &[Key] = &[
    key(
        "listen",
        "Where the API listens. Counts from the next start.",
        "`unix:/run/ashlar/api.sock` for root",
    ),
    key(
        "drive_directories",
        "Directories from which commands may add drives, beside those of the array's drives.",
        "none",
    ),
];

const IMAGES: &[Key] = &[key(
    "directories",
    "Directories in which imports read and exports write image files.",
    "none: no imports, no exports",
)];

const LIMITS: &[Key] = &[
    key("sessions", "Sessions at the same time.", "1024"),
    key("sessions_per_initiator", "Sessions of an initiator.", "256"),
    key("logins", "Logins under way at the same time.", "64"),
    key(
        "logins_per_address",
        "Logins under way from an address.",
        "32",
    ),
    key("login_time", "Time that a login may take.", "15 s"),
    key(
        "silence",
        "Time after which the array asks a silent initiator for a sign of life, and later ends its session.",
        "30 s",
    ),
    key(
        "logout_time",
        "Time that an initiator has to log out when the array asks for it.",
        "3 s",
    ),
    key(
        "data_time",
        "Time in which the data of a command has to arrive.",
        "30 s",
    ),
    key(
        "memory",
        "Memory that all connections together may hold.",
        "a quarter of the machine's memory",
    ),
    key(
        "checksum_memory",
        "Memory for checksums of blocks in all pools together. Checksums take a thousandth of the data; \
         those that do not fit are read from drives.",
        "an eighth of the machine's memory",
    ),
];

/// The tables that are served, in the order of the page.
pub(super) const SERVED: &[Section] = &[
    table("site", "[site]", "The array as a whole.", SITE),
    table(
        "portal",
        "[[portal]]",
        "An address at which initiators reach the targets. A site has at least one.",
        PORTAL,
    ),
    table(
        "drive",
        "[[drive]]",
        "A drive: a file with a size, or a whole block device. Several drives that are only rehearsed are a lot: \
         `[[drives]]`.",
        DRIVE,
    ),
    table(
        "pool",
        "[[pool]]",
        "A pool: RAID groups of drives that hold volumes. `stripe_unit`, `page`, `log` and `lanes` are settled \
         when the pool is created. Commands change levels and groups later.",
        POOL,
    ),
    Section {
        name: "pool.group",
        heading: "[[pool.group]]",
        inside: Some(("[[pool]]", "group", true)),
        about: "A further RAID group of the pool above it.",
        keys: POOL_GROUP,
    },
    table("volume", "[[volume]]", "A volume.", VOLUME),
    Section {
        name: "volume.limits",
        heading: "limits = { … }",
        inside: Some(("[[volume]]", "limits", false)),
        about: "Limits of a volume. `limits = { }` removes them.",
        keys: VOLUME_LIMITS,
    },
    table(
        "group",
        "[[group]]",
        "A consistency group: volumes whose snapshots are taken at one instant.",
        GROUP,
    ),
    table(
        "host",
        "[[host]]",
        "A host: initiators under one name, and its hardware. Only a rehearsal uses the hardware.",
        HOST,
    ),
    Section {
        name: "host.chap",
        heading: "chap = { … }",
        inside: Some(("[[host]]", "chap", false)),
        about: "A CHAP account: `chap` of `[[host]]` and `[[export]]`, and `discovery` of `[chap]`. Other users must \
                not be able to read a file with secrets.",
        keys: CHAP,
    },
    table(
        "host_group",
        "[[host_group]]",
        "A group of hosts, such as a cluster.",
        HOST_GROUP,
    ),
    table(
        "export",
        "[[export]]",
        "A target: volumes as LUNs, and the initiators that may log in. At least one of `initiators`, `hosts` and \
         `host_groups` is required.",
        EXPORT,
    ),
    table(
        "vm",
        "[[vm]]",
        "A VM: the load generator runs it (`ashlar load --site`), and a rehearsal. The array ignores it. A rehearsal \
         leaves it out if the file has `[[vm_group]]`.",
        VM,
    ),
    table("chap", "[chap]", "CHAP of the whole array.", CHAP_TABLE),
    table("api", "[api]", "The REST API.", API),
    table("images", "[images]", "Image files.", IMAGES),
    table(
        "limits",
        "[limits]",
        "Limits on initiators, and memory. They count from the next start; `checksum_memory` counts at once.",
        LIMITS,
    ),
];
