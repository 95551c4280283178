//! Opens and closes portals while the array serves.
//!
//! Invariants:
//! - A portal is open, or can be, before the settings name it. One that can't be at a later start
//!   is opened when it can.
//! - Nobody stays logged in through a portal that was closed.

use super::settings::check;
use super::{ArrayError, ArrayErrorKind, ControlPlane, Export};
use crate::directory::{self, Access};
use engine::World;
use site::{Portal, Site};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The sockets of portals.
pub trait Sockets: Send + Sync {
    /// Binds a socket to `address`: port 0 lets the system choose. Connections wait there until it
    /// takes logins.
    ///
    /// # Errors
    /// It can't be bound.
    fn bind(&self, address: SocketAddr) -> Result<Box<dyn BoundSocket>, ArrayError>;

    /// Takes no more logins at `bound`. Sessions that came in there go on.
    fn close(&self, bound: SocketAddr);
}

/// A socket that takes no logins yet. Dropping it closes it.
pub trait BoundSocket: Send {
    /// Where it is.
    fn address(&self) -> SocketAddr;

    /// Takes logins from now on.
    fn serve(self: Box<Self>);
}

/// New portals that take no logins yet. Dropping them closes their sockets.
#[derive(Default)]
pub(super) struct BoundPortals {
    /// As settings are to have them.
    described: Vec<Portal>,
    /// Those of them that have a socket. All do, unless one portal stands for all.
    sockets: Vec<(directory::Portal, Box<dyn BoundSocket>)>,
}

impl BoundPortals {
    /// As settings are to have them.
    pub(super) fn described(&self) -> &[Portal] {
        &self.described
    }
}

impl<W: World> ControlPlane<W> {
    /// Opens and closes portals by these from now on.
    pub fn attach_sockets(&self, sockets: Arc<dyn Sockets>) {
        // There is one front.
        let _ = self.sockets.set(sockets);
    }

