//! Queries as text, in the style of the service's rewritten queries (cosmos-sql §22.2).
//!
//! Binary expressions are in parentheses, aliases after `AS`, strings in double quotes, and each clause on a line. The printed text parses to the same tree.

use std::fmt::Write;

use super::ast::{
    BinaryOp, Call, Count, CountValue, Direction, Expr, ExprKind, FromItem, FromStep, Literal, Order, OrderItem, Query,
    SelectItem, Selection, Source, SubqueryKind, UnaryOp,
};
use crate::number::Number;

/// The text of a query.
pub fn query_text(query: &Query) -> String {
    let mut printer = Printer::default();
    printer.query(query);
    printer.out
}

/// The text of an expression.
pub fn expression_text(expr: &Expr) -> String {
    let mut printer = Printer::default();
    printer.expression(expr);
    printer.out
}

/// The text of an ORDER BY clause.
pub fn order_text(order: &Order) -> String {
    let mut printer = Printer::default();
    printer.order(Some(order));
    printer.out
}

/// A string literal.
pub fn string_literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[derive(Default)]
struct Printer {
    out: String,
    indent: usize,
}

impl Printer {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', self.indent * 4));
    }

    fn separated<T>(&mut self, items: &[T], separator: &str, mut print: impl FnMut(&mut Self, &T)) {
        for (n, item) in items.iter().enumerate() {
            if n > 0 {
                self.text(separator);
            }
            print(self, item);
        }
    }

    fn query(&mut self, query: &Query) {
        self.text("SELECT ");
        if query.distinct {
            self.text("DISTINCT ");
        }
        if let Some(top) = &query.top {
            self.text("TOP ");
            self.count(top);
            self.text(" ");
        }
        self.selection(&query.selection);
        for (n, item) in query.from.iter().enumerate() {
            self.line();
            self.text(if n == 0 { "FROM " } else { "JOIN " });
            self.input_item(item);
        }
        if let Some(filter) = &query.filter {
            self.line();
            self.text("WHERE ");
            self.expression(filter);
        }
        if !query.group_by.is_empty() {
            self.line();
            self.text("GROUP BY ");
            self.separated(&query.group_by, ", ", Self::expression);
        }
        self.order(query.order.as_ref());
        if let Some(window) = &query.window {
            self.line();
            self.text("OFFSET ");
            self.count(&window.offset);
            self.text(" LIMIT ");
            self.count(&window.limit);
        }
    }

    fn order(&mut self, order: Option<&Order>) {
        let (head, items) = match order {
            None => return,
            Some(Order::By(items)) => ("ORDER BY ", items),
            Some(Order::Rank(items)) => ("ORDER BY RANK ", items),
        };
        self.line();
        self.text(head);
        self.separated(items, ", ", Self::order_item);
    }

    fn order_item(&mut self, item: &OrderItem) {
        self.expression(&item.value);
        self.text(match item.direction {
            None => "",
            Some(Direction::Ascending) => " ASC",
            Some(Direction::Descending) => " DESC",
        });
    }

    fn count(&mut self, count: &Count) {
        match &count.value {
            CountValue::Literal(number) => self.number(*number),
            CountValue::Parameter(name) => self.text(name),
        }
    }

    fn selection(&mut self, selection: &Selection) {
        match selection {
            Selection::Star(_) => self.text("*"),
            Selection::Value(value) => {
                self.text("VALUE ");
                self.expression(value);
            }
            Selection::List(items) => self.separated(items, ", ", Self::select_item),
        }
    }

    fn select_item(&mut self, item: &SelectItem) {
        self.expression(&item.value);
        if let Some(alias) = &item.alias {
            self.text(" AS ");
            self.text(alias);
        }
    }

    fn input_item(&mut self, item: &FromItem) {
        if let (true, Some(alias)) = (item.iterate, &item.alias) {
            self.text(alias);
            self.text(" IN ");
        }
        match &item.source {
            Source::Path { name, steps, .. } => {
                self.text(name);
                steps.iter().for_each(|step| self.step(step));
            }
            Source::Subquery(query) => self.nested(query),
            Source::Expression(expr) => self.expression(expr),
        }
        if let (false, Some(alias)) = (item.iterate, &item.alias) {
            self.text(" AS ");
            self.text(alias);
        }
    }

    fn step(&mut self, step: &FromStep) {
        match step {
            FromStep::Dot(name) => {
                self.text(".");
                self.text(name);
            }
            FromStep::Bracket(name) => {
                self.text("[");
                self.string(name);
                self.text("]");
            }
            FromStep::Element(index) => {
                self.text("[");
                self.number(*index);
                self.text("]");
            }
        }
    }

    fn nested(&mut self, query: &Query) {
        self.text("(");
        self.indent += 1;
        self.line();
        self.query(query);
        self.indent -= 1;
        self.line();
        self.text(")");
    }

    fn string(&mut self, text: &str) {
        self.out.push_str(&string_literal(text));
    }

    fn number(&mut self, number: Number) {
        let written = match number {
            Number::Int(value) => write!(self.out, "{value}"),
            Number::Float(value) if !value.is_finite() => {
                let mut text = Vec::new();
                number.write_plain(&mut text);
                self.out.push_str(&String::from_utf8_lossy(&text));
                Ok(())
            }
            Number::Float(value) => {
                self.out.push_str(&float_text(value));
                Ok(())
            }
        };
        written.expect("writing to a String does not fail");
    }

    fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Undefined => self.text("undefined"),
            Literal::Null => self.text("null"),
            Literal::Bool(value) => self.text(if *value { "true" } else { "false" }),
            Literal::Number(number) => self.number(*number),
            Literal::String(text) => self.string(text),
        }
    }

    fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal),
            ExprKind::Parameter(name) | ExprKind::Name(name) => self.text(name),
            ExprKind::Member { base, name, bracket } => {
                self.base(base);
                self.step(&match *bracket {
                    true => FromStep::Bracket(name.clone()),
                    false => FromStep::Dot(name.clone()),
                });
            }
            ExprKind::Index { base, index } => {
                self.base(base);
                self.text("[");
                self.expression(index);
                self.text("]");
            }
            ExprKind::Unary(op, operand) => self.unary(*op, operand),
            ExprKind::Binary(op, left, right) => {
                self.text("(");
                self.expression(left);
                self.text(binary_symbol(*op));
                self.expression(right);
                self.text(")");
            }
            ExprKind::And(list) => self.chain(list, " AND "),
            ExprKind::Or(list) => self.chain(list, " OR "),
            ExprKind::Coalesce(list) => self.chain(list, " ?? "),
            ExprKind::Conditional(condition, then, otherwise) => self.conditional(condition, then, otherwise),
            ExprKind::Between { .. } | ExprKind::In { .. } | ExprKind::Like { .. } => self.predicate(&expr.kind),
            ExprKind::Array(items) => {
                self.text("[");
                self.separated(items, ", ", Self::expression);
                self.text("]");
            }
            ExprKind::Object(members) => {
                self.text("{");
                self.separated(members, ", ", |p, (name, value)| {
                    p.string(name);
                    p.text(": ");
                    p.expression(value);
                });
                self.text("}");
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::Subquery(kind, query) => {
                self.text(subquery_operator(*kind));
                self.nested(query);
            }
        }
    }

    fn conditional(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) {
        self.text("(");
        self.expression(condition);
        self.text(" ? ");
        self.expression(then);
        self.text(" : ");
        self.expression(otherwise);
        self.text(")");
    }

    /// `-1[0]` would negate the element, so a literal before an accessor keeps its parentheses.
    fn base(&mut self, base: &Expr) {
        let literal = matches!(base.kind, ExprKind::Literal(Literal::Number(_)));
        if literal {
            self.text("(");
        }
        self.expression(base);
        if literal {
            self.text(")");
        }
    }

    /// A flat chain is printed as pairs that nest to the left, as the service does.
    fn chain(&mut self, list: &[Expr], operator: &str) {
        self.out.extend(std::iter::repeat_n('(', list.len() - 1));
        for (n, item) in list.iter().enumerate() {
            if n > 0 {
                self.text(operator);
            }
            self.expression(item);
            if n > 0 {
                self.text(")");
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) {
        self.text(match op {
            UnaryOp::Plus => "(+ ",
            UnaryOp::Minus => "(- ",
            UnaryOp::BitNot => "(~ ",
            UnaryOp::Not => "(NOT ",
        });
        self.expression(operand);
        self.text(")");
    }

    fn predicate(&mut self, kind: &ExprKind) {
        self.text("(");
        match kind {
            ExprKind::Between {
                value,
                low,
                high,
                negated,
            } => {
                self.expression(value);
                self.text(if *negated { " NOT BETWEEN " } else { " BETWEEN " });
                self.expression(low);
                self.text(" AND ");
                self.expression(high);
            }
            ExprKind::In { value, list, negated } => {
                self.expression(value);
                self.text(if *negated { " NOT IN (" } else { " IN (" });
                self.separated(list, ", ", Self::expression);
                self.text(")");
            }
            ExprKind::Like {
                value,
                pattern,
                escape,
                negated,
            } => {
                self.expression(value);
                self.text(if *negated { " NOT LIKE " } else { " LIKE " });
                self.expression(pattern);
                if let Some(escape) = escape {
                    self.text(" ESCAPE ");
                    self.string(escape);
                }
            }
            _ => unreachable!("only predicates come here"),
        }
        self.text(")");
    }

    fn call(&mut self, call: &Call) {
        if call.udf {
            self.text("udf.");
        }
        self.text(&call.name);
        self.text("(");
        self.separated(&call.args, ", ", Self::expression);
        self.text(")");
    }
}

fn subquery_operator(kind: SubqueryKind) -> &'static str {
    match kind {
        SubqueryKind::Scalar => "",
        SubqueryKind::Exists => "EXISTS",
        SubqueryKind::Array => "ARRAY",
        SubqueryKind::All => "ALL",
        SubqueryKind::First => "FIRST",
        SubqueryKind::Last => "LAST",
    }
}

