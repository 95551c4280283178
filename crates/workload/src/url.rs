//! The URLs that name targets.
//!
//! - `iscsi://[user[%password]@]host[:port]/iqn/lun` (the form of libiscsi)
//! - `nbd://host[:port]/export` and `nbd+unix:///export?socket=PATH` (the form of
//!   the NBD project)
//! - `file:PATH` and `block:PATH`

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The port of an iSCSI portal when none is given (RFC 7143, 4.2.7.1; IANA).
pub const ISCSI_PORT: u16 = 3260;

/// The port of an NBD server when none is given (IANA).
pub const NBD_PORT: u16 = 10809;

/// A text that names no target: the text, without a password, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shown}: {detail}")]
pub struct UrlError {
    /// What was written, without a password.
    pub shown: String,
    /// What is wrong with it, for people.
    pub detail: String,
}

/// Where a target is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetUrl {
    /// A LUN of an iSCSI target.
    Iscsi(IscsiLun),
    /// An export of an NBD server.
    Nbd {
        /// Where the server listens.
        server: NbdServer,
        /// The name of the export; may be empty.
        export: String,
    },
    /// A file or block device.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether it was named `block:`.
        block: bool,
    },
}

/// A LUN behind a portal.
#[derive(Clone, PartialEq, Eq)]
pub struct IscsiLun {
    /// The portal's address, as `host:port`.
    pub portal: String,
    /// The target's iSCSI name.
    pub target: String,
    /// The logical unit number.
    pub lun: u16,
    /// CHAP user and password.
    pub credentials: Option<(String, String)>,
}

/// Where an NBD server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdServer {
    /// A TCP address, as `host:port`.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Debug for IscsiLun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IscsiLun({}/{}/{})", self.portal, self.target, self.lun)
    }
}

/// Never shows a password.
impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetUrl::Iscsi(lun) => write!(f, "iscsi://{}/{}/{}", lun.portal, lun.target, lun.lun),
            TargetUrl::Nbd {
                server: NbdServer::Tcp(address),
                export,
            } => {
                write!(f, "nbd://{address}/{export}")
            }
            TargetUrl::Nbd {
                server: NbdServer::Unix(path),
                export,
            } => {
                write!(f, "nbd+unix:///{export}?socket={}", path.display())
            }
            TargetUrl::File { path, block } => {
                write!(
                    f,
                    "{}:{}",
                    if *block { "block" } else { "file" },
                    path.display()
                )
            }
        }
    }
}

impl FromStr for TargetUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let wrong = |detail: String| {
            let shown = match text.split_once('@') {
                Some((_, after)) => format!("…@{after}"),
                None => text.to_string(),
            };
            UrlError { shown, detail }
        };
        if let Some(rest) = text.strip_prefix("iscsi://") {
            return iscsi(rest).map(TargetUrl::Iscsi).map_err(wrong);
        }
        if let Some(rest) = text.strip_prefix("nbd://") {
            return nbd_tcp(rest).map_err(wrong);
        }
        if let Some(rest) = text.strip_prefix("nbd+unix://") {
            return nbd_unix(rest).map_err(wrong);
        }
        for (scheme, block) in [("file:", false), ("block:", true)] {
            if let Some(path) = text.strip_prefix(scheme) {
                // file:///x is /x: an empty host.
                let path = path
                    .strip_prefix("//")
                    .filter(|p| p.starts_with('/'))
                    .unwrap_or(path);
                if path.is_empty() {
                    return Err(wrong(format!("no path after {scheme}")));
                }
                return Ok(TargetUrl::File {
                    path: path.into(),
                    block,
                });
            }
        }
        Err(wrong(
            "not a target; allowed are iscsi://host[:port]/iqn/lun, \
                   nbd://host[:port]/export, nbd+unix:///export?socket=PATH, file:PATH, block:PATH"
                .into(),
        ))
    }
}

fn iscsi(rest: &str) -> Result<IscsiLun, String> {
    let form = "an iSCSI URL is iscsi://[user[%password]@]host[:port]/iqn/lun";
    let mut parts = rest.split('/');
    let (Some(authority), Some(target), Some(lun), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(form.into());
    };
    let (credentials, address) = match authority.rsplit_once('@') {
        Some((user, address)) => {
            let (user, password) = user.split_once('%').unwrap_or((user, ""));
            (Some((user.to_string(), password.to_string())), address)
        }
        None => (None, authority),
    };
    let target = percent_decoded(target)?;
    if target.is_empty() {
        return Err(format!("no target name; {form}"));
    }
    let lun = lun
        .parse()
        .map_err(|_| format!("LUN {lun:?} is not a number up to 65535"))?;
    Ok(IscsiLun {
        portal: with_port(address, ISCSI_PORT)?,
        target,
        lun,
        credentials,
    })
}

