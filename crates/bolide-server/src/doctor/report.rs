//! The findings.

use std::io::{self, IsTerminal as _, Write as _};

/// What a finding means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// True of every server, and often overlooked.
    Note,
    /// Some clients fail, or will.
    Warn,
    /// Clients fail.
    Fail,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Note => "note",
            Verdict::Warn => "warn",
            Verdict::Fail => "fail",
        }
    }

    /// The escape sequence of its colour.
    fn colour(self) -> &'static str {
        match self {
            Verdict::Ok => "\x1b[32m",
            Verdict::Note => "\x1b[36m",
            Verdict::Warn => "\x1b[33m",
            Verdict::Fail => "\x1b[1;31m",
        }
    }
}

/// All findings so far.
#[derive(Debug, Default)]
pub struct Report {
    findings: Vec<(Verdict, &'static str, String)>,
}

impl Report {
    /// Adds what is as it should be.
    pub fn ok(&mut self, topic: &'static str, text: impl Into<String>) {
        self.add(Verdict::Ok, topic, text.into());
    }

    /// Adds a hint that does not depend on what was found.
    pub fn note(&mut self, topic: &'static str, text: impl Into<String>) {
        self.add(Verdict::Note, topic, text.into());
    }

    /// Adds what fails for some clients, and what to do about it.
    pub fn warn(&mut self, topic: &'static str, text: impl AsRef<str>, advice: impl AsRef<str>) {
        self.add(Verdict::Warn, topic, format!("{}: {}", text.as_ref(), advice.as_ref()));
    }

    /// Adds what fails, and what to do about it.
    pub fn fail(&mut self, topic: &'static str, text: impl AsRef<str>, advice: impl AsRef<str>) {
        self.add(Verdict::Fail, topic, format!("{}: {}", text.as_ref(), advice.as_ref()));
    }

    /// Adds a problem that is fatal for some endpoints only.
    pub fn problem(&mut self, is_fatal: bool, topic: &'static str, text: impl AsRef<str>, advice: impl AsRef<str>) {
        if is_fatal {
            self.fail(topic, text, advice);
        } else {
            self.warn(topic, text, advice);
        }
    }

    fn add(&mut self, verdict: Verdict, topic: &'static str, text: String) {
        // Other programs' answers are quoted; they must not move the cursor or add lines.
        let text = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.findings.push((verdict, topic, text));
    }

    /// How many checks failed.
    pub fn failures(&self) -> usize {
        self.findings
            .iter()
            .filter(|(verdict, ..)| *verdict == Verdict::Fail)
            .count()
    }

    /// Prints a line for each.
    pub fn print(&self) {
        let is_coloured =
            io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut out = io::stdout().lock();
        for (verdict, topic, text) in &self.findings {
            let (start, end) = if is_coloured {
                (verdict.colour(), "\x1b[0m")
            } else {
                ("", "")
            };
            // A closed output does not change the exit status.
            let _ = writeln!(out, "{start}{:<4}{end}  {topic:<12} {text}", verdict.word());
        }
    }

    /// The verdicts and texts on a topic.
    #[cfg(test)]
    pub fn on(&self, topic: &str) -> Vec<(Verdict, &str)> {
        let found = self.findings.iter().filter(|(_, known, _)| *known == topic);
        found.map(|(verdict, _, text)| (*verdict, text.as_str())).collect()
    }
}
