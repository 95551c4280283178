//! The settings of an array that has the pools of a run.

use super::TRASH_S;
use engine::PoolSpec;
use site::{Drive, DriveSource, Group, Pool, Portal, Site};
use std::net::SocketAddr;
use std::rc::Rc;
use world_sim::Media;

/// Those of an array that has these pools and portals; each portal is of a portal group of its own.
/// The pools have no cache.
///
/// # Errors
/// They break a rule of a site file.
pub(crate) fn settings(
    specs: &[PoolSpec],
    media: &[Vec<Rc<Media>>],
    portals: &[SocketAddr],
) -> Result<Site, String> {
    let text = format!(
        "[site]\nname = \"sim\"\ntrash = \"{TRASH_S} s\"\n[[portal]]\naddress = \"10.0.0.1:3260\"\n\
         [[drive]]\nname = \"d\"\ndevice = \"/dev/sdx\"\n\
         [[pool]]\nname = \"p\"\nlevel = \"simple\"\ndrives = [\"d\"]\n"
    );
    let mut site = site::parse("sim", &text).map_err(|error| error.to_string())?;
    let portal = |(group, address): (u16, &SocketAddr)| Portal {
        address: *address,
        group,
    };
    site.portals = (1..).zip(portals).map(portal).collect();
    site.api.drive_directories.push("/dev".into());
    site.drives.clear();
    site.pools.clear();
    for (spec, media) in specs.iter().zip(media) {
        let names: Vec<String> = media.iter().map(|one| one.spec().name.clone()).collect();
        site.drives.extend(names.iter().map(|name| Drive {
            name: name.clone(),
            source: DriveSource::Device {
                path: format!("/dev/{name}").into(),
            },
        }));
        site.pools.push(Pool {
            name: spec.name.clone(),
            groups: vec![Group::of_data(spec.level, names)],
            cache_bytes: 0,
            ..Pool::usual()
        });
    }
    let read = site::parse("sim", &site::text(&site)).map_err(|error| error.to_string())?;
    assert!(read == site, "it is read as it was written");
    Ok(site.settings())
}
