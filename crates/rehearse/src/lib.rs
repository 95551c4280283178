//! A described site in virtual time: the engine on modelled drives, behind modelled
//! controllers and networks, under the load of modelled VMs.
//!
//! ```text
//! plan ─► rig ─► run ─► outcome ─► laws, shares of time, report
//! ```
//!
//! Nothing here reads a clock or draws from anything but the seed: one seed gives one
//! outcome, byte by byte.
