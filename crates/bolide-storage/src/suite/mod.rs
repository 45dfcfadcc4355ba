//! The contract suite: what every engine must pass.
