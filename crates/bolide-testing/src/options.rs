//! How a server is started.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::error::Error;
use crate::server::Bolide;

/// How a server is started; made by [`Bolide::options`].
///
/// Variables of the environment that begin with `BOLIDE_` are not passed on: options come only from here.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) clock: ClockOption,
    pub(crate) key: Option<String>,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) binary: Option<PathBuf>,
    pub(crate) start_timeout: Duration,
}

/// Which clock a server runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClockOption {
    System,
    Virtual(Option<SystemTime>),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            data_dir: None,
            clock: ClockOption::Virtual(None),
            key: None,
            args: Vec::new(),
            env: Vec::new(),
            binary: None,
            start_timeout: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// Where the server keeps its data; without a directory everything is in memory.
    #[must_use]
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Options {
        self.data_dir = Some(directory.into());
        self
    }

    /// The first instant of the virtual clock; by default it begins now.
    #[must_use]
    pub fn virtual_clock(mut self, start: SystemTime) -> Options {
        self.clock = ClockOption::Virtual(Some(start));
        self
    }

    /// Runs on the system's clock, which nobody moves.
    #[must_use]
    pub fn system_clock(mut self) -> Options {
        self.clock = ClockOption::System;
        self
    }

    /// The account key, base64; by default the emulator's well-known key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Options {
        self.key = Some(key.into());
        self
    }

    /// A further option of the server, such as `--enforce-throughput`.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Options {
        self.args.push(argument.into());
        self
    }

    /// A further environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Options {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The binary to start, see [`find_binary`](crate::find_binary).
    #[must_use]
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Options {
        self.binary = Some(path.into());
        self
    }

    /// How long the start may take; 30 seconds by default.
    #[must_use]
    pub fn start_timeout(mut self, limit: Duration) -> Options {
        self.start_timeout = limit;
        self
    }

    /// Starts the server and returns when it is ready.
    ///
    /// # Errors
    /// [`Error::NoBinary`]; [`Error::Start`] if the server ends or is not ready in time.
    pub fn start(self) -> Result<Bolide, Error> {
        Bolide::start_with(&self)
    }
}
