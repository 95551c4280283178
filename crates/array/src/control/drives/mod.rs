//! The drives of pools, as far as no machine is needed to know of them.

mod names;
mod places;
mod waiting;

pub use names::NewDrive;
pub use places::{AddedDrive, DrivePlaces, DriveRecord, kept_path, names};
pub use waiting::Waiting;
