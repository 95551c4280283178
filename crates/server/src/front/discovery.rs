//! Discovery sessions, which list targets for initiators (RFC 7143 clause 4.3).

use crate::directory::Directory;
use base::BufPool;
use iscsi::connection::{Connection, Event};
use iscsi::login::{Admission, Limits, Negotiated, TargetDirectory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Response code of a task management function that is not there.
const NOT_SUPPORTED: u8 = 5;

/// Serves the session to its end, starting with `input`, and says why it ended.
pub(super) async fn serve(
    mut stream: TcpStream,
    negotiated: Negotiated,
    input: &[u8],
    directory: &Directory,
    limits: Limits,
) -> Result<String, String> {
    let admission = negotiated.admission();
    let mut connection = Connection::new(negotiated, BufPool::new(), limits);
    connection.receive(input);
    let mut space = vec![0; 16 << 10];
    loop {
        let ended = answer(&mut connection, directory, &admission);
        send(&mut stream, &mut connection)
            .await
            .map_err(|error| error.to_string())?;
        if let Some(reason) = ended {
            return Ok(reason);
        }
        match stream.read(&mut space).await {
            Ok(0) => return Ok("the initiator closed the connection".to_owned()),
            Ok(bytes) => connection.receive(&space[..bytes]),
            Err(error) => return Err(error.to_string()),
        }
    }
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

async fn send(stream: &mut TcpStream, connection: &mut Connection) -> std::io::Result<()> {
    let output = connection.output();
    while !output.is_empty() {
        let mut runs = Vec::new();
        output.slices(&mut runs, 64);
        let sent = stream.write_vectored(&runs).await?;
        drop(runs);
        output.advance(sent);
    }
    Ok(())
}
