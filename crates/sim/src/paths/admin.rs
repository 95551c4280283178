//! Who administers access: by the control plane, as its API does.

use super::access::{Attempt, ExportRules, HostRules, Rules, Verdict};
use super::array::{Array, PORTALS, target_name};
use super::{Books, credential};
use array::control::hosts::{Host, HostChange, HostGroup};
use array::control::{ArrayError, ControlPlane, Export};
use array::directory;
use array::shard::UnitTraits;
use array::shard::session::Session;
use base::Prng;
use engine::World;
use iscsi::chap::Account;
use iscsi::login::Admission;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// The group of hosts.
const GROUP: &str = "group";

/// A host that never comes. Exports and the group need somebody to name when all others go.
const NOBODY: &str = "nobody";

impl Books {
    /// What a host has to prove by its secret of this number.
    fn account(&self, host: usize, secret: Option<u64>) -> Option<Arc<Account>> {
        let initiator = credential(host, secret?);
        let mutual = None;
        Some(Arc::new(Account { initiator, mutual }))
    }

    /// The name of an initiator that a host has instead of its own.
    fn away(&self, host: usize) -> String {
        format!("{}:away", self.hosts[host].initiator)
    }

    fn names(&self, hosts: &BTreeSet<usize>) -> BTreeSet<String> {
        let names = hosts.iter().map(|host| self.hosts[*host].name.clone());
        names.collect()
    }

    /// What an export says of its initiators.
    fn access_of(&self, rules: &ExportRules) -> directory::Access {
        let mut hosts = self.names(&rules.hosts);
        hosts.insert(NOBODY.to_owned());
        let groups = rules.admits_group.then(|| GROUP.to_owned());
        let address = |portal: &usize| SocketAddr::from(PORTALS[*portal]);
        let portals = rules.portals.as_ref();
        directory::Access {
            hosts,
            host_groups: groups.into_iter().collect(),
            portals: portals.map(|portals| portals.iter().map(address).collect()),
            ..directory::Access::default()
        }
    }

    fn export_of(&self, target: usize, rules: &ExportRules) -> Export {
        let units = self.units.iter().filter(|unit| unit.target == target);
        Export {
            target: target_name(target),
            volumes: units.clone().map(|unit| unit.name.clone()).collect(),
            luns: units.map(|unit| unit.lun).collect(),
            uuids: Vec::new(),
            access: self.access_of(rules),
            traits: UnitTraits {
                may_affect_others: true,
                ..UnitTraits::default()
            },
            withheld: None,
        }
    }

    fn host_called(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    fn hosts_called(&self, names: &BTreeSet<String>) -> BTreeSet<usize> {
        names
            .iter()
            .filter_map(|name| self.host_called(name))
            .collect()
    }

    /// The number of the secret that an account asks for.
    fn secret_of(&self, host: usize, account: Option<&Account>) -> Option<u64> {
        let last = self.access.borrow().coming().hosts[host].secret?;
        let proved = &account?.initiator;
        (0..=last).find(|number| credential(host, *number) == *proved)
    }

    /// The rules as the control plane says them.
    fn said_by(&self, control: &ControlPlane<SimWorld>) -> Result<Rules, String> {
        let exports = (0..self.targets).map(|target| {
            let found = control.exports_by_target().remove(&target_name(target));
            let withheld = found.as_ref().and_then(|found| found.withheld.clone());
            match withheld {
                Some(why) => Err(format!("target {target} is withheld: {why}")),
                None => Ok(found.map(|found| self.rules_of(&found.access))),
            }
        });
        let host = |number: usize| -> Result<HostRules, String> {
            let name = &self.hosts[number].name;
            let said = control.host(name).map_err(|error| error.to_string())?;
            let is_called = |initiator: &String| said.initiators.contains(initiator);
            let names = [&self.hosts[number].initiator, &self.away(number)].map(is_called);
            match (names, said.initiators.len()) {
                ([true, false] | [false, true], 1) => Ok(HostRules {
                    is_away: names[1],
                    secret: self.secret_of(number, said.account.as_deref()),
                }),
                _ => Err(format!(
                    "host {number} has initiators {:?}",
                    said.initiators
                )),
            }
        };
        let group = control.host_group(GROUP);
        let group = group.map_err(|error| error.to_string())?;
        Ok(Rules {
            exports: exports.collect::<Result<_, _>>()?,
            group: self.hosts_called(&group.hosts),
            hosts: (0..self.hosts.len()).map(host).collect::<Result<_, _>>()?,
        })
    }

    fn rules_of(&self, access: &directory::Access) -> ExportRules {
        let named = |portals: &BTreeSet<SocketAddr>| {
            let all = PORTALS.into_iter().map(SocketAddr::from).enumerate();
            let named = all.filter(|(_, address)| portals.contains(address));
            named.map(|(number, _)| number).collect()
        };
        ExportRules {
            hosts: self.hosts_called(&access.hosts),
            admits_group: access.host_groups.contains(GROUP),
            portals: access.portals.as_ref().map(named),
        }
    }

    /// What a session that is connected has come in by; none for an initiator that is no host.
    fn attempt_of(&self, session: &Session<SimWorld>) -> Option<Attempt> {
        let admission = session.admission();
        let mut hosts = self.hosts.iter();
        let host = hosts.position(|host| host.initiator == admission.initiator)?;
        let mut portals = PORTALS.into_iter().map(SocketAddr::from);
        Some(Attempt {
            host,
            target: (0..self.targets).find(|target| target_name(*target) == session.target())?,
            portal: portals.position(|address| address == admission.portal.address)?,
            secret: self.secret_of(host, admission.account.as_deref()),
        })
    }
}

impl Array {
    /// Describes hosts and exports, at the first boot.
    pub(super) async fn describe(&self) {
        let books = &self.books;
        let described = async {
            let rules = books.access.borrow().rules().clone();
            for (number, host) in books.hosts.iter().enumerate() {
                let host = Host {
                    name: host.name.clone(),
                    initiators: BTreeSet::from([host.initiator.clone()]),
                    account: books.account(number, rules.hosts[number].secret),
                };
                self.control.create_host(host).await?;
            }
            let nobody = Host {
                name: NOBODY.to_owned(),
                initiators: BTreeSet::from(["iqn.2026-11.sim:nobody".to_owned()]),
                account: None,
            };
            self.control.create_host(nobody).await?;
            let mut hosts = books.names(&rules.group);
            hosts.insert(NOBODY.to_owned());
            let name = GROUP.to_owned();
            let group = HostGroup { name, hosts };
            self.control.create_host_group(group).await
        };
        if let Err(error) = described.await {
            books.fail(&self.world, format!("describing hosts: {error}"));
        }
        self.admit_all().await;
    }

