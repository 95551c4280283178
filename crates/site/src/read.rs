//! Reads TOML tables into rows, every key with its own rule.
//!
//! Rules that need more than one value are in [`crate::references`].

use crate::access;
use crate::api_address::ApiAddress;
use crate::diagnostic::{Diagnostic, Lines};
use crate::hardware::{self, Hardware, MachineRow, PoolHardware};
use crate::limits;
use crate::names::{NAME_RULE, TARGET_RULE, is_initiator_name, is_name, is_target_name};
use crate::size::{self, DRIVE_SIZES, SIZE_RULE, SizeLimits};
use crate::span::{self, SPAN_RULE};
use crate::spread::{self, SPREAD_KEYS};
use crate::table::{Row, TableReader};
use crate::types::{
    Api, Background, Chap, ConsistencyGroup, Drive, DriveSource, Export, Group, Host, HostGroup,
    Images, Initiators, LUNS_MAX, Limits, Pool, Portal, REBUILD_HOURS_MAX, RateLimit,
    SCRUB_DAYS_MAX, Site, TimeLimit, Vm, Volume,
};
use crate::volumes;
use engine::raid::Protection;
use engine::{GroupRole, Level};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue};

const SHARDS_MAX: u16 = 64;

/// How long what is deleted stays in the trash when the file says nothing.
const TRASH_DEFAULT: Duration = Duration::from_secs(24 * 3600);

/// Lanes of a pool; what the engine can have.
const LANES_MAX: u16 = 16;
/// In place of an address that is wrong, and that was told.
const NO_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
/// Files that Ashlar itself keeps in the data directory start with this.
const RESERVED_FILE_PREFIX: &str = "ashlar";

/// A site whose values are each right, not yet checked against each other.
pub(crate) struct Rows {
    pub(crate) name: String,
    pub(crate) about: Option<String>,
    pub(crate) shards: Option<u16>,
    pub(crate) trash: Duration,
    pub(crate) api: Api,
    pub(crate) images: Images,
    /// And the line of its account.
    pub(crate) chap: (Chap, usize),
    pub(crate) limits: Limits,
    pub(crate) portals: Vec<Row<Portal>>,
    pub(crate) drives: Vec<Row<DriveRow>>,
    pub(crate) pools: Vec<Row<PoolRow>>,
    pub(crate) volumes: Vec<Row<Volume>>,
    pub(crate) groups: Vec<Row<ConsistencyGroup>>,
    pub(crate) hosts: Vec<Row<HostRow>>,
    pub(crate) host_groups: Vec<Row<HostGroup>>,
    pub(crate) exports: Vec<Row<Export>>,
    pub(crate) vms: Vec<Row<VmRow>>,
    /// What is only modelled.
    pub(crate) hardware: Hardware,
    /// Which tables there are.
    pub(crate) file: Row<()>,
}

/// A drive, and how it is modelled.
pub(crate) struct DriveRow {
    pub(crate) drive: Drive,
    pub(crate) model: Option<String>,
    pub(crate) bus: Option<String>,
}

/// A VM, and how its disks are modelled.
pub(crate) struct VmRow {
    pub(crate) vm: Vm,
    /// How much of each disk is written before, percent.
    pub(crate) filled_percent: Option<u8>,
}

/// A pool, and where its groups after the first are described.
pub(crate) struct PoolRow {
    pub(crate) pool: Pool,
    /// `[[pool.group]]`: the groups of `pool` after the first.
    pub(crate) more: Vec<Row<Group>>,
    /// How it is modelled.
    pub(crate) modelled: PoolHardware,
}

/// A host, and how it is modelled.
pub(crate) struct HostRow {
    /// Without initiators where it is only modelled.
    pub(crate) host: Host,
    pub(crate) machine: MachineRow,
}

