//! The drives of pools, as far as no machine is needed to know of them.

mod waiting;

pub use waiting::Waiting;
