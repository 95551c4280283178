//! Copies that initiators have the array make: commands of a nexus, with the array's own copier,
//! over shards in the simulated world.

mod bench;
#[path = "../../../../scsi/tests/integration/offload/lists.rs"]
mod lists;
#[path = "../../../../scsi/tests/integration/bench/pool.rs"]
mod pool;
mod room;
mod streams;
mod tokens;
mod xcopy;
