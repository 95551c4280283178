//! The tables that are only modelled, and their keys.

use super::keys::{DISTRIBUTED_SPARES, Key, REQUIRED, ROLE, STRIPE_WIDTH, Section, key, table};

const RUN: &[Key] = &[
    key(
        "warmup",
        "Time from the start that is not measured.",
        "30 s",
    ),
    key(
        "measure",
        "Time that is measured, after the warm-up.",
        "2 min",
    ),
    key("seed", "The first seed.", "1"),
    key("seeds", "Seeds that run, one after the other.", "1"),
    key(
        "limit",
        "Mean response time that reads and writes stay below.",
        "20 ms",
    ),
];

const CONTROLLER: &[Key] = &[
    key("name", "The controller's name.", REQUIRED),
    key(
        "model",
        "Its model: `ashlar`, or an array of another make.",
        REQUIRED,
    ),
    key("ports", "Its ports into networks: see `ports`.", REQUIRED),
    key("cores", "Processor cores.", "the model's"),
    key("cache", "RAM that caches reads.", "the model's"),
    key(
        "checksum_memory",
        "RAM for checksums of blocks, of a controller of model `ashlar`. Checksums that do not fit are read \
         from drives.",
        "the model's",
    ),
    key(
        "write_cache",
        "Write cache that survives a power cut.",
        "the model's",
    ),
    key(
        "partner",
        "The controller that it mirrors its write cache to, and that takes over its pools.",
        "none",
    ),
    key(
        "placement",
        "Where its pools lie on disks: `\"outside-in\"`, from the fast outer tracks as they fill, or `\"spread\"`, in \
         slices over the whole stroke.",
        "`\"spread\"` where writes go anywhere, else `\"outside-in\"`",
    ),
    key(
        "writes",
        "Where writes of hosts go: `\"in-place\"`, which reads parity, or `\"anywhere\"`, to whole free stripes, which \
         does not. A plan with events that make snapshots, restore, clone or move VMs to other storage writes in place.",
        "`\"anywhere\"` for model `fas3160`, `\"in-place\"` for others",
    ),
    key(
        "file_system",
        "What a NAS head has before its pools: `\"mapped\"`, a file system whose maps lie on two volumes, which each \
         write changes, or `\"none\"`. It writes in place.",
        "`\"mapped\"` for model `fs7500`, `\"none\"` for others",
    ),
    key(
        "drive_queue",
        "Commands that it lets a drive have at once. The others wait in it, in their order.",
        "what the drive's queue takes",
    ),
    key(
        "per_command_us",
        "Processor time of a command.",
        "the model's",
    ),
    key(
        "per_kib_us",
        "Processor time of a KiB between host and cache.",
        "the model's",
    ),
    key(
        "per_drive_command_us",
        "Processor time of a command to a drive.",
        "the model's",
    ),
    key(
        "per_parity_kib_us",
        "Processor time of a KiB of parity.",
        "the model's",
    ),
    key(
        "per_log_kib_us",
        "Processor time of a KiB of a copy of the write log.",
        "the model's",
    ),
];

const PORTS: &[Key] = &[
    key("network", "The network.", REQUIRED),
    key("count", "Ports into it.", "1"),
];

const BUS: &[Key] = &[
    key("name", "The bus's name.", REQUIRED),
    key(
        "kind",
        "Its model, such as `sas-6g-x4` or `pcie`.",
        REQUIRED,
    ),
];

const DRIVES: &[Key] = &[
    key(
        "name",
        "The lot's name. A drive is called by it, a dash and its number from 00.",
        REQUIRED,
    ),
    key("model", "The model of all its drives.", REQUIRED),
    key("count", "Drives in it.", REQUIRED),
    key("bus", "The bus that they are behind.", "the first bus"),
];

