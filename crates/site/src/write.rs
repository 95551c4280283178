//! Writes a site as the text of a site file.
//!
//! Invariants:
//! - What [`crate::parse`] reads of the text is the site, except for secrets.
//! - No secret is written. Where there is one, the text has a placeholder that [`crate::parse`]
//!   refuses: a file that says nothing of a secret would admit more hosts than the array does.

use crate::schedule::Schedule;
use crate::secret::{ChapAccount, NOT_SHOWN};
use crate::span::words;
use crate::types::{
    Background, Chap, ChapAlgorithm, ConsistencyGroup, Drive, DriveSource, Export, Group, Host,
    HostGroup, Initiators, Limits, Pool, Portal, RateLimit, Site, TimeLimit, Vm, Volume,
};
use crate::volume_limits::parts;
use engine::GroupRole;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;

/// The text of a site file that says what `site` is.
pub fn text(site: &Site) -> String {
    let mut file = Writer::default();
    // Tables may be absent, and then have to be said to be none.
    for (key, count) in [("drive", site.drives.len()), ("pool", site.pools.len())] {
        if count == 0 {
            file.literal(key, "[]");
        }
    }
    file.header("[site]");
    file.text("name", &site.name);
    file.number("shards", site.shards);
    file.span("trash", site.trash);
    settings(site, &mut file);
    let (hosts, groups) = (&site.hosts, &site.host_groups);
    site.portals.iter().for_each(|one| portal(one, &mut file));
    site.drives.iter().for_each(|one| drive(one, &mut file));
    site.pools.iter().for_each(|one| pool(one, &mut file));
    site.volumes.iter().for_each(|one| volume(one, &mut file));
    let groups_of_volumes = site.groups.iter();
    groups_of_volumes.for_each(|one| consistency_group(one, &mut file));
    hosts.iter().for_each(|one| host(one, &mut file));
    groups.iter().for_each(|one| host_group(one, &mut file));
    site.exports.iter().for_each(|one| export(one, &mut file));
    site.vms.iter().for_each(|one| vm(one, &mut file));
    file.text
}

fn settings(site: &Site, file: &mut Writer) {
    let api = &site.api;
    if api.listen.is_some() || !api.drive_directories.is_empty() {
        file.header("[api]");
        let listen = api.listen.as_ref().map(ToString::to_string);
        // A TCP address is written without the scheme of a URL.
        let listen = listen.map(|text| text.trim_start_matches("http://").to_owned());
        listen.iter().for_each(|listen| file.text("listen", listen));
        file.paths("drive_directories", &api.drive_directories);
    }
    if !site.images.directories.is_empty() {
        file.header("[images]");
        file.paths("directories", &site.images.directories);
    }
    if site.chap != Chap::default() {
        file.header("[chap]");
        let algorithms = site.chap.algorithms.iter();
        file.list(
            "algorithms",
            algorithms.map(|one: &ChapAlgorithm| one.as_str()),
        );
        file.account("discovery", site.chap.discovery.as_ref());
    }
    if site.limits != Limits::default() {
        limits(&site.limits, file);
    }
}

fn limits(limits: &Limits, file: &mut Writer) {
    let Limits {
        sessions,
        sessions_per_initiator,
        logins,
        logins_per_address,
        login_time,
        silence,
        logout_time,
        data_time,
        memory_bytes,
        checksum_memory_bytes,
    } = limits;
    let usual = Limits::default();
    file.header("[limits]");
    // What is not said follows from what is: see the reader.
    let number = |file: &mut Writer, key, value: u16, usual: u16| {
        file.number(key, Some(value).filter(|value| *value != usual));
    };
    number(file, "sessions", *sessions, usual.sessions);
    let each = usual.sessions_per_initiator.min(*sessions);
    let said = *sessions_per_initiator;
    number(file, "sessions_per_initiator", said, each);
    number(file, "logins", *logins, usual.logins);
    let each = usual.logins_per_address.min(*logins);
    number(file, "logins_per_address", *logins_per_address, each);
    for (key, time, usual) in [
        ("login_time", login_time, usual.login_time),
        ("silence", silence, usual.silence),
        ("logout_time", logout_time, usual.logout_time),
        ("data_time", data_time, usual.data_time),
    ] {
        if *time != usual {
            file.span(key, *time);
        }
    }
    file.size("memory", *memory_bytes);
    file.size("checksum_memory", *checksum_memory_bytes);
}

