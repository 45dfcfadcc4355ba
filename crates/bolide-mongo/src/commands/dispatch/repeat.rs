//! Commands that are carried out again because another server has changed the collection meanwhile.

use super::Call;
use crate::commands::context::CommandContext;

/// The commands that are carried out again if another server has changed the collection while it was read.
const REPEATABLE: [&str; 4] = ["aggregate", "count", "distinct", "find"];

impl Call<'_> {
    /// Whether the command can be carried out again from its start: it writes nothing, and is in no transaction.
    pub(super) fn only_reads(&self, context: &CommandContext<'_>) -> bool {
        if context.transaction.is_some() || !REPEATABLE.contains(&self.command.name) {
            return false;
        }
        let pipeline = self.message.command().get_array("pipeline").ok();
        let stages = pipeline.into_iter().flatten().flatten();
        let mut names = stages.filter_map(|stage| Some(stage.as_document()?.iter().next()?.ok()?.0.as_str()));
        names.all(|name| name != "$out" && name != "$merge")
    }
}
