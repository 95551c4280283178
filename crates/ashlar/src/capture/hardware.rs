//! What the array is made of, as a site file says it: drives with the nearest model, pools, and a
//! controller. The API is on the array's own machine, so this machine's processors and drives are
//! the array's.

use super::Taken;
use super::text::{entry, quoted, size};
use crate::failure::Failure;
use api::Drive;
use rehearse::plan::catalog;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Disks above this are slow ones of large capacity.
const FAST_DISK_BYTES_MAX: u64 = 1_000_000_000_000;

/// A disk takes longer for reads or durable writes: half a turn at 15,000 turns a minute.
const DISK_US_MIN: u64 = 2000;

/// Keys of a pool that say how it is laid out; the others are of background work.
const POOL_KEYS: [&str; 13] = [
    "name",
    "level",
    "stripe_width",
    "distributed_spares",
    "role",
    "drives",
    "group",
    "spares",
    "lanes",
    "stripe_unit",
    "page",
    "cache",
    "log",
];

/// Shards that the array starts where its site does not say how many.
const SHARDS_MAX: usize = 4;

/// The tables of the controller, of its network and a host, of drives and pools.
///
/// # Errors
/// The array says what can't be read.
pub(super) fn tables(taken: &Taken) -> Result<String, Failure> {
    let site = taken.site.parse::<Table>();
    let site = site.map_err(|error| {
        Failure::Failed(format!("the array's site file can't be read: {error}"))
    })?;
    let mut text = controller(taken, &site);
    text += SURROUNDINGS;
    let drives = site.get("drive").and_then(Value::as_array);
    let names = drives
        .into_iter()
        .flatten()
        .filter_map(|drive| drive.get("name"));
    for name in names.filter_map(Value::as_str) {
        let drive = taken.drives.iter().find(|drive| drive.name == name);
        let drive = drive.ok_or_else(|| {
            Failure::Failed(format!(
                "the array has a drive {name} and says nothing of it"
            ))
        })?;
        text += &drive_table(taken, drive);
    }
    text += &pools(&site);
    Ok(text)
}

/// A host that costs nothing and a network that costs next to nothing: measured latencies are those of the array alone.
const SURROUNDINGS: &str = "
# Latencies were measured in the array, so this host costs nothing, and this network next to nothing.
# Describe yours in their place to see what a VM sees.
[[network]]
name = \"direct\"
kind = \"ethernet\"
speed = \"1000 Gb/s\"
mtu = 9000
switches = 0

[[host]]
name = \"host\"
cores = 1024
clock_ghz = 10
memory = \"64 TiB\"
initiator = \"none\"
ports = [{ network = \"direct\", count = 1 }]
";

fn controller(taken: &Taken, site: &Table) -> String {
    let shards = site.get("site").and_then(|site| site.get("shards"));
    let shards = shards.and_then(Value::as_integer);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = shards.unwrap_or(processors.min(SHARDS_MAX) as i64);
    let cache: u64 = taken
        .pools
        .iter()
        .map(|pool| pool.cache.capacity_bytes)
        .sum();
    let limits = site.get("limits");
    let checksums = limits.and_then(|limits| limits.get("checksum_memory"));
    let mut text = "\n[[controller]]\n".to_owned();
    text += &entry("name", quoted("array"));
    text += &entry("model", quoted("ashlar"));
    text += &entry("cores", cores.min(1024));
    let cache = if cache == 0 {
        quoted("none")
    } else {
        size(cache)
    };
    text += &entry("cache", cache);
    if let Some(checksums) = checksums {
        text += &entry("checksum_memory", checksums);
    }
    text + "ports = [{ network = \"direct\", count = 1 }]\n"
}

/// A drive as a file of its size: where it is, is nobody's business.
fn drive_table(taken: &Taken, drive: &Drive) -> String {
    let (model, why) = model_of(taken, drive);
    let mut text = "\n[[drive]]\n".to_owned();
    if !why.is_empty() {
        text += &format!("# The model is assumed: {why}.\n");
        let name = &drive.name;
        eprintln!(
            "drive {name}: the model {model} is assumed: {why}; --set drive.{name}.model changes it"
        );
    }
    if let Some(bytes) = model_bytes(model).filter(|bytes| drive.capacity_bytes > *bytes) {
        text +=
            &format!("# The model has {bytes} bytes: disks of VMs are smaller in proportion.\n");
    }
    text += &entry("name", quoted(&drive.name));
    text += &entry("file", quoted(&format!("{}.img", drive.name)));
    text += &entry("size", size(drive.capacity_bytes));
    text + &entry("model", quoted(model))
}

fn model_of(taken: &Taken, drive: &Drive) -> (&'static str, &'static str) {
    Class::of(&peers(taken, drive)).model()
}

/// Bytes of a model of drives.
fn model_bytes(model: &str) -> Option<u64> {
    let kind = catalog::DRIVES.iter().find(|(name, _)| *name == model);
    kind.map(|(_, kind)| kind.capacity_bytes())
}

/// What the modelled drives of a pool hold, of what its drives hold; 1 where they are no smaller.
pub(super) fn scale(taken: &Taken, pool: &str) -> f64 {
    let drives = taken.drives.iter();
    let drives = drives.filter(|one| one.pool == pool && !one.is_spare());
    let scales = drives.filter_map(|drive| {
        let bytes = model_bytes(model_of(taken, drive).0)?;
        Some(bytes as f64 / drive.capacity_bytes.max(1) as f64)
    });
    scales.fold(1.0, f64::min)
}

/// The drives of its group, which have one model. A spare has that of the first group.
fn peers<'a>(taken: &'a Taken, drive: &Drive) -> Vec<&'a Drive> {
    let group = if drive.is_spare() { 0 } else { drive.group };
    let drives = taken.drives.iter();
    let peers = drives.filter(|one| one.pool == drive.pool && one.group == group);
    peers.collect()
}

