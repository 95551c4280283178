//! Copies that initiators have the target make, over a pool in the simulated world.

mod bench;
mod lists;
mod room;
mod sense;
mod streams;
mod tokens;
mod xcopy;
