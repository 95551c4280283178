//! Refuses requests from users, hosts and web pages that may not use the API.
//!
//! Programs of root and of the server's own user on this machine may, under its loopback names.
//!
//! The file of a Unix socket says who can connect to it. To a loopback address every user of the
//! machine can connect: the kernel says whose a connection is. A web page of another site could
//! still make a browser of this machine send requests here under a name that it controls (DNS
//! rebinding); such requests carry that name in `Host`, or the page's site in `Origin`, and are
//! refused.

use super::caller::Caller;
use super::problem::Refusal;
use api::ProblemKind;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

/// Passes requests of our users that are addressed to loopback, and refuses others.
pub(crate) async fn ours_only(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<ConnectInfo<Caller>>();
    let authority = request.uri().authority();
    let authority = authority.map(|authority| authority.as_str());
    let checked = check_caller(caller.map(|caller| caller.0))
        .and_then(|()| check(request.headers(), authority));
    match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            let (method, path) = (request.method(), request.uri().path());
            tracing::warn!("{method} {path} is refused: {}", refusal.0.message);
            refusal.into_response()
        }
    }
}

fn check_caller(caller: Option<Caller>) -> Result<(), Refusal> {
    match caller {
        Some(caller) if caller.is_ours() => Ok(()),
        other => {
            let who = other.map_or("somebody".to_owned(), |caller| caller.to_string());
            let message = format!(
                "{who} may not use the API: root may, and the user that the server runs as"
            );
            Err(Refusal::new(ProblemKind::Forbidden, message))
        }
    }
}

fn check(headers: &HeaderMap, authority: Option<&str>) -> Result<(), Refusal> {
    let refuse = |what: String| {
        let message = format!("{what}; the API answers to localhost, 127.0.0.1 and [::1] only");
        Err(Refusal::new(ProblemKind::Forbidden, message))
    };
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => return refuse("a request without exactly one Host".to_owned()),
    };
    if !is_loopback(host) || authority.is_some_and(|authority| !is_loopback(authority)) {
        return refuse(format!("Host is {host:?}"));
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        // A page of another server on this machine is another's page, too.
        if !origin
            .split_once("://")
            .is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
        {
            return refuse(format!("Origin is {origin:?}"));
        }
    }
    Ok(())
}

/// Whether `authority`, a host with or without port, is this machine's loopback.
fn is_loopback(authority: &str) -> bool {
    let host = match authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((host, port)) => {
            return is_port(port) && host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        }
        None => match authority.split_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            Some(_) => return false,
            None => authority,
        },
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|ip| ip.is_loopback())
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn loopback_names_are_known() {
        for good in [
            "localhost",
            "LOCALHOST:7480",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]",
            "[::1]:7480",
        ] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:7480",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1:7480",
            "[::2]:7480",
            "[::1",
            "[::1]x",
            "localhost@evil.example",
            "127.0.0.1:x",
            "::1",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }

    #[test]
    fn requests_under_other_names_are_refused() {
        let host = |name| headers(&[(header::HOST, name)]);
        assert!(check(&host("127.0.0.1:7480"), None).is_ok());
        assert!(check(&host("evil.example:7480"), None).is_err());
        assert!(check(&host("127.0.0.1"), Some("evil.example")).is_err());
        assert!(check(&HeaderMap::new(), None).is_err());
        let twice = headers(&[
            (header::HOST, "localhost"),
            (header::ORIGIN, "http://evil.example"),
        ]);
        assert!(check(&twice, None).is_err());
        let null = headers(&[(header::HOST, "localhost"), (header::ORIGIN, "null")]);
        assert!(check(&null, None).is_err());
        let own = headers(&[
            (header::HOST, "localhost:7480"),
            (header::ORIGIN, "http://localhost:7480"),
        ]);
        assert!(check(&own, None).is_ok());
        let neighbour = headers(&[
            (header::HOST, "localhost:7480"),
            (header::ORIGIN, "http://localhost:8080"),
        ]);
        assert!(check(&neighbour, None).is_err());
        let mut two_hosts = headers(&[(header::HOST, "localhost")]);
        two_hosts.append(header::HOST, "evil.example".parse().unwrap());
        assert!(check(&two_hosts, None).is_err());
    }
}
