//! `[limits]`: bounds on the resources and the time that peers can take of the server.

use crate::diagnostic::Lines;
use crate::read::{size_of, whole};
use crate::size::{SIZE_RULE, human};
use crate::span::{self, words};
use crate::table::TableReader;
use crate::types::Limits;
use std::time::Duration;

const SESSIONS_MAX: u16 = 16_384;
const LOGINS_MAX: u16 = 1024;

/// The least memory that all connections may hold together, in bytes. Commands of any length
/// run then, one at a time at least.
pub const CONNECTION_MEMORY_BYTES_MIN: u64 = 128 << 20;

/// Memory for checksums, at least: as much as one pool has by itself.
const CHECKSUM_MEMORY_BYTES_MIN: u64 = 64 << 20;

const MEMORY_BYTES_MAX: u64 = 1 << 50;

/// Reads the table; what it does not say is as in [`Limits::default`].
pub(crate) fn limits(file: &mut TableReader<'_, '_>, lines: &Lines) -> Limits {
    let Some((line, table)) = file.table("limits") else {
        return Limits::default();
    };
    let mut reader = TableReader::new("limits", line, table, lines, file.found());
    let usual = Limits::default();
    let sessions = number(&mut reader, "sessions", SESSIONS_MAX).unwrap_or(usual.sessions);
    let each = number(&mut reader, "sessions_per_initiator", sessions);
    let logins = number(&mut reader, "logins", LOGINS_MAX).unwrap_or(usual.logins);
    let from = number(&mut reader, "logins_per_address", logins);
    let login = time(&mut reader, "login_time", 600);
    let silence = time(&mut reader, "silence", 3600);
    let logout = time(&mut reader, "logout_time", 60);
    let data = time(&mut reader, "data_time", 3600);
    let memory_bytes = memory(&mut reader, "memory", CONNECTION_MEMORY_BYTES_MIN);
    let checksum_memory_bytes = memory(&mut reader, "checksum_memory", CHECKSUM_MEMORY_BYTES_MIN);
    reader
        .finish(Limits {
            sessions,
            sessions_per_initiator: each.unwrap_or(usual.sessions_per_initiator.min(sessions)),
            logins,
            logins_per_address: from.unwrap_or(usual.logins_per_address.min(logins)),
            login_time: login.unwrap_or(usual.login_time),
            silence: silence.unwrap_or(usual.silence),
            logout_time: logout.unwrap_or(usual.logout_time),
            data_time: data.unwrap_or(usual.data_time),
            memory_bytes,
            checksum_memory_bytes,
        })
        .item
}

fn number(reader: &mut TableReader<'_, '_>, key: &'static str, most: u16) -> Option<u16> {
    let rule = format!("a whole number from 1 to {most}");
    reader.optional(key, &rule, |value| {
        whole(value).filter(|number| (1..=most).contains(number))
    })
}

fn memory(reader: &mut TableReader<'_, '_>, key: &'static str, least: u64) -> Option<u64> {
    let rule = format!(
        "{SIZE_RULE}; from \"{}\" to \"{}\"",
        human(least),
        human(MEMORY_BYTES_MAX)
    );
    let fits = |bytes: &u64| (least..=MEMORY_BYTES_MAX).contains(bytes);
    reader.optional(key, &rule, |value| size_of(value).filter(fits))
}

fn time(reader: &mut TableReader<'_, '_>, key: &'static str, most_s: u64) -> Option<Duration> {
    let most = Duration::from_secs(most_s);
    let rule = format!("a time from \"1 s\" to \"{}\"", words(most));
    reader.optional(key, &rule, |value| {
        let time = value.as_str().and_then(span::parse)?;
        (Duration::from_secs(1)..=most)
            .contains(&time)
            .then_some(time)
    })
}
