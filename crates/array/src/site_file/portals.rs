//! Applies portals of a site file.

use super::{Action, Difference};
use crate::control::ControlPlane;
use engine::World;
use site::Site;
use std::net::SocketAddr;
use std::sync::Arc;

/// Portals that differ. Those that the file does not name stay.
pub(super) fn differences<W: World>(site: &Site, array: &ControlPlane<W>) -> Vec<Difference> {
    let settings = array.settings();
    let new = new_portals(site, array).into_iter();
    let new = new.map(|portal| Difference {
        action: Action::Create,
        what: what(portal.address),
        how: "is opened".to_owned(),
    });
    let other = regrouped(site, &settings).map(|(is, says)| Difference {
        action: Action::Change,
        what: what(is.address),
        how: format!(
            "group {} becomes {}; its sessions end",
            is.group, says.group
        ),
    });
    let is_said = |at: &SocketAddr| site.portals.iter().any(|portal| portal.address == *at);
    let old = settings.portals.iter().map(|portal| portal.address);
    let old = old.filter(|at| !is_said(at)).map(|at| Difference {
        action: Action::Keep,
        what: what(at),
        how: "is not in the site file: `ashlar portal remove` closes it".to_owned(),
    });
    new.chain(other).chain(old).collect()
}

/// Portals that are in another group than the file says: as they are, and as they are to be.
fn regrouped<'a>(
    site: &'a Site,
    settings: &'a Site,
) -> impl Iterator<Item = (&'a site::Portal, &'a site::Portal)> {
    settings.portals.iter().filter_map(|is| {
        let is_other = |says: &&site::Portal| says.address == is.address && says.group != is.group;
        Some((is, site.portals.iter().find(is_other)?))
    })
}

/// The portals that the file has and the array has not.
pub(super) fn new_portals<W: World>(site: &Site, array: &ControlPlane<W>) -> Vec<site::Portal> {
    let is_new = |portal: &&site::Portal| !array.has_portal_at(portal.address);
    site.portals.iter().filter(is_new).cloned().collect()
}

/// How a portal is called in what is said of an application.
pub(super) fn what(address: SocketAddr) -> String {
    format!("portal {address}")
}

/// Has the portals of the array be in the groups that the file says. New ones are opened with the
/// access of targets ([`super::access`]).
pub(super) async fn regroup<W: World>(
    site: &Site,
    array: &Arc<ControlPlane<W>>,
) -> Vec<(String, String)> {
    let settings = array.settings();
    let mut failed = Vec::new();
    for (_, says) in regrouped(site, &settings) {
        let changed = array.change_portal(says.clone()).await;
        failed.extend(
            changed
                .err()
                .map(|error| (what(says.address), error.context)),
        );
    }
    failed
}