impl Rows {
    pub(crate) fn into_site(self) -> Site {
        fn items<T>(rows: Vec<Row<T>>) -> Vec<T> {
            rows.into_iter().map(|row| row.item).collect()
        }
        Site {
            name: self.name,
            shards: self.shards,
            trash: self.trash,
            api: self.api,
            images: self.images,
            chap: self.chap.0,
            limits: self.limits,
            portals: items(self.portals),
            drives: items(self.drives)
                .into_iter()
                .map(|row| row.drive)
                .collect(),
            pools: items(self.pools).into_iter().map(|row| row.pool).collect(),
            volumes: items(self.volumes),
            groups: items(self.groups),
            // A host without initiators is only modelled.
            hosts: items(self.hosts)
                .into_iter()
                .map(|row| row.host)
                .filter(|host| !host.initiators.is_empty())
                .collect(),
            host_groups: items(self.host_groups),
            exports: items(self.exports),
            vms: items(self.vms).into_iter().map(|row| row.vm).collect(),
        }
    }
}

/// Reads the text of a site file; what is wrong goes to the list, and wrong values are
/// replaced by defaults that never leave this crate.
///
/// # Errors
/// It is no TOML.
pub(crate) fn rows(text: &str) -> Result<(Rows, Vec<Diagnostic>), Vec<Diagnostic>> {
    let lines = Lines::of(text);
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    if !syntax_errors.is_empty() {
        let errors = syntax_errors.iter();
        return Err(errors.map(|error| lines.syntax(error)).collect());
    }
    let mut found = Vec::new();
    let rows = document_rows(document.get_ref(), &lines, &mut found);
    Ok((rows, found))
}

fn document_rows(document: &DeTable<'_>, lines: &Lines, found: &mut Vec<Diagnostic>) -> Rows {
    let mut file = TableReader::new("", 1, document, lines, found);
    let (name, about, shards, trash) = site_table(&mut file, lines);
    let api = api_table(&mut file, lines);
    let images = images_table(&mut file, lines);
    let chap = access::chap(&mut file, lines);
    let limits = limits::limits(&mut file, lines);
    let portals = tables(&mut file, lines, "portal", portal);
    let drives = tables(&mut file, lines, "drive", drive);
    let pools = tables(&mut file, lines, "pool", pool);
    let volumes = tables(&mut file, lines, "volume", volumes::volume);
    let groups = tables(&mut file, lines, "group", volumes::group);
    let hosts = tables(&mut file, lines, "host", access::host);
    let host_groups = tables(&mut file, lines, "host_group", access::host_group);
    let exports = tables(&mut file, lines, "export", export);
    let vms = tables(&mut file, lines, "vm", vm);
    let hardware = hardware::read(&mut file, lines);
    Rows {
        name,
        about,
        shards,
        trash,
        api,
        images,
        chap,
        limits,
        portals,
        drives,
        pools,
        volumes,
        groups,
        hosts,
        host_groups,
        exports,
        vms,
        hardware,
        file: file.finish(()),
    }
}

pub(crate) fn tables<T>(
    file: &mut TableReader<'_, '_>,
    lines: &Lines,
    key: &'static str,
    read: fn(TableReader<'_, '_>) -> Row<T>,
) -> Vec<Row<T>> {
    let tables = file.tables(key);
    tables
        .into_iter()
        .map(|(line, table)| read(TableReader::new(key, line, table, lines, file.found())))
        .collect()
}

/// `[site]`: its name, what it is, threads and the trash.
type SiteTable = (String, Option<String>, Option<u16>, Duration);

fn site_table(file: &mut TableReader<'_, '_>, lines: &Lines) -> SiteTable {
    let Some((line, table)) = file.table("site") else {
        if file.line_of("site").is_none() {
            file.report(
                1,
                "site",
                "nothing".to_owned(),
                "a table [site] with a name",
            );
        }
        return (String::new(), None, None, TRASH_DEFAULT);
    };
    let mut reader = TableReader::new("site", line, table, lines, file.found());
    let name = name(&mut reader, "name");
    let about = reader.optional("about", "a sentence", |value| {
        value.as_str().map(str::to_owned)
    });
    let shards = reader.optional(
        "shards",
        &format!("a whole number from 1 to {SHARDS_MAX}"),
        |value| whole(value).filter(|n| (1..=SHARDS_MAX).contains(n)),
    );
    let rule = format!("0 (no trash), or {SPAN_RULE}");
    let trash = reader.optional("trash", &rule, |value| match whole(value) {
        Some(0) => Some(Duration::ZERO),
        _ => value.as_str().and_then(span::parse),
    });
    let trash = trash.unwrap_or(TRASH_DEFAULT);
    reader.finish((name, about, shards, trash)).item
}

