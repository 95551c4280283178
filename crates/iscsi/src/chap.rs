//! CHAP (RFC 7143 clause 12.1, RFC 1994): accounts, algorithms, challenges.
//!
//! Invariants:
//! - A secret is never shown: neither by `Debug` nor in an error.
//! - What depends on a secret is compared in constant time.
//! - A challenge is used for one exchange: it is made from fresh random bytes by the
//!   owner, and consumed.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use sha3::Sha3_256;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Fewest bytes of a secret: 96 bits (RFC 7143 clause 9.2.1).
pub const SECRET_BYTES_MIN: usize = 12;

/// Most bytes of a secret.
pub const SECRET_BYTES_MAX: usize = 255;

/// Most bytes of a CHAP name (clause 12.1.3).
pub const NAME_BYTES_MAX: usize = 255;

/// Most bytes of a challenge (clause 12.1.3).
pub const CHALLENGE_BYTES_MAX: usize = 1024;

/// A secret that two ends share, 12 to 255 bytes.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// `None` when it has too few bytes to be one, or too many.
    pub fn new(bytes: &[u8]) -> Option<Secret> {
        let right = (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len());
        right.then(|| Secret(bytes.into()))
    }

    /// Its bytes, to be kept where secrets are.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

/// A name and the secret that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// CHAP_N; 1 to 255 bytes.
    pub name: String,
    /// The secret that a response is computed with.
    pub secret: Secret,
}

/// What an initiator has to prove, and what we prove to it when it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The credential that the initiator has to prove.
    pub initiator: Credential,
    /// Ours, for mutual authentication. Its secret is another one.
    pub mutual: Option<Credential>,
}

/// How responses are computed. In the order of their strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// MD5, the one that every initiator has.
    Md5,
    /// SHA-1, with responses of 20 bytes.
    Sha1,
    /// SHA-256, with responses of 32 bytes.
    Sha256,
    /// SHA3-256, with responses of 32 bytes.
    Sha3_256,
}

impl Algorithm {
    /// All, the strongest first.
    pub const ALL: [Algorithm; 4] = [
        Algorithm::Sha3_256,
        Algorithm::Sha256,
        Algorithm::Sha1,
        Algorithm::Md5,
    ];

    /// Its number in CHAP_A (clause 12.1.3; IANA, PPP Authentication Algorithms).
    pub fn number(self) -> u64 {
        match self {
            Algorithm::Md5 => 5,
            Algorithm::Sha1 => 6,
            Algorithm::Sha256 => 7,
            Algorithm::Sha3_256 => 8,
        }
    }

    /// Length of a response, and of the challenges that we send.
    pub fn digest_bytes(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 | Algorithm::Sha3_256 => 32,
        }
    }

    /// The response to a challenge: the hash over identifier, secret and challenge
    /// (RFC 1994 clause 4.1).
    pub fn response(self, id: u8, secret: &Secret, challenge: &[u8]) -> Vec<u8> {
        fn hash<D: Digest>(parts: [&[u8]; 3]) -> Vec<u8> {
            let mut hash = D::new();
            parts.iter().for_each(|part| hash.update(part));
            hash.finalize().to_vec()
        }
        let parts = [&[id][..], &secret.0, challenge];
        match self {
            Algorithm::Md5 => hash::<Md5>(parts),
            Algorithm::Sha1 => hash::<Sha1>(parts),
            Algorithm::Sha256 => hash::<Sha256>(parts),
            Algorithm::Sha3_256 => hash::<Sha3_256>(parts),
        }
    }
}

/// Random bytes that a [`Challenge`] is made of.
pub const RANDOM_BYTES: usize = 33;

/// An identifier and a challenge for one exchange. Neither copied nor cloned.
#[derive(Debug)]
pub struct Challenge {
    id: u8,
    bytes: [u8; RANDOM_BYTES - 1],
}

impl Challenge {
    /// From bytes that nobody can foresee and that are used for nothing else.
    pub fn from_random(random: [u8; RANDOM_BYTES]) -> Challenge {
        let [id, bytes @ ..] = random;
        Challenge { id, bytes }
    }

    /// The identifier (CHAP_I).
    pub(crate) fn id(&self) -> u8 {
        self.id
    }

    /// The challenge (CHAP_C), as long as the algorithm's digest.
    pub(crate) fn bytes(&self, algorithm: Algorithm) -> &[u8] {
        &self.bytes[..algorithm.digest_bytes()]
    }
}

/// What logins need for CHAP beside accounts.
#[derive(Debug)]
pub struct Chap {
    /// The algorithms that are allowed, those preferred first.
    pub algorithms: Vec<Algorithm>,
    /// For this login alone.
    pub challenge: Challenge,
}

/// Whether a response is the one expected, in constant time.
pub(crate) fn same(response: &[u8], expected: &[u8]) -> bool {
    response.ct_eq(expected).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    #[test]
    fn secrets_have_a_length_and_are_not_shown() {
        for (bytes, good) in [
            (0, false),
            (11, false),
            (12, true),
            (255, true),
            (256, false),
        ] {
            assert_eq!(Secret::new(&vec![b's'; bytes]).is_some(), good, "{bytes}");
        }
        let secret = Secret::new(b"a-very-secret-one").unwrap();
        let name = "host".to_owned();
        let shown = format!("{:?}", Credential { name, secret });
        assert_eq!(shown, "Credential { name: \"host\", secret: Secret }");
    }

    #[test]
    fn each_algorithm_hashes_identifier_secret_and_challenge() {
        // By another implementation: `printf '\x01secret-of-twelve!\x02\x03' | openssl dgst`.
        let secret = Secret::new(b"secret-of-twelve!").unwrap();
        let hex = |algorithm: Algorithm| -> String {
            let response = algorithm.response(1, &secret, &[2, 3]);
            assert_eq!(response.len(), algorithm.digest_bytes());
            response.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(hex(Algorithm::Md5), "b21619badd33556c73215ab198d96e1d");
        assert_eq!(
            hex(Algorithm::Sha1),
            "500ba4fc15a5d631fb78ca16630223c177c7a581"
        );
        assert_eq!(
            hex(Algorithm::Sha256),
            "4a38961e77ea696d1ac4c1ed559e07ea979f9369a15de4623fd4c49c33794b06"
        );
        assert_eq!(
            hex(Algorithm::Sha3_256),
            "6329ab410c9b13bb357827086b5577f8710a9267242d19c99f0fae10c00fbb66"
        );
    }

    #[test]
    fn the_list_of_all_has_the_strongest_first() {
        assert!(Algorithm::ALL.is_sorted_by(|a, b| a > b));
        let numbers = Algorithm::ALL.map(Algorithm::number);
        assert_eq!(numbers, [8, 7, 6, 5]);
    }
}