fn binary_symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Concat => " || ",
        BinaryOp::BitOr => " | ",
        BinaryOp::BitXor => " ^ ",
        BinaryOp::BitAnd => " & ",
        BinaryOp::Equal => " = ",
        BinaryOp::NotEqual => " != ",
        BinaryOp::Less => " < ",
        BinaryOp::Greater => " > ",
        BinaryOp::LessOrEqual => " <= ",
        BinaryOp::GreaterOrEqual => " >= ",
        BinaryOp::ShiftLeft => " << ",
        BinaryOp::ShiftRight => " >> ",
        BinaryOp::ShiftRightUnsigned => " >>> ",
        BinaryOp::Add => " + ",
        BinaryOp::Subtract => " - ",
        BinaryOp::Multiply => " * ",
        BinaryOp::Divide => " / ",
        BinaryOp::Remainder => " % ",
    }
}

/// A double with 15 significant digits if they are exact and 17 otherwise, as the service's planner prints it.
fn float_text(value: f64) -> String {
    let short = significant(value, 15);
    if short.parse() == Ok(value) {
        short
    } else {
        significant(value, 17)
    }
}

/// `%g` of C: positional between 1e-5 and 10^digits, scientific elsewhere, no trailing zeros.
fn significant(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("Rust writes an exponent with {:e}");
    let exponent: i32 = exponent.parse().expect("Rust writes a decimal exponent");
    if exponent < -5 || exponent >= digits as i32 {
        let mantissa = if mantissa.contains('.') {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let fixed = format!("{value:.decimals$}");
    if fixed.contains('.') {
        fixed.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        fixed
    }
}
