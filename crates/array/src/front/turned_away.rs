//! Tells initiators that there is no room for them now, so that they try again later.
//!
//! The status of a login response says so (RFC 7143 clause 11.13.5, 0302: out of resources).
//! Without it, administrators would look for a fault of the network.
//!
//! That takes little and not long, and is done for so many at once; those beyond see the
//! connection close.

use crate::stream::{Stream, read, write_all};
use crate::wake::{Clock, in_time};
use iscsi::login::{Refusal, turn_away};
use iscsi::pdu::{BHS_BYTES, data_segment_bytes};
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::time::Duration;

/// Peers that are told at once.
const AT_ONCE_MAX: usize = 64;

/// A peer that takes longer to say what it wants is not told.
const PATIENCE: Duration = Duration::from_secs(2);

/// As much as a login request can be long, with padding.
const REQUEST_BYTES_MAX: usize = BHS_BYTES + 8192;

/// Bytes read at once.
const RECEIVE_BYTES: usize = 1 << 10;

/// Counts the peers that are being told.
#[derive(Default)]
pub(super) struct TurnedAway(Cell<usize>);

/// One of them.
struct ToldPeer<'a>(&'a Cell<usize>);

impl Drop for ToldPeer<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl TurnedAway {
    /// Answers the peer's login request that there is no room, unless too many are told so.
    pub(super) async fn tell(&self, clock: &impl Clock, stream: impl Stream) {
        if self.0.get() >= AT_ONCE_MAX {
            return;
        }
        self.0.set(self.0.get() + 1);
        let _told = ToldPeer(&self.0);
        // Who is gone by then needs no answer.
        let _ = in_time(clock, PATIENCE, answer(stream)).await;
    }
}

async fn answer(mut stream: impl Stream) -> io::Result<()> {
    let (mut request, mut space) = (Vec::new(), [0; RECEIVE_BYTES]);
    // The whole request: a socket that is closed with something unread takes back
    // what was written to it.
    while !is_whole(&request) {
        match read(&mut stream, &mut space).await? {
            0 => break,
            came => request.extend_from_slice(&space[..came]),
        }
    }
    if let Some(answer) = turn_away(&request, Refusal::OutOfResources) {
        write_all(&mut stream, &answer).await?;
    }
    poll_fn(|cx| stream.poll_close(cx)).await
}

/// Whether this is a whole PDU, or none that a login begins with.
fn is_whole(request: &[u8]) -> bool {
    let Some(bhs) = request.first_chunk::<BHS_BYTES>() else {
        return false;
    };
    let len = BHS_BYTES + data_segment_bytes(bhs).next_multiple_of(4);
    request.len() >= len.min(REQUEST_BYTES_MAX)
}
