//! What a filter requires of single paths, for those who look for documents by an index.
//!
//! A [`Conjunction`] says less than the filter, never more: parts that no index serves are left out of it.

use bson::RawBson;

use super::comparison::Operator;
use super::node::Node;
use super::predicate::Predicate;

/// Conditions that all hold for a document that matches.
#[derive(Debug, Clone, Default)]
pub struct Conjunction<'f> {
    /// In the order of the filter.
    pub conditions: Vec<Condition<'f>>,
    /// Of each of these lists one alternative holds, too: the branches of an `$or`.
    pub alternatives: Vec<Vec<Conjunction<'f>>>,
    /// Whether nothing of the filter is left out.
    pub is_complete: bool,
}

/// A condition on what a path leads to.
#[derive(Debug, Clone)]
pub enum Condition<'f> {
    /// One of the values there passes the test.
    Field {
        /// With dots.
        path: &'f str,
        /// The test.
        test: Test<'f>,
    },
    /// `$elemMatch`: for one element of an array there, which is a document, all of these hold.
    Elements {
        /// With dots.
        path: &'f str,
        /// Their paths begin in the element.
        conditions: Vec<Condition<'f>>,
    },
}

/// A test of one value.
#[derive(Debug, Clone)]
pub enum Test<'f> {
    /// `$eq $lt $lte $gt $gte`
    Comparison(Operator, &'f RawBson),
    /// `$in`: it is one of the values, or one of the regular expressions finds something.
    Membership(&'f [RawBson], Vec<(&'f str, &'f str)>),
    /// `$exists: true`
    Exists,
    /// `$regex`: pattern and options.
    Pattern(&'f str, &'f str),
    /// `$elemMatch` of values: the value is an array, and one of its elements passes all of these.
    Element(Vec<Test<'f>>),
}

impl Test<'_> {
    /// Whether a missing field can pass.
    pub fn takes_missing(&self) -> bool {
        match self {
            Test::Comparison(_, RawBson::Null | RawBson::Undefined | RawBson::MinKey | RawBson::MaxKey) => true,
            Test::Membership(values, _) => values.iter().any(|value| {
                matches!(
                    value,
                    RawBson::Null | RawBson::Undefined | RawBson::MinKey | RawBson::MaxKey
                )
            }),
            _ => false,
        }
    }
}

/// See [`Filter::conditions`](super::Filter::conditions).
pub(super) fn of(root: &Node) -> Conjunction<'_> {
    let mut all = Conjunction {
        is_complete: true,
        ..Conjunction::default()
    };
    collect(root, &mut all);
    all
}

fn collect<'f>(node: &'f Node, all: &mut Conjunction<'f>) {
    match node {
        Node::And(children) => children.iter().for_each(|child| collect(child, all)),
        Node::Or(children) => match &children[..] {
            [only] => collect(only, all),
            _ => all.alternatives.push(children.iter().map(of).collect()),
        },
        Node::Constant(true) => {}
        node => match condition(node) {
            Some(condition) => all.conditions.push(condition),
            None => all.is_complete = false,
        },
    }
}

fn condition(node: &Node) -> Option<Condition<'_>> {
    let Node::Field(field) = node else { return None };
    let path = field.path.as_str();
    match &field.predicate {
        Predicate::ElementFields(inner) => {
            let mut conditions = Vec::new();
            inside(inner, &mut conditions);
            Some(Condition::Elements { path, conditions })
        }
        predicate => test(predicate).map(|test| Condition::Field { path, test }),
    }
}

fn inside<'f>(node: &'f Node, conditions: &mut Vec<Condition<'f>>) {
    match node {
        Node::And(children) => children.iter().for_each(|child| inside(child, conditions)),
        node => conditions.extend(condition(node)),
    }
}

fn test(predicate: &Predicate) -> Option<Test<'_>> {
    Some(match predicate {
        Predicate::Comparison(comparison) => Test::Comparison(comparison.operator(), comparison.operand()),
        Predicate::Membership(membership) => {
            let patterns = membership.patterns().iter().map(|pattern| pattern.texts());
            Test::Membership(membership.values(), patterns.collect())
        }
        Predicate::Exists => Test::Exists,
        Predicate::Regex(pattern) => {
            let (pattern, options) = pattern.texts();
            Test::Pattern(pattern, options)
        }
        Predicate::ElementItself(conditions) => {
            let tests = conditions.iter().filter_map(|node| match node {
                Node::Field(field) => test(&field.predicate),
                _ => None,
            });
            Test::Element(tests.collect())
        }
        Predicate::Type(_)
        | Predicate::Mod { .. }
        | Predicate::Size(_)
        | Predicate::Bits(_)
        | Predicate::Geometry(_)
        | Predicate::ElementFields(_) => return None,
    })
}
