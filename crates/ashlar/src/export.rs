//! `ashlar export`: creates, changes and deletes targets with their LUNs.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::host::{ChapArgs, said_of};
use crate::output::{Align, Format, Table, pairs};
use api::{
    Any, Export, ExportChange, ExportCreate, Host, Initiators, LunAdd, Problem, ProblemKind,
};

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the exports: targets and their LUNs
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show an export
    Show {
        /// iSCSI name of the target
        target: String,
        #[command(flatten)]
        format: Format,
    },
    /// Create an export: a target with volumes as its LUNs
    Create(CreateArgs),
    /// Export another volume through a target; Ashlar notifies its initiators
    AddLun(AddLunArgs),
    /// Remove a volume from an export; the volume stays
    RemoveLun(RemoveLunArgs),
    /// Change who may log in, and what initiators may do; Ashlar logs out initiators that are no longer admitted
    ///
    /// Each list that you give replaces the former list. The other lists stay.
    Change(ChangeArgs),
    /// Delete an export and close its sessions; its volumes stay
    Delete(DeleteArgs),
}

#[derive(clap::Args)]
pub struct CreateArgs {
    /// iSCSI name of the target, such as iqn.2026-11.dev.ashlar:vm1
    target: String,
    /// Volume to export: the first is LUN 0, the next LUN 1, and so on
    #[arg(long = "volume", value_name = "NAME", required = true)]
    volumes: Vec<String>,
    #[command(flatten)]
    access: Access,
    /// Every initiator may log in
    #[arg(long, conflicts_with = "initiators")]
    any: bool,
    #[command(flatten)]
    chap: ChapArgs,
    /// Physical block size that hosts see: a power of two from 512 to 4096 [default: 4096]
    #[arg(long, value_name = "BYTES")]
    physical_block: Option<u32>,
    /// Initiators may erase thin LUNs with SANITIZE
    #[arg(long)]
    sanitize: bool,
    /// Initiators may change mode pages (SWP, D_SENSE) and reset the target; both affect all
    /// hosts
    #[arg(long)]
    affect_others: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct AddLunArgs {
    /// iSCSI name of the target
    target: String,
    /// Name of the volume
    volume: String,
    /// The LUN [default: the lowest free one]
    #[arg(long)]
    lun: Option<u16>,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct RemoveLunArgs {
    /// iSCSI name of the target
    target: String,
    /// Name of the volume
    volume: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct ChangeArgs {
    /// iSCSI name of the target
    target: String,
    #[command(flatten)]
    access: Access,
    /// Every initiator may log in
    #[arg(long, conflicts_with_all = ["initiators", "no_initiators"])]
    any: bool,
    /// Remove all initiators: only hosts and host groups may log in
    #[arg(long, conflicts_with = "initiators")]
    no_initiators: bool,
    /// Remove all hosts
    #[arg(long, conflicts_with = "hosts")]
    no_hosts: bool,
    /// Remove all host groups
    #[arg(long, conflicts_with = "host_groups")]
    no_host_groups: bool,
    /// Show the target through all portals
    #[arg(long, conflicts_with = "portals")]
    all_portals: bool,
    #[command(flatten)]
    chap: ChapArgs,
    /// Remove the CHAP account of the export
    #[arg(long, conflicts_with = "chap_name")]
    no_chap: bool,
    /// Initiators may erase thin LUNs with SANITIZE
    #[arg(long)]
    sanitize: bool,
    /// Refuse SANITIZE; an erasure that has begun continues
    #[arg(long, conflicts_with = "sanitize")]
    no_sanitize: bool,
    /// Initiators may change mode pages (SWP, D_SENSE) and reset the target; both affect all
    /// hosts
    #[arg(long)]
    affect_others: bool,
    /// Refuse changes of mode pages and resets of the target
    #[arg(long, conflicts_with = "affect_others")]
    no_affect_others: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct DeleteArgs {
    /// iSCSI name of the target
    target: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    format: Format,
}

/// Who may log in to a target.
#[derive(Debug, clap::Args)]
pub struct Access {
    /// iSCSI name of an initiator that may log in; may be given more than once
    #[arg(long = "initiator", value_name = "IQN")]
    initiators: Vec<String>,
    /// Name of a host that may log in; may be given more than once
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Name of a host group that may log in; may be given more than once
    #[arg(long = "host-group", value_name = "NAME")]
    host_groups: Vec<String>,
    /// Address of a portal that shows the target; may be given more than once [default of a new
    /// export: all]
    #[arg(long = "portal", value_name = "ADDR")]
    portals: Vec<String>,
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => {
            let exports: Vec<Export> = client.get(&["exports"])?;
            let hosts = hosts_for(client, format)?;
            format.print(&exports, |exports| table(exports, &hosts))
        }
        Command::Show { target, format } => {
            let export: Export = client.get(&["exports", &target])?;
            print(client, &export, format)
        }
        Command::Create(args) => create(client, args),
        Command::AddLun(args) => add_lun(client, args),
        Command::RemoveLun(args) => remove_lun(client, args),
        Command::Change(args) => change(client, args),
        Command::Delete(args) => delete(client, args),
    }
}

fn create(client: &Client, args: CreateArgs) -> Result<(), Failure> {
    let CreateArgs {
        target,
        volumes,
        access,
        any,
        chap,
        physical_block,
        sanitize,
        affect_others,
        format,
    } = args;
    let create = ExportCreate {
        target,
        volumes,
        initiators: by_name(access.initiators, any),
        hosts: access.hosts,
        host_groups: access.host_groups,
        chap: chap.read()?,
        portals: access.portals,
        physical_block_bytes: physical_block,
        may_sanitize: sanitize,
        may_affect_others: affect_others,
    };
    let export: Export = client.post(&["exports"], &create)?;
    print(client, &export, format)
}

fn add_lun(client: &Client, args: AddLunArgs) -> Result<(), Failure> {
    let AddLunArgs {
        target,
        volume,
        lun,
        format,
    } = args;
    let change = ExportChange {
        add_luns: vec![LunAdd { volume, lun }],
        ..ExportChange::default()
    };
    let export: Export = client.patch(&["exports", &target], &change)?;
    print(client, &export, format)
}

fn remove_lun(client: &Client, args: RemoveLunArgs) -> Result<(), Failure> {
    let RemoveLunArgs {
        target,
        volume,
        confirm,
        format,
    } = args;
    if !confirm.is_given() {
        check_removable(&client.get(&["exports", &target])?, &volume)?;
    }
    confirm.change(&format!(
        "target {target}: take volume {volume} away from its hosts"
    ))?;
    let change = ExportChange {
        remove_volumes: vec![volume],
        ..ExportChange::default()
    };
    let export: Export = client.patch(&["exports", &target], &change)?;
    print(client, &export, format)
}

fn change(client: &Client, args: ChangeArgs) -> Result<(), Failure> {
    let ChangeArgs {
        target,
        access,
        any,
        no_initiators,
        no_hosts,
        no_host_groups,
        all_portals,
        chap,
        no_chap,
        sanitize,
        no_sanitize,
        affect_others,
        no_affect_others,
        format,
    } = args;
    let or_none = |names: Vec<String>, none: bool| match none {
        true => Some(Vec::new()),
        false => some(names),
    };
    let by_name = match no_initiators {
        true => Some(Initiators::Named(Vec::new())),
        false => by_name(access.initiators, any),
    };
    let change = ExportChange {
        initiators: by_name,
        hosts: or_none(access.hosts, no_hosts),
        host_groups: or_none(access.host_groups, no_host_groups),
        chap: chap.read()?,
        remove_chap: no_chap,
        may_sanitize: yes_or_no(sanitize, no_sanitize),
        may_affect_others: yes_or_no(affect_others, no_affect_others),
        portals: or_none(access.portals, all_portals),
        ..ExportChange::default()
    };
    let export: Export = client.patch(&["exports", &target], &change)?;
    print(client, &export, format)
}

fn delete(client: &Client, args: DeleteArgs) -> Result<(), Failure> {
    let DeleteArgs {
        target,
        confirm,
        format,
    } = args;
    if !confirm.is_given() {
        // Before somebody is asked of what is not there.
        let _: Export = client.get(&["exports", &target])?;
    }
    confirm.deletion(&format!("target {target}"), &target)?;
    client.delete(&["exports", &target])?;
    format.done(&format!("target {target} is deleted"))
}

/// That a volume is behind a target, and not alone.
fn check_removable(export: &Export, volume: &str) -> Result<(), Failure> {
    let target = &export.target;
    let refused = |kind, message| Err(Failure::Refused(Problem { kind, message }));
    if export.luns.iter().all(|lun| lun.volume != volume) {
        let what = format!("volume {volume} among the LUNs of target {target}");
        return Err(Failure::not_there(&what, &format!("export show {target}")));
    }
    match export.luns.len() {
        1 => refused(
            ProblemKind::Invalid,
            format!("target {target} would have no LUN left; delete it instead"),
        ),
        _ => Ok(()),
    }
}

/// Prints an export.
fn print(client: &Client, export: &Export, format: Format) -> Result<(), Failure> {
    let hosts = hosts_for(client, format)?;
    format.print_text(export, |export| show(export, &hosts))
}

/// All hosts, where people are told what they have to prove.
fn hosts_for(client: &Client, format: Format) -> Result<Vec<Host>, Failure> {
    match format.is_json() {
        true => Ok(Vec::new()),
        false => client.get(&["hosts"]),
    }
}

fn table(exports: &[Export], hosts: &[Host]) -> Table {
    use Align::{Left, Right};
    let columns = [
        ("TARGET", Left),
        ("LUN", Right),
        ("VOLUME", Left),
        ("INITIATORS", Left),
        ("HOSTS", Left),
        ("CHAP", Left),
    ];
    let mut table = Table::new(&columns);
    for export in exports {
        for lun in &export.luns {
            table.row(vec![
                export.target.clone(),
                lun.lun.to_string(),
                lun.volume.clone(),
                initiators(&export.initiators),
                admitted(export),
                chap(export, hosts),
            ]);
        }
    }
    table
}

fn show(export: &Export, hosts: &[Host]) -> String {
    let listed = |names: &[String]| match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    let luns = export.luns.iter();
    let luns: Vec<(String, String)> = luns
        .map(|lun| (format!("LUN {}", lun.lun), lun.volume.clone()))
        .collect();
    let mut lines = vec![("target", export.target.clone())];
    lines.extend(luns.iter().map(|(lun, volume)| (&lun[..], volume.clone())));
    lines.extend([
        ("initiators", initiators(&export.initiators)),
        ("hosts", listed(&export.hosts)),
        ("host groups", listed(&export.host_groups)),
        ("CHAP", chap(export, hosts)),
        (
            "portals",
            export
                .portals
                .as_ref()
                .map_or("all".to_owned(), |portals| portals.join(", ")),
        ),
        (
            "physical block",
            format!("{} bytes", export.physical_block_bytes),
        ),
        ("SANITIZE", allowed(export.may_sanitize)),
        ("affecting others", allowed(export.may_affect_others)),
    ]);
    if let Some(why) = &export.withheld {
        lines.push(("withheld", why.clone()));
    }
    pairs(&lines)
}

fn allowed(is_allowed: bool) -> String {
    if is_allowed { "allowed" } else { "refused" }.to_owned()
}

fn initiators(initiators: &Initiators) -> String {
    match initiators {
        Initiators::Any(Any::Any) => "any".to_owned(),
        Initiators::Named(names) if names.is_empty() => "none".to_owned(),
        Initiators::Named(names) => names.join(", "),
    }
}

/// Initiators that may log in by name, where that was said.
fn by_name(names: Vec<String>, any: bool) -> Option<Initiators> {
    match any {
        true => Some(Initiators::Any(Any::Any)),
        false => some(names).map(Initiators::Named),
    }
}

/// What has to be proved by CHAP: by hosts that have an account of their own, and by all others.
fn chap(export: &Export, hosts: &[Host]) -> String {
    let is_admitted = |host: &&Host| {
        let mut groups = host.host_groups.iter();
        export.hosts.contains(&host.name) || groups.any(|group| export.host_groups.contains(group))
    };
    let (own, without): (Vec<&Host>, Vec<&Host>) = hosts
        .iter()
        .filter(is_admitted)
        .partition(|host| host.chap.is_some());
    let of_others = said_of(export.chap.as_ref());
    if own.is_empty() {
        return of_others;
    }
    let own: Vec<&str> = own.iter().map(|host| host.name.as_str()).collect();
    let own = format!("own of {}", own.join(", "));
    let nobody = Initiators::Named(Vec::new());
    match without.is_empty() && export.initiators == nobody {
        true => own,
        false => format!("{own}; {of_others} of others"),
    }
}

/// Hosts, and groups of them with an @ before.
fn admitted(export: &Export) -> String {
    let groups = export.host_groups.iter().map(|group| format!("@{group}"));
    let all: Vec<String> = export.hosts.iter().cloned().chain(groups).collect();
    match all.is_empty() {
        true => "-".to_owned(),
        false => all.join(", "),
    }
}

/// What is said of a permission, if anything.
fn yes_or_no(yes: bool, no: bool) -> Option<bool> {
    (yes || no).then_some(yes)
}

/// A list that was given.
fn some(names: Vec<String>) -> Option<Vec<String>> {
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Chap, Lun};

    #[test]
    fn an_export_is_shown_with_its_target_first_and_nothing_empty() {
        let lun = |lun, volume: &str| Lun {
            lun,
            volume: volume.to_owned(),
        };
        let export = Export {
            target: "iqn.2026-11.dev.ashlar:a".to_owned(),
            luns: vec![lun(0, "v0"), lun(12, "v1")],
            initiators: Initiators::Any(Any::Any),
            hosts: Vec::new(),
            host_groups: vec!["g".to_owned(), "h".to_owned()],
            chap: None,
            portals: None,
            physical_block_bytes: 4096,
            may_sanitize: false,
            may_affect_others: true,
            withheld: None,
        };
        let shown = "\
target            iqn.2026-11.dev.ashlar:a
LUN 0             v0
LUN 12            v1
initiators        any
hosts             none
host groups       g, h
CHAP              none
portals           all
physical block    4096 bytes
SANITIZE          refused
affecting others  allowed
";
        assert_eq!(show(&export, &[]), shown);
    }

    #[test]
    fn what_hosts_prove_of_their_own_is_told() {
        let account = |name: &str| Chap {
            name: name.to_owned(),
            mutual_name: None,
        };
        let host = |name: &str, chap: Option<Chap>, groups: &[&str]| Host {
            name: name.to_owned(),
            initiators: Vec::new(),
            chap,
            host_groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        };
        let hosts = [
            host("h1", Some(account("one")), &["g"]),
            host("h2", Some(account("two")), &[]),
            host("h3", None, &[]),
        ];
        let of = |names: &[&str], groups: &[&str], any: bool, account: Option<Chap>| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let export = Export {
                target: "iqn.2026-11.dev.ashlar:a".to_owned(),
                luns: Vec::new(),
                initiators: match any {
                    true => Initiators::Any(Any::Any),
                    false => Initiators::Named(Vec::new()),
                },
                hosts: owned(names),
                host_groups: owned(groups),
                chap: account,
                portals: None,
                physical_block_bytes: 4096,
                may_sanitize: false,
                may_affect_others: false,
                withheld: None,
            };
            chap(&export, &hosts)
        };
        assert_eq!(of(&["h1", "h2"], &[], false, None), "own of h1, h2");
        assert_eq!(of(&[], &["g"], false, None), "own of h1");
        assert_eq!(
            of(&["h2", "h3"], &[], false, None),
            "own of h2; none of others"
        );
        assert_eq!(of(&["h3"], &[], true, None), "none");
        let t = Some(account("t"));
        assert_eq!(of(&["h3"], &[], false, t.clone()), "t");
        assert_eq!(of(&["h1"], &[], true, t), "own of h1; t of others");
    }
}