fn api_table(file: &mut TableReader<'_, '_>, lines: &Lines) -> Api {
    let Some((line, table)) = file.table("api") else {
        return Api::default();
    };
    let mut reader = TableReader::new("api", line, table, lines, file.found());
    let rule = format!(
        "{} (the API has no users yet, so it is not offered to the network)",
        ApiAddress::RULE
    );
    let listen = reader.optional("listen", &rule, |value| {
        value.as_str().and_then(ApiAddress::parse)
    });
    let key = "drive_directories";
    let drive_directories = match reader.line_of(key) {
        Some(_) => directories(&mut reader, key, "/dev/disk/by-id"),
        None => reader.optional(key, "", |_| None).unwrap_or_default(),
    };
    reader
        .finish(Api {
            listen,
            drive_directories,
        })
        .item
}

fn images_table(file: &mut TableReader<'_, '_>, lines: &Lines) -> Images {
    let Some((line, table)) = file.table("images") else {
        return Images::default();
    };
    let mut reader = TableReader::new("images", line, table, lines, file.found());
    let directories = directories(&mut reader, "directories", "/srv/images");
    reader.finish(Images { directories }).item
}

/// A list of directories, which has to be there.
fn directories(reader: &mut TableReader<'_, '_>, key: &'static str, example: &str) -> Vec<PathBuf> {
    let rule = format!("an absolute path without \"..\", such as {example:?}");
    let directories = reader.list(key, &rule, |text| {
        let path = Path::new(text);
        path.is_absolute()
            && !text.contains('\0')
            && !path.components().any(|part| part == Component::ParentDir)
    });
    let directories = directories.unwrap_or_default();
    directories.into_iter().map(PathBuf::from).collect()
}

fn portal(mut reader: TableReader<'_, '_>) -> Row<Portal> {
    let rule = "an address of this machine and a port, such as \"127.0.0.1:3260\" or \
                \"[::1]:3260\" (not 0.0.0.0: discovery has to name an address)";
    let address = reader.required("address", rule, |value| {
        address(value).filter(|at| !at.ip().is_unspecified())
    });
    let rule = "the tag of a portal group, a whole number from 1 to 65535";
    let group = reader.optional("group", rule, |value| whole(value).filter(|tag| *tag > 0));
    let address = address.unwrap_or(NO_ADDRESS);
    reader.finish(Portal {
        address,
        group: group.unwrap_or(1),
    })
}

fn drive(mut reader: TableReader<'_, '_>) -> Row<DriveRow> {
    let name = name(&mut reader, "name");
    let file = reader.optional("file", FILE_RULE, |value| {
        value.as_str().and_then(drive_file)
    });
    let device = reader.optional("device", DEVICE_RULE, |value| {
        value.as_str().and_then(drive_device)
    });
    let size_rule = size_rule(&reader, DRIVE_SIZES);
    let size_bytes = reader.optional("size", &size_rule, |value| {
        size_of(value).filter(|size| DRIVE_SIZES.admit(*size))
    });
    drive_shape(&mut reader, &size_rule);
    let source = match (file, device) {
        (_, Some(path)) => DriveSource::Device { path },
        (path, None) => DriveSource::File {
            path: path.unwrap_or_default(),
            size_bytes: size_bytes.unwrap_or(DRIVE_SIZES.min_bytes),
        },
    };
    let model = hardware::word_if_there(&mut reader, "model", "a drive model's name");
    let bus = hardware::word_if_there(&mut reader, "bus", "a bus's name");
    let drive = Drive { name, source };
    reader.finish(DriveRow { drive, model, bus })
}

/// What the key `size` of a table takes; near the size that is there, if that is a size.
pub(crate) fn size_rule(reader: &TableReader<'_, '_>, limits: SizeLimits) -> String {
    let there = reader.text("size").and_then(size::parse);
    let rule = there.map_or_else(|| limits.rule(), |there| limits.rule_near(there));
    format!("{SIZE_RULE}; {rule}")
}

