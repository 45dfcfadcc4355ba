//! Tables in Markdown.

use std::fmt;

/// A table under construction: a heading, then rows of the same length.
pub struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table. The first column is text, all others are numbers.
    pub fn new<const N: usize>(heading: [&str; N]) -> Table {
        Table {
            heading: heading.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.heading.len(), "a row has a cell for every column");
        self.rows.push(cells.to_vec());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.heading.join(" | "))?;
        writeln!(f, "| ---{} |", " | ---:".repeat(self.heading.len() - 1))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        Ok(())
    }
}
