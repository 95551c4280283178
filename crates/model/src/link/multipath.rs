//! Multipath I/O: the choice of the path that a command takes.
//!
//! Unlike a group of links, a host with several paths (sessions) chooses for every
//! command, so one volume can use them all. Invariants: every command that begins on
//! a path ends on it; the choice depends on nothing but what began and ended before.

/// How a path is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The next path after so many commands, from 1. (VMware's VMW_PSP_RR changes
    /// after 1000 unless told otherwise; Microsoft's MPIO after each.)
    RoundRobin {
        /// Commands before the path changes.
        ios_per_path: u32,
    },
    /// The path with the fewest commands outstanding. Of equal ones the next after
    /// the path used last, so that a host with one command at a time uses all.
    LeastQueue,
}

/// The paths of a host to a volume.
#[derive(Clone, Debug)]
pub struct Paths {
    policy: Policy,
    outstanding: Vec<u32>,
    current: usize,
    left_on_current: u32,
}

impl Paths {
    /// So many paths, idle; path 0 is the first to be used.
    ///
    /// # Panics
    /// When there is no path, or when round robin never begins a command.
    pub fn new(policy: Policy, paths: usize) -> Paths {
        assert!(paths > 0, "a volume without a path");
        let left_on_current = match policy {
            Policy::RoundRobin { ios_per_path } => ios_per_path,
            Policy::LeastQueue => 1,
        };
        assert!(left_on_current > 0, "round robin of no commands");
        Paths {
            policy,
            outstanding: vec![0; paths],
            // The choice is always made from the path after this one.
            current: paths - 1,
            left_on_current: 0,
        }
    }

    /// Begins a command on a path for which `is_up` says so; its path, or none when none
    /// is up.
    pub fn begin(&mut self, is_up: impl Fn(usize) -> bool) -> Option<usize> {
        let paths = self.outstanding.len();
        let mut after = (1..=paths)
            .map(|step| (self.current + step) % paths)
            .filter(|path| is_up(*path));
        match self.policy {
            Policy::RoundRobin { ios_per_path } => {
                if self.left_on_current == 0 || !is_up(self.current) {
                    self.current = after.next()?;
                    self.left_on_current = ios_per_path;
                }
                self.left_on_current -= 1;
            }
            Policy::LeastQueue => {
                // The first of equal ones: min_by_key keeps it.
                self.current = after.min_by_key(|&path| self.outstanding[path])?;
            }
        }
        self.outstanding[self.current] += 1;
        Some(self.current)
    }

    /// A command on `path` has ended.
    ///
    /// # Panics
    /// When none is outstanding there.
    pub fn end(&mut self, path: usize) {
        let outstanding = &mut self.outstanding[path];
        assert!(
            *outstanding > 0,
            "a command ends once, on the path it began on"
        );
        *outstanding -= 1;
    }

    /// Commands outstanding by path.
    pub fn outstanding(&self) -> &[u32] {
        &self.outstanding
    }
}
