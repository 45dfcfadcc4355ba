//! Claims about this engine alone.
