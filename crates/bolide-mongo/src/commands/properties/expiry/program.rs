//! The steps of a program.

use bson::{Bson, DateTime, Document, doc};

use super::RandomChoices;
use super::model::DateRule;

/// Documents have the ids 1 to this.
pub const IDS: i32 = 6;

#[derive(Debug, Clone)]
pub enum Step {
    Insert(i32, Document),
    /// A replacement, and whether it inserts a missing document.
    Replace(i32, Document, bool),
    /// `$set` of a field.
    Set(i32, &'static str, Bson),
    /// `$unset` of a field.
    Unset(i32, &'static str),
    /// An update that changes nothing.
    Touch(i32),
    /// `$inc` of all documents' `n`.
    IncrementAll,
    Delete(i32),
    /// Deletes all with `p: 1`.
    DeleteFlagged,
    /// `findAndModify` of the last document by `_id`: removes it.
    RemoveLast,
    CreateIndex(DateRule),
    CreateCoreIndex(i64),
    /// `collMod` of an index by name.
    ChangeIndex(&'static str, i64),
    DropIndex(&'static str),
    DropAllIndexes,
    Rename,
    Wait(i64),
    /// Reads some documents, waits, and reads the rest of the cursor.
    ReadSlowly(i64),
    /// Purges up to this many documents.
    Purge(Option<u64>),
    Restart,
}

/// The names of the indexes on dates, with their paths.
pub const DATE_INDEXES: [(&str, &str, bool); 4] = [
    ("a_1", "a", false),
    ("a_partial", "a", true),
    ("b.d_1", "b.d", false),
    ("b.d_partial", "b.d", true),
];
/// The name of the index on `_ts`.
pub const CORE_INDEX: &str = "_ts_1";

/// Makes the steps of a program.
pub struct Steps {
    pub choices: RandomChoices,
    /// Server time of the model, in milliseconds: dates are near it.
    pub now: i64,
}

impl Steps {
    pub fn step(&mut self) -> Step {
        let id = 1 + i32::try_from(self.choices.roll(6)).expect("small");
        match self.choices.roll(100) {
            0..22 => Step::Insert(id, self.document(id)),
            22..30 => {
                let upserts = self.choices.percent(60);
                Step::Replace(id, self.document(id), upserts)
            }
            30..36 => {
                let field = self.choices.pick(&["a", "b", "ttl", "p", "u"]);
                let value = self.value(field);
                Step::Set(id, field, value)
            }
            36..38 => Step::Unset(id, self.choices.pick(&["a", "b", "ttl", "p"])),
            38..41 => Step::Touch(id),
            41..43 => Step::IncrementAll,
            43..46 => Step::Delete(id),
            46 => Step::DeleteFlagged,
            47 | 48 => Step::RemoveLast,
            49..55 => {
                let (name, path, is_partial) = self.choices.pick(&DATE_INDEXES);
                let seconds = self.choices.pick(&[0, 1, 3, 10]);
                Step::CreateIndex(DateRule {
                    name,
                    path,
                    is_partial,
                    seconds,
                })
            }
            55..58 => Step::CreateCoreIndex(self.choices.pick(&[-1, 1, 4, 20])),
            58..64 => Step::ChangeIndex(self.choices.pick(&DATE_INDEXES).0, self.choices.pick(&[0, 2, 5, 30])),
            64..66 => Step::ChangeIndex(CORE_INDEX, self.choices.pick(&[-1, 2, 9, 30])),
            66..69 => Step::DropIndex(self.choices.pick(&DATE_INDEXES).0),
            69 => Step::DropIndex(CORE_INDEX),
            70 => Step::DropAllIndexes,
            71 => Step::Rename,
            72..86 => Step::Wait(self.wait()),
            86..90 => Step::ReadSlowly(self.wait()),
            90..92 => Step::Purge(None),
            92..97 => Step::Purge(Some(1 + self.choices.roll(3))),
            _ => Step::Restart,
        }
    }

    fn wait(&mut self) -> i64 {
        self.choices.pick(&[1, 249, 250, 999, 1_000, 1_500, 3_000, 8_000])
    }

    fn date(&mut self) -> Bson {
        let millis = match self.choices.roll(30) {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => self.now - 12_000 + i64::try_from(self.choices.roll(20_000)).expect("small"),
        };
        Bson::DateTime(DateTime::from_millis(millis))
    }

    /// A date, or something that looks like one.
    fn dated(&mut self) -> Bson {
        match self.choices.roll(9) {
            0 => Bson::Int64(self.now - 5_000),
            1 => Bson::Array(vec![true.into(), self.date(), self.date()]),
            2 => Bson::Array(vec![Bson::Array(vec![self.date()])]),
            3 => Bson::Timestamp(bson::Timestamp { time: 1, increment: 1 }),
            _ => self.date(),
        }
    }

    fn value(&mut self, field: &str) -> Bson {
        match field {
            "a" => self.dated(),
            "b" => match self.choices.roll(3) {
                0 => Bson::Array(vec![
                    doc! {"d": self.dated()}.into(),
                    5.into(),
                    doc! {"d": self.dated()}.into(),
                ]),
                _ => doc! {"d": self.dated()}.into(),
            },
            "ttl" => match self.choices.roll(10) {
                0 | 1 => (-1).into(),
                2 => 2.5.into(),
                3 => "2".into(),
                4 => Bson::Int64(2_147_483_649),
                5 => 0.into(),
                6 => 3.0.into(),
                7 => Bson::Int64(6),
                _ => 2.into(),
            },
            "p" => self.choices.pick(&[0, 1]).into(),
            _ => self.choices.pick(&[1, 2, 3, 4]).into(),
        }
    }

    fn document(&mut self, id: i32) -> Document {
        let mut document = doc! {"_id": id, "n": 0};
        for (field, chance) in [("a", 60), ("b", 40), ("ttl", 30), ("p", 50), ("u", 40)] {
            if self.choices.percent(chance) {
                let value = self.value(field);
                document.insert(field, value);
            }
        }
        document
    }
}
