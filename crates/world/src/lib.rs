//! The two worlds that the engine runs in.
//!
//! - [`real`]: io_uring, a monotonic clock, entropy from the kernel.
//! - [`sim`]: modelled or adversarial drives, virtual time, seeded faults.

pub mod real;
pub mod sim;