    /// The control plane has found on record what it has to find.
    pub(super) async fn check_start(&self) {
        let books = &self.books;
        let found = books.said_by(&self.control);
        let as_expected = found.and_then(|found| books.access.borrow_mut().begin_with(found));
        if let Err(what) = as_expected {
            return books.fail(&self.world, what);
        }
        self.check_access();
        self.check_limits().await;
    }

    /// Whoever may log in by the usual rules may do so again.
    pub(super) async fn admit_all(&self) {
        let now = self.books.access.borrow().rules().clone();
        for step in now.steps_to(&self.books.usual(&now)) {
            self.change(step).await;
        }
    }

    /// Whether the usual rules count.
    pub(super) fn is_as_usual(&self) -> bool {
        let access = self.books.access.borrow();
        *access.rules() == self.books.usual(access.rules())
    }

    /// One change of who may log in, for a while, or of who is logged in.
    pub(super) async fn administer(&self, prng: &mut Prng) {
        let pause = Duration::from_nanos(prng.below(100_000));
        self.world.sleep(pause).await;
        if prng.chance(1, 4) {
            return self.drop_one(prng).await;
        }
        let changed = self.other_rules(prng);
        self.change(changed).await;
        let pause = Duration::from_nanos(prng.below(30_000_000));
        self.world.sleep(pause).await;
        self.admit_all().await;
    }

    /// The rules with one change.
    fn other_rules(&self, prng: &mut Prng) -> Rules {
        let books = &self.books;
        let mut rules = books.access.borrow().rules().clone();
        let host = prng.below(books.hosts.len() as u64) as usize;
        let target = prng.below(books.targets as u64) as usize;
        let what = prng.below(8);
        if what == 0 {
            rules.exports[target] = None;
        }
        if let Some(export) = &mut rules.exports[target] {
            match what {
                1 | 2 => drop(export.hosts.remove(&host)),
                3 => export.admits_group = false,
                4 => {
                    let portal = prng.below(PORTALS.len() as u64) as usize;
                    export.portals = Some(BTreeSet::from([portal]));
                }
                _ => {}
            }
        }
        match (what, &mut rules.hosts[host]) {
            (5, _) => drop(rules.group.remove(&host)),
            (6, one) => one.is_away = true,
            (7, one) => one.secret = one.secret.map(|secret| secret + 1),
            _ => {}
        }
        rules
    }

    /// Has these rules count, which differ in one thing from those that do.
    async fn change(&self, rules: Rules) {
        let books = &self.books;
        let before = books.access.borrow().rules().clone();
        if before == rules {
            return;
        }
        self.world
            .note(|| format!("who may log in becomes {rules:?}"));
        books.access.borrow_mut().begin(rules.clone());
        let changed = self.bring_about(&before, &rules).await;
        books.access.borrow_mut().end();
        self.world.note(|| "that is so now".to_owned());
        if let Err(error) = changed {
            let what = format!("from {before:?} to {rules:?}: {error}");
            return books.fail(&self.world, what);
        }
        self.check_access();
    }

