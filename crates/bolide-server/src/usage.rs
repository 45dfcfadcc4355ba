//! What is generated from the definition of the options: shell completions and man pages.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;

use crate::options::Cli;
use crate::server::Failure;

/// The options of `completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsOptions {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// The options of `man`.
#[derive(Debug, Clone, Args)]
pub struct ManOptions {
    /// Write the pages of all commands into this directory, instead of the main one to standard output.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Prints the completions for a shell.
///
/// # Errors
/// Standard output cannot be written.
pub fn print_completions(options: &CompletionsOptions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut without_hidden_commands(), "bolide", &mut script);
    print(&script)
}

/// The definition without its hidden commands, which the generator would offer like all others.
fn without_hidden_commands() -> Command {
    let all = Cli::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("bolide")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(visible.cloned())
}

/// Prints the main man page, or writes the pages of all commands.
///
/// # Errors
/// An output that cannot be written.
pub fn write_man_pages(options: &ManOptions) -> Result<(), Failure> {
    match &options.dir {
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|error| Failure::new(format!("cannot make the man page: {error}")))?;
            print(&page)
        }
        Some(dir) => {
            let written = fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
            written.map_err(|error| cannot_write(dir, &error))
        }
    }
}

fn cannot_write(dir: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("--dir: cannot write to {}: {error}", dir.display()))
}

/// A reader that closes the pipe early, as `head` does, is not an error.
fn print(text: &[u8]) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
