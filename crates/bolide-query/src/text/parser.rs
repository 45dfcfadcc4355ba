//! The grammar of queries (cosmos-sql §3); expressions are in `parser_expression`.

use super::ast::{
    Count, CountValue, Direction, Expr, ExprKind, FromItem, FromStep, Order, OrderItem, Query, SelectItem, Selection,
    Source, Window,
};
use super::lexer::{Keyword, TOKEN_BYTES, Token, TokenKind, tokens};
use crate::error::{Diagnostic, QueryError, Result, Span};
use crate::limits::QUERY_CHARS;
use crate::memory::{ALLOCATION_BYTES, Memory};

/// Maximum recursion of the parser; a run of opening parentheses counts once.
pub(super) const MAX_NESTING: usize = 64;

/// Maximum height of an expression tree, which chains of binary operators build without nesting in the text.
pub(super) const MAX_HEIGHT: u16 = 256;

/// Maximum memory of the tree per token: a node, or half of an entry in a list that has grown by doubling, because a comma follows each element.
const NODE_BYTES: usize = size_of::<Expr>() + ALLOCATION_BYTES;

/// Maximum memory of a tree that was parsed from a text of this length.
pub fn tree_bytes(span: Span) -> usize {
    (span.end.saturating_sub(span.start) + 1) * NODE_BYTES
}

/// Parses one whole query. The memory of its tree is taken from `memory`.
///
/// # Errors
/// `SC1001` at the first unexpected token. A text that is too long. As [`Memory::take`].
pub fn parse(text: &str, memory: &Memory) -> Result<Query> {
    let mut parser = Parser::new(text, memory)?;
    let query = parser.query()?;
    parser.end(query, memory)
}

/// Parses FROM and WHERE of a patch condition, which has no SELECT.
///
/// # Errors
/// As [`parse`].
pub fn parse_condition(text: &str, memory: &Memory) -> Result<Query> {
    let mut parser = Parser::new(text, memory)?;
    let star = Span::default();
    let mut query = empty_query(Selection::Star(star), star);
    parser.inputs_clause(&mut query)?;
    parser.where_clause(&mut query)?;
    if query.from.is_empty() {
        return Err(parser.unexpected());
    }
    parser.end(query, memory)
}

fn check_length(text: &str) -> Result<()> {
    if text.len() > QUERY_CHARS && text.chars().count() > QUERY_CHARS {
        let message = format!("The SQL query text exceeded the maximum limit of {QUERY_CHARS} characters");
        return Err(QueryError::Compile(vec![Diagnostic {
            code: None,
            message,
            location: None,
        }]));
    }
    Ok(())
}

fn empty_query(selection: Selection, span: Span) -> Query {
    Query {
        distinct: false,
        top: None,
        selection,
        from: Vec::new(),
        filter: None,
        group_by: Vec::new(),
        order: None,
        window: None,
        span,
        height: 0,
    }
}

