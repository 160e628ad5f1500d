//! The local socket of the gateway on a store: its path, and the check that the peer belongs to
//! this user.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outlast::store::StoreUrl;
use tokio::net::{UnixListener, UnixStream};

use crate::exit::Failure;

/// The path of the gateway's socket, next to `store`.
pub(crate) fn path(store: &StoreUrl) -> Result<PathBuf, Failure> {
    match store {
        StoreUrl::Sqlite(path) => {
            let mut name = std::path::absolute(path)?.into_os_string();
            name.push(".sock");
            Ok(name.into())
        }
        StoreUrl::Memory | StoreUrl::Postgres(_) => Err(Failure::Usage(
            "a gateway in the background needs a file for its tasks\n  next: name one with --store"
                .into(),
        )),
    }
}

/// The log of a gateway in the background, next to its socket.
pub(crate) fn log(socket: &Path) -> PathBuf {
    socket.with_extension("log")
}

/// Connects to the gateway at `path`. Fails if the socket belongs to another user.
pub(crate) async fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    check_owner(&stream, rustix::process::geteuid().as_raw(), path)?;
    Ok(stream)
}

/// Like [`connect`], without waiting. Must be called in a runtime.
pub(super) fn connect_now(path: &Path) -> io::Result<std::os::unix::net::UnixStream> {
    let stream = std::os::unix::net::UnixStream::connect(path)?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    check_owner(&stream, rustix::process::geteuid().as_raw(), path)?;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Refuses a peer of another user, because the next message contains the environment of this
/// process.
pub(super) fn check_owner(stream: &UnixStream, user: u32, path: &Path) -> io::Result<()> {
    let owner = stream.peer_cred()?.uid();
    if owner == user {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "the process at {} belongs to user {owner}, not to user {user}: nothing was sent to it\n  \
                 next: stop it, or name another --store",
                path.display()
            ),
        ))
    }
}

/// Listens on a socket next to `store`.
pub(crate) fn listen_next_to(store: &StoreUrl) -> Result<(UnixListener, PathBuf), Failure> {
    let path = path(store)?;
    match listen(&path) {
        Ok(listener) => Ok((listener, path)),
        Err(error) => Err(Failure::StoreFault(format!(
            "cannot open the local socket {}: {error}\n  next: name a --store whose folder is writable and whose path is \
             short (sockets take about 100 characters)",
            path.display()
        ))),
    }
}

/// Listens at `path`. The socket is created in a folder of this user and moved after its
/// permissions are set, so no other user can connect at any time.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".new");
    let folder = PathBuf::from(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let temporary = folder.join("s");
    let listener = UnixListener::bind(&temporary)?;
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&temporary, path)?;
    std::fs::remove_dir(&folder)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_of_another_user_is_refused() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let path = Path::new("/run/x.sock");
        assert!(check_owner(&ours, user, path).is_ok());
        let refused = check_owner(&ours, user + 1, path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("/run/x.sock belongs to user"));
    }
}
