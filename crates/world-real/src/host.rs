//! Identifies this machine and its current boot.

use base::{Prng, Uuid};
use engine::world::Host;
use std::fs::read_to_string;

/// What the kernel and the system say of this machine; what they don't is drawn, so that
/// nobody else is taken for it.
pub(super) fn this(root: &Prng) -> Host {
    let read = |path: &str| read_to_string(path).unwrap_or_default();
    let drawn = || root.stream("host").uuid();
    Host {
        id: uuid(&read("/etc/machine-id")).unwrap_or_default(),
        boot: uuid(&read("/proc/sys/kernel/random/boot_id")).unwrap_or_else(drawn),
        name: name(&read("/proc/sys/kernel/hostname")),
    }
}

fn uuid(text: &str) -> Option<Uuid> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let value = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| Uuid::from_u128(value))
}

fn name(text: &str) -> String {
    let safe = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.trim().chars().filter(safe).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_read_with_dashes_and_without() {
        let plain = uuid("00112233445566778899aabbccddeeff\n");
        assert_eq!(plain, uuid("00112233-4455-6677-8899-aabbccddeeff"));
        assert!(plain.is_some());
        assert_eq!(uuid(""), None);
        assert_eq!(uuid("abc"), None);
        assert_eq!(name("vm 1\n"), "vm1");
    }

    #[test]
    fn every_world_of_a_machine_is_on_the_same_host() {
        let (one, other) = (this(&Prng::from_seed(1)), this(&Prng::from_seed(2)));
        assert!(one.is_same(&other), "{one:?} {other:?}");
    }
}
