//! Who may talk to the API: programs of this machine, under its loopback names.
//!
//! The API listens on loopback only. A web page of another site could still make
//! a browser of this machine send requests here under a name that it controls
//! (DNS rebinding); such requests carry that name in `Host`, or the page's site in
//! `Origin`, and are refused.

use super::types::{Problem, ProblemKind};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

/// Passes requests that are addressed to loopback and refuses others.
pub(crate) async fn loopback_only(request: Request, next: Next) -> Response {
    match check(
        request.headers(),
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str()),
    ) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            let (method, path) = (request.method(), request.uri().path());
            tracing::warn!("{method} {path} is refused: {}", problem.message);
            problem.into_response()
        }
    }
}

fn check(headers: &HeaderMap, authority: Option<&str>) -> Result<(), Problem> {
    let refuse = |what: String| {
        let message = format!("{what}; the API answers to localhost, 127.0.0.1 and [::1] only");
        Err(Problem::new(ProblemKind::Forbidden, message))
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
        if !origin
            .split_once("://")
            .is_some_and(|(_, authority)| is_loopback(authority))
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
            (header::HOST, "localhost"),
            (header::ORIGIN, "http://localhost:7480"),
        ]);
        assert!(check(&own, None).is_ok());
        let mut two_hosts = headers(&[(header::HOST, "localhost")]);
        two_hosts.append(header::HOST, "evil.example".parse().unwrap());
        assert!(check(&two_hosts, None).is_err());
    }
}
