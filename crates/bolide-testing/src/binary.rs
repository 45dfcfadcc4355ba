//! Where the binary is.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Returns the path of the binary: `named`, else the environment variable `BOLIDE_BIN`, else `bolide` on the `PATH`.
///
/// # Errors
/// [`Error::NoBinary`] if there is none, or if `named` or `BOLIDE_BIN` is not a file.
pub fn find_binary(named: Option<&Path>) -> Result<PathBuf, Error> {
    let variable = env::var_os("BOLIDE_BIN").filter(|value| !value.is_empty());
    find(
        named,
        variable.map(PathBuf::from).as_deref(),
        env::split_paths(&env::var_os("PATH").unwrap_or_default()),
    )
}

fn find(
    named: Option<&Path>,
    variable: Option<&Path>,
    mut path: impl Iterator<Item = PathBuf>,
) -> Result<PathBuf, Error> {
    for (source, value) in [("binary", named), ("BOLIDE_BIN", variable)] {
        if let Some(value) = value {
            return match value.is_file() {
                true => Ok(value.to_path_buf()),
                false => Err(Error::NoBinary(format!(
                    "{source}: not a file. value=`{}`",
                    value.display()
                ))),
            };
        }
    }
    let name = format!("bolide{}", env::consts::EXE_SUFFIX);
    let found = path.find_map(|folder| Some(folder.join(&name)).filter(|place| place.is_file()));
    found.ok_or_else(|| {
        Error::NoBinary(
            "there is no bolide binary: BOLIDE_BIN is not set, and PATH has none; install Bolide".to_owned(),
        )
    })
}

#[cfg(test)]
mod tests;