fn portal(portal: &Portal, file: &mut Writer) {
    file.header("[[portal]]");
    file.text("address", &portal.address.to_string());
    file.number("group", Some(portal.group).filter(|group| *group != 1));
}

fn drive(drive: &Drive, file: &mut Writer) {
    file.header("[[drive]]");
    file.text("name", &drive.name);
    match &drive.source {
        DriveSource::File { path, size_bytes } => {
            file.text("file", &path.to_string_lossy());
            file.size("size", Some(*size_bytes));
        }
        DriveSource::Device { path } => file.text("device", &path.to_string_lossy()),
    }
}

fn pool(pool: &Pool, file: &mut Writer) {
    let Pool {
        name,
        groups,
        spares,
        lanes,
        stripe_unit_bytes,
        page_bytes,
        cache_bytes,
        log_bytes,
        rebuild_rate,
        scrub_rate,
        rebuild_hours,
        scrub_days,
        background,
        warn_at,
        alarm_at,
    } = pool;
    file.header("[[pool]]");
    file.text("name", name);
    let mut groups = groups.iter();
    // The first group is the pool's own table.
    groups.by_ref().take(1).for_each(|first| group(first, file));
    file.names("spares", spares);
    file.number("lanes", Some(lanes).filter(|lanes| **lanes != 1));
    file.size("stripe_unit", Some((*stripe_unit_bytes).into()));
    file.size("page", Some((*page_bytes).into()));
    file.cache(*cache_bytes);
    file.size("log", *log_bytes);
    file.rate("rebuild_rate", *rebuild_rate);
    file.rate("scrub_rate", *scrub_rate);
    file.time_limit("rebuild_hours", *rebuild_hours);
    file.time_limit("scrub_days", *scrub_days);
    file.background(*background);
    file.number("warn_at", *warn_at);
    file.number("alarm_at", *alarm_at);
    for one in groups {
        file.header("[[pool.group]]");
        group(one, file);
    }
}

fn group(group: &Group, file: &mut Writer) {
    file.text("level", group.level.as_str());
    file.number("stripe_width", group.spread.map(|spread| spread.width));
    file.number(
        "distributed_spares",
        group.spread.map(|spread| spread.spares),
    );
    if group.role != GroupRole::Data {
        file.text("role", group.role.as_str());
    }
    file.list("drives", group.drives.iter().map(String::as_str));
}

fn volume(volume: &Volume, file: &mut Writer) {
    let Volume {
        name,
        pool,
        size_bytes,
        provisioning,
        description,
        tags,
        detect_zeroes,
        limits,
        schedules,
    } = volume;
    file.header("[[volume]]");
    file.text("name", name);
    file.text("pool", pool);
    file.size("size", Some(*size_bytes));
    file.text("provisioning", provisioning.as_str());
    let description = description.iter();
    description.for_each(|text| file.text("description", text));
    if !tags.is_empty() {
        let tags = tags.iter();
        let tags = tags.map(|(key, value)| format!("{} = {}", quoted(key), quoted(value)));
        file.literal("tags", &format!("{{ {} }}", joined(tags)));
    }
    let detects = detect_zeroes.iter();
    detects.for_each(|detects| file.literal("detect_zeroes", &detects.to_string()));
    if let Some(limits) = limits {
        let parts = parts(limits, |bytes| quoted(&exact(bytes))).into_iter();
        file.literal("limits", &format!("{{ {} }}", joined(parts)));
    }
    file.schedules(schedules);
}

fn consistency_group(group: &ConsistencyGroup, file: &mut Writer) {
    file.header("[[group]]");
    file.text("name", &group.name);
    file.list("volumes", group.volumes.iter().map(String::as_str));
    file.schedules(&group.schedules);
}

fn host(host: &Host, file: &mut Writer) {
    file.header("[[host]]");
    file.text("name", &host.name);
    file.list("initiators", host.initiators.iter().map(String::as_str));
    file.account("chap", host.chap.as_ref());
}

fn host_group(group: &HostGroup, file: &mut Writer) {
    file.header("[[host_group]]");
    file.text("name", &group.name);
    file.list("hosts", group.hosts.iter().map(String::as_str));
}

