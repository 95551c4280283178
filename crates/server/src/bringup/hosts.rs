//! Hosts, their groups and CHAP: those of the site file, and those that the API made.

use super::data_dir::DataDir;
use super::{BringUpError, BringUpErrorKind};
use crate::array::hosts::{Known, account_of, kept, of_site};
use crate::directory::Directory;
use iscsi::chap::Algorithm;
use site::{ChapAlgorithm, Site};

/// Says how initiators prove who they are.
pub(super) fn prepare(directory: &Directory, chap: &site::Chap) {
    let algorithm = |algorithm: &ChapAlgorithm| match algorithm {
        ChapAlgorithm::Sha3_256 => Algorithm::Sha3_256,
        ChapAlgorithm::Sha256 => Algorithm::Sha256,
        ChapAlgorithm::Sha1 => Algorithm::Sha1,
        ChapAlgorithm::Md5 => Algorithm::Md5,
    };
    directory.set_algorithms(chap.algorithms.iter().map(algorithm).collect());
    directory.set_discovery(chap.discovery.as_ref().map(account_of));
}

/// All hosts and groups that there are to be. Where the site file and the API made one of
/// the same name, it has to be the same.
///
/// # Errors
/// Everything of the API that the site file stands in the way of.
pub(super) fn plan(site: &Site, data: &DataDir) -> Result<Known, BringUpError> {
    let file = data.hosts_file();
    let mut known = of_site(site);
    let mut wrong = Vec::new();
    let kept = kept(&file)?;
    let otherwise = |what: &str, name: &str| {
        format!("{what} {name}, made by the API: the site file describes it otherwise")
    };
    for (name, host) in kept.hosts {
        match known.hosts.get(&name) {
            Some(there) => {
                let same = there.initiators == host.initiators && there.account == host.account;
                wrong.extend((!same).then(|| otherwise("host", &name)));
            }
            None => drop(known.hosts.insert(name, host)),
        }
    }
    for (name, group) in kept.groups {
        match known.groups.get(&name) {
            Some(there) => {
                let same = there.hosts == group.hosts;
                wrong.extend((!same).then(|| otherwise("host group", &name)));
            }
            None => drop(known.groups.insert(name, group)),
        }
    }
    wrong.extend(known.complaint());
    let advice = |why: String| {
        let file = file.display();
        format!("{why}; correct the site file, or take it out of {file}")
    };
    match wrong.is_empty() {
        true => Ok(known),
        false => {
            let wrong: Vec<String> = wrong.into_iter().map(advice).collect();
            Err(BringUpError::all(BringUpErrorKind::Export, &wrong))
        }
    }
}
