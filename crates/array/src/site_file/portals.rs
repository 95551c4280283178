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
    let has =
        |portals: &[site::Portal], at: SocketAddr| portals.iter().any(|one| one.address == at);
    let new = site.portals.iter().map(|portal| portal.address);
    let new = new
        .filter(|at| !has(&settings.portals, *at))
        .map(|at| Difference {
            action: Action::Create,
            what: format!("portal {at}"),
            how: "is opened".to_owned(),
        });
    let other = regrouped(site, &settings).map(|(is, says)| Difference {
        action: Action::Change,
        what: format!("portal {}", is.address),
        how: format!(
            "group {} becomes {}; its sessions end",
            is.group, says.group
        ),
    });
    let old = settings.portals.iter().map(|portal| portal.address);
    let old = old
        .filter(|at| !has(&site.portals, *at))
        .map(|at| Difference {
            action: Action::Keep,
            what: format!("portal {at}"),
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

/// Opens the portals that the file has and the array has not, and has the others in their groups.
pub(super) async fn apply<W: World>(
    site: &Site,
    array: &Arc<ControlPlane<W>>,
) -> Vec<(String, String)> {
    let settings = array.settings();
    let is_there = |portal: &&site::Portal| {
        let mut there = settings.portals.iter();
        there.any(|one| one.address == portal.address)
    };
    let mut failed = Vec::new();
    for portal in site.portals.iter().filter(|portal| !is_there(portal)) {
        let added = array.add_portal(portal.clone()).await;
        let what = format!("portal {}", portal.address);
        failed.extend(added.err().map(|error| (what, error.context)));
    }
    for (_, says) in regrouped(site, &settings) {
        let changed = array.change_portal(says.clone()).await;
        let what = format!("portal {}", says.address);
        failed.extend(changed.err().map(|error| (what, error.context)));
    }
    failed
}
