//! Fuzzed bytes, read piece by piece.

/// The remaining bytes.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte; zero after the end.
    pub fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// Up to `n` bytes.
    pub fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The bytes before the next `separator`, which is skipped; all bytes if there is none.
    pub fn until(&mut self, separator: u8) -> &'a [u8] {
        let at = self
            .0
            .iter()
            .position(|byte| *byte == separator)
            .unwrap_or(self.0.len());
        let taken = self.bytes(at);
        self.byte();
        taken
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