fn export(export: &Export, file: &mut Writer) {
    let Export {
        target,
        volumes,
        luns,
        initiators,
        hosts,
        host_groups,
        chap,
        portals,
        physical_block_bytes,
        may_sanitize,
        may_affect_others,
    } = export;
    file.header("[[export]]");
    file.text("target", target);
    file.list("volumes", volumes.iter().map(String::as_str));
    if *luns != Export::usual_luns(volumes.len()) {
        let luns = joined(luns.iter().map(ToString::to_string));
        file.literal("luns", &format!("[{luns}]"));
    }
    match initiators {
        Initiators::Any => file.text("initiators", "any"),
        Initiators::Named(names) => file.names("initiators", names),
    }
    file.names("hosts", hosts);
    file.names("host_groups", host_groups);
    file.account("chap", chap.as_ref());
    let portals: Vec<String> = portals.iter().map(SocketAddr::to_string).collect();
    file.names("portals", &portals);
    file.size("physical_block", physical_block_bytes.map(u64::from));
    for (key, is_allowed) in [
        ("sanitize", *may_sanitize),
        ("affect_others", *may_affect_others),
    ] {
        if is_allowed {
            file.literal(key, "true");
        }
    }
}

fn vm(vm: &Vm, file: &mut Writer) {
    file.header("[[vm]]");
    file.text("name", &vm.name);
    file.text("target", &vm.target);
    file.text("profile", &vm.profile);
    file.text("role", &vm.role);
    // As TOML has it: with a point.
    file.literal("rate_scale", &format!("{:?}", vm.rate_scale));
}

/// Text that grows by tables and keys.
#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn header(&mut self, header: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &format!("{header}\n");
    }

    fn literal(&mut self, key: &str, value: &str) {
        self.text += &format!("{key} = {value}\n");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.literal(key, &quoted(value));
    }

    fn number(&mut self, key: &str, value: Option<impl Display>) {
        value
            .iter()
            .for_each(|value| self.literal(key, &value.to_string()));
    }

    fn size(&mut self, key: &str, bytes: Option<u64>) {
        bytes
            .iter()
            .for_each(|bytes| self.text(key, &exact(*bytes)));
    }

    fn span(&mut self, key: &str, span: Duration) {
        match span.is_zero() {
            true => self.literal(key, "0"),
            false => self.text(key, &words(span)),
        }
    }

    fn rate(&mut self, key: &str, rate: Option<RateLimit>) {
        match rate {
            None => {}
            Some(RateLimit::Unlimited) => self.text(key, "unlimited"),
            Some(RateLimit::BytesPerS(bytes_per_s)) => self.size(key, Some(bytes_per_s)),
        }
    }

    fn cache(&mut self, cache_bytes: u64) {
        match cache_bytes {
            0 => self.text("cache", "none"),
            bytes => self.size("cache", Some(bytes)),
        }
    }

    fn background(&mut self, background: Background) {
        if background == Background::Full {
            self.text("background", "full");
        }
    }

    fn time_limit(&mut self, key: &str, limit: Option<TimeLimit>) {
        match limit {
            None => {}
            Some(TimeLimit::Off) => self.text(key, "off"),
            Some(TimeLimit::Of(count)) => self.number(key, Some(count)),
        }
    }

    fn list<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        self.literal(key, &format!("[{}]", joined(values.map(quoted))));
    }

    /// A list that is left out when there is nothing in it.
    fn names(&mut self, key: &str, names: &[String]) {
        if !names.is_empty() {
            self.list(key, names.iter().map(String::as_str));
        }
    }

    fn paths(&mut self, key: &str, paths: &[PathBuf]) {
        let paths = paths.iter().map(|path| path.to_string_lossy().into_owned());
        self.names(key, &paths.collect::<Vec<_>>());
    }

    fn schedules(&mut self, schedules: &[Schedule]) {
        if schedules.is_empty() {
            return;
        }
        let one = |one: &Schedule| {
            let every = quoted(&words(one.every));
            format!("{{ every = {every}, keep = {} }}", one.keep)
        };
        self.literal(
            "snapshots",
            &format!("[{}]", joined(schedules.iter().map(one))),
        );
    }

    fn account(&mut self, key: &str, account: Option<&ChapAccount>) {
        let Some(account) = account else { return };
        let (name, secret) = (quoted(&account.initiator.name), quoted(NOT_SHOWN));
        let mut parts = vec![format!("name = {name}, secret = {secret}")];
        parts.extend(account.mutual.as_ref().map(|mutual| {
            let name = quoted(&mutual.name);
            format!("mutual_name = {name}, mutual_secret = {secret}")
        }));
        self.literal(key, &format!("{{ {} }}", joined(parts.into_iter())));
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// A size that is read as these bytes, in the largest unit that says them whole.
fn exact(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] = [
        ("PiB", 1 << 50),
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ];
    let whole = UNITS
        .iter()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    match whole {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}
