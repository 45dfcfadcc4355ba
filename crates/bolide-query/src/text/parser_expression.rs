//! The grammar of expressions: precedence climbing over the levels of cosmos-sql §3.1.

use super::ast::{BinaryOp, Call, Expr, ExprKind, Literal, SubqueryKind, UnaryOp};
use super::lexer::{Keyword, TokenKind};
use super::parser::{MAX_HEIGHT, Parser};
use crate::error::{QueryError, Result, Span};
use crate::number::Number;

/// Binary operators with their binding power; a higher one binds tighter. All associate to the left.
const BINARY_OPERATORS: &[(&str, u8, BinaryOp)] = &[
    ("||", 1, BinaryOp::Concat),
    ("|", 2, BinaryOp::BitOr),
    ("^", 3, BinaryOp::BitXor),
    ("&", 4, BinaryOp::BitAnd),
    ("=", 5, BinaryOp::Equal),
    ("!=", 5, BinaryOp::NotEqual),
    ("<>", 5, BinaryOp::NotEqual),
    ("<", 6, BinaryOp::Less),
    (">", 6, BinaryOp::Greater),
    ("<=", 6, BinaryOp::LessOrEqual),
    (">=", 6, BinaryOp::GreaterOrEqual),
    ("<<", 7, BinaryOp::ShiftLeft),
    (">>", 7, BinaryOp::ShiftRight),
    (">>>", 7, BinaryOp::ShiftRightUnsigned),
    ("+", 8, BinaryOp::Add),
    ("-", 8, BinaryOp::Subtract),
    ("*", 9, BinaryOp::Multiply),
    ("/", 9, BinaryOp::Divide),
    ("%", 9, BinaryOp::Remainder),
];

/// Names that are operators if `( SELECT` follows, and ordinary identifiers otherwise.
const SOFT_KEYWORDS: &[(&str, SubqueryKind)] = &[
    ("ALL", SubqueryKind::All),
    ("FIRST", SubqueryKind::First),
    ("LAST", SubqueryKind::Last),
];

