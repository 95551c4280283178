//! The write amplification of a full drive under random writes.
//!
//! With `ρ` the over-provisioning (raw over offered bytes, less one), `α = 1 + ρ` and
//! `W` the principal branch of Lambert's function:
//!
//! ```text
//! WA = α / (α + W(-α e^-α))
//! ```
//!
//! Uniform random writes of a page, blocks of many pages, greedy collection: Xiang and
//! Kurkoski, "An improved analytical expression for write amplification in NAND flash"
//! (arXiv 1110.4245, ICNC 2012), who state 2.36 at ρ = 0.3. Desnoyers, "Analytic modeling
//! of SSD write performance" (SYSTOR 2012), has the same form for LRU collection.

/// The write amplification at this over-provisioning, from 1.
///
/// # Panics
/// When the over-provisioning is not above zero: such a drive cannot collect.
pub fn write_amplification(over_provisioning: f64) -> f64 {
    assert!(over_provisioning > 0.0, "a drive without spare blocks");
    let alpha = 1.0 + over_provisioning;
    // x = -W(-α e^-α) is the smaller root of x = α e^(x - α). From 0 the iteration
    // grows towards it and never passes it.
    let mut x = 0.0f64;
    for _ in 0..100_000 {
        let next = alpha * (x - alpha).exp();
        let step = next - x;
        x = next;
        if step < 1e-12 {
            break;
        }
    }
    alpha / (alpha - x)
}
