//! Volumes as people see them.

use crate::output::{Align, Table, pairs, percent, utc};
use api::{Deleted, Provisioning, Volume, VolumeSpace};
use site::human;

pub(super) fn table(volumes: &[Volume]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NAME", Left),
        ("POOL", Left),
        ("SIZE", Right),
        ("MAPPED", Right),
        ("USED", Right),
        ("KIND", Left),
        ("TARGET", Left),
        ("LUN", Right),
    ]);
    for volume in volumes {
        let (target, lun) = match &volume.export {
            Some(place) => (place.target.clone(), place.lun.to_string()),
            None => ("-".to_owned(), "-".to_owned()),
        };
        table.row(vec![
            volume.name.clone(),
            volume.pool.clone(),
            human(volume.size_bytes),
            human(volume.mapped_bytes),
            percent(volume.mapped_bytes, volume.size_bytes),
            word(volume.provisioning).to_owned(),
            target,
            lun,
        ]);
    }
    table
}

pub fn show(volume: &Volume) -> String {
    let export = match &volume.export {
        Some(place) => format!("{}, LUN {}", place.target, place.lun),
        None => "-".to_owned(),
    };
    let tags = volume
        .tags
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    let tags: Vec<String> = tags.collect();
    let mut lines = vec![
        ("name", volume.name.clone()),
        ("pool", volume.pool.clone()),
        ("size", human(volume.size_bytes)),
        ("mapped", human(volume.mapped_bytes)),
        ("promised", human(volume.promised_bytes)),
        ("kind", word(volume.provisioning).to_owned()),
        (
            "zeroes",
            match volume.detect_zeroes {
                true => "not kept".to_owned(),
                false => "kept".to_owned(),
            },
        ),
        ("export", export),
        ("uuid", volume.uuid.clone()),
    ];
    if let Some(pool) = &volume.withheld_for {
        lines.push(("not served", format!("until pool {pool} is there")));
    }
    if !volume.description.is_empty() {
        lines.push(("description", volume.description.clone()));
    }
    if !tags.is_empty() {
        lines.push(("tags", tags.join(" ")));
    }
    if let Some(group) = &volume.group {
        lines.push(("group", group.clone()));
    }
    if let Some(origin) = &volume.origin {
        let from = origin.volume.as_ref().unwrap_or(&origin.name);
        let gone = if origin.volume.is_some() {
            ""
        } else {
            " (gone)"
        };
        let at = utc(origin.at_unix_s);
        lines.push(("taken from", format!("{from}{gone}, {at} UTC")));
    }
    pairs(&lines)
}

pub(super) fn show_space(space: &VolumeSpace) -> String {
    pairs(&[
        ("name", space.name.clone()),
        ("provisioned", human(space.provisioned_bytes)),
        ("mapped", human(space.mapped_bytes)),
        ("exclusive", human(space.exclusive_bytes)),
        ("shared", human(space.shared_bytes)),
        ("promised", human(space.promised_bytes)),
        ("reclaimable", human(space.reclaimable_bytes)),
    ])
}

fn word(provisioning: Provisioning) -> &'static str {
    match provisioning {
        Provisioning::Thin => "thin",
        Provisioning::Thick => "thick",
    }
}

/// What came of a deletion.
pub fn told(kind: &str, deleted: &Deleted) -> String {
    let Deleted { name, uuid, .. } = deleted;
    let mut text = match deleted.until_unix_s {
        None => format!("{kind} {name} is deleted\n"),
        Some(until) => format!(
            "{kind} {name} is in the trash until {} UTC: ashlar trash restore {uuid}\n",
            utc(until)
        ),
    };
    for (what, names) in [
        ("snapshots", &deleted.snapshots),
        ("clones", &deleted.clones),
    ] {
        if !names.is_empty() {
            text += &format!("its {what} stay: {}\n", names.join(", "));
        }
    }
    text
}