/// A drive is either a file with a size or a device without.
fn drive_shape(reader: &mut TableReader<'_, '_>, size_rule: &str) {
    match (
        reader.line_of("file"),
        reader.line_of("device"),
        reader.line_of("size"),
    ) {
        (None, None, _) => {
            let line = reader.header_line();
            reader.report(
                line,
                "",
                "neither file nor device".to_owned(),
                "one of the two",
            );
        }
        (Some(_), Some(line), _) => {
            reader.report(
                line,
                "device",
                "a device beside a file".to_owned(),
                "one of the two",
            );
        }
        (None, Some(_), Some(line)) => {
            let found = "a size beside a device".to_owned();
            reader.report(line, "size", found, "no size: a device has its own");
        }
        (Some(_), None, None) => {
            let line = reader.header_line();
            reader.report(line, "size", "nothing".to_owned(), size_rule);
        }
        _ => {}
    }
}

pub(crate) const LEVEL_RULE: &str = "\"10\" (mirrored pairs, striped), \"10x3\" (three copies, striped), \"5\" \
    (one parity), \"50\" (RAID 5 sets, striped), \"6\" (two parities) or \"simple\" (one drive, no \
    protection)";

pub(crate) fn level_of(value: &DeValue<'_>) -> Option<Level> {
    Level::parse(value.as_str()?)
}

fn pool(mut reader: TableReader<'_, '_>) -> Row<PoolRow> {
    let name = name(&mut reader, "name");
    let modelled = hardware::pool(&mut reader);
    let (first, drives, spares) = pool_drives(&mut reader);
    let stripe_unit_bytes = power_of_two(&mut reader, "stripe_unit", 4 << 10, 1 << 20);
    let page_bytes = power_of_two(&mut reader, "page", 4 << 10, 16 << 20);
    let cache_rule = format!("\"none\", or {SIZE_RULE}, up to \"1 TiB\"");
    let cache_bytes = reader.optional("cache", &cache_rule, |value| match value.as_str()? {
        "none" => Some(0),
        _ => size_of(value).filter(|size| *size <= 1 << 40),
    });
    let log_rule = "a size from \"1 MiB\" to \"16 GiB\", a multiple of 4096 bytes";
    let log_bytes = reader.optional("log", log_rule, |value| {
        size_of(value)
            .filter(|size| (1 << 20..=16 << 30).contains(size) && size.is_multiple_of(4096))
    });
    let lanes_rule = format!("a whole number from 1 to {LANES_MAX}");
    let lanes = reader.optional("lanes", &lanes_rule, |value| {
        whole(value).filter(|n| (1..=LANES_MAX).contains(n))
    });
    let (rates, times, background) = background_limits(&mut reader);
    let warn_rule = "a whole number from 1 to 100, in percent";
    let warn_at = reader.optional("warn_at", warn_rule, percent);
    let least = warn_at.unwrap_or(1);
    let alarm_rule = format!("a whole number from {least} (warn_at) to 100, in percent");
    let alarm_at = reader.optional("alarm_at", &alarm_rule, |value| {
        percent(value).filter(|percent| *percent >= least)
    });
    let more = more_groups(&mut reader);
    let first = Group::of_data(first, drives);
    let usual = Pool::usual();
    let pool = Pool {
        name,
        groups: std::iter::once(first)
            .chain(more.iter().map(|row| row.item.clone()))
            .collect(),
        spares,
        lanes: lanes.unwrap_or(usual.lanes),
        stripe_unit_bytes: stripe_unit_bytes.unwrap_or(usual.stripe_unit_bytes),
        page_bytes: page_bytes.unwrap_or(usual.page_bytes),
        cache_bytes: cache_bytes.unwrap_or(usual.cache_bytes),
        log_bytes,
        rebuild_rate: rates.0,
        scrub_rate: rates.1,
        rebuild_hours: times.0,
        scrub_days: times.1,
        background: background.unwrap_or(usual.background),
        warn_at,
        alarm_at,
    };
    reader.finish(PoolRow {
        pool,
        more,
        modelled,
    })
}

/// Of rebuilds and of scrubs.
type OfBoth<T> = (Option<T>, Option<T>);