    async fn bring_about(&self, before: &Rules, after: &Rules) -> Result<(), ArrayError> {
        let (books, control) = (&self.books, &self.control);
        for (target, export) in after.exports.iter().enumerate() {
            if before.exports[target] != *export {
                self.change_export(target, export.as_ref()).await?;
            }
        }
        if before.group != after.group {
            let missing = |all: &Rules, some: &Rules| {
                let missing = all.group.difference(&some.group).copied().collect();
                books.names(&missing).into_iter().collect::<Vec<String>>()
            };
            let (add, remove) = (missing(after, before), missing(before, after));
            let changed = control.change_host_group(GROUP.to_owned(), add, remove);
            changed.await?;
        }
        for (number, (was, host)) in before.hosts.iter().zip(&after.hosts).enumerate() {
            if was != host {
                self.change_host(number, was, host).await?;
            }
        }
        Ok(())
    }

    async fn change_export(
        &self,
        target: usize,
        rules: Option<&ExportRules>,
    ) -> Result<(), ArrayError> {
        let (control, name) = (&self.control, target_name(target));
        match rules {
            None => {
                self.books.count_anew(target, None);
                control.delete_export(&name).await
            }
            Some(rules) if control.export(&name).is_err() => {
                let export = self.books.export_of(target, rules);
                let created = control.create_export(export).await;
                self.books.count_anew(target, Some(self.world.now()));
                created
            }
            Some(rules) => {
                let access = self.books.access_of(rules);
                let change = move |now: &mut directory::Access, _: &mut UnitTraits| *now = access;
                control.change_export(&name, change).await.map(drop)
            }
        }
    }

    async fn change_host(
        &self,
        number: usize,
        was: &HostRules,
        host: &HostRules,
    ) -> Result<(), ArrayError> {
        let books = &self.books;
        let has_new_secret = was.secret != host.secret;
        let mut change = HostChange {
            account: has_new_secret.then(|| books.account(number, host.secret)),
            ..HostChange::default()
        };
        let (own, away) = (books.hosts[number].initiator.clone(), books.away(number));
        match (was.is_away, host.is_away) {
            (false, true) => (change.add, change.remove) = (vec![away], vec![own]),
            (true, false) => (change.add, change.remove) = (vec![own], vec![away]),
            _ => {}
        }
        let name = books.hosts[number].name.clone();
        self.control.change_host(name, change).await
    }

    async fn drop_one(&self, prng: &mut Prng) {
        let dropped = async {
            let sessions = self.control.sessions().await?;
            if sessions.is_empty() {
                return Ok(None);
            }
            let tsih = prng.pick(&sessions).tsih;
            self.world.note(|| format!("session {tsih} is dropped"));
            // It may have ended by itself meanwhile.
            let _ = self.control.drop_session(tsih).await;
            let sessions = self.control.sessions().await?;
            let is_there = sessions.iter().any(|session| session.tsih == tsih);
            Ok::<_, ArrayError>(is_there.then_some(tsih))
        };
        let what = match dropped.await {
            Ok(None) => return,
            Ok(Some(tsih)) => format!("session {tsih} is there after it was dropped"),
            Err(error) => format!("dropping a session: {error}"),
        };
        self.books.fail(&self.world, what);
    }

    /// No change is under way: the control plane says what it was told, the directory admits whom
    /// that admits and nobody else, and whoever has a session may log in.
    pub(super) fn check_access(&self) {
        let checked = self.check_rules();
        if let Err(what) = checked.and_then(|()| self.check_sessions()) {
            self.books.fail(&self.world, what);
        }
    }

    fn check_rules(&self) -> Result<(), String> {
        let (books, directory) = (&self.books, self.control.directory());
        let access = books.access.borrow();
        let (said, rules) = (books.said_by(&self.control)?, access.rules());
        if said != *rules {
            return Err(format!("the array says {said:?} instead of {rules:?}"));
        }
        for (host, target, portal) in books.all_ways() {
            let own = rules.hosts[host].secret;
            let older = own.map(|number| number.saturating_sub(1));
            for secret in [own, older, None] {
                let attempt = Attempt {
                    host,
                    target,
                    portal,
                    secret,
                };
                let may = rules.verdict(attempt) == Verdict::Admitted;
                let admission = Admission {
                    initiator: books.hosts[host].initiator.clone(),
                    account: books.account(host, secret),
                    portal: directory.portal_at(PORTALS[portal].into()),
                };
                let does = directory.admits(&admission, &target_name(target));
                if may != does {
                    return Err(format!("{attempt:?}: may log in {may}, can {does}"));
                }
            }
        }
        Ok(())
    }

    fn check_sessions(&self) -> Result<(), String> {
        let access = self.books.access.borrow();
        for session in self.front.connected() {
            let attempt = self.books.attempt_of(&session);
            let verdict = attempt.map(|attempt| access.rules().verdict(attempt));
            if verdict != Some(Verdict::Admitted) {
                let (initiator, tsih) = (session.initiator(), session.tsih());
                return Err(format!(
                    "{initiator} has session {tsih}, and may not log in: {attempt:?}"
                ));
            }
        }
        Ok(())
    }
}
