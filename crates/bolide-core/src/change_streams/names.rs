//! The names that a collection had.

use bolide_model::time::CommitTime;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// When it got another name, and which one it had before; in order.
    before: Vec<(CommitTime, String)>,
    last: String,
}

impl Names {
    /// Creates the names of a collection that has this one.
    pub fn new(name: &str) -> Names {
        Names {
            before: Vec::new(),
            last: name.to_owned(),
        }
    }

    /// Adds that the collection got another name at a time.
    pub fn renamed(&mut self, at: CommitTime, from: &str, to: &str) {
        if self.before.last().is_none_or(|(known, _)| *known < at) {
            self.before.push((at, from.to_owned()));
            self.last = to.to_owned();
        }
    }

    /// Returns the name at a time.
    pub fn at(&self, time: CommitTime) -> &str {
        let next = self.before.iter().find(|(renamed, _)| time < *renamed);
        next.map_or(&self.last, |(_, name)| name)
    }

    /// Tells whether the collection has or had a name.
    pub fn include(&self, name: &str) -> bool {
        self.last == name || self.before.iter().any(|(_, before)| before == name)
    }

    /// Forgets names that it had only before a time.
    pub fn forget_before(&mut self, time: CommitTime) {
        self.before.retain(|(renamed, _)| time < *renamed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_the_name_of_its_time() {
        // It has the name "c" already when the stream learns of the renames.
        let mut names = Names::new("c");
        names.renamed(CommitTime(5), "a", "b");
        names.renamed(CommitTime(8), "b", "c");
        names.renamed(CommitTime(8), "b", "c");
        let at = |time| names.at(CommitTime(time)).to_owned();
        assert_eq!([at(4), at(5), at(7), at(8)], ["a", "b", "b", "c"]);
        assert!(names.include("a") && !names.include("d"));
        names.forget_before(CommitTime(6));
        assert!(!names.include("a") && names.include("b"));
    }
}