/// The limits of work in the background, and whether it makes way for commands.
fn background_limits(
    reader: &mut TableReader<'_, '_>,
) -> (OfBoth<RateLimit>, OfBoth<TimeLimit>, Option<Background>) {
    let rates = (rate(reader, "rebuild_rate"), rate(reader, "scrub_rate"));
    let rebuild_hours = time_limit(reader, "rebuild_hours", "hours", REBUILD_HOURS_MAX);
    let scrub_days = time_limit(reader, "scrub_days", "days", SCRUB_DAYS_MAX);
    let background = reader.optional("background", "\"yield\" or \"full\"", |value| {
        match value.as_str()? {
            "yield" => Some(Background::Yield),
            "full" => Some(Background::Full),
            _ => None,
        }
    });
    (rates, (rebuild_hours, scrub_days), background)
}

/// The groups of a pool after the first.
fn more_groups(reader: &mut TableReader<'_, '_>) -> Vec<Row<Group>> {
    // Groups out of lots have no level of the pool beside them.
    let of_pool = match reader.line_of("groups") {
        Some(_) => None,
        None => Some(reader.text("level").and_then(Level::parse)),
    };
    let tables = reader.tables("group").into_iter();
    tables
        .map(|table| group(reader.nested("pool.group", table), of_pool))
        .collect()
}

/// Protection and drives of the first group, and spares, of a pool that names its drives; nothing of
/// one that takes them from lots.
fn pool_drives(reader: &mut TableReader<'_, '_>) -> (Protection, Vec<String>, Vec<String>) {
    let rule = drives_rule();
    let is_of_lots = reader.line_of("groups").is_some();
    let level = match is_of_lots {
        true => reader.optional("level", LEVEL_RULE, level_of),
        false => reader.required("level", LEVEL_RULE, level_of),
    };
    let drives = match is_of_lots {
        true => reader.list_if_there("drives", &rule, is_name),
        false => reader.list("drives", &rule, is_name),
    };
    let of_lots = "or tables, such as { from = \"sas\", count = 2 }";
    let spares = match reader.lists_tables("spares") {
        // Read as drives of lots.
        true => None,
        // So a setting says that there are none.
        false if reader.is_empty_list("spares") => {
            reader.optional("spares", "", |_| Some(Vec::new()))
        }
        false => reader.list_if_there("spares", &format!("{rule}; {of_lots}"), is_name),
    };
    let spread = match is_of_lots {
        true => spread::not_here(reader),
        false => spread::spread(reader, level, GroupRole::Data),
    };
    let of_first = ["level", "drives"].into_iter().chain(SPREAD_KEYS);
    for key in of_first {
        if let Some(line) = reader.line_of(key).filter(|_| is_of_lots) {
            let rule = "level and drives by their names, or groups out of lots";
            reader.report(line, key, format!("{key} beside groups"), rule);
        }
    }
    let level = level.unwrap_or(Level::Simple);
    (
        Protection { level, spread },
        drives.unwrap_or_default(),
        spares.unwrap_or_default(),
    )
}

/// What names a drive of a pool, for messages.
pub(crate) fn drives_rule() -> String {
    format!("a drive's name, {NAME_RULE}")
}

/// A limit of work in the background.
fn rate(reader: &mut TableReader<'_, '_>, key: &'static str) -> Option<RateLimit> {
    let most = size::human(size::RATE_BYTES_MAX);
    let rule =
        format!("\"unlimited\", or bytes a second: {SIZE_RULE}, from \"1 MiB\" to \"{most}\"");
    reader.optional(key, &rule, |value| match value.as_str()? {
        "unlimited" => Some(RateLimit::Unlimited),
        _ => size_of(value)
            .filter(|bytes_per_s| (1 << 20..=size::RATE_BYTES_MAX).contains(bytes_per_s))
            .map(RateLimit::BytesPerS),
    })
}

/// How long work in the background may take.
fn time_limit(
    reader: &mut TableReader<'_, '_>,
    key: &'static str,
    unit: &str,
    most: u16,
) -> Option<TimeLimit> {
    let rule = format!("\"off\", or a whole number from 1 to {most}, in {unit}");
    reader.optional(key, &rule, |value| match value.as_str() {
        Some("off") => Some(TimeLimit::Off),
        Some(_) => None,
        None => whole(value)
            .filter(|count| (1..=most).contains(count))
            .map(TimeLimit::Of),
    })
}

