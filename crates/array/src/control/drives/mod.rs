//! The drives of pools, as far as no machine is needed to know of them.
//!
//! - `names`, `places`, `waiting`: what drives are called, where they are, and what they wait for.
//! - `settled`: which drives the settings name.
//! - `users`: which pool has the drive at a path.
//! - `placing` decides where new drives may be. `placed`: new drives at their places; `recorded`: the
//!   record of these, and files that are made.
//! - `failing`, `replacing`: drives are taken out of use, and others put in their stead.

mod failing;
mod names;
mod placed;
mod places;
mod placing;
mod recorded;
mod replacing;
mod settled;
mod users;
mod waiting;

pub use names::NewDrive;
pub use places::{AddedDrive, DrivePlaces, kept_path, names};
pub use replacing::Replaced;
pub use waiting::WaitingReplacement;

use recorded::Recorded;
