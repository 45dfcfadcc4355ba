//! An engine in trouble: wraps any engine and injects what distributed storage does on bad days.
