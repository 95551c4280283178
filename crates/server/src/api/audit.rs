//! Who changed what: each request that changes something is a line of the log.
//!
//! Invariant: no secret is in such a line.

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;

use super::BODY_BYTES_MAX;
use super::types::Problem;

/// Characters of a body that a line has.
const SHOWN_MAX: usize = 400;

/// Sockets of this machine and their users, by IP version.
const SOCKETS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The API's own address, for finding out who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnAddress(pub(super) Option<SocketAddr>);

/// Passes a request on, and says in the log what came of it if it was to change something.
pub(super) async fn told(request: Request, next: Next) -> Response {
    let changes = !matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let path = request.uri().path().to_owned();
    if !changes || path == "/api/v1/site/diff" {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let own = request.extensions().get::<OwnAddress>();
    let who = who(peer.map(|peer| peer.0), own.and_then(|own| own.0));
    let method = request.method().clone();
    let (request, said) = match with_body(request).await {
        Ok(both) => both,
        Err(problem) => return problem.into_response(),
    };
    let response = next.run(request).await;
    let status = response.status();
    match status.is_success() {
        true => tracing::info!("{who}: {method} {path}{said}: {}", status.as_u16()),
        false => tracing::warn!("{who}: {method} {path}{said}: refused, {status}"),
    }
    response
}

/// A request, and what its body says. A long one, such as a site file, is not looked into.
async fn with_body(request: Request) -> Result<(Request, String), Problem> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_none_or(|length| length == 0 || length > BODY_BYTES_MAX) {
        return Ok((request, String::new()));
    }
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, BODY_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| Problem::invalid(format!("can't read the body: {error}")))?;
    let said = match serde_json::from_slice(&bytes) {
        Ok(Value::Null) => String::new(),
        Ok(body) => format!(" {}", shown(body)),
        Err(_) => " (a body that is no JSON)".to_owned(),
    };
    Ok((Request::from_parts(parts, Body::from(bytes)), said))
}

/// A body as the log has it: without secrets, and not too long.
fn shown(mut body: Value) -> String {
    hide(&mut body);
    let text = body.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Takes all secrets out.
fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.contains("secret") || key == "text" {
                    true => *value = Value::from("…"),
                    false => hide(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        _ => {}
    }
}

/// The user of this machine at the other end, as far as it can be told.
fn who(peer: Option<SocketAddr>, own: Option<SocketAddr>) -> String {
    let Some(peer) = peer else {
        return "API".to_owned();
    };
    let uid = own.and_then(|own| {
        let table = SOCKETS[usize::from(peer.is_ipv6())];
        uid_in(&fs::read_to_string(table).ok()?, peer, own)
    });
    match uid {
        Some(uid) => format!("user {uid} at {peer}"),
        None => format!("somebody at {peer}"),
    }
}

/// The user of the socket `local`, which is connected to `remote`, in a table as the kernel
/// writes it (`proc_pid_net(5)`: `/proc/net/tcp`).
fn uid_in(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let (local, remote) = (in_table(local), in_table(remote));
    let mut lines = table.lines().map(|line| line.split_ascii_whitespace());
    lines.find_map(|mut columns| {
        let is_it = columns.nth(1)? == local && columns.next()? == remote;
        // Between: state, queues, timer, retransmits.
        is_it.then(|| columns.nth(4)?.parse().ok()).flatten()
    })
}

/// An address as the kernel writes it: words of four bytes in the machine's order.
fn in_table(address: SocketAddr) -> String {
    let octets = match address {
        SocketAddr::V4(address) => address.ip().octets().to_vec(),
        SocketAddr::V6(address) => address.ip().octets().to_vec(),
    };
    let words = octets.chunks_exact(4).map(|word| {
        let word = [word[0], word[1], word[2], word[3]];
        format!("{:08X}", u32::from_ne_bytes(word))
    });
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn no_secret_is_shown_however_deep() {
        let body = json!({
            "name": "esx1",
            "chap": { "name": "a", "secret": "x-secret-x", "mutual_secret": "x-secret-x" },
            "more": [{ "secret": "x-secret-x" }],
        });
        let said = shown(body);
        assert!(
            said.contains("esx1") && !said.contains("x-secret-x"),
            "{said}"
        );
        let long = shown(json!({ "name": "ä".repeat(1000) }));
        assert_eq!(long.chars().count(), SHOWN_MAX + 1);
    }

    #[test]
    fn the_user_at_the_other_end_is_found() {
        use std::os::unix::fs::MetadataExt;
        let me = fs::metadata("/proc/self").unwrap().uid();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let own = listener.local_addr().unwrap();
            let stream = TcpStream::connect(own).unwrap();
            let peer = stream.local_addr().unwrap();
            assert_eq!(who(Some(peer), Some(own)), format!("user {me} at {peer}"));
            let other = SocketAddr::new(peer.ip(), peer.port() ^ 1);
            assert_eq!(uid_in("", peer, own), None);
            assert!(who(Some(other), Some(own)).starts_with("somebody at "));
        }
    }
}
