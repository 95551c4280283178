//! The catalogue of all profiles, by name.

use super::{Profile, boot_storm, ecommerce20, hetero10, oio_ladder, single, sqlio, tpce_like};

/// A profile that ships with the program.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name it is asked for by.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Makes the profile of this name.
    pub(super) make: fn(&str) -> Profile,
}

impl Profile {
    /// The profiles that [`Profile::named`] knows.
    pub fn catalogue() -> Vec<Entry> {
        [
            hetero10::ENTRIES,
            ecommerce20::ENTRIES,
            tpce_like::ENTRIES,
            boot_storm::ENTRIES,
            oio_ladder::ENTRIES,
            sqlio::ENTRIES,
            single::ENTRIES,
        ]
        .concat()
    }

    /// The names of all profiles, in the catalogue's order.
    pub fn names() -> Vec<&'static str> {
        Profile::catalogue()
            .iter()
            .map(|entry| entry.name)
            .collect()
    }

    /// The profile called `name`, or `None`.
    pub fn named(name: &str) -> Option<Profile> {
        let catalogue = Profile::catalogue();
        let entry = catalogue.iter().find(|entry| entry.name == name)?;
        Some((entry.make)(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_profile_holds_its_invariants() {
        for name in Profile::names() {
            let profile = Profile::named(name).unwrap();
            assert_eq!(profile.check(), Ok(()));
            assert_eq!(profile.name, name);
        }
        assert_eq!(Profile::named("nonsense"), None);
    }

    #[test]
    fn no_name_stands_twice_and_every_summary_is_a_line() {
        let catalogue = Profile::catalogue();
        for (index, entry) in catalogue.iter().enumerate() {
            let before = &catalogue[..index];
            assert!(before.iter().all(|other| other.name != entry.name));
            let length = entry.summary.chars().count();
            assert!((10..=90).contains(&length), "{}: {length}", entry.name);
            assert!(!entry.summary.contains('\n'), "{}", entry.name);
        }
    }
}
