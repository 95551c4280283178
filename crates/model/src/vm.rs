//! The load of VMs on their host besides their I/O: they keep cores busy and hold memory.
//!
//! The cores' time is shared, so work that needs `s` of a core takes longer the more the
//! VMs do. For processor sharing the mean is, whatever the distribution of the work
//! (Kleinrock, "Queueing Systems" volume 2, section 4.4):
//!
//! ```text
//! u = Σ vCPUs × busy / cores        taken = s / (1 - u)
//! ```
//!
//! That is the rule of one core, used for all of them, and so too slow where several are
//! idle; a hypervisor pins vCPUs to cores for some milliseconds and is no better. The I/O
//! itself queues at the cores ([`crate::station`]) with the longer time.
//!
//! Memory is not overcommitted: all of what VMs are given has to be there.

use base::size::human_pair;
use std::fmt;
use std::time::Duration;

/// A VM, without its I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vm {
    /// Virtual processors that it is given.
    pub vcpus: u16,
    /// Memory that it is given, bytes.
    pub memory_bytes: u64,
    /// Share of its virtual processors that is busy, percent.
    pub busy_percent: u8,
    /// Share of its memory that holds something, percent: what a move copies.
    pub held_percent: u8,
}

impl Vm {
    /// A VM of the ten-VM mix during a measured run: 30 % of its vCPUs busy, 70 % of its
    /// memory held.
    pub const fn measured(vcpus: u16, memory_bytes: u64) -> Vm {
        Vm {
            vcpus,
            memory_bytes,
            busy_percent: 30,
            held_percent: 70,
        }
    }

    /// Memory that holds something, bytes.
    pub fn held_bytes(&self) -> u64 {
        (u128::from(self.memory_bytes) * u128::from(self.held_percent) / 100) as u64
    }
}

/// Why VMs do not fit on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Their processors would be busier than the host has cores.
    Cores {
        /// Cores kept busy, hundredths.
        busy_hundredths: u64,
        /// Cores of the host.
        cores: u16,
    },
    /// They are given more memory than the host has.
    Memory {
        /// Given, bytes.
        given_bytes: u64,
        /// The host's, bytes.
        has_bytes: u64,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Cores {
                busy_hundredths,
                cores,
            } => write!(
                f,
                "the VMs keep {}.{:02} cores busy of {cores}: give the host more cores or \
                 fewer VMs",
                busy_hundredths / 100,
                busy_hundredths % 100
            ),
            Unfit::Memory {
                given_bytes,
                has_bytes,
            } => {
                let (given, has) = human_pair(*given_bytes, *has_bytes);
                write!(
                    f,
                    "the VMs are given {given} of memory, the host has {has}: give it more memory \
                     or fewer VMs"
                )
            }
        }
    }
}

impl std::error::Error for Unfit {}

/// What VMs together are to their host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residents {
    busy_hundredths: u64,
    cores: u16,
}

impl Residents {
    /// These VMs on a host of so many cores and so much memory.
    ///
    /// # Errors
    /// When they need more cores or memory than it has.
    pub fn new(vms: &[Vm], cores: u16, memory_bytes: u64) -> Result<Residents, Unfit> {
        let given_bytes = vms
            .iter()
            .fold(0u64, |sum, vm| sum.saturating_add(vm.memory_bytes));
        if given_bytes > memory_bytes {
            return Err(Unfit::Memory {
                given_bytes,
                has_bytes: memory_bytes,
            });
        }
        let busy_hundredths = vms
            .iter()
            .map(|vm| u64::from(vm.vcpus) * u64::from(vm.busy_percent))
            .sum();
        // At all of the cores nothing else would ever end.
        if busy_hundredths >= u64::from(cores) * 100 {
            return Err(Unfit::Cores {
                busy_hundredths,
                cores,
            });
        }
        Ok(Residents {
            busy_hundredths,
            cores,
        })
    }

    /// Share of the cores that they keep busy, 0 to 1 exclusive.
    pub fn utilisation(&self) -> f64 {
        self.busy_hundredths as f64 / (f64::from(self.cores) * 100.0)
    }

    /// How long work takes beside them that needs so much of a core, rounded up to a
    /// nanosecond.
    pub fn slowed(&self, service: Duration) -> Duration {
        let all = u128::from(self.cores) * 100;
        let free = all - u128::from(self.busy_hundredths);
        let nanos = (service.as_nanos() * all).div_ceil(free);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
