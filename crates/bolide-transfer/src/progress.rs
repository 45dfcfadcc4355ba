//! The progress bar, on a terminal only.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar; nothing if standard error is not a terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for bytes of a file, or for items if their number is not known.
    pub fn new(bytes: Option<u64>) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let (bar, template) = match bytes {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {msg} {eta} left",
            ),
            None => (ProgressBar::no_length(), "{spinner} {human_pos} items {per_sec} {msg}"),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Sets the bytes or items that are done.
    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Sets the words beside the bar.
    pub fn say(&self, words: impl Into<String>) {
        self.0.set_message(words.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