/// A group after the first; its level is the pool's, where that could be read, unless it has its own.
fn group(mut reader: TableReader<'_, '_>, of_pool: Option<Option<Level>>) -> Row<Group> {
    let own = match of_pool {
        Some(_) => reader.optional("level", LEVEL_RULE, level_of),
        None => reader.required("level", LEVEL_RULE, level_of),
    };
    let role = role(&mut reader);
    let level = match reader.line_of("level") {
        Some(_) => own,
        None => of_pool.flatten(),
    };
    let spread = spread::spread(&mut reader, level, role);
    let drives = reader.list("drives", &format!("a drive's name, {NAME_RULE}"), is_name);
    reader.finish(Group {
        level: own.or(of_pool.flatten()).unwrap_or(Level::Simple),
        spread,
        role,
        drives: drives.unwrap_or_default(),
    })
}

/// What a group is for.
pub(crate) fn role(reader: &mut TableReader<'_, '_>) -> GroupRole {
    let rule = "\"data\", or \"log\" for a group that carries the logs and no data";
    let role = reader.optional("role", rule, |value| GroupRole::parse(value.as_str()?));
    role.unwrap_or_default()
}

pub(crate) fn power_of_two(
    reader: &mut TableReader<'_, '_>,
    key: &'static str,
    min: u32,
    max: u32,
) -> Option<u32> {
    let (low, high) = (size::human(u64::from(min)), size::human(u64::from(max)));
    let rule = format!("a power of two from \"{low}\" to \"{high}\"");
    reader.optional(key, &rule, |value| {
        let bytes = u32::try_from(size_of(value)?).ok()?;
        (bytes.is_power_of_two() && (min..=max).contains(&bytes)).then_some(bytes)
    })
}

/// What numbers a LUN, for messages.
fn lun_rule() -> String {
    format!("a LUN, a whole number from 0 to {}", LUNS_MAX - 1)
}

fn export(mut reader: TableReader<'_, '_>) -> Row<Export> {
    let target = reader.required("target", TARGET_RULE, |value| {
        value
            .as_str()
            .filter(|name| is_target_name(name))
            .map(str::to_owned)
    });
    let volumes = reader.list("volumes", &format!("a volume's name, {NAME_RULE}"), is_name);
    let luns = reader.numbers("luns", &lun_rule(), |value| {
        whole(value).filter(|lun| usize::from(*lun) < LUNS_MAX)
    });
    let hosts = access::names(&mut reader, "hosts", "a host's name");
    let host_groups = access::names(&mut reader, "host_groups", "a host group's name");
    let chap = access::account(&mut reader, "chap", "export.chap");
    let portals = export_portals(&mut reader);
    let physical_block_bytes = power_of_two(&mut reader, "physical_block", 512, 4096);
    let mut allowed = |key| reader.optional(key, "true or false", DeValue::as_bool);
    let [may_sanitize, may_affect_others] = ["sanitize", "affect_others"].map(&mut allowed);
    let who = ["initiators", "hosts", "host_groups"].map(|key| reader.line_of(key));
    if who == [None; 3] {
        let rule = "who may log in: a list of iSCSI names, or \"any\"; or hosts or host_groups";
        reader.report(
            reader.header_line(),
            "initiators",
            "nothing".to_owned(),
            rule,
        );
    }
    let any = reader.text("initiators").is_some_and(|text| text == "any");
    let initiators = if any {
        reader.optional("initiators", "", |_| Some(()));
        Initiators::Any
    } else if reader.line_of("initiators").is_none() {
        reader.optional("initiators", "", |_| Some(()));
        Initiators::Named(Vec::new())
    } else {
        let rule =
            "an iSCSI name (iqn., eui. or naa., in lower case); or \"any\" instead of the list";
        Initiators::Named(
            reader
                .list("initiators", rule, is_initiator_name)
                .unwrap_or_default(),
        )
    };
    let (target, volumes) = (target.unwrap_or_default(), volumes.unwrap_or_default());
    let luns = luns.unwrap_or_else(|| Export::usual_luns(volumes.len()));
    reader.finish(Export {
        target,
        volumes,
        luns,
        initiators,
        hosts,
        host_groups,
        chap,
        portals,
        physical_block_bytes,
        may_sanitize: may_sanitize.unwrap_or(false),
        may_affect_others: may_affect_others.unwrap_or(false),
    })
}

