//! buildah, with a storage of its own that is removed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::Result;
use crate::tools::{is_root, quiet};

/// A builder without a daemon, privileges or a network.
pub struct Builder {
    buildah: PathBuf,
    storage: TempDir,
    is_root: bool,
}

impl Builder {
    /// A builder whose storage is below `directory`.
    ///
    /// # Errors
    /// If buildah does not work here, for example because there are no user namespaces.
    pub fn new(buildah: &Path, directory: &Path) -> Result<Builder> {
        let builder = Builder {
            buildah: buildah.to_owned(),
            storage: tempfile::Builder::new().prefix("storage-").tempdir_in(directory)?,
            is_root: is_root(),
        };
        quiet(&mut builder.command(&["images"]))?;
        Ok(builder)
    }

    /// Whether what it runs are processes of root, so that their owner is as in the image.
    pub fn is_root(&self) -> bool {
        self.is_root
    }

    /// A command of buildah. Others than root get the user namespace in which the storage belongs to them.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.buildah);
        if !self.is_root {
            command.arg("unshare").arg(&self.buildah);
        }
        let storage = self.storage.path();
        // `vfs` works on every file system and inside of containers.
        command
            .args(["--storage-driver", "vfs", "--root"])
            .arg(storage.join("root"));
        command.arg("--runroot").arg(storage.join("run")).args(arguments);
        command
    }

    /// Builds a variant and returns the name of the image.
    ///
    /// # Errors
    /// If the Dockerfile fails.
    pub fn build(&self, root: &Path, variant: &str, architecture: &str) -> Result<String> {
        let image = format!("localhost/bolide:{variant}");
        let mut command = self.command(&["build", "--isolation", "chroot", "--layers"]);
        // OCI's own format has no health check.
        command.args(["--format", "docker", "--target", variant, "--tag", &image]);
        command.arg(format!("--build-arg=TARGETARCH={architecture}")).arg(".");
        quiet(command.current_dir(root))?;
        Ok(image)
    }

    /// The settings of an image: Docker's JSON.
    ///
    /// # Errors
    /// If buildah fails.
    pub fn settings(&self, image: &str) -> Result<Value> {
        let text = quiet(&mut self.command(&["inspect", "--type", "image", image]))?;
        let mut inspected: Value = serde_json::from_str(&text)?;
        Ok(inspected["Docker"].take())
    }

    /// The size of the image's layers as they are sent: compressed with gzip.
    ///
    /// # Errors
    /// If the image cannot be written to a directory.
    pub fn layer_bytes(&self, image: &str) -> Result<u64> {
        let directory = self.storage.path().join("pushed");
        let target = format!("dir:{}", directory.display());
        quiet(&mut self.command(&["push", "--quiet", "--format", "oci", image, &target]))?;
        let manifest: Value = serde_json::from_slice(&fs::read(directory.join("manifest.json"))?)?;
        fs::remove_dir_all(&directory)?;
        let layers = manifest["layers"].as_array().ok_or("the manifest has no layers")?;
        let sizes = layers.iter().map(|layer| layer["size"].as_u64());
        sizes.sum::<Option<u64>>().ok_or_else(|| "a layer has no size".into())
    }

    /// Makes a container from an image.
    ///
    /// # Errors
    /// If buildah fails.
    pub fn container(&self, variant: &str) -> Result<String> {
        let image = format!("localhost/bolide:{variant}");
        let name = quiet(&mut self.command(&["from", "--pull-never", &image]))?;
        Ok(name.trim().to_owned())
    }

    /// The root directory of a container.
    ///
    /// # Errors
    /// If buildah fails.
    pub fn mount(&self, container: &str) -> Result<PathBuf> {
        let path = quiet(&mut self.command(&["mount", container]))?;
        Ok(PathBuf::from(path.trim()))
    }
}

impl Drop for Builder {
    /// What belongs to other users of a namespace can only be removed from inside of it.
    fn drop(&mut self) {
        let _ = quiet(&mut self.command(&["rm", "--all"]));
        let _ = quiet(&mut self.command(&["rmi", "--all", "--force"]));
    }
}
