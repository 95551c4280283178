//! The drives of pools, as far as no machine is needed to know of them.
//!
//! - `names`, `places`, `waiting`: what drives are called, where they are, and what they wait for.
//! - `users`: which pool has the drive at a path.
//! - `placing`, `recorded`: new drives at their places, and the record of these.
//! - `failing`, `replacing`: drives are taken out of use, and others put in their stead.

mod failing;
mod names;
mod places;
mod placing;
mod recorded;
mod replacing;
mod users;
mod waiting;

pub use names::NewDrive;
pub use places::{AddedDrive, DrivePlaces, kept_path, names};
pub use placing::Placing;
pub use replacing::Replaced;
pub use waiting::WaitingReplacement;

use recorded::Recorded;
