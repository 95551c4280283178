//! Discovery sessions, which list targets for initiators (RFC 7143 clause 4.3).

use crate::directory::Directory;
use crate::stream::{Stream, read};
use base::BufPool;
use iscsi::connection::{Connection, Event};
use iscsi::login::{Admission, Limits, Negotiated, TargetDirectory};
use std::future::poll_fn;

/// Response code of a task management function that is not there.
const NOT_SUPPORTED: u8 = 5;

/// A discovery is a few requests: whoever sends more than come with so many reads is cut.
const READS_MAX: u32 = 4096;

/// Serves the session to its end, starting with `input`, and says why it ended.
pub(super) async fn serve(
    mut stream: impl Stream,
    negotiated: Negotiated,
    input: &[u8],
    directory: &Directory,
    limits: Limits,
) -> Result<String, String> {
    let admission = negotiated.admission.clone();
    let mut connection = Connection::new(negotiated, BufPool::new(), limits);
    connection.receive(input);
    let mut space = vec![0; 16 << 10];
    for _ in 0..READS_MAX {
        let ended = answer(&mut connection, directory, &admission);
        send(&mut stream, &mut connection)
            .await
            .map_err(|error| error.to_string())?;
        if let Some(reason) = ended {
            return Ok(reason);
        }
        match read(&mut stream, &mut space).await {
            Ok(0) => return Ok("the initiator closed the connection".to_owned()),
            Ok(bytes) => connection.receive(&space[..bytes]),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok("the initiator asks without end".to_owned())
}

/// Acts on all that came; says why the session ends, if it does.
fn answer(
    connection: &mut Connection,
    directory: &Directory,
    admission: &Admission,
) -> Option<String> {
    while let Some(event) = connection.next_event() {
        match event {
            Event::SendTargets { target } => {
                let mut targets = directory.visible(&admission.initiator, &admission.portal);
                targets.retain(|row| {
                    target
                        .as_ref()
                        .is_none_or(|name| name.eq_ignore_ascii_case(&row.name))
                });
                connection.answer_targets(&targets);
            }
            Event::Close { reason } => return Some(reason),
            Event::TaskManagement { task, .. } => connection.managed(task, NOT_SUPPORTED),
            // There is no target to run it on, and the state machine refuses it.
            Event::Command { task, .. } | Event::DataOut { task, .. } => connection.abort(task),
            Event::Dropped { .. } => {}
        }
    }
    None
}

async fn send(stream: &mut impl Stream, connection: &mut Connection) -> std::io::Result<()> {
    let output = connection.output();
    while !output.is_empty() {
        let mut runs = Vec::new();
        output.slices(&mut runs, 64);
        let sent = poll_fn(|cx| stream.poll_write(cx, &runs)).await?;
        drop(runs);
        output.advance(sent);
    }
    Ok(())
}
