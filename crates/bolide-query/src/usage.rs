//! The indexes that a query would use, and advice on writing it so that it costs less, from its text alone.
//!
//! Both are sent to clients that ask for them, as the service does. Nothing else depends on them, because conditions are evaluated on items. Sources:
//! the .NET SDK's baselines of index metrics and of query advice, and its `QueryAdviceRuleDocumentation.xml`.

use crate::path::PathStep;
use crate::text::ast::{Call, Direction, Expr, ExprKind, FromItem, FromStep, Literal, Order, Query, Selection, Source};

/// Functions that look up their first argument in an index.
const INDEXED: &[&str] = &[
    "ARRAY_CONTAINS",
    "CONTAINS",
    "ENDSWITH",
    "IS_ARRAY",
    "IS_BOOL",
    "IS_DEFINED",
    "IS_NULL",
    "IS_NUMBER",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "IS_STRING",
    "REGEXMATCH",
    "STARTSWITH",
    "STRINGEQUALS",
];

/// Maximum number of paths returned, so that they fit into a header.
const MAX_PATHS: usize = 64;

/// The indexes and advice for a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Paths that a single-path index serves, in the order in which conditions name them; at most 64.
    pub paths: Vec<Vec<PathStep>>,
    /// The paths of a sort by several keys, and whether each descends.
    pub sort: Vec<(Vec<PathStep>, bool)>,
    /// Rules of the service's query advice that apply, such as `QA1002`, in order of occurrence.
    pub advice: Vec<&'static str>,
}

impl Usage {
    /// The usage of a parsed query.
    pub(crate) fn of(query: &Query) -> Usage {
        let mut visitor = UsageVisitor::default();
        visitor.query(query, &[]);
        visitor.usage
    }
}

/// A name of FROM, and its path.
type Alias = (String, Vec<PathStep>);

#[derive(Default)]
struct UsageVisitor {
    usage: Usage,
}

impl UsageVisitor {
    fn query(&mut self, query: &Query, outer: &[Alias]) {
        let mut names = outer.to_vec();
        for item in &query.from {
            match &item.source {
                Source::Subquery(subquery) => self.query(subquery, &names),
                Source::Expression(value) => self.expression(value, &names, false),
                Source::Path { .. } => {}
            }
            names.extend(alias(item, &names));
        }
        if let Some(filter) = &query.filter {
            self.expression(filter, &names, true);
        }
        match &query.selection {
            Selection::Star(_) => {}
            Selection::Value(value) => self.expression(value, &names, false),
            Selection::List(items) => items
                .iter()
                .for_each(|item| self.expression(&item.value, &names, false)),
        }
        query
            .group_by
            .iter()
            .for_each(|key| self.expression(key, &names, false));
        match &query.order {
            Some(Order::By(keys)) => {
                let key = |value| path(value, &names);
                let sort: Option<Vec<_>> = keys
                    .iter()
                    .map(|item| Some((key(&item.value)?, item.direction == Some(Direction::Descending))))
                    .collect();
                match sort {
                    Some(sort) if sort.len() > 1 => self.usage.sort = sort,
                    Some(sort) => sort.into_iter().for_each(|(path, _)| self.use_path(path)),
                    None => {}
                }
            }
            Some(Order::Rank(keys)) => keys.iter().for_each(|item| self.expression(&item.value, &names, false)),
            None => {}
        }
    }

    fn expression(&mut self, expression: &Expr, names: &[Alias], is_filter: bool) {
        match &expression.kind {
            ExprKind::Binary(operator, left, right) if operator.is_comparison() => {
                self.use_value(left, names);
                self.use_value(right, names);
            }
            ExprKind::Between { value, .. } | ExprKind::In { value, .. } | ExprKind::Like { value, .. } => {
                self.use_value(value, names);
            }
            ExprKind::Call(call) if !call.udf => self.call(call, names, is_filter),
            ExprKind::Subquery(_, subquery) => self.query(subquery, names),
            _ => {}
        }
        expression
            .kind
            .for_each_operand(&mut |operand| self.expression(operand, names, is_filter));
    }

    fn call(&mut self, call: &Call, names: &[Alias], is_filter: bool) {
        let name = call.name.to_ascii_uppercase();
        if INDEXED.contains(&&*name)
            && let Some(mut path) = call.args.first().and_then(|value| path(value, names))
        {
            if name == "ARRAY_CONTAINS" {
                path.push(PathStep::Each);
            }
            self.use_path(path);
        }
        let is_third_true = matches!(
            call.args.get(2).map(|value| &value.kind),
            Some(ExprKind::Literal(Literal::Bool(true)))
        );
        let rule = match &*name {
            "ARRAY_CONTAINS" if is_third_true => "QA1000",
            "CONTAINS" => "QA1002",
            "STARTSWITH" | "STRINGEQUALS" if is_third_true => "QA1003",
            "ENDSWITH" => "QA1004",
            "UPPER" | "LOWER" if is_filter => "QA1006",
            "GETCURRENTDATETIME" => "QA1007",
            "GETCURRENTTICKS" => "QA1008",
            "GETCURRENTTIMESTAMP" => "QA1009",
            _ => return,
        };
        if !self.usage.advice.contains(&rule) {
            self.usage.advice.push(rule);
        }
    }

    fn use_value(&mut self, value: &Expr, names: &[Alias]) {
        if let Some(path) = path(value, names) {
            self.use_path(path);
        }
    }

    fn use_path(&mut self, path: Vec<PathStep>) {
        let paths = &self.usage.paths;
        if !path.is_empty() && paths.len() < MAX_PATHS && !paths.contains(&path) {
            self.usage.paths.push(path);
        }
    }
}

/// The name that an item of FROM gives to a path; the first item is the container's items, whatever its name.
fn alias(item: &FromItem, names: &[Alias]) -> Option<Alias> {
    let Source::Path { name, steps, .. } = &item.source else {
        return None;
    };
    let known = names.iter().rev().find(|(known, _)| known == name);
    let mut path = known.map(|(_, path)| path.clone()).unwrap_or_default();
    path.extend(steps.iter().map(|step| match step {
        FromStep::Dot(name) | FromStep::Bracket(name) => PathStep::name(name),
        FromStep::Element(_) => PathStep::Each,
    }));
    if item.iterate {
        path.push(PathStep::Each);
    }
    let last = path.iter().rev().find_map(|step| match step {
        PathStep::Name(name) => Some(name.clone()),
        _ => None,
    });
    let name = item.alias.clone().or(last).unwrap_or_else(|| name.clone());
    Some((name, path))
}

/// The path of an expression; `None` for other expressions.
fn path(expression: &Expr, names: &[Alias]) -> Option<Vec<PathStep>> {
    match &expression.kind {
        ExprKind::Name(name) => {
            let known = names.iter().rev().find(|(known, _)| known == name)?;
            Some(known.1.clone())
        }
        ExprKind::Member { base, name, .. } => {
            let mut steps = path(base, names)?;
            steps.push(PathStep::name(name));
            Some(steps)
        }
        ExprKind::Index { base, index } => {
            let mut steps = path(base, names)?;
            let ExprKind::Literal(Literal::Number(_)) = index.kind else {
                return None;
            };
            steps.push(PathStep::Each);
            Some(steps)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
