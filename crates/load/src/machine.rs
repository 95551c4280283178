//! The machine that a load comes from, for reports. A figure that Linux does not tell is left
//! empty: a report without it is worth more than no report.

use workload::report::MachineReport;

/// Looks at this machine.
pub fn this() -> MachineReport {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let usable = std::thread::available_parallelism();
    let told = MachineFiles {
        cpuinfo: &read("/proc/cpuinfo"),
        meminfo: &read("/proc/meminfo"),
        host_name: &read("/proc/sys/kernel/hostname"),
        release: &read("/proc/sys/kernel/osrelease"),
    };
    machine(&told, usable.map_or(0, |count| count.get() as u64))
}

/// What Linux tells of a machine (proc(5)).
struct MachineFiles<'a> {
    cpuinfo: &'a str,
    meminfo: &'a str,
    host_name: &'a str,
    release: &'a str,
}

fn machine(told: &MachineFiles<'_>, usable: u64) -> MachineReport {
    let processors = told.cpuinfo.lines();
    let processors = processors
        .filter(|line| line.starts_with("processor"))
        .count();
    let memory_kib = value(told.meminfo, "MemTotal").split_whitespace().next();
    let memory_kib: u64 = memory_kib.and_then(|kib| kib.parse().ok()).unwrap_or(0);
    MachineReport {
        host_name: told.host_name.trim().to_owned(),
        processor: value(told.cpuinfo, "model name").to_owned(),
        processors_usable: usable,
        processors: processors as u64,
        memory_bytes: memory_kib.saturating_mul(1024),
        kernel: match told.release.trim() {
            "" => String::new(),
            release => format!("Linux {release}"),
        },
    }
}

/// The value of a line such as `key : value`; empty without.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = pairs.filter(|(name, _)| name.trim() == key);
    found.next().map_or("", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_what_linux_tells() {
        let told = MachineFiles {
            cpuinfo: "processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n",
            meminfo: "MemTotal:       16337228 kB\nMemFree: 1 kB\n",
            host_name: "lab1\n",
            release: "6.1.0-9-amd64\n",
        };
        let machine = machine(&told, 1);
        assert_eq!((machine.processors_usable, machine.processors), (1, 2));
        assert_eq!(machine.processor, "AMD EPYC");
        assert_eq!(machine.memory_bytes, 16_337_228 * 1024);
        assert_eq!(machine.host_name, "lab1");
        assert_eq!(machine.kernel, "Linux 6.1.0-9-amd64");
    }

    #[test]
    fn what_is_not_told_is_empty() {
        let told = MachineFiles {
            cpuinfo: "",
            meminfo: "MemTotal: many kB",
            host_name: "",
            release: "\n",
        };
        assert_eq!(machine(&told, 0), MachineReport::default());
    }
}