/// What is known of the drives of a group.
struct Class {
    /// Whether one of them has platters; nothing where the kernel does not say it.
    spins: Option<bool>,
    /// The longest mean latency.
    slowest_us: u64,
    capacity_bytes: u64,
    /// All are real block devices, of which the kernel knows what they are; no files, and no disks
    /// that something else makes.
    are_devices: bool,
}

impl Class {
    fn of(peers: &[&Drive]) -> Class {
        let paths = || peers.iter().map(|one| one.path.as_deref().map(Path::new));
        let latencies = peers
            .iter()
            .map(|one| one.read_latency_us.max(one.write_latency_us));
        let capacities = peers.iter().map(|one| one.capacity_bytes);
        let mut spins = paths().map(|path| path.and_then(self::spins));
        Class {
            spins: match spins.clone().any(|spins| spins == Some(true)) {
                true => Some(true),
                false => spins.any(|spins| spins == Some(false)).then_some(false),
            },
            slowest_us: latencies.max().unwrap_or(0),
            capacity_bytes: capacities.max().unwrap_or(0),
            are_devices: paths().all(|path| path.is_some_and(is_real)),
        }
    }

    /// The nearest model, and why that is no more than a guess; nothing where it is more.
    fn model(&self) -> (&'static str, &'static str) {
        const FLASH: &str = "nvme-7680";
        let disk = match self.capacity_bytes > FAST_DISK_BYTES_MAX {
            true => "nl-sas-1000",
            false => "sas-10k-600",
        };
        match self.spins {
            None => (FLASH, "nothing is known of the drive"),
            Some(true) if self.are_devices => (disk, ""),
            Some(true) if (1..DISK_US_MIN).contains(&self.slowest_us) => (
                FLASH,
                "a file or a virtual disk, which answers faster than a disk",
            ),
            Some(true) => (disk, "a file or a virtual disk, on a disk"),
            Some(false) if self.are_devices => (FLASH, ""),
            Some(false) => (FLASH, "a file or a virtual disk, on flash"),
        }
    }
}

/// Whether a drive, or the disk that a file is on, has platters; nothing where the kernel does not
/// say it.
fn spins(path: &Path) -> Option<bool> {
    let device = device_of(path)?;
    // A partition has none of its own, its disk has.
    let said = ["queue/rotational", "../queue/rotational"]
        .into_iter()
        .find_map(|file| std::fs::read_to_string(device.join(file)).ok());
    Some(said?.trim() == "1")
}

/// Whether it is a block device that nothing else makes: no disk of a hypervisor, no loop, no mapping.
fn is_real(path: &Path) -> bool {
    let is_device = std::fs::metadata(path).is_ok_and(|about| about.file_type().is_block_device());
    let device = device_of(path).and_then(|device| device.canonicalize().ok());
    is_device && device.is_some_and(|device| !is_virtual(&device))
}

/// Whether such a place of the kernel is that of a virtual device.
fn is_virtual(device: &Path) -> bool {
    let mut names = device.iter().filter_map(|name| name.to_str());
    let made = ["virtual", "virtio", "vbd-"];
    names.any(|name| made.iter().any(|one| name.starts_with(one)))
}

