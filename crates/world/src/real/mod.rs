//! The real world: io_uring on a current-thread executor.
