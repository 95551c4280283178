//! Searches by rehearsing many times: the load that a site carries, and the smallest drive mix that
//! meets the KPIs.

pub mod brief;
pub mod load_factor;
pub mod sizing;
