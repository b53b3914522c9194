//! One regular file out of the workspace. Links, devices and what is too big are refused by name.

use std::io;

use bollard::query_parameters::{ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::diagnostic::Diagnostic;
use crate::sandbox::docker::container::{Container, WORKSPACE};
use crate::sandbox::docker::errors::is_missing;
use crate::sandbox::{SandboxError, unpack};
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File(u64),
    Folder,
    Link,
    Other,
}

/// The bits of a file mode as the engine writes it (Go's `os.FileMode`).
const FOLDER: u32 = 1 << 31;
const LINK: u32 = 1 << 27;
/// Devices, pipes, sockets and what else is not a regular file.
const NOT_REGULAR: u32 = FOLDER | LINK | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19;

impl Container {
    pub(super) async fn read_file(&self, path: &WorkspacePath, limit: u64) -> Result<Bytes, SandboxError> {
        self.regular(path, limit).await?;
        self.archive_of(path, move |from| unpack::only_file(from, limit)).await
    }

    /// Makes sure that `path` is a regular file of at most `limit` bytes, reached without a link; gives its size.
    pub(super) async fn regular(&self, path: &WorkspacePath, limit: u64) -> Result<u64, SandboxError> {
        let refused = |why: String| Err(SandboxError::Refused(path.clone(), why));
        for parent in path.parents() {
            match self.kind(path, parent).await? {
                Kind::Folder => {}
                Kind::Link => {
                    return refused(format!("lies behind the link `{parent}`, and links are not followed"));
                }
                Kind::File(_) | Kind::Other => return Err(SandboxError::NotFound(path.clone())),
            }
        }
        match self.kind(path, path.as_str().trim_end_matches('/')).await? {
            Kind::File(size) if size > limit => {
                let (size, limit) = (show_size(size), show_size(limit));
                refused(format!("has {size}, and at most {limit} are taken"))
            }
            Kind::File(size) => Ok(size),
            Kind::Folder => refused("is a folder".to_owned()),
            Kind::Link => refused("is a link, and links are not followed".to_owned()),
            Kind::Other => refused("is not a regular file".to_owned()),
        }
    }

    async fn kind(&self, asked: &WorkspacePath, path: &str) -> Result<Kind, SandboxError> {
        let options =
            ContainerArchiveInfoOptionsBuilder::default().path(&format!("{WORKSPACE}/{path}")).build();
        let stat = match self.engine.client.get_container_archive_info(&self.id, Some(options)).await {
            Ok(stat) => stat,
            Err(error) if is_missing(&error) => {
                return Err(match self.gone().await {
                    Some(reason) => SandboxError::Gone(reason),
                    None => SandboxError::NotFound(asked.clone()),
                });
            }
            Err(error) => return Err(self.failed("look at a file", error).await),
        };
        let mode = stat.file_mode;
        Ok(if mode & LINK != 0 {
            Kind::Link
        } else if mode & FOLDER != 0 {
            Kind::Folder
        } else if mode & NOT_REGULAR != 0 {
            Kind::Other
        } else {
            Kind::File(u64::try_from(stat.size).unwrap_or(u64::MAX))
        })
    }

    /// Streams the archive the engine makes of `path` to `take`, on a blocking thread. It was a regular file of the
    /// right size a moment ago; what it is now, the archive says, and `take` judges.
    pub(super) async fn archive_of<T, F>(&self, path: &WorkspacePath, take: F) -> Result<T, SandboxError>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn io::Read) -> Result<T, String> + Send + 'static,
    {
        let full = format!("{WORKSPACE}/{}", path.as_str().trim_end_matches('/'));
        let options = DownloadFromContainerOptionsBuilder::default().path(&full).build();
        let stream = self.engine.client.download_from_container(&self.id, Some(options));
        let mut reader = SyncIoBridge::new(StreamReader::new(Box::pin(stream.map_err(io::Error::other))));
        match tokio::task::spawn_blocking(move || take(&mut reader)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(why)) => match self.gone().await {
                Some(reason) => Err(SandboxError::Gone(reason)),
                None => Err(SandboxError::Refused(path.clone(), why)),
            },
            Err(error) => Err(SandboxError::Engine(Diagnostic::new("sandbox::read", error.to_string()))),
        }
    }
}