/// The portals that an export is seen through.
fn export_portals(reader: &mut TableReader<'_, '_>) -> Vec<SocketAddr> {
    let parse = |text: &str| text.parse::<SocketAddr>();
    let rule = "the address of a portal, such as \"127.0.0.1:3260\"";
    let portals = match reader.line_of("portals") {
        Some(_) => reader.list("portals", rule, |text| parse(text).is_ok()),
        None => reader.optional("portals", "", |_| None),
    };
    let portals = portals.unwrap_or_default();
    portals.iter().filter_map(|text| parse(text).ok()).collect()
}

fn vm(mut reader: TableReader<'_, '_>) -> Row<VmRow> {
    let name = name(&mut reader, "name");
    let target = reader.required("target", TARGET_RULE, |value| {
        value
            .as_str()
            .filter(|name| is_target_name(name))
            .map(str::to_owned)
    });
    let mut word = |key: &'static str| {
        reader.required(key, &format!("a name, {NAME_RULE}"), |value| {
            value
                .as_str()
                .filter(|name| is_name(name))
                .map(str::to_owned)
        })
    };
    let profile = word("profile");
    let role = word("role");
    let rate_scale = reader.optional("rate_scale", "a number above zero, at most 1000", |value| {
        let number = match value {
            DeValue::Integer(number) => number.to_string().parse::<f64>().ok()?,
            DeValue::Float(number) => number.as_str().replace('_', "").parse::<f64>().ok()?,
            _ => return None,
        };
        (number > 0.0 && number <= 1000.0).then_some(number)
    });
    let filled_percent = hardware::filled(&mut reader);
    let vm = Vm {
        name,
        target: target.unwrap_or_default(),
        profile: profile.unwrap_or_default(),
        role: role.unwrap_or_default(),
        rate_scale: rate_scale.unwrap_or(1.0),
    };
    reader.finish(VmRow { vm, filled_percent })
}

pub(crate) fn name(reader: &mut TableReader<'_, '_>, key: &'static str) -> String {
    let name = reader.required(key, NAME_RULE, |value| {
        value
            .as_str()
            .filter(|name| is_name(name))
            .map(str::to_owned)
    });
    name.unwrap_or_default()
}

pub(crate) fn whole(value: &DeValue<'_>) -> Option<u16> {
    let number = value.as_integer()?;
    u16::from_str_radix(number.as_str(), number.radix()).ok()
}

fn percent(value: &DeValue<'_>) -> Option<u8> {
    let percent = whole(value).filter(|percent| (1..=100).contains(percent))?;
    u8::try_from(percent).ok()
}

pub(crate) fn size_of(value: &DeValue<'_>) -> Option<u64> {
    size::parse(value.as_str()?)
}

fn address(value: &DeValue<'_>) -> Option<SocketAddr> {
    value.as_str()?.parse().ok()
}

/// What [`drive_file`] takes, for messages.
pub const FILE_RULE: &str = "a file's path, relative to the data directory or absolute, without \
    \"..\"; names that start with \"ashlar\" are kept for Ashlar's own files";

/// What [`drive_device`] takes, for messages.
pub const DEVICE_RULE: &str = "an absolute path, such as \"/dev/sdb\"";

/// The path of a drive's file; `None` when it can't be one.
pub fn drive_file(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    let name = path.file_name()?.to_str()?;
    let climbs = path
        .components()
        .any(|part| matches!(part, Component::ParentDir));
    let good = !climbs
        && !text.ends_with('/')
        && !text.contains('\0')
        && !name.to_ascii_lowercase().starts_with(RESERVED_FILE_PREFIX);
    // Rebuilt from its components, so that "./a" and "a" are one file.
    let plain = || {
        path.components()
            .filter(|part| !matches!(part, Component::CurDir))
            .collect()
    };
    good.then(plain)
}

/// The path of a drive's device; `None` when it can't be one.
pub fn drive_device(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    let climbs = path
        .components()
        .any(|part| matches!(part, Component::ParentDir));
    (path.is_absolute() && !climbs && !text.contains('\0') && path.file_name().is_some())
        .then(|| path.components().collect())
}
