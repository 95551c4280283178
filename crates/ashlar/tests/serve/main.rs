//! `ashlar serve` and the commands that talk to it, as users run them: the real
//! binary over temporary directories and ports that the system chooses.

// Tests of the real world: processes, files, sockets.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod absent;
mod array;
mod asking;
mod bring_up;
mod calibrate;
mod capture;
mod commands;
mod consistency;
mod copied_drives;
mod copy;
mod documents;
mod drives;
mod events;
mod failed_drives;
mod free_drives;
mod fsck;
mod groups;
mod hangs;
mod hosts;
mod images;
mod limits;
mod load;
mod logs;
mod losses;
mod lost_record;
mod luns;
mod memory;
mod moved;
mod moves;
mod older_server;
mod one_file;
mod one_truth;
mod openapi;
mod panics;
mod pools;
mod provisioning;
mod qos;
mod refusals;
mod restore;
mod salvage;
mod schedules;
mod settings;
mod site_attributes;
mod snapshots;
mod space;
mod spread;
mod stats;
mod strangers;
mod trash;
