//! How initiators prove who they are.

use crate::directory::Directory;
use iscsi::chap::Algorithm;
use site::ChapAlgorithm;

/// Says which algorithms CHAP may use.
pub(super) fn prepare(directory: &Directory, chap: &site::Chap) {
    let algorithm = |algorithm: &ChapAlgorithm| match algorithm {
        ChapAlgorithm::Sha3_256 => Algorithm::Sha3_256,
        ChapAlgorithm::Sha256 => Algorithm::Sha256,
        ChapAlgorithm::Sha1 => Algorithm::Sha1,
        ChapAlgorithm::Md5 => Algorithm::Md5,
    };
    directory.set_algorithms(chap.algorithms.iter().map(algorithm).collect());
}