    /// Serves targets at another address, too.
    ///
    /// # Errors
    /// The array has that portal, it can't be opened, or can't be kept.
    pub async fn add_portal(self: &Arc<Self>, portal: Portal) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let address = portal.address;
            if array.has_portal_at(address) {
                let context = format!("there is a portal {address} already");
                return Err(ArrayError::new(ArrayErrorKind::Exists, context));
            }
            let mut bound = BoundPortals::default();
            array.bind(&portal, &mut bound)?;
            let settings = array.settings_with(bound.described())?;
            array.keep_settings(settings.as_ref().clone()).await?;
            array.show_portals(bound);
            Ok(())
        })
        .await
    }

    /// Whether the settings name a portal at this address.
    pub(crate) fn has_portal_at(&self, address: SocketAddr) -> bool {
        let settings = self.settings();
        let mut there = settings.portals.iter();
        there.any(|portal| portal.address == address)
    }

    /// Binds sockets for those of these portals that the array does not have. Gives those that it
    /// can't have, and why.
    pub(super) fn bind_portals(
        &self,
        portals: &[Portal],
    ) -> (BoundPortals, BTreeMap<SocketAddr, String>) {
        let (mut bound, mut unopened) = (BoundPortals::default(), BTreeMap::new());
        // Somebody may have added one meanwhile.
        let is_new = |portal: &&Portal| !self.has_portal_at(portal.address);
        for portal in portals.iter().filter(is_new) {
            if let Err(error) = self.bind(portal, &mut bound) {
                unopened.insert(portal.address, error.context);
            }
        }
        (bound, unopened)
    }

    /// Binds a socket for a new portal, unless one portal stands for all.
    fn bind(&self, portal: &Portal, bound: &mut BoundPortals) -> Result<(), ArrayError> {
        let mut described = bound.described.clone();
        described.push(portal.clone());
        self.settings_with(&described)?;
        if let Some(front) = self.sockets.get().filter(|_| !self.has_one_portal_only()) {
            let socket = front.bind(portal.address)?;
            bound.sockets.push((shown(portal, &*socket), socket));
        }
        bound.described = described;
        Ok(())
    }

    /// The settings with these portals, too.
    ///
    /// # Errors
    /// They would break a rule of a site file.
    pub(super) fn settings_with(&self, portals: &[Portal]) -> Result<Arc<Site>, ArrayError> {
        if portals.is_empty() {
            return Ok(self.settings());
        }
        let mut settings = self.settings().as_ref().clone();
        settings.portals.extend(portals.iter().cloned());
        check(&settings)?;
        Ok(Arc::new(settings))
    }

    /// Shows targets at these portals, and takes logins there.
    pub(super) fn show_portals(&self, bound: BoundPortals) {
        let (portals, sockets): (Vec<_>, Vec<_>) = bound.sockets.into_iter().unzip();
        let mut open = self.directory().portals();
        open.extend(portals);
        self.directory().set_portals(open);
        // Only now: a login goes by the group that the directory has for its portal.
        sockets.into_iter().for_each(|socket| socket.serve());
    }

    /// Puts the portal at this address into another portal group. Sessions that came in there end:
    /// they are with a target port that is no more.
    ///
    /// # Errors
    /// There is no such portal, or that can't be kept.
    pub async fn change_portal(self: &Arc<Self>, portal: Portal) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (address, group) = (portal.address, portal.group);
            let mut settings = array.settings().as_ref().clone();
            let mut there = settings.portals.iter_mut();
            let Some(one) = there.find(|one| one.address == address) else {
                return Err(no_portal(address));
            };
            if std::mem::replace(&mut one.group, group) == group {
                return Ok(());
            }
            array.keep_settings(settings).await?;
            let mut open = array.directory().portals();
            let at = open.iter_mut();
            at.filter(|one| one.described == Some(address))
                .for_each(|one| one.group = group);
            array.directory().set_portals(open);
            array.end_not_admitted().await;
            Ok(())
        })
        .await
    }

    /// Serves targets at `address` no more. Sessions that came in there end.
    ///
    /// # Errors
    /// There is no such portal, it is the last, a target is limited to it, or that can't be kept.
    pub async fn remove_portal(self: &Arc<Self>, address: SocketAddr) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let settings = array.without_portal(address)?;
            array.keep_settings(settings).await?;
            if array.has_one_portal_only() {
                return Ok(());
            }
            let (closed, open): (Vec<_>, Vec<_>) = array
                .directory()
                .portals()
                .into_iter()
                .partition(|portal| portal.described == Some(address));
            array.directory().set_portals(open);
            for portal in closed {
                if let Some(front) = array.sockets.get() {
                    front.close(portal.address);
                }
            }
            array.end_not_admitted().await;
            Ok(())
        })
        .await
    }

    /// The settings without a portal, if it can go.
    ///
    /// # Errors
    /// There is no such portal, it is the last, or a target is limited to it.
    pub fn without_portal(&self, address: SocketAddr) -> Result<Site, ArrayError> {
        let mut settings = self.settings().as_ref().clone();
        let before = settings.portals.len();
        settings.portals.retain(|one| one.address != address);
        if settings.portals.len() == before {
            return Err(no_portal(address));
        }
        let refused = |why: String| {
            let context = format!("portal {address}: {why}");
            Err(ArrayError::new(ArrayErrorKind::Busy, context))
        };
        if settings.portals.is_empty() {
            return refused("it is the last one; add another first".to_owned());
        }
        let open = self.directory().portals();
        let is_it = |portal: &directory::Portal| portal.described == Some(address);
        if !open.is_empty() && open.iter().all(is_it) {
            return refused("no other one is open; see `ashlar portal list`".to_owned());
        }
        let exports = self.exports_by_target();
        let names = |portals: &std::collections::BTreeSet<_>| portals.contains(&address);
        let mut limited = exports
            .values()
            .filter(|export| export.access.portals.as_ref().is_some_and(names));
        match limited.next() {
            None => Ok(settings),
            Some(export) => refused(format!(
                "target {} is limited to it; `ashlar export change` names others",
                export.target
            )),
        }
    }

    /// The portals that the settings name and that are not open, such as one whose address the
    /// machine does not have now.
    pub fn closed_portals(&self) -> Vec<Portal> {
        if self.sockets.get().is_none() || self.has_one_portal_only() {
            return Vec::new();
        }
        let open = self.directory().portals();
        let is_open = |address| open.iter().any(|one| one.described == Some(address));
        let settings = self.settings();
        let all = settings.portals.iter();
        all.filter(|portal| !is_open(portal.address))
            .cloned()
            .collect()
    }

    /// Opens the portals that are not open, where that can be by now.
    ///
    /// # Errors
    /// The turn to change the array does not come.
    pub async fn open_closed_portals(self: &Arc<Self>) -> Result<(), ArrayError> {
        if self.closed_portals().is_empty() {
            return Ok(());
        }
        self.change(|array| async move {
            let Some(front) = array.sockets.get() else {
                return Ok(());
            };
            for portal in array.closed_portals() {
                let Ok(socket) = front.bind(portal.address) else {
                    continue;
                };
                tracing::info!("portal {} is open now", portal.address);
                array.show_portals(BoundPortals {
                    sockets: vec![(shown(&portal, &*socket), socket)],
                    ..BoundPortals::default()
                });
            }
            Ok(())
        })
        .await
    }

    /// Whether one portal stands for all: the settings' are not open then.
    pub(super) fn has_one_portal_only(&self) -> bool {
        let open = self.directory().portals();
        open.iter().any(|portal| portal.described.is_none())
    }
}

/// How the directory has a portal with this socket.
fn shown(portal: &Portal, socket: &dyn BoundSocket) -> directory::Portal {
    directory::Portal {
        address: socket.address(),
        ..directory::Portal::from(portal)
    }
}

fn no_portal(address: SocketAddr) -> ArrayError {
    ArrayError::not_there(&format!("portal {address}"), "portal list")
}

/// A portal that an export names and these settings have not.
pub(super) fn missing_portal(access: &Access, settings: &Site) -> Option<SocketAddr> {
    let is_there = |at: &SocketAddr| settings.portals.iter().any(|one| one.address == *at);
    let mut portals = access.portals.iter().flatten();
    portals.find(|portal| !is_there(portal)).copied()
}

/// Whether the portals that an export names are in these settings.
pub(super) fn check_portals(export: &Export, settings: &Site) -> Result<(), ArrayError> {
    match missing_portal(&export.access, settings) {
        None => Ok(()),
        Some(portal) => {
            let target = &export.target;
            let context = format!(
                "target {target}: the array has no portal {portal}; `ashlar portal list` shows its \
                 portals"
            );
            Err(ArrayError::new(ArrayErrorKind::NotFound, context))
        }
    }
}
