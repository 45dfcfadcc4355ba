//! The Prometheus text format, version 0.0.4.

use std::fmt::Write as _;

/// The text so far.
#[derive(Default)]
pub(super) struct Exposition {
    pub(super) text: String,
}

impl Exposition {
    /// Begins a family; its samples follow.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("writing to a String cannot fail");
    }

    /// A sample of the last family.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (nth, (label, value)) in labels.iter().enumerate() {
            let before = if nth == 0 { '{' } else { ',' };
            write!(self.text, "{before}{label}=\"{}\"", escape(value)).expect("writing to a String cannot fail");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let written = match value == f64::INFINITY {
            true => writeln!(self.text, " +Inf"),
            false => writeln!(self.text, " {value}"),
        };
        written.expect("writing to a String cannot fail");
    }
}

/// Names of containers may contain quotes.
fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
