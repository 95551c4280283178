//! The configuration of the array: settings, exports, hosts, and discovery CHAP.
//!
//! The array keeps it. A site file is applied to it, and never counts beside it.
//!
//! Invariants:
//! - All of it is in one record: a change is there whole after a crash, or not at all.
//! - A record that can't be understood is an error, never an empty configuration: without its
//!   secrets, anybody would be admitted.

use super::hosts::KnownHosts;
use super::{ArrayError, ArrayErrorKind, ControlPlane, Export, TakeBack};
use engine::World;
use iscsi::chap::Account;
use site::Site;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What an array knows of itself beside what its pools hold.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// All of them, by target.
    pub exports: BTreeMap<String, Export>,
    /// Hosts and their groups.
    pub known: KnownHosts,
    /// What initiators have to prove before they may ask which targets there are.
    pub discovery: Option<Arc<Account>>,
    /// Pools, drives, portals, directories, limits (see the site file). Absent in a record of a
    /// version that took them from the site file at each start.
    pub settings: Option<Arc<Site>>,
    /// Whether all volumes of the site file that the array began with have been made.
    pub is_complete: bool,
    /// Whether the record was lost, and no target has been made since.
    pub is_lost: bool,
    /// What takes changes back that have begun and not ended.
    pub unfinished: Vec<TakeBack>,
}

impl Configuration {
    /// What hosts and targets ask for.
    pub(super) fn accounts(&self) -> Vec<Arc<Account>> {
        let hosts = self.known.hosts.values().map(|host| &host.account);
        let exports = self.exports.values().map(|export| &export.access.account);
        hosts.chain(exports).flatten().cloned().collect()
    }
}

impl<W: World> ControlPlane<W> {
    /// The configuration as it is.
    pub fn configuration(&self) -> Configuration {
        Configuration {
            exports: self.exports_by_target(),
            known: self.known_hosts().clone(),
            discovery: self.directory.discovery(),
            settings: Some(self.settings()),
            is_complete: self.is_complete(),
            is_lost: self.is_lost(),
            unfinished: self.unfinished.steps(),
        }
    }

    /// Takes over at the start what was kept, but exports.
    pub fn begin_with(&self, known: KnownHosts, is_complete: bool, is_lost: bool) {
        self.restore_hosts(known);
        self.is_complete.store(is_complete, Ordering::Relaxed);
        self.was_lost.store(is_lost, Ordering::Relaxed);
    }

    /// Whether who may log in was lost, and nobody has said it since.
    pub fn is_lost(&self) -> bool {
        self.was_lost.load(Ordering::Relaxed) && self.exports_by_target().is_empty()
    }

    /// Keeps a configuration, durably. For one whose turn it is to change the array.
    ///
    /// # Errors
    /// It can't be kept.
    pub async fn keep(&self, configuration: Configuration) -> Result<(), ArrayError> {
        let kept = self.store.keep(configuration).await;
        self.is_unkept.store(kept.is_err(), Ordering::Relaxed);
        if self.runtime.planted("what can't be kept counts as kept") {
            return Ok(());
        }
        kept.map_err(|context| ArrayError::new(ArrayErrorKind::Internal, context))
    }

    /// Keeps the configuration as it is where a change that could not be kept may be on record:
    /// the next start would have what was refused.
    ///
    /// # Errors
    /// It can't be kept.
    pub async fn keep_again(self: &Arc<Self>) -> Result<(), ArrayError> {
        if !self.is_unkept.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.change(move |array| async move { array.keep(array.configuration()).await })
            .await
    }

    /// Whether all volumes of the site file that the array began with have been made.
    pub fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }

    /// Keeps the configuration as it is now, and whether it is complete.
    ///
    /// # Errors
    /// It can't be kept.
    pub async fn settle_configuration(
        self: &Arc<Self>,
        is_complete: bool,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let mut configuration = array.configuration();
            configuration.is_complete = is_complete;
            array.keep(configuration).await?;
            array.is_complete.store(is_complete, Ordering::Relaxed);
            Ok(())
        })
        .await
    }

    /// Changes what initiators have to prove before they may ask which targets there are; `None`
    /// for nothing.
    ///
    /// # Errors
    /// One of its secrets proves somebody else, or it can't be kept.
    pub async fn change_discovery(
        self: &Arc<Self>,
        account: Option<Arc<Account>>,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let mut configuration = array.configuration();
            let mut accounts = configuration.accounts();
            accounts.extend(account.clone());
            array.check_secrets(accounts)?;
            configuration.discovery = account.clone();
            if array
                .runtime
                .planted("account for discovery counts before it is kept")
            {
                array.directory.set_discovery(account.clone());
            }
            array.keep(configuration).await?;
            array.directory.set_discovery(account);
            Ok(())
        })
        .await
    }
}
