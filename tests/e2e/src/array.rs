//! The `ashlar serve` under test.
