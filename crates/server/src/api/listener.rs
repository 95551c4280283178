//! The socket of the API: a Unix socket, which the file's mode guards, or a loopback address.
//!
//! Invariant: two servers never listen at one path. The lock beside the socket is held as long as
//! the socket is served; a socket whose lock is free was left by a server that was killed.

use site::ApiAddress;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener};

/// The server's user and its group may connect.
const SOCKET_MODE: u32 = 0o660;
/// A directory that is made for a socket: everybody may look the socket up.
const DIRECTORY_MODE: u32 = 0o755;

/// A socket that listens for requests.
#[derive(Debug)]
pub enum ApiListener {
    /// On a loopback address.
    Tcp(TcpListener),
    /// A Unix socket, with its path, which is removed when the listener is dropped.
    Unix(UnixListener, SocketPath),
}

/// The path of a socket that is ours until this is dropped.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// Locked; the kernel lets go of it however the process ends.
    _lock: File,
}

impl ApiListener {
    /// Listens at `address`.
    ///
    /// # Errors
    /// Of the network or the file system; `AddrInUse` when another server listens there.
    pub async fn open(address: &ApiAddress) -> io::Result<Self> {
        match address {
            ApiAddress::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            ApiAddress::Unix(path) => {
                let path = SocketPath::take(path)?;
                let listener = UnixListener::bind(&path.path)?;
                fs::set_permissions(&path.path, Permissions::from_mode(SOCKET_MODE))?;
                Ok(Self::Unix(listener, path))
            }
        }
    }

    /// The address that clients reach it at: for TCP the port that the system chose, if it was
    /// asked to.
    pub fn address(&self) -> ApiAddress {
        match self {
            // A socket that listens has an address.
            Self::Tcp(listener) => ApiAddress::Tcp(
                listener
                    .local_addr()
                    .unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 0))),
            ),
            Self::Unix(_, at) => ApiAddress::Unix(at.path.clone()),
        }
    }
}

impl SocketPath {
    /// Takes the path, and removes the socket that a killed server left there.
    fn take(path: &Path) -> io::Result<Self> {
        make_directory(path)?;
        let mut lock_path = path.to_owned().into_os_string();
        lock_path.push(".lock");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let lock = options.mode(0o600).open(&lock_path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => {
                let kind = io::ErrorKind::AlreadyExists;
                return Err(io::Error::new(kind, "there is a file that is not a socket"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(SocketPath {
            path: path.to_owned(),
            _lock: lock,
        })
    }
}

/// Makes the directory of a socket if only that one is missing.
fn make_directory(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent().filter(|directory| !directory.exists()) else {
        return Ok(());
    };
    DirBuilder::new().mode(DIRECTORY_MODE).create(directory)?;
    // The process makes files that are nobody else's.
    fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE))
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        // The next server removes a socket that stays.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open(path: &Path) -> io::Result<ApiListener> {
        ApiListener::open(&ApiAddress::Unix(path.to_owned())).await
    }

    #[tokio::test]
    async fn a_socket_is_for_user_and_group_and_goes_with_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/api.sock");
        let listener = open(&path).await.unwrap();
        assert_eq!(listener.address(), ApiAddress::Unix(path.clone()));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), SOCKET_MODE);
        assert_eq!(mode(path.parent().unwrap()), DIRECTORY_MODE);
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_second_server_is_refused_and_what_a_killed_one_left_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.sock");
        let first = open(&path).await.unwrap();
        let second = open(&path).await.unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists(), "the first one's socket stays");
        drop(first);
        // A socket without a server, as after a kill.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        open(&path).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_in_its_place_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("api.sock");
        fs::write(&path, "mine").unwrap();
        let error = open(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        let deep = open(&dir.path().join("a/b/api.sock")).await.unwrap_err();
        assert_eq!(deep.kind(), io::ErrorKind::NotFound);
    }
}
