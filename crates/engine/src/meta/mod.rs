//! The pool's metadata: its volumes, the place of each page, the zones in use, and the progress of
//! rebuilds.
//!
//! Invariants:
//! - [`State`] changes only by [`State::apply`], one [`Record`] at a time, and
//!   only once the record is durable. Replay after a crash runs the same code over
//!   the same records, so it ends in the same state.
//! - The state equals the newest checkpoint plus every record journalled since.
//!
//! Layout, order of writes and recovery: `docs/internals/format.md`, "Metadata".

pub mod backing;
pub mod checkpoint;
mod copying;
mod in_flight;
pub mod journal;
pub mod page_map;
pub mod promises;
pub mod properties;
pub mod record;
pub mod refs;
pub mod state;

pub use backing::Backings;
pub use in_flight::InFlight;
pub use page_map::PageMap;
pub use promises::{Promise, Promises};
pub use properties::{Origin, Property, Stage, Transit, VolumeProperties};
pub use record::{Record, VolumeId};
pub use refs::Refs;
pub use state::{Part, Provisioning, State, VolumeCore, ZoneState};
