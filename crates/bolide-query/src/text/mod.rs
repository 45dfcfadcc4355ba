//! From characters to a syntax tree and back: tokens, grammar, printing.

pub mod ast;
mod lexer;
mod parser;
mod parser_expression;
pub mod printer;
#[cfg(test)]
mod tests;

pub use parser::{parse, parse_condition, tree_bytes};
