//! Reads volumes and consistency groups, and checks that they go together.

use crate::attributes::{DESCRIPTION_RULE, TAG_RULE, is_description, is_tag};
use crate::diagnostic::Diagnostic;
use crate::names::{NAME_RULE, is_name};
use crate::read::{Rows, name, size_of, size_rule};
use crate::references::{one_of, plural, push};
use crate::schedule::{KEEP_MAX, SCHEDULED_NAME_BYTES_MAX, SCHEDULES_MAX, Schedule};
use crate::size::{self, VOLUME_GRAIN_BYTES, VOLUME_SIZES};
use crate::span::{self, SPAN_RULE};
use crate::table::{Row, TableReader};
use crate::types::{ConsistencyGroup, Provisioning, Volume};
use crate::volume_limits::limits;
use std::collections::BTreeMap;
use toml::de::DeValue;

pub(crate) fn volume(mut reader: TableReader<'_, '_>) -> Row<Volume> {
    let name = name(&mut reader, "name");
    let pool = reader.required("pool", &format!("a pool's name, {NAME_RULE}"), |value| {
        value
            .as_str()
            .filter(|name| is_name(name))
            .map(str::to_owned)
    });
    let size_rule = size_rule(&reader, VOLUME_SIZES);
    let size_bytes = reader.required("size", &size_rule, |value| {
        size_of(value).filter(|size| size::is_volume_size(*size))
    });
    let provisioning = reader.optional(
        "provisioning",
        "\"thin\" or \"thick\"",
        |value| match value.as_str()? {
            "thin" => Some(Provisioning::Thin),
            "thick" => Some(Provisioning::Thick),
            _ => None,
        },
    );
    let description = reader.optional("description", DESCRIPTION_RULE, |value| {
        let text = value.as_str().filter(|text| is_description(text));
        text.map(str::to_owned)
    });
    let tags = reader.words("tags", TAG_RULE, is_tag);
    let detect_zeroes = reader.optional("detect_zeroes", "true or false", DeValue::as_bool);
    let limits = limits(&mut reader);
    let schedules = schedules(&mut reader, "volume.snapshots");
    reader.finish(Volume {
        name,
        pool: pool.unwrap_or_default(),
        size_bytes: size_bytes.unwrap_or(VOLUME_GRAIN_BYTES),
        provisioning: provisioning.unwrap_or(Provisioning::Thin),
        description,
        tags,
        detect_zeroes,
        limits,
        schedules,
    })
}

pub(crate) fn group(mut reader: TableReader<'_, '_>) -> Row<ConsistencyGroup> {
    let name = name(&mut reader, "name");
    let volumes = reader.list("volumes", &format!("a volume's name, {NAME_RULE}"), is_name);
    let schedules = schedules(&mut reader, "group.snapshots");
    reader.finish(ConsistencyGroup {
        name,
        volumes: volumes.unwrap_or_default(),
        schedules,
    })
}

/// The schedules of a volume or a group; `table` is what messages call one of them.
fn schedules(reader: &mut TableReader<'_, '_>, table: &'static str) -> Vec<Schedule> {
    let rule = "a list of schedules, each such as { every = \"1h\", keep = 24 }";
    let tables = reader.tables_as("snapshots", rule);
    if let Some(line) = reader.line_of("snapshots")
        && tables.len() as u64 > SCHEDULES_MAX
    {
        let found = plural(tables.len(), "schedule");
        reader.report(
            line,
            "snapshots",
            found,
            &format!("{SCHEDULES_MAX} at most"),
        );
    }
    let one = |at| schedule(reader.nested(table, at));
    tables.into_iter().map(one).collect()
}

fn schedule(mut reader: TableReader<'_, '_>) -> Schedule {
    let every = reader.required("every", SPAN_RULE, |value| {
        let span = value.as_str().and_then(span::parse);
        span.filter(|span| !span.is_zero())
    });
    let rule = format!("a whole number from 1 to {KEEP_MAX}");
    let keep = reader.required("keep", &rule, |value| {
        let number = value.as_integer()?;
        let keep = u64::from_str_radix(number.as_str(), number.radix()).ok();
        keep.filter(|keep| (1..=KEEP_MAX).contains(keep))
    });
    let (every, keep) = (every.unwrap_or_default(), keep.unwrap_or_default());
    reader.finish(Schedule { every, keep }).item
}

/// Checks that groups are of volumes that the file describes, each in one group at most.
pub(crate) fn group_volumes(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let known = || rows.volumes.iter().map(|row| row.item.name.as_str());
    let mut users: BTreeMap<&str, &str> = BTreeMap::new();
    for group in &rows.groups {
        for (index, name) in group.item.volumes.iter().enumerate() {
            let line = group.element_line("volumes", index);
            if !known().any(|volume| volume == name) {
                let what = format!("{name:?}, which no volume has");
                push(
                    found,
                    line,
                    "group.volumes",
                    what,
                    one_of("volume", known()),
                );
            } else if let Some(user) = users.get(name.as_str()) {
                let what = format!("{name:?}, which group {user:?} has already");
                let allowed = "a volume of no other group".to_owned();
                push(found, line, "group.volumes", what, allowed);
            } else {
                users.insert(name, &group.item.name);
            }
        }
    }
}

/// Checks that snapshots by schedule have room for their names.
pub(crate) fn scheduled_names(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let mut check = |name: &str, key: &str, line: usize| {
        if name.len() > SCHEDULED_NAME_BYTES_MAX {
            let what = format!("{name:?}, of which there are snapshots by schedule");
            let allowed = format!("a name of up to {SCHEDULED_NAME_BYTES_MAX} bytes for these");
            push(found, line, key, what, allowed);
        }
    };
    for volume in rows
        .volumes
        .iter()
        .filter(|row| !row.item.schedules.is_empty())
    {
        if let Some(line) = volume.line("name") {
            check(&volume.item.name, "volume.name", line);
        }
    }
    for group in rows
        .groups
        .iter()
        .filter(|row| !row.item.schedules.is_empty())
    {
        for (index, name) in group.item.volumes.iter().enumerate() {
            check(name, "group.volumes", group.element_line("volumes", index));
        }
    }
}
