//! Pools of this data directory: which were made here, and how they are opened, made and destroyed.
//!
//! - [`made`]: the record of pools that were made here.
//! - [`pool_plan`]: what is to become of a pool; [`pools`] decides that, and opens or makes it;
//!   [`lanes`]: where its lanes go.
//! - [`old_data`]: drives that an open pool, or its other lanes, have gone on without.
//! - [`unlisted`]: pools that were made here, and that the settings do not name.
//! - [`taking_back`]: what makings that did not end have left.
//! - [`pool_changes`]: pools that come and go while the array serves.

mod lanes;
pub(crate) mod made;
mod old_data;
pub(crate) mod pool_changes;
pub(crate) mod pool_plan;
pub(crate) mod pools;
pub(crate) mod taking_back;
pub(crate) mod unlisted;
