//! Reads the records of exports and hosts that earlier versions of the server kept.
//!
//! These versions applied a site file at every start, and kept only what the API had made.

use super::Configuration;
use super::kept::{KeptAccount, KeptExport, KeptGroup, KeptHost, KeptInitiators, by_target, known};
use crate::record::{self, RecordError};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

#[derive(Default, Deserialize)]
struct Hosts {
    hosts: Vec<KeptHost>,
    groups: Vec<KeptGroup>,
}

#[derive(Deserialize)]
struct OfApi {
    target: String,
    volumes: Vec<String>,
    /// Absent where it was written before volumes could be renamed.
    #[serde(default)]
    uuids: Vec<String>,
    /// Absent for any.
    initiators: Option<Vec<String>>,
    #[serde(default)]
    hosts: BTreeSet<String>,
    #[serde(default)]
    host_groups: BTreeSet<String>,
    #[serde(default)]
    chap: Option<KeptAccount>,
    #[serde(default)]
    portals: Option<BTreeSet<SocketAddr>>,
    #[serde(default)]
    physical_block_bytes: Option<u32>,
}

impl From<OfApi> for KeptExport {
    fn from(of: OfApi) -> Self {
        KeptExport {
            target: of.target,
            luns: (0..).take(of.volumes.len()).collect(),
            volumes: of.volumes,
            uuids: of.uuids,
            initiators: match of.initiators {
                None => KeptInitiators::Any,
                Some(names) => KeptInitiators::Named(names.into_iter().collect()),
            },
            hosts: of.hosts,
            host_groups: of.host_groups,
            chap: of.chap,
            portals: of.portals,
            physical_block_bytes: of.physical_block_bytes,
            may_sanitize: false,
            may_affect_others: false,
        }
    }
}

/// The exports and hosts of two records; empty ones where there are none.
///
/// # Errors
/// A record is there and can't be read or understood.
pub(crate) fn before(exports_file: &Path, hosts_file: &Path) -> Result<Configuration, RecordError> {
    let exports: Vec<OfApi> = record::read(exports_file)?.unwrap_or_default();
    let export = |kept: OfApi| KeptExport::from(kept).restored(exports_file);
    let hosts: Hosts = record::read(hosts_file)?.unwrap_or_default();
    Ok(Configuration {
        exports: by_target(exports.into_iter().map(export))?,
        known: known(hosts.hosts, hosts.groups, hosts_file)?,
        ..Configuration::default()
    })
}