/// Makes one node from the operands of a chain.
type Chain = fn(Vec<Expr>) -> ExprKind;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(|p| p.conditional())
    }

    fn node(&self, kind: ExprKind, start: Span) -> Result<Expr> {
        let span = start.to(self.last_span());
        let mut height = if let ExprKind::Subquery(_, query) = &kind {
            query.height
        } else {
            0
        };
        kind.for_each_operand(&mut |operand| height = height.max(operand.height));
        if height >= MAX_HEIGHT {
            let message = format!("The SQL query exceeded the maximum expression depth of {MAX_HEIGHT}.");
            return Err(QueryError::uncoded(message, span));
        }
        Ok(Expr {
            kind,
            span,
            height: height + 1,
        })
    }

    fn conditional(&mut self) -> Result<Expr> {
        let start = self.start();
        let condition = self.logical(0)?;
        if !self.take_symbol("?") {
            return Ok(condition);
        }
        let then = self.expression()?;
        self.expect_symbol(":")?;
        let otherwise = self.expression()?;
        self.node(
            ExprKind::Conditional(Box::new(condition), Box::new(then), Box::new(otherwise)),
            start,
        )
    }

    /// The location where the next expression begins.
    fn start(&self) -> Span {
        self.pending
            .as_ref()
            .map_or_else(|| self.span(), |operand| operand.span)
    }

    fn logical_operator(&self) -> Option<(u8, Chain)> {
        match self.peek().kind {
            TokenKind::Symbol("??") => Some((0, ExprKind::Coalesce)),
            TokenKind::Keyword(Keyword::Or) => Some((1, ExprKind::Or)),
            TokenKind::Keyword(Keyword::And) => Some((2, ExprKind::And)),
            _ => None,
        }
    }

    /// `??`, OR and AND with at least this binding power; each chain becomes one flat node.
    fn logical(&mut self, min_power: u8) -> Result<Expr> {
        let start = self.start();
        let mut left = self.predicate()?;
        while let Some((power, kind)) = self.logical_operator().filter(|(power, _)| *power >= min_power) {
            let mut list = vec![left];
            while self.logical_operator().is_some_and(|(next, _)| next == power) {
                self.advance();
                list.push(self.logical(power + 1)?);
            }
            left = self.node(kind(list), start)?;
        }
        Ok(left)
    }

    fn predicate(&mut self) -> Result<Expr> {
        let start = self.start();
        let value = self.binary(1)?;
        let negated = self.is_keyword(Keyword::Not);
        if negated {
            self.advance();
        }
        match self.peek().kind {
            TokenKind::Keyword(Keyword::Between) => self.between(value, negated, start),
            TokenKind::Keyword(Keyword::In) => self.in_list(value, negated, start),
            TokenKind::Keyword(Keyword::Like) => self.like(value, negated, start),
            _ if negated => Err(self.unexpected()),
            _ => Ok(value),
        }
    }

    fn between(&mut self, value: Expr, negated: bool, start: Span) -> Result<Expr> {
        self.advance();
        let low = Box::new(self.binary(1)?);
        self.expect_keyword(Keyword::And)?;
        let high = Box::new(self.binary(1)?);
        self.node(
            ExprKind::Between {
                value: Box::new(value),
                low,
                high,
                negated,
            },
            start,
        )
    }

    fn in_list(&mut self, value: Expr, negated: bool, start: Span) -> Result<Expr> {
        self.advance();
        self.expect_symbol("(")?;
        let list = self.list(Self::expression)?;
        self.expect_symbol(")")?;
        self.node(
            ExprKind::In {
                value: Box::new(value),
                list,
                negated,
            },
            start,
        )
    }

    fn like(&mut self, value: Expr, negated: bool, start: Span) -> Result<Expr> {
        self.advance();
        let pattern = Box::new(self.binary(1)?);
        let escape = if self.take_keyword(Keyword::Escape) {
            Some(self.escape_character()?)
        } else {
            None
        };
        self.node(
            ExprKind::Like {
                value: Box::new(value),
                pattern,
                escape,
                negated,
            },
            start,
        )
    }

    fn escape_character(&mut self) -> Result<String> {
        match &self.peek().kind {
            TokenKind::String(text) if text.chars().count() == 1 => {
                let text = text.to_string();
                self.advance();
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn binary_operator(&self) -> Option<(u8, BinaryOp)> {
        let TokenKind::Symbol(symbol) = self.peek().kind else {
            return None;
        };
        BINARY_OPERATORS
            .iter()
            .find(|(text, ..)| *text == symbol)
            .map(|(_, power, op)| (*power, *op))
    }

    fn binary(&mut self, min_power: u8) -> Result<Expr> {
        let start = self.start();
        let mut left = self.unary()?;
        while let Some((power, op)) = self.binary_operator().filter(|(power, _)| *power >= min_power) {
            self.advance();
            let right = self.binary(power + 1)?;
            left = self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), start)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        let start = self.span();
        let op = match self.peek().kind {
            _ if self.pending.is_some() => return self.postfix(),
            TokenKind::Symbol("+") => UnaryOp::Plus,
            TokenKind::Symbol("-") => UnaryOp::Minus,
            TokenKind::Symbol("~") => UnaryOp::BitNot,
            TokenKind::Keyword(Keyword::Not) => UnaryOp::Not,
            _ => return self.postfix(),
        };
        self.advance();
        let operand = self.nested(Self::unary)?;
        match (op, &operand.kind) {
            // The sign is part of the literal, so that -9223372036854775808 and its printed form are right.
            (UnaryOp::Minus, ExprKind::Literal(Literal::Number(number))) => {
                let literal = ExprKind::Literal(Literal::Number(negated(*number)));
                self.node(literal, start)
            }
            _ => self.node(ExprKind::Unary(op, Box::new(operand)), start),
        }
    }

    fn postfix(&mut self) -> Result<Expr> {
        let start = self.start();
        let mut base = match self.pending.take() {
            Some(operand) => operand,
            None => self.primary()?,
        };
        loop {
            let kind = if self.take_symbol(".") {
                let name = self.expect_member()?.to_owned();
                ExprKind::Member {
                    base: Box::new(base),
                    name,
                    bracket: false,
                }
            } else if self.take_symbol("[") {
                let index = self.expression()?;
                self.expect_symbol("]")?;
                match index.kind {
                    ExprKind::Literal(Literal::String(name)) => ExprKind::Member {
                        base: Box::new(base),
                        name,
                        bracket: true,
                    },
                    _ => ExprKind::Index {
                        base: Box::new(base),
                        index: Box::new(index),
                    },
                }
            } else {
                return Ok(base);
            };
            base = self.node(kind, start)?;
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let start = self.span();
        let kind = match self.peek().kind.clone() {
            TokenKind::Number(number) => self.literal(Literal::Number(number)),
            TokenKind::String(text) => self.literal(Literal::String(text.into_owned())),
            TokenKind::Keyword(Keyword::True) => self.literal(Literal::Bool(true)),
            TokenKind::Keyword(Keyword::False) => self.literal(Literal::Bool(false)),
            TokenKind::Keyword(Keyword::Null) => self.literal(Literal::Null),
            TokenKind::Keyword(Keyword::Undefined) => self.literal(Literal::Undefined),
            TokenKind::Parameter(name) => {
                self.advance();
                ExprKind::Parameter(name.to_owned())
            }
            TokenKind::Keyword(Keyword::Exists) => self.subquery_operator(SubqueryKind::Exists)?,
            TokenKind::Keyword(Keyword::Array) => self.subquery_operator(SubqueryKind::Array)?,
            TokenKind::Keyword(Keyword::Udf) => self.udf_call()?,
            TokenKind::Keyword(Keyword::Left) => self.call("LEFT")?,
            TokenKind::Keyword(Keyword::Right) => self.call("RIGHT")?,
            TokenKind::Identifier(name) => self.name_or_call(name)?,
            TokenKind::Symbol("(") => return self.parenthesised(),
            TokenKind::Symbol("[") => self.array()?,
            TokenKind::Symbol("{") => self.object()?,
            _ => return Err(self.unexpected()),
        };
        self.node(kind, start)
    }

    fn literal(&mut self, literal: Literal) -> ExprKind {
        self.advance();
        ExprKind::Literal(literal)
    }

    /// `((a + b) * c)`: all opening parentheses are taken at once, then the innermost expression is parsed, and after every closing one the
    /// expression continues with the result as its first operand. So left-nested filters of any length need no recursion.
    fn parenthesised(&mut self) -> Result<Expr> {
        let mut opened = Vec::new();
        while self.is_symbol("(") && *self.peek_at(1) != TokenKind::Keyword(Keyword::Select) {
            opened.push(self.span());
            self.advance();
        }
        let Some(first) = opened.pop() else {
            return self.scalar_subquery();
        };
        let mut inner = self.expression()?;
        let mut start = first;
        loop {
            self.expect_symbol(")")?;
            inner.span = start.to(self.last_span());
            match opened.pop() {
                None => return Ok(inner),
                Some(outer) => start = outer,
            }
            self.pending = Some(inner);
            inner = self.conditional()?;
        }
    }

    fn scalar_subquery(&mut self) -> Result<Expr> {
        let start = self.span();
        self.advance();
        let query = self.query()?;
        self.expect_symbol(")")?;
        self.node(ExprKind::Subquery(SubqueryKind::Scalar, Box::new(query)), start)
    }

    fn subquery_operator(&mut self, kind: SubqueryKind) -> Result<ExprKind> {
        self.advance();
        self.expect_symbol("(")?;
        let query = self.query()?;
        self.expect_symbol(")")?;
        Ok(ExprKind::Subquery(kind, Box::new(query)))
    }

    fn name_or_call(&mut self, name: &str) -> Result<ExprKind> {
        if *self.peek_at(1) != TokenKind::Symbol("(") {
            self.advance();
            return Ok(ExprKind::Name(name.to_owned()));
        }
        let soft = SOFT_KEYWORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(name));
        match soft {
            Some((_, kind)) if *self.peek_at(2) == TokenKind::Keyword(Keyword::Select) => self.subquery_operator(*kind),
            _ => self.call(name),
        }
    }

    fn udf_call(&mut self) -> Result<ExprKind> {
        self.advance();
        self.expect_symbol(".")?;
        let name_span = self.span();
        let name = self.expect_identifier()?.to_owned();
        let args = self.arguments()?;
        Ok(ExprKind::Call(Call {
            name,
            name_span,
            udf: true,
            args,
        }))
    }

    fn call(&mut self, name: &str) -> Result<ExprKind> {
        let name_span = self.span();
        self.advance();
        let args = self.arguments()?;
        Ok(ExprKind::Call(Call {
            name: name.to_owned(),
            name_span,
            udf: false,
            args,
        }))
    }

    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.expect_symbol("(")?;
        if self.take_symbol(")") {
            return Ok(Vec::new());
        }
        let args = self.list(Self::expression)?;
        self.expect_symbol(")")?;
        Ok(args)
    }

    fn array(&mut self) -> Result<ExprKind> {
        self.advance();
        if self.take_symbol("]") {
            return Ok(ExprKind::Array(Vec::new()));
        }
        let items = self.list(Self::expression)?;
        self.expect_symbol("]")?;
        Ok(ExprKind::Array(items))
    }

    fn object(&mut self) -> Result<ExprKind> {
        self.advance();
        if self.take_symbol("}") {
            return Ok(ExprKind::Object(Vec::new()));
        }
        let members = self.list(|p| {
            let name = match &p.peek().kind {
                TokenKind::String(name) => name.to_string(),
                TokenKind::Identifier(name) => (*name).to_owned(),
                _ => return Err(p.unexpected()),
            };
            p.advance();
            p.expect_symbol(":")?;
            Ok((name, p.expression()?))
        })?;
        self.expect_symbol("}")?;
        Ok(ExprKind::Object(members))
    }
}

fn negated(number: Number) -> Number {
    match number {
        Number::Int(0) => Number::Float(-0.0),
        Number::Int(value) => value.checked_neg().map_or(Number::Float(-(value as f64)), Number::Int),
        // 9223372036854775808 fits only with its sign.
        Number::Float(value) if value == -(i64::MIN as f64) => Number::Int(i64::MIN),
        Number::Float(value) => Number::Float(-value),
    }
}
