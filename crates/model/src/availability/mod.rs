//! The outage of a service when its host fails or it is moved on purpose, and the votes by which a
//! cluster continues.
//!
//! An outage is a row of stages, one after the other; a stage that runs beside others
//! counts only as far as it is longer ([`Outage::lasting_until`]):
//!
//! ```text
//! failover cluster, host lost   interval × misses + arbitration + online + recovery
//! failover cluster, planned     offline + online                          seconds
//! hypervisor restart            max(declared, lock) + placement + boot + online + recovery
//! boot                          I/Os × latency
//! recovery                      log since the last checkpoint / rate of its replay
//! ```
//!
//! [`quorum`] says whether a cluster goes on, [`outage`] has the stages, [`defaults`] the
//! defaults of products with their sources. What a service itself takes to go offline and to
//! come online is not in any product's defaults: it is given.

pub mod defaults;
pub mod outage;
pub mod quorum;

pub use defaults::{FailoverCluster, HypervisorRestart};
pub use outage::{Outage, Service, Stage};
pub use quorum::{Adjustment, Cluster, Member, Witness, survives};
