//! A TCP socket as the array's stream.

use ::array::stream::Stream;
use futures_util::FutureExt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A connected socket, on the event loop of its thread.
pub(super) struct Socket(pub(super) TcpStream);

impl Stream for Socket {
    type Parked = std::net::TcpStream;

    fn park(self) -> io::Result<Self::Parked> {
        // Deregisters the socket from this thread's event loop.
        self.0.into_std()
    }

    fn unpark(parked: Self::Parked) -> io::Result<Self> {
        TcpStream::from_std(parked).map(Socket)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        // By `AsyncRead`, which knows after a short read that there is no more.
        let mut space = ReadBuf::new(space);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut space))?;
        Poll::Ready(Ok(space.filled().len()))
    }

    fn poll_read_vectored(
        &mut self,
        cx: &mut Context<'_>,
        spaces: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_vectored(spaces) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        runs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, runs)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_closed(&self) -> bool {
        let ready = self.0.ready(Interest::READABLE).now_or_never();
        matches!(ready, Some(Ok(ready)) if ready.is_read_closed())
    }
}

/// Readies an accepted socket for a connection, and gives its own address.
///
/// # Errors
/// The socket is of no use.
pub(super) fn prepare(
    stream: &TcpStream,
    peer: SocketAddr,
    silence: Duration,
) -> io::Result<SocketAddr> {
    if let Err(error) = attend(stream, silence) {
        tracing::warn!(%peer, %error, "a dead peer may be noticed late");
    }
    stream.set_nodelay(true)?;
    stream.local_addr()
}

/// Probes of a silent peer before the kernel gives it up.
const PROBES: u32 = 3;

/// Has the kernel watch the peer, too: it notices one that is gone while nothing of the
/// protocol is due, and data that nobody acknowledges.
fn attend(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    // The kernel counts in whole seconds.
    let interval = (silence / PROBES).max(Duration::from_secs(1));
    let probes = socket2::TcpKeepalive::new()
        .with_time(silence.max(Duration::from_secs(1)))
        .with_interval(interval)
        .with_retries(PROBES);
    let socket = socket2::SockRef::from(stream);
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(2 * silence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_close_is_seen_behind_what_is_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut peer = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let stream = Socket(stream);
        peer.write_all(&[7; 1000]).await.unwrap();
        stream.0.readable().await.unwrap();
        assert!(!stream.is_closed());
        drop(peer);
        while !stream.is_closed() {
            tokio::task::yield_now().await;
        }
    }
}