const DRIVE_MODEL: &[Key] = &[
    key(
        "name",
        "The model's name, for `model` of drives. It takes the place of a model of Ashlar with its name.",
        REQUIRED,
    ),
    key(
        "capacity",
        "The most that a drive offers. Drives of `[[drives]]` need it.",
        "the drive's `size`",
    ),
    key(
        "rotational",
        "Whether it has platters. Its model knows no places all the same: commands in order cost what \
         random ones cost.",
        "`false`",
    ),
    key(
        "shared",
        "Whether all drives of the model are parts of one device, as files on one disk are.",
        "`false`",
    ),
    key(
        "sizes",
        "Sizes of the commands that were measured.",
        REQUIRED,
    ),
    key("reads", "Random reads a second.", REQUIRED),
    key(
        "writes",
        "Random writes a second, of which a flush makes many durable.",
        REQUIRED,
    ),
    key(
        "durable_writes",
        "Random writes a second that are durable when they end.",
        REQUIRED,
    ),
    key("flushes", "Flushes a second, each after a write.", REQUIRED),
    key("read_spread", "How long single reads took.", ALL_ALIKE),
    key("write_spread", "How long single writes took.", ALL_ALIKE),
    key(
        "durable_write_spread",
        "How long single durable writes took.",
        ALL_ALIKE,
    ),
    key("flush_spread", "How long single flushes took.", ALL_ALIKE),
    key(
        "durable_write_share",
        "What a durable write gets of the drive beside commands of other kinds, against each of these.",
        "1",
    ),
];

/// Commands whose times do not differ.
const ALL_ALIKE: &str = "all alike";

const GROUPS: &[Key] = &[
    key("level", "RAID level of each group.", REQUIRED),
    key("drives", "Drives of each group.", REQUIRED),
    key("from", "The lot of drives.", REQUIRED),
    key("count", "Groups that are alike.", "1"),
    key("role", ROLE, "data"),
    key(
        "stripe_width",
        STRIPE_WIDTH,
        "the copies of levels `10` and `10x3`; else required with `distributed_spares`",
    ),
    key("distributed_spares", DISTRIBUTED_SPARES, "none"),
];

const SPARES: &[Key] = &[
    key("from", "The lot of drives.", REQUIRED),
    key("count", "Spares out of it.", "1"),
];

const NETWORK: &[Key] = &[
    key("name", "The network's name.", REQUIRED),
    key("kind", "How it frames data.", REQUIRED),
    key("speed", "Speed of each link, as it is sold.", REQUIRED),
    key(
        "carries",
        "What it is for: storage, what people send and VMs that move (`lan`), or both.",
        "storage",
    ),
    key("mtu", "Bytes of IP in a frame of Ethernet.", "1500"),
    key("switches", "Switches between a host and a controller.", "1"),
    key("uplink", "Links to another network: see below.", "none"),
];

const UPLINK: &[Key] = &[
    key("to", "The other network.", REQUIRED),
    key("links", "Links, each as fast as this network's.", "1"),
];

