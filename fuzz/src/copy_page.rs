//! Pages of rows, as the server sends them whose store is copied.

use bolide_core::CopyPage;
use bytes::Bytes;

/// Reads a page.
pub fn run(data: &[u8]) {
    if let Ok(page) = CopyPage::decode(Bytes::copy_from_slice(data)) {
        assert_eq!(CopyPage::decode(page.encode()), Ok(page), "it is read back unchanged");
    }
}
