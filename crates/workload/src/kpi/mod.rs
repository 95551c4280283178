//! The figures of a run: latency distributions, rates over time, queue lengths.
//!
//! Invariants:
//! - **Response time** counts from the intended start, **service time** from the
//!   issue. An operation that waited because earlier ones were slow shows that in
//!   its response time: no coordinated omission.
//! - An operation belongs to the measured window when its intended start lies in
//!   it, however late it completes.
//! - Measurements of VMs merge exactly: counts add up, distributions are merged,
//!   never averaged.

mod interval;
mod latency;
mod recorder;

pub use interval::{INTERVALS_MAX, IntervalOf, interval};
pub use latency::Latency;
pub use recorder::{Measured, OfKind, Recorder, SecondOf, Window};
