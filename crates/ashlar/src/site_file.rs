//! `ashlar site`.

use crate::failure::Failure;
use crate::output;
use site::{Site, SiteError, SiteErrorKind};
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Say what is wrong with a site file, all of it; touches nothing
    Check {
        /// The site file
        file: PathBuf,
    },
}

pub fn run(command: Command) -> Result<(), Failure> {
    let Command::Check { file } = command;
    let site = site::load(&file).map_err(wrong)?;
    output::print(&format!("{}: good: {}\n", file.display(), summary(&site)))
}

/// A site file's mistakes as a failure.
pub fn wrong(error: SiteError) -> Failure {
    match error.kind {
        SiteErrorKind::Unreadable | SiteErrorKind::Invalid => Failure::Wrong(error.to_string()),
    }
}

fn summary(site: &Site) -> String {
    let counts = [
        (site.drives.len(), "drives"),
        (site.pools.len(), "pools"),
        (site.volumes.len(), "volumes"),
        (site.groups.len(), "consistency groups"),
        (site.exports.len(), "exports"),
        (site.vms.len(), "VMs"),
    ];
    counts
        .map(|(count, what)| format!("{count} {what}"))
        .join(", ")
}
