//! Tells initiators that there is no room for them now, so that they try again later.
//!
//! The status of a login response says so (RFC 7143 clause 11.13.5, 0302: out of resources).
//! Without it, administrators would look for a fault of the network.
//!
//! That takes little and not long, and is done for so many at once; those beyond see the
//! connection close.

use super::Desk;
use iscsi::login::{Refusal, turn_away};
use iscsi::pdu::{BHS_BYTES, data_segment_bytes};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Peers that are told at once.
pub(super) const AT_ONCE_MAX: usize = 64;

/// A peer that takes longer to say what it wants is not told.
const PATIENCE: Duration = Duration::from_secs(2);

/// As much as a login request can be long, with padding.
const REQUEST_BYTES_MAX: usize = BHS_BYTES + 8192;

/// Turns a peer away beside everything else.
pub(super) fn begin(stream: TcpStream, peer: SocketAddr, desk: &Desk) {
    tracing::warn!(%peer, "turned away: too many logins are under way");
    if let Ok(permit) = Arc::clone(&desk.turned_away).try_acquire_owned() {
        tokio::task::spawn_local(async move {
            tell(stream).await;
            drop(permit);
        });
    }
}

/// Answers the peer's login request that there is no room.
pub(super) async fn tell(mut stream: TcpStream) {
    // Who is gone by then needs no answer.
    let _ = timeout(PATIENCE, async {
        let mut request = Vec::new();
        // The whole request: a socket that is closed with something unread takes back
        // what was written to it.
        while !is_whole(&request) {
            if stream.read_buf(&mut request).await? == 0 {
                break;
            }
        }
        if let Some(answer) = turn_away(&request, Refusal::OutOfResources) {
            stream.write_all(&answer).await?;
        }
        stream.shutdown().await
    })
    .await;
}

/// Whether this is a whole PDU, or none that a login begins with.
fn is_whole(request: &[u8]) -> bool {
    let Some(bhs) = request.first_chunk::<BHS_BYTES>() else {
        return false;
    };
    let len = BHS_BYTES + data_segment_bytes(bhs).next_multiple_of(4);
    request.len() >= len.min(REQUEST_BYTES_MAX)
}
