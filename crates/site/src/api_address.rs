//! The address of an array's REST API: a Unix socket, or a loopback TCP address.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};

/// A place for the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiAddress {
    /// The absolute path of a Unix socket. The file's mode decides who can connect.
    Unix(PathBuf),
    /// A loopback address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
}

/// The longest path that fits a socket address (`unix(7)`: 108 bytes with the closing zero).
const UNIX_PATH_BYTES_MAX: usize = 107;

impl ApiAddress {
    /// What [`ApiAddress::parse`] takes, for messages.
    pub const RULE: &str = "\"unix:\" and an absolute path of at most 107 bytes, such as \
                            \"unix:/run/ashlar/api.sock\", or a loopback address and port, such \
                            as \"127.0.0.1:7480\"";

    /// The place that `text` names: `unix:PATH`, `ADDRESS:PORT` or `http://ADDRESS:PORT`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return is_socket_path(path).then(|| ApiAddress::Unix(path.into()));
        }
        let address = text.strip_prefix("http://").unwrap_or(text);
        let address: SocketAddr = address.trim_end_matches('/').parse().ok()?;
        let is_loopback = address.ip().is_loopback();
        is_loopback.then_some(ApiAddress::Tcp(address))
    }
}

fn is_socket_path(text: &str) -> bool {
    let path = Path::new(text);
    path.is_absolute()
        && path.file_name().is_some()
        && !path.components().any(|part| part == Component::ParentDir)
        && !text.contains('\0')
        && text.len() <= UNIX_PATH_BYTES_MAX
}

/// As `--api` takes it.
impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            ApiAddress::Tcp(address) => write!(f, "http://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in [
            "unix:/run/ashlar/api.sock",
            "http://127.0.0.1:7480",
            "http://[::1]:1",
        ] {
            let address = ApiAddress::parse(text).unwrap();
            assert_eq!(address.to_string(), text);
        }
        let plain = ApiAddress::parse("127.0.0.1:7480");
        assert_eq!(plain, ApiAddress::parse("http://127.0.0.1:7480/"));
    }

    #[test]
    fn places_that_the_api_must_not_have_are_refused() {
        let long = format!("unix:/{}", "a".repeat(UNIX_PATH_BYTES_MAX));
        for bad in [
            "",
            "unix:",
            "unix:api.sock",
            "unix:/",
            "unix:/run/../etc/api.sock",
            &long,
            "0.0.0.0:7480",
            "10.0.0.1:7480",
            "https://127.0.0.1:7480",
            "127.0.0.1",
            "localhost:7480",
        ] {
            assert_eq!(ApiAddress::parse(bad), None, "{bad}");
        }
    }
}