/// Where the kernel tells of a drive, or of the disk that a file is on.
fn device_of(path: &Path) -> Option<PathBuf> {
    let about = std::fs::metadata(path).ok()?;
    let number = if about.rdev() != 0 {
        about.rdev()
    } else {
        about.dev()
    };
    let (major, minor) = (major(number), minor(number));
    Some(format!("/sys/dev/block/{major}:{minor}").into())
}

// As the kernel's userspace puts numbers together.
fn major(number: u64) -> u64 {
    ((number >> 8) & 0xfff) | ((number >> 32) & !0xfff)
}

fn minor(number: u64) -> u64 {
    (number & 0xff) | ((number >> 12) & !0xff)
}

/// The pools, with what says how they are laid out.
fn pools(site: &Table) -> String {
    let pools = site.get("pool").and_then(Value::as_array);
    let pools = pools.into_iter().flatten().filter_map(Value::as_table);
    let mut text = String::new();
    for pool in pools {
        text += "\n[[pool]]\n";
        for key in POOL_KEYS {
            let value = pool.get(key).map(|value| entry(key, value));
            text += &value.unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_devices_are_taken_apart() {
        // 259:3, and a minor number above 255.
        assert_eq!((major(0x10303), minor(0x10303)), (259, 3));
        let large = (0x103 << 8) | 0x07 | (0x12 << 20);
        assert_eq!((major(large), minor(large)), (0x103, 0x1207));
    }

    #[test]
    fn disks_that_something_else_makes_are_known() {
        for (device, is) in [
            ("/sys/devices/virtual/block/loop0", true),
            (
                "/sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda",
                true,
            ),
            (
                "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda",
                false,
            ),
            (
                "/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1",
                false,
            ),
        ] {
            assert_eq!(is_virtual(Path::new(device)), is, "{device}");
        }
        assert!(!is_real(Path::new("/dev/null")));
    }

    #[test]
    fn pools_keep_their_layout_and_nothing_else() {
        let site = "[[pool]]\nname = \"p\"\nlevel = \"10\"\ndrives = [\"a\"]\n\
                    rebuild_rate = \"1 MB/s\"\n[[pool.group]]\nlevel = \"10\"\nrole = \"log\"\n\
                    drives = [\"b\"]\n[[pool.group]]\nlevel = \"5\"\nstripe_width = 3\n\
                    distributed_spares = 1\ndrives = [\"c\"]\n";
        let text = pools(&site.parse().unwrap());
        assert!(!text.contains("rebuild_rate"), "{text}");
        let mut again: Table = text.parse().unwrap();
        let mut before: Table = site.parse().unwrap();
        let pool = |table: &mut Table| table.remove("pool").unwrap().as_array().unwrap()[0].clone();
        let (again, mut before) = (pool(&mut again), pool(&mut before));
        before.as_table_mut().unwrap().remove("rebuild_rate");
        assert_eq!(again, before);
    }

    #[test]
    fn a_drive_gets_the_nearest_model_and_guesses_are_told() {
        let class = |spins, slowest_us, capacity_bytes, are_devices| Class {
            spins,
            slowest_us,
            capacity_bytes,
            are_devices,
        };
        let sure = |spins, capacity_bytes| class(spins, 6000, capacity_bytes, true).model();
        assert_eq!(sure(Some(true), 600_000_000_000), ("sas-10k-600", ""));
        assert_eq!(sure(Some(true), 8_000_000_000_000), ("nl-sas-1000", ""));
        assert_eq!(sure(Some(false), 8_000_000_000_000), ("nvme-7680", ""));
        for guess in [
            class(Some(true), 300, 1 << 40, false),
            class(None, 6000, 1 << 40, true),
            class(Some(false), 6000, 1 << 40, false),
        ] {
            let (model, why) = guess.model();
            assert!(model == "nvme-7680" && !why.is_empty(), "{why}");
        }
        // A cache in front of it, or reads in sequence: the kernel knows better.
        let cached = class(Some(true), 300, 600_000_000_000, true).model();
        assert_eq!(cached, ("sas-10k-600", ""));
        // A disk that has done nothing yet.
        let idle = class(Some(true), 0, 1 << 30, false).model();
        assert_eq!(idle, ("sas-10k-600", "a file or a virtual disk, on a disk"));
        assert_eq!(Class::of(&[]).model().0, "nvme-7680");
    }
}
