//! The settings that a run begins with.

use super::TRASH;
use engine::PoolSpec;
use site::{Drive, DriveSource, Group, Pool, Site};
use std::rc::Rc;
use world_sim::Media;

/// Those of an array that has these pools. They have no cache.
///
/// # Errors
/// They break a rule of a site file.
pub(super) fn settings(specs: &[PoolSpec], media: &[Vec<Rc<Media>>]) -> Result<Site, String> {
    let text = format!(
        "[site]\nname = \"sim\"\ntrash = \"{TRASH}\"\n[[portal]]\naddress = \"10.0.0.1:3260\"\n\
         [[drive]]\nname = \"d\"\ndevice = \"/dev/sdx\"\n\
         [[pool]]\nname = \"p\"\nlevel = \"simple\"\ndrives = [\"d\"]\n"
    );
    let mut site = site::parse("sim", &text).map_err(|error| error.to_string())?;
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
            groups: vec![Group {
                level: spec.level,
                drives: names,
            }],
            cache_bytes: 0,
            ..Pool::usual()
        });
    }
    let read = site::parse("sim", &site::text(&site)).map_err(|error| error.to_string())?;
    assert!(read == site, "it is read as it was written");
    Ok(site.settings())
}
