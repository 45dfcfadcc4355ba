//! Spatial functions (cosmos-sql §18.7).

use super::Function;

pub(super) const FUNCTIONS: &[Function] = &[];
