//! The site file: a described installation, as TOML. One file is served and rehearsed.
//!
//! [`load`] reads one to serve it and gives a [`Site`]; [`plan::load`] reads the same to rehearse it
//! and gives a plan. What they give keeps every rule of `docs`-level validity. Otherwise there is a
//! [`SiteError`] with *all* that is wrong, each with file, line, key, what was found and what is
//! allowed. Nothing here touches a drive; a site that has been loaded is consistent in itself, and
//! whether it fits what exists is [`diff`]'s question.

mod access;
mod api_address;
mod attributes;
mod diagnostic;
pub mod diff;
mod drive_models;
mod event;
mod hardware;
mod limits;
mod loads;
mod logs;
mod names;
mod needs;
pub mod plan;
mod quantity;
mod read;
pub mod reference;
mod references;
mod schedule;
mod secret;
mod settings;
mod size;
mod span;
mod spread;
mod table;
mod types;
mod volume_limits;
mod volumes;
mod write;

pub use api_address::ApiAddress;
pub use attributes::{
    DESCRIPTION_BYTES_MAX, DESCRIPTION_RULE, TAG_KEY_BYTES_MAX, TAG_RULE, TAG_VALUE_BYTES_MAX,
    is_description, is_tag,
};
pub use diagnostic::{Diagnostic, SiteError, SiteErrorKind};
/// What a RAID group is for.
pub use engine::GroupRole;
/// How a RAID group protects data.
pub use engine::Level;
/// How a RAID group is wider than its stripes.
pub use engine::raid::Spread;
pub use limits::CONNECTION_MEMORY_BYTES_MIN;
pub use loads::{CAPTURE_VERSION, RATE_MAX, RATE_MIN};
pub use names::{NAME_RULE, TARGET_RULE, is_initiator_name, is_name, is_target_name};
pub use read::{DEVICE_RULE, FILE_RULE, drive_device, drive_file};
pub use schedule::{KEEP_MAX, SCHEDULED_NAME_BYTES_MAX, SCHEDULES_MAX, Schedule};
pub use secret::{CHAP_NAME_RULE, ChapAccount, Credential, SECRET_RULE, Secret, is_chap_name};
pub use size::{
    DRIVE_SIZES, NEW_DRIVE_SIZES, RATE_BYTES_MAX, SIZE_RULE, SizeLimits, VOLUME_SIZES, counted,
    human, human_pair, is_volume_size, parse as parse_size, parse_offset,
};
pub use span::{SPAN_RULE, parse as parse_span, words as span_words};
pub use spread::{SpreadKeys, WrongKey};
pub use types::{
    Api, Background, Chap, ChapAlgorithm, ConsistencyGroup, Drive, DriveSource, Export, Group,
    Host, HostGroup, Images, Initiators, LUNS_MAX, Limits, Pool, Portal, Provisioning,
    REBUILD_HOURS_MAX, RateLimit, SCRUB_DAYS_MAX, Site, TimeLimit, Vm, Volume,
};

pub use settings::{Setting, edited, settings};
pub use write::text;

use std::path::Path;

/// Reads and checks the site file at `path`.
///
/// # Errors
/// [`SiteErrorKind::Unreadable`] when the file can't be read, and as [`parse`].
pub fn load(path: &Path) -> Result<Site, SiteError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| SiteError::unreadable(path, &error))?;
    parse(&path.display().to_string(), &text)
}

/// Checks the text of a site file; `file` is its name in messages.
///
/// # Errors
/// [`SiteErrorKind::Invalid`] with every diagnostic.
pub fn parse(file: &str, text: &str) -> Result<Site, SiteError> {
    let (rows, mut found) = read::rows(text).map_err(|found| SiteError::invalid(file, found))?;
    needs::to_serve(&rows, &mut found);
    references::check(&rows, &mut found);
    if found.is_empty() {
        Ok(rows.into_site())
    } else {
        Err(SiteError::invalid(file, found))
    }
}