fn nbd_tcp(rest: &str) -> Result<TargetUrl, String> {
    let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
    let address = with_port(authority, NBD_PORT)?;
    Ok(TargetUrl::Nbd {
        server: NbdServer::Tcp(address),
        export: percent_decoded(export)?,
    })
}

fn nbd_unix(rest: &str) -> Result<TargetUrl, String> {
    let form = "an NBD URL over a Unix socket is nbd+unix:///export?socket=PATH";
    let (export, socket) = rest.split_once("?socket=").ok_or(form)?;
    let export = export.strip_prefix('/').ok_or(form)?;
    if socket.is_empty() {
        return Err(form.into());
    }
    let path = PathBuf::from(percent_decoded(socket)?);
    Ok(TargetUrl::Nbd {
        server: NbdServer::Unix(path),
        export: percent_decoded(export)?,
    })
}

/// `host:port`, with IPv6 addresses in brackets.
fn with_port(address: &str, default_port: u16) -> Result<String, String> {
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (address, None),
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    if bare.is_empty() || (host.contains(':') && bare == host) {
        return Err(format!(
            "{address:?} is not host[:port] (IPv6 addresses stand in brackets)"
        ));
    }
    let port = match port {
        None => default_port,
        Some(port) => port
            .parse()
            .map_err(|_| format!("port {port:?} is not a number"))?,
    };
    Ok(format!("{host}:{port}"))
}

fn percent_decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("% in {text:?} is not followed by two hex digits"))?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not UTF-8 after decoding"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<TargetUrl>().unwrap().to_string()
    }

    #[test]
    fn urls_are_read_and_shown() {
        let iqn = "iqn.2026-11.dev.ashlar:web01";
        assert_eq!(
            shown(&format!("iscsi://h/{iqn}/3")),
            format!("iscsi://h:3260/{iqn}/3")
        );
        assert_eq!(
            shown("iscsi://[::1]:9/iqn.a%3Ab/0"),
            "iscsi://[::1]:9/iqn.a:b/0"
        );
        assert_eq!(shown("iscsi://[::1]/iqn.a/0"), "iscsi://[::1]:3260/iqn.a/0");
        assert_eq!(shown("nbd://127.0.0.1"), "nbd://127.0.0.1:10809/");
        assert_eq!(shown("nbd+unix:///e?socket=/s"), "nbd+unix:///e?socket=/s");
        assert_eq!(shown("file:///dev/shm/x"), "file:/dev/shm/x");
        assert_eq!(shown("block:/dev/sdb"), "block:/dev/sdb");
    }

    #[test]
    fn a_password_is_taken_and_never_shown() {
        let url: TargetUrl = "iscsi://user%secret@h/iqn.a/0".parse().unwrap();
        let TargetUrl::Iscsi(lun) = &url else {
            panic!("not iSCSI")
        };
        assert_eq!(lun.credentials, Some(("user".into(), "secret".into())));
        assert!(!format!("{url} {url:?}").contains("secret"));
        let refused = "iscsi://user%secret@h/iqn.a"
            .parse::<TargetUrl>()
            .unwrap_err();
        assert!(!refused.to_string().contains("secret"));
    }

    #[test]
    fn wrong_urls_are_refused_with_the_form() {
        for (text, told) in [
            ("http://x", "allowed are iscsi://"),
            ("iscsi://h/iqn.a", "host[:port]/iqn/lun"),
            ("iscsi://h//0", "no target name"),
            ("iscsi://h/iqn.a/x", "not a number"),
            ("iscsi://h:x/iqn.a/0", "port"),
            ("iscsi:///iqn.a/0", "host[:port]"),
            ("iscsi://::1/iqn.a/0", "brackets"),
            ("nbd://h/%zz", "hex digits"),
            ("nbd+unix:///e", "socket=PATH"),
            ("file:", "no path"),
        ] {
            let refused = text.parse::<TargetUrl>().unwrap_err();
            assert!(refused.detail.contains(told), "{text}: {refused}");
        }
    }
}
