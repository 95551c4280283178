//! The way between an initiator and the array: a socket, or a simulated network.
//!
//! Invariant: bytes arrive in the order in which they were sent, or the stream ends. The
//! connection ([`crate::connection`]) relies on nothing else of TCP.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll, ready};

/// One end of a stream of bytes.
pub trait Stream: Sized + 'static {
    /// A stream on its way from one shard to another.
    type Parked: Send + 'static;

    /// Takes it off this shard.
    ///
    /// # Errors
    /// The system can't.
    fn park(self) -> io::Result<Self::Parked>;

    /// Has it on this shard from now on.
    ///
    /// # Errors
    /// The system can't.
    fn unpark(parked: Self::Parked) -> io::Result<Self>;

    /// Reads what has come into `space`. Zero bytes: the peer has closed its end.
    ///
    /// # Errors
    /// The stream is broken.
    fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>>;

    /// As [`Stream::poll_read`], into several spaces, one after the other.
    ///
    /// # Errors
    /// As there.
    fn poll_read_vectored(
        &mut self,
        cx: &mut Context<'_>,
        spaces: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>>;

    /// Sends the first bytes of `runs`, and says how many.
    ///
    /// # Errors
    /// The stream is broken.
    fn poll_write(&mut self, cx: &mut Context<'_>, runs: &[IoSlice<'_>])
    -> Poll<io::Result<usize>>;

    /// Sends no more: the peer reads the end behind what was sent.
    ///
    /// # Errors
    /// The stream is broken.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Whether the peer has closed its end, without reading what came before that. A close behind
    /// more than the stream holds has not come yet.
    fn is_closed(&self) -> bool;
}

/// Reads what has come, or waits for some. Zero bytes: the peer has closed its end.
///
/// # Errors
/// The stream is broken.
pub async fn read(stream: &mut impl Stream, space: &mut [u8]) -> io::Result<usize> {
    poll_fn(|cx| stream.poll_read(cx, space)).await
}

/// Sends all of `bytes`.
///
/// # Errors
/// The stream is broken, or takes no more.
pub async fn write_all(stream: &mut impl Stream, mut bytes: &[u8]) -> io::Result<()> {
    poll_fn(|cx| {
        while !bytes.is_empty() {
            match ready!(stream.poll_write(cx, &[IoSlice::new(bytes)]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => bytes = &bytes[sent..],
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}
