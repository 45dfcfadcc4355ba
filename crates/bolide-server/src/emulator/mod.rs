//! `--emulator`: the server takes the place of the official emulator.
//!
//! It listens on all addresses with the well-known key, obeys the emulators' [`arguments`] and [`variables`], has their ports for health checks and for
//! the explorer ([`ports`]), keeps data where they keep it ([`data_dir`]), hands out its certificate where they do ([`certificate`]), and prints the
//! lines that tools wait for ([`log_lines`]). Without the switch nothing here has an effect.
//!
//! Everything that has an option of Bolide's own becomes that option ([`settings`]), so the rest of the server does not know where it came from.

pub mod arguments;
pub mod certificate;
pub mod data_dir;
pub mod log_lines;
pub mod ports;
pub mod settings;
pub mod variables;
