//! The syntax tree (cosmos-sql §3).
//!
//! Chains of AND, OR and `??` are lists rather than nested pairs, so that a filter with thousands of terms stays shallow.

use crate::error::Span;
use crate::number::Number;

/// A query or subquery.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub distinct: bool,
    pub top: Option<Count>,
    pub selection: Selection,
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub order: Option<Order>,
    pub window: Option<Window>,
    pub span: Span,
    /// The maximum height of its expressions and subqueries.
    pub height: u16,
}

/// The number after TOP, OFFSET or LIMIT.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    pub value: CountValue,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CountValue {
    Literal(Number),
    Parameter(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    Star(Span),
    Value(Expr),
    List(Vec<SelectItem>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct SelectItem {
    pub value: Expr,
    pub alias: Option<String>,
}

/// One input of FROM; JOIN introduces the items after the first.
#[derive(Debug, Clone, PartialEq)]
pub struct FromItem {
    pub source: Source,
    pub alias: Option<String>,
    /// `alias IN source`: one row per array element.
    pub iterate: bool,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A name and the path below it.
    Path {
        name: String,
        name_span: Span,
        steps: Vec<FromStep>,
    },
    Subquery(Box<Query>),
    /// `x IN f(…)`; one documentation example uses it.
    Expression(Expr),
}

/// A step of a FROM path.
#[derive(Debug, Clone, PartialEq)]
pub enum FromStep {
    Dot(String),
    Bracket(String),
    Element(Number),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    By(Vec<OrderItem>),
    Rank(Vec<OrderItem>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    pub value: Expr,
    pub direction: Option<Direction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub offset: Count,
    pub limit: Count,
}

/// An expression, its location, and its depth.
#[derive(Debug, Clone)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// Number of levels of nodes, including this one; limited by the parser.
    pub height: u16,
}

/// Equal text gives equal expressions, whatever the location.
impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.kind == other.kind
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    Literal(Literal),
    /// With its `@`.
    Parameter(String),
    Name(String),
    Member {
        base: Box<Expr>,
        name: String,
        /// `["name"]` instead of `.name`; matters only for printing.
        bracket: bool,
    },
    /// `base[index]` with any content other than a string literal.
    Index {
        base: Box<Expr>,
        index: Box<Expr>,
    },
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Coalesce(Vec<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    Between {
        value: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    In {
        value: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    Like {
        value: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<String>,
        negated: bool,
    },
    Array(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    Call(Call),
    Subquery(SubqueryKind, Box<Query>),
}

#[derive(Debug, Clone)]
pub struct Call {
    pub name: String,
    pub name_span: Span,
    pub udf: bool,
    pub args: Vec<Expr>,
}

impl PartialEq for Call {
    fn eq(&self, other: &Call) -> bool {
        let same_name = if self.udf {
            self.name == other.name
        } else {
            self.name.eq_ignore_ascii_case(&other.name)
        };
        same_name && self.udf == other.udf && self.args == other.args
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Undefined,
    Null,
    Bool(bool),
    Number(Number),
    String(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    Plus,
    Minus,
    BitNot,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    Concat,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOp {
    /// The comparison with its sides exchanged; other operators as they are.
    pub fn mirrored(self) -> BinaryOp {
        match self {
            BinaryOp::Less => BinaryOp::Greater,
            BinaryOp::Greater => BinaryOp::Less,
            BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
            BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
            other => other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryKind {
    Scalar,
    Exists,
    Array,
    All,
    First,
    Last,
}

impl BinaryOp {
    /// Whether it compares two values.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Equal
                | BinaryOp::NotEqual
                | BinaryOp::Less
                | BinaryOp::Greater
                | BinaryOp::LessOrEqual
                | BinaryOp::GreaterOrEqual
        )
    }
}

impl ExprKind {
    /// Calls `f` on every direct operand, except in subqueries.
    pub fn for_each_operand<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        match self {
            ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Name(_) | ExprKind::Subquery(..) => {}
            ExprKind::Member { base, .. } => f(base),
            ExprKind::Unary(_, operand) => f(operand),
            ExprKind::Index { base, index } => {
                f(base);
                f(index);
            }
            ExprKind::Binary(_, left, right) => {
                f(left);
                f(right);
            }
            ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Coalesce(list) | ExprKind::Array(list) => {
                list.iter().for_each(f);
            }
            ExprKind::Conditional(a, b, c)
            | ExprKind::Between {
                value: a,
                low: b,
                high: c,
                ..
            } => {
                f(a);
                f(b);
                f(c);
            }
            ExprKind::In { value, list, .. } => {
                f(value);
                list.iter().for_each(f);
            }
            ExprKind::Like { value, pattern, .. } => {
                f(value);
                f(pattern);
            }
            ExprKind::Object(members) => members.iter().for_each(|(_, value)| f(value)),
            ExprKind::Call(call) => call.args.iter().for_each(f),
        }
    }
}
