//! Tells the two kinds of site files apart by their top-level keys.
//!
//! Both kinds have `site`, `pool` and `host`. A file that has keys of the other kind, and none of
//! its own, is one mistake: it went to the wrong command.

use crate::diagnostic::SiteError;
use toml::de::DeTable;

/// What a site file describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An array that serves.
    Array,
    /// Hardware and VMs to rehearse.
    Rehearsal,
}

impl Kind {
    /// Top-level keys that only this kind has.
    fn own_keys(self) -> &'static [&'static str] {
        match self {
            Kind::Array => &[
                "portal",
                "drive",
                "volume",
                "group",
                "host_group",
                "export",
                "vm",
                "api",
                "images",
                "chap",
                "limits",
            ],
            Kind::Rehearsal => &[
                "controller",
                "bus",
                "drives",
                "network",
                "vm_group",
                "block",
                "run",
                "event",
                "variant",
                "vary",
            ],
        }
    }

    fn other(self) -> Kind {
        match self {
            Kind::Array => Kind::Rehearsal,
            Kind::Rehearsal => Kind::Array,
        }
    }

    /// The keys of this kind that `document` has.
    fn keys_of(self, document: &DeTable<'_>) -> Vec<&'static str> {
        let own = self.own_keys().iter().copied();
        own.filter(|key| document.get(*key).is_some()).collect()
    }

    /// The kind that `document` has more keys of; none when it has as many of both.
    pub(crate) fn of(document: &DeTable<'_>) -> Option<Kind> {
        let count = |kind: Kind| kind.keys_of(document).len();
        match count(Kind::Array).cmp(&count(Kind::Rehearsal)) {
            std::cmp::Ordering::Less => Some(Kind::Rehearsal),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(Kind::Array),
        }
    }

    /// That `document` is not plainly of the other kind.
    ///
    /// # Errors
    /// It is: the message says which commands take it.
    pub(crate) fn check(self, file: &str, document: &DeTable<'_>) -> Result<(), SiteError> {
        let others = self.other().keys_of(document);
        if others.is_empty() || !self.keys_of(document).is_empty() {
            return Ok(());
        }
        let (what, commands) = match self.other() {
            Kind::Array => (
                "is the site file of an array",
                "`ashlar serve --site` and `ashlar site apply` take it",
            ),
            Kind::Rehearsal => (
                "describes a site to rehearse",
                "`ashlar rehearse` and `ashlar plan` take it",
            ),
        };
        let keys = others.join(", ");
        let context = format!("this file {what} (it has {keys}): {commands}");
        Err(SiteError::other_kind(file, context))
    }
}
