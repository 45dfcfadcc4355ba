//! How a program is made from a seed.

use serde_json::{Value, json};

use super::model::{Change, Doc, Name, Write};

/// A container, and what is done with it.
#[derive(Debug, Clone)]
pub struct Program {
    pub default_ttl: Option<i64>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub enum Step {
    Write(Write, Match),
    /// Writes of one key, all or none.
    Batch(&'static str, Vec<(Write, Match)>),
    SetDefault(Option<i64>),
    /// Moves the clock by milliseconds, backwards too.
    Clock(i64),
    /// Removes ghosts, all or as many as this.
    Purge(Option<u64>),
    /// Splits the n-th range, modulo their number.
    Split(usize),
    Reconnect,
    /// Ends the server by SIGKILL and starts it again, if its store is on the disk.
    Kill,
}

/// The condition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    None,
    /// The etag that this name had last, live or not.
    Newest,
    Foreign,
}

pub const KEYS: [&str; 3] = ["ant", "bee", "cat"];
pub const IDS: [&str; 4] = ["i0", "i1", "i2", "i3"];

/// A key as it is sent.
pub fn sent(key: &str) -> &'static str {
    match key {
        "ant" => r#"["ant"]"#,
        "bee" => r#"["bee"]"#,
        _ => r#"["cat"]"#,
    }
}

impl Program {
    pub fn of_seed(seed: u64, length: usize) -> Program {
        let mut choices = Choices(fastrand::Rng::with_seed(seed));
        let default_ttl = choices.default_ttl();
        Program {
            default_ttl,
            steps: (0..length).map(|_| choices.step()).collect(),
        }
    }
}

struct Choices(fastrand::Rng);

impl Choices {
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.0.usize(..from.len())].clone()
    }

    fn step(&mut self) -> Step {
        match self.0.u32(..100) {
            0..45 => {
                let key = self.pick(&KEYS);
                let (write, on) = self.write(key);
                Step::Write(write, on)
            }
            45..53 => {
                let key = self.pick(&KEYS);
                let count = self.0.usize(1..=4);
                Step::Batch(key, (0..count).map(|_| self.write(key)).collect())
            }
            53..62 => Step::SetDefault(self.default_ttl()),
            62..82 => Step::Clock(self.by_ms()),
            82..86 => Step::Purge(None),
            86..90 => Step::Purge(Some(self.0.u64(..4))),
            90..93 => Step::Split(self.0.usize(..8)),
            93..95 => Step::Reconnect,
            _ => Step::Kill,
        }
    }

    fn write(&mut self, key: &'static str) -> (Write, Match) {
        let name: Name = (key, self.pick(&IDS));
        let on = self.pick(&[
            Match::None,
            Match::None,
            Match::None,
            Match::Newest,
            Match::Newest,
            Match::Foreign,
        ]);
        match self.0.u32(..10) {
            // A create has no condition.
            0..3 => (Write::Create(self.doc(name)), Match::None),
            3..6 => (Write::Upsert(self.doc(name)), on),
            6 => (Write::Replace(self.doc(name)), on),
            7..9 => (Write::Patch(name, self.change()), on),
            _ => (Write::Delete(name), on),
        }
    }

    fn doc(&mut self, name: Name) -> Doc {
        let ttl = match self.0.u32(..20) {
            0..9 => None,
            9..17 => Some(self.0.i64(1..=12).into()),
            17 => Some((-1).into()),
            _ => Some(self.unusual_ttl()),
        };
        let n = self.0.i64(0..1000);
        Doc { name, ttl, n }
    }

    fn unusual_ttl(&mut self) -> Value {
        self.pick(&[
            json!(0),
            json!(-2),
            json!(2_147_483_648_u64),
            json!(1.5),
            json!("5"),
            Value::Null,
            json!(2_147_483_647),
        ])
    }

    fn change(&mut self) -> Change {
        match self.0.u32(..6) {
            0 => Change::SetTtl(self.0.i64(1..=12).into()),
            1 => Change::SetTtl(self.unusual_ttl()),
            2 => Change::RemoveTtl,
            3 => Change::AddToN(self.0.i64(-3..=3)),
            _ => Change::SetN(self.0.i64(0..1000)),
        }
    }

    fn default_ttl(&mut self) -> Option<i64> {
        match self.0.u32(..10) {
            0..3 => None,
            3..5 => Some(-1),
            _ => Some(self.0.i64(1..=12)),
        }
    }

    /// Mostly seconds, so that many items expire; sometimes backwards, a fraction, or an hour.
    fn by_ms(&mut self) -> i64 {
        match self.0.u32(..20) {
            0..5 => self.0.i64(1..1000),
            5..13 => 1000 * self.0.i64(1..=3),
            13..16 => self.0.i64(1000..12_000),
            16..19 => -self.0.i64(1..5000),
            _ => 3_600_000,
        }
    }
}
