//! The conformance cases of a sibling `../shared` folder, when it is there.

mod cases;
mod compare;
mod plans;
mod sql;