fn height_of(query: &Query) -> u16 {
    let selected: Box<dyn Iterator<Item = &Expr>> = match &query.selection {
        Selection::Star(_) => Box::new(std::iter::empty()),
        Selection::Value(value) => Box::new(std::iter::once(value)),
        Selection::List(items) => Box::new(items.iter().map(|item| &item.value)),
    };
    let expressions = selected
        .chain(&query.filter)
        .chain(&query.group_by)
        .map(|expr| expr.height);
    let sources = query.from.iter().map(|item| match &item.source {
        Source::Path { .. } => 0,
        Source::Subquery(inner) => inner.height + 1,
        Source::Expression(expr) => expr.height,
    });
    expressions.chain(sources).max().unwrap_or(0)
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<Token<'t>>,
    pub(super) at: usize,
    pub(super) nesting: usize,
    /// An operand that was already parsed; it is the next primary expression.
    pub(super) pending: Option<Expr>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, memory: &Memory) -> Result<Parser<'t>> {
        check_length(text)?;
        let tokens = tokens(text, memory)?;
        // The caller has a copy of the text; its names and strings are in the tree and in the program.
        memory.take(tokens.len() * NODE_BYTES + 3 * text.len())?;
        Ok(Parser {
            text,
            tokens,
            at: 0,
            nesting: 0,
            pending: None,
        })
    }

    /// Checks that all of the text was parsed, and counts only the tree from here on.
    fn end(self, query: Query, memory: &Memory) -> Result<Query> {
        if self.peek().kind != TokenKind::End {
            return Err(self.unexpected());
        }
        memory.release(self.tokens.len() * TOKEN_BYTES);
        Ok(query)
    }

    pub(super) fn peek(&self) -> &Token<'t> {
        &self.tokens[self.at]
    }

    /// The kind of the token `ahead` positions further; the end token repeats.
    pub(super) fn peek_at(&self, ahead: usize) -> &TokenKind<'t> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn span(&self) -> Span {
        self.peek().span
    }

    /// The span of the last token taken.
    pub(super) fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    pub(super) fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    pub(super) fn unexpected(&self) -> QueryError {
        let span = self.span();
        let near = &self.text[span.start..span.end];
        QueryError::at("SC1001", format!("Syntax error, incorrect syntax near '{near}'."), span)
    }

    pub(super) fn is_keyword(&self, keyword: Keyword) -> bool {
        self.peek().kind == TokenKind::Keyword(keyword)
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek().kind, TokenKind::Symbol(s) if s == symbol)
    }

    pub(super) fn take_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect_keyword(&mut self, keyword: Keyword) -> Result<()> {
        if self.take_keyword(keyword) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.take_symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    pub(super) fn expect_identifier(&mut self) -> Result<&'t str> {
        match self.peek().kind {
            TokenKind::Identifier(name) => {
                self.advance();
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A name after a dot. RANK is reserved only in ORDER BY: the Rust SDK's own tests, which also run against the service, use `c.rank`.
    pub(super) fn expect_member(&mut self) -> Result<&'t str> {
        let span = self.span();
        if self.take_keyword(Keyword::Rank) {
            return Ok(&self.text[span.start..span.end]);
        }
        self.expect_identifier()
    }

    fn take_identifier(&mut self) -> Option<&'t str> {
        match self.peek().kind {
            TokenKind::Identifier(name) => {
                self.advance();
                Some(name)
            }
            _ => None,
        }
    }

    /// Runs `parse` one level deeper, so that too deep nesting is an error and not a stack overflow.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting >= MAX_NESTING {
            let message = format!("The SQL query exceeded the maximum nesting depth of {MAX_NESTING}.");
            return Err(QueryError::uncoded(message, self.span()));
        }
        self.nesting += 1;
        let out = parse(self);
        self.nesting -= 1;
        out
    }

    /// One or more `parse`, separated by commas.
    pub(super) fn list<T>(&mut self, mut parse: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut out = vec![parse(self)?];
        while self.take_symbol(",") {
            out.push(parse(self)?);
        }
        Ok(out)
    }

    pub(super) fn query(&mut self) -> Result<Query> {
        self.nested(|p| p.query_body())
    }

    fn query_body(&mut self) -> Result<Query> {
        let start = self.span();
        self.expect_keyword(Keyword::Select)?;
        let distinct = self.take_keyword(Keyword::Distinct);
        let top = if self.take_keyword(Keyword::Top) {
            Some(self.count()?)
        } else {
            None
        };
        let selection = self.selection()?;
        let mut query = Query {
            distinct,
            top,
            ..empty_query(selection, start)
        };
        self.inputs_clause(&mut query)?;
        self.where_clause(&mut query)?;
        if self.take_keyword(Keyword::Group) {
            self.expect_keyword(Keyword::By)?;
            query.group_by = self.list(Self::expression)?;
        }
        if self.take_keyword(Keyword::Order) {
            self.expect_keyword(Keyword::By)?;
            query.order = Some(self.order()?);
        }
        if self.take_keyword(Keyword::Offset) {
            let offset = self.count()?;
            self.expect_keyword(Keyword::Limit)?;
            query.window = Some(Window {
                offset,
                limit: self.count()?,
            });
        }
        query.span = start.to(self.last_span());
        query.height = height_of(&query);
        Ok(query)
    }

    fn inputs_clause(&mut self, query: &mut Query) -> Result<()> {
        if self.take_keyword(Keyword::From) {
            query.from.push(self.input_item()?);
            while self.take_keyword(Keyword::Join) {
                query.from.push(self.input_item()?);
            }
        }
        Ok(())
    }

    fn where_clause(&mut self, query: &mut Query) -> Result<()> {
        if self.take_keyword(Keyword::Where) {
            query.filter = Some(self.expression()?);
        }
        Ok(())
    }

    fn count(&mut self) -> Result<Count> {
        let span = self.span();
        let value = match &self.peek().kind {
            TokenKind::Number(number) => CountValue::Literal(*number),
            TokenKind::Parameter(name) => CountValue::Parameter((*name).to_owned()),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Count { value, span })
    }

    fn selection(&mut self) -> Result<Selection> {
        if self.take_symbol("*") {
            return Ok(Selection::Star(self.last_span()));
        }
        if self.take_keyword(Keyword::Value) {
            let value = self.expression()?;
            self.alias()?;
            return Ok(Selection::Value(value));
        }
        let items = self.list(|p| {
            let value = p.expression()?;
            let alias = p.alias()?.map(str::to_owned);
            Ok(SelectItem { value, alias })
        })?;
        Ok(Selection::List(items))
    }

    fn alias(&mut self) -> Result<Option<&'t str>> {
        if self.take_keyword(Keyword::As) {
            self.expect_identifier().map(Some)
        } else {
            Ok(self.take_identifier())
        }
    }

    fn input_item(&mut self) -> Result<FromItem> {
        let start = self.span();
        let iterates =
            matches!(self.peek().kind, TokenKind::Identifier(_)) && *self.peek_at(1) == TokenKind::Keyword(Keyword::In);
        if iterates {
            let alias = self.expect_identifier()?.to_owned();
            self.expect_keyword(Keyword::In)?;
            let source = self.iterated_source()?;
            return Ok(FromItem {
                source,
                alias: Some(alias),
                iterate: true,
                span: start.to(self.last_span()),
            });
        }
        let source = self.source()?;
        let alias = self.alias()?.map(str::to_owned);
        Ok(FromItem {
            source,
            alias,
            iterate: false,
            span: start.to(self.last_span()),
        })
    }

    fn iterated_source(&mut self) -> Result<Source> {
        let is_call =
            matches!(self.peek().kind, TokenKind::Identifier(_)) && *self.peek_at(1) == TokenKind::Symbol("(");
        if is_call {
            self.expression().map(Source::Expression)
        } else {
            self.source()
        }
    }

    fn source(&mut self) -> Result<Source> {
        if self.take_symbol("(") {
            let query = self.query()?;
            self.expect_symbol(")")?;
            return Ok(Source::Subquery(Box::new(query)));
        }
        let name_span = self.span();
        let name = self.expect_identifier()?.to_owned();
        let mut steps = Vec::new();
        while let Some(step) = self.path_step()? {
            steps.push(step);
        }
        Ok(Source::Path { name, name_span, steps })
    }

    fn path_step(&mut self) -> Result<Option<FromStep>> {
        if self.take_symbol(".") {
            return Ok(Some(FromStep::Dot(self.expect_identifier()?.to_owned())));
        }
        if !self.take_symbol("[") {
            return Ok(None);
        }
        let step = match &self.peek().kind {
            TokenKind::String(name) => FromStep::Bracket(name.to_string()),
            TokenKind::Number(index) => FromStep::Element(*index),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        self.expect_symbol("]")?;
        Ok(Some(step))
    }

    fn order(&mut self) -> Result<Order> {
        if !self.take_keyword(Keyword::Rank) {
            return self.list(Self::order_item).map(Order::By);
        }
        let items = self.list(|p| {
            let first = p.span();
            let item = p.order_item()?;
            match item.value.kind {
                ExprKind::Call(_) => Ok(item),
                _ => {
                    let near = &p.text[first.start..first.end];
                    Err(QueryError::at(
                        "SC1001",
                        format!("Syntax error, incorrect syntax near '{near}'."),
                        first,
                    ))
                }
            }
        })?;
        Ok(Order::Rank(items))
    }

    fn order_item(&mut self) -> Result<OrderItem> {
        let value: Expr = self.expression()?;
        let direction = match self.peek().kind {
            TokenKind::Keyword(Keyword::Asc) => Some(Direction::Ascending),
            TokenKind::Keyword(Keyword::Desc) => Some(Direction::Descending),
            _ => None,
        };
        if direction.is_some() {
            self.advance();
        }
        Ok(OrderItem { value, direction })
    }
}
