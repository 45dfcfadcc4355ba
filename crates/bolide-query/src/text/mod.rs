//! From characters to a syntax tree and back: tokens, grammar, printing.

pub mod ast;
mod lexer;
mod parser;
mod parser_expression;
pub mod printer;
mod recent;
#[cfg(test)]
mod tests;

pub use parser::{parse, parse_condition, tree_bytes};
pub use recent::parse_or_recall;
