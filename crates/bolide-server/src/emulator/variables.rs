//! Environment variables of the official emulators. A variable that is empty counts as not set.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum as _;

use super::arguments::Protocol;
use crate::server::Failure;

/// Variables that mean nothing here.
const MEANINGLESS: [&str; 10] = [
    "AZURE_COSMOS_EMULATOR_PARTITION_COUNT",
    "AZURE_COSMOS_EMULATOR_ARGS",
    "AZURE_COSMOS_EMULATOR_ENABLE_MONGODB_ENDPOINT",
    "ENABLE_TELEMETRY",
    "ENABLE_OTLP_EXPORTER",
    "ENABLE_CONSOLE_EXPORTER",
    "QUERY_BUFFER_SIZE_KB",
    "VERBOSE",
    "ENABLE_INIT_DATA",
    "INIT_PATH",
];

/// The environment of the process; in tests, any other.
#[derive(Clone, Copy)]
pub struct Variables<'v>(&'v dyn Fn(&str) -> Option<OsString>);

impl<'v> Variables<'v> {
    /// The variables that `read` returns.
    pub fn new(read: &'v dyn Fn(&str) -> Option<OsString>) -> Variables<'v> {
        Variables(read)
    }

    /// Whether a variable is set, to anything.
    pub fn is_set(self, name: &str) -> bool {
        (self.0)(name).is_some()
    }

    /// The variables that are set and mean nothing here.
    pub fn meaningless(self) -> impl Iterator<Item = &'static str> {
        MEANINGLESS.into_iter().filter(move |name| self.path(name).is_some())
    }

    /// A variable with a path.
    pub fn path(self, name: &str) -> Option<PathBuf> {
        (self.0)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// A variable with text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn text(self, name: &str) -> Result<Option<String>, Failure> {
        let value = (self.0)(name).filter(|value| !value.is_empty());
        let text = value.map(OsString::into_string).transpose();
        text.map_err(|_| Failure::new(format!("{name}: the value is not UTF-8")))
    }

    /// A variable with a port.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn port(self, name: &str) -> Result<Option<u16>, Failure> {
        self.parsed(name, "a port", |text| text.trim().parse().ok())
    }

    /// A variable that is true or false.
    ///
    /// # Errors
    /// If it is neither.
    pub fn boolean(self, name: &str) -> Result<Option<bool>, Failure> {
        self.parsed(name, "true or false", boolean)
    }

    /// A variable with a protocol.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn protocol(self, name: &str) -> Result<Option<Protocol>, Failure> {
        let expected = "http, https or https-insecure";
        self.parsed(name, expected, |text| Protocol::from_str(text.trim(), true).ok())
    }

    /// A variable with a value that `parse` accepts; `expected` says which, for the error.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn parsed<T>(
        self,
        name: &str,
        expected: impl fmt::Display,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let value = parse(&text);
        let value = value.ok_or_else(|| Failure::new(format!("{name}: expected {expected}. value=`{text}`")))?;
        Ok(Some(value))
    }
}

/// The spellings that options without a value take in variables.
fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "y" | "on" | "t" => Some(true),
        "false" | "0" | "no" | "n" | "off" | "f" => Some(false),
        _ => None,
    }
}
