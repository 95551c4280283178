//! How far the request of a connection is, so that a stop waits only for those under way.

use axum::body::HttpBody;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// How far the request of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// None has come so far.
    Unasked,
    /// Its handler waits for more of its body, and has changed nothing.
    Incomplete,
    /// It is being carried out.
    UnderWay,
    /// It is answered. The answer may still be on its way out.
    Answered,
}

impl Stage {
    /// Comes to this stage. Only a change is told: whoever waits for one polls the request, too.
    pub(super) fn reach(self, stage: &watch::Sender<Stage>) {
        stage.send_if_modified(|now| std::mem::replace(now, self) != self);
    }
}

/// The body of a request; says whether somebody waits for it.
pub(super) struct Awaited {
    pub(super) body: Incoming,
    pub(super) stage: Arc<watch::Sender<Stage>>,
}

impl HttpBody for Awaited {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let reached = match polled {
            Poll::Pending => Stage::Incomplete,
            Poll::Ready(_) => Stage::UnderWay,
        };
        reached.reach(&self.stage);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
