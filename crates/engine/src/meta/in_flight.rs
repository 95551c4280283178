//! The operations in progress on a volume, as far as the metadata asks.

/// The operations in progress on a volume, as far as the metadata asks. None of it is durable:
/// metadata that is only read has `()` there.
pub trait InFlight: Default + std::fmt::Debug {
    /// Whether deletion has begun.
    fn is_deleted(&self) -> bool;

    /// Whether the volume is in another pool by now.
    fn has_moved(&self) -> bool;
}

impl InFlight for () {
    fn is_deleted(&self) -> bool {
        false
    }

    fn has_moved(&self) -> bool {
        false
    }
}
