//! Findings in the outcomes of runs: bottleneck and headroom, where the rule of thumb differs, and
//! the figures over several seeds.

pub mod bottleneck;
pub mod comparison;
pub mod summary;