const VM_GROUP: &[Key] = &[
    key("name", "The group's name.", REQUIRED),
    key(
        "profile",
        "The load profile (`ashlar load --help` names them), or `trace:FILE`, what a host did, at its own times. `trace:FILE,msr` or `trace:FILE,blkparse` if the file does not show its format.",
        REQUIRED,
    ),
    key("roles", "VMs of the profile, only these.", "all"),
    key("count", "How often all of them are there.", "1"),
    key("hosts", "Hosts that the VMs go to in turn.", REQUIRED),
    key(
        "pools",
        "Pools that the VMs' disks go to, VM by VM in turn.",
        "this or `disk_pools` is required",
    ),
    key(
        "disk_pools",
        "A pool for each disk of a VM.",
        "this or `pools` is required",
    ),
    key("adapter", "The virtual disk adapter.", "none: raw LUNs"),
    key(
        "luns",
        "What shares a LUN. Data and log disks that are kept apart are `per-disk`.",
        "per-disk",
    ),
    key("provisioning", "How disks take space.", "thick"),
    key(
        "filled",
        "Percentage of each disk that is written before. The VMs read and write this part; all, if it is 0.",
        "100",
    ),
    key(
        "scale",
        "Factor on the rates of open loops, on what closed ones have under way, on what threads ask for, and on the speed of a \
         trace.",
        "1",
    ),
    key(
        "outstanding",
        "Operations under way in closed loops. Of a VM with threads ([closed networks](plans.md#closed-networks)) the number of \
         those, and nothing else.",
        "the profile's",
    ),
    key(
        "think",
        "Time in closed loops from the end of an operation to the next one in its place. Of a VM with threads their mean time \
         between two transactions, and nothing else.",
        "the profile's; none in loops",
    ),
    key(
        "work",
        "Mean processor time of a transaction, of threads. Refused where there are none.",
        "the profile's",
    ),
    key(
        "connections",
        "Threads of a VM that are in a transaction at a time. Refused where there are none.",
        "the profile's",
    ),
    key("memory", "Memory of each VM.", "the profile's"),
    key(
        "limit_iops",
        "What the hypervisor lets through to each virtual disk, at even distances. With `vmbus` every 8 KiB of an I/O count as one, \
         with `lsi-sas` and `pvscsi` every 32 KiB, with `virtio` any I/O. Raw LUNs have no limit.",
        "no limit",
    ),
];

const EVENT: &[Key] = &[
    key("at", "When, from the start of the run.", REQUIRED),
    key(
        "what",
        "What happens. [Events](plans.md#events) has the further keys of each.",
        REQUIRED,
    ),
];

pub(super) const fn inside(
    name: &'static str,
    heading: &'static str,
    inside: (&'static str, &'static str, bool),
    about: &'static str,
    keys: &'static [Key],
) -> Section {
    Section {
        name,
        heading,
        inside: Some(inside),
        about,
        keys,
    }
}

/// The tables, in the order of the page.
pub(super) const MODELLED: &[Section] = &[
    table(
        "run",
        "[run]",
        "How long a rehearsal looks, and its limit.",
        RUN,
    ),
    table(
        "controller",
        "[[controller]]",
        "A storage controller.",
        CONTROLLER,
    ),
    inside(
        "host.ports",
        "ports = [{ … }]",
        ("[[host]]", "ports", true),
        "Ports that are alike: `ports` of `[[host]]` and `[[controller]]`.",
        PORTS,
    ),
    table("bus", "[[bus]]", "A way from controllers to drives.", BUS),
    table(
        "drives",
        "[[drives]]",
        "A lot of drives that are alike.",
        DRIVES,
    ),
    table(
        "drive_model",
        "[[drive_model]]",
        "A drive as it was measured, for `model` of drives. `ashlar calibrate` writes it.",
        DRIVE_MODEL,
    ),
    inside(
        "pool.groups",
        "groups = [{ … }]",
        ("[[pool]]", "groups", true),
        "RAID groups out of a lot: `groups` of `[[pool]]`.",
        GROUPS,
    ),
    inside(
        "pool.spares",
        "spares = [{ … }]",
        ("[[pool]]", "spares", true),
        "Spares out of a lot: `spares` of `[[pool]]`.",
        SPARES,
    ),
    table(
        "network",
        "[[network]]",
        "A network. All its links are alike.",
        NETWORK,
    ),
    inside(
        "network.uplink",
        "uplink = { … }",
        ("[[network]]", "uplink", false),
        "Links from a network to another.",
        UPLINK,
    ),
    table(
        "vm_group",
        "[[vm_group]]",
        "VMs with a load. The old name is `[[block]]`, which Ashlar refuses.",
        VM_GROUP,
    ),
    table(
        "event",
        "[[event]]",
        "Something that happens while it runs.",
        EVENT,
    ),
    table(
        "variant",
        "[[variant]]",
        "The same site with several keys changed, under a name: see [Variants](plans.md#variants).",
        &[],
    ),
    table(
        "vary",
        "[[vary]]",
        "A variant for each value of a key: see [Variants](plans.md#variants).",
        &[],
    ),
];
