//! Finds the memory that this process may use: the machine's, or a control group's limit.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of memory that there are for this process; `None` when the system does not say.
pub(crate) fn memory_bytes() -> Option<u64> {
    memory_under(Path::new("/"))
}

/// As [`memory_bytes`], where `/proc` and `/sys` are under `root`.
fn memory_under(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok();
    let machine = machine.as_deref().and_then(total_bytes);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| limit(root, line));
    machine.into_iter().chain(limits).min()
}

/// `MemTotal` of `/proc/meminfo`.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let total = lines.find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The lowest limit of a control group and those above it, by a line of `/proc/self/cgroup`
/// (cgroups(7)): of the unified hierarchy, or of the memory controller of the first version.
fn limit(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (top, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        one if one.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let top = root.join(top);
    let group: PathBuf = top.join(path.trim_start_matches('/'));
    let above = group
        .ancestors()
        .take_while(|group| group.starts_with(&top));
    // "max" is no number, and no limit.
    let limits = above.filter_map(|group| {
        let text = fs::read_to_string(group.join(file)).ok()?;
        text.trim().parse::<u64>().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       24684072 kB\nMemFree:        19386868 kB\n";

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_lowest_limit_of_a_group_and_those_above_counts() {
        let files = [
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "0::/system.slice/ashlar.service\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "2147483648\n"),
            (
                "sys/fs/cgroup/system.slice/ashlar.service/memory.max",
                "max\n",
            ),
        ];
        assert_eq!(memory_under(root(&files).path()), Some(2 << 30));
        assert_eq!(memory_under(root(&files[..1]).path()), Some(24684072 << 10));
    }

    #[test]
    fn groups_of_the_first_version_count_too() {
        let unlimited = "9223372036854771712\n";
        let files = [
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
            (
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "1073741824\n",
            ),
        ];
        assert_eq!(memory_under(root(&files).path()), Some(1 << 30));
        assert_eq!(memory_under(root(&files[..3]).path()), Some(24684072 << 10));
    }

    #[test]
    fn a_system_that_says_nothing_is_no_error() {
        assert_eq!(memory_under(root(&[]).path()), None);
        let odd = [("proc/meminfo", "MemTotal: lots\n")];
        assert_eq!(memory_under(root(&odd).path()), None);
    }
}
