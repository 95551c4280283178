//! The parts of a site at work in virtual time, each alone: drives, buses, controllers, pools,
//! networks, hosts, and virtual disks with their queues and limits.

pub mod bus;
pub mod controller;
pub mod disk;
pub mod drive;
pub mod file_system;
pub mod gate;
pub mod halt;
pub mod host;
pub mod limit;
pub mod network;
pub mod pool;
pub mod world;
pub mod write_region;
