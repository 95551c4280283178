//! Copies that initiators have the array make, as the real world has them: tokens are made with
//! bytes from the kernel.

use ::array::offload::SECRET_BYTES;
use scsi::offload::Limits;
use std::io::Read;
use std::sync::Arc;
use world_real::RealWorld;

/// Tokens, and where their data is kept. Shared by all shards.
pub type Offload = ::array::offload::Offload<RealWorld>;

/// That of one start.
pub fn begin() -> Arc<Offload> {
    Arc::new(Offload::new(for_tokens(), Limits::default()))
}

/// For the tokens of one start.
fn for_tokens() -> Option<[u8; SECRET_BYTES]> {
    let mut secret = [0; SECRET_BYTES];
    let source = "/dev/urandom";
    let drawn = std::fs::File::open(source).and_then(|mut file| file.read_exact(&mut secret));
    match drawn {
        Ok(()) => Some(secret),
        Err(error) => {
            tracing::error!("{source}: {error}; copies by token (ODX) are refused");
            None
        }
    }
}
