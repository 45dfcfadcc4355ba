//! Compresses the built data explorer, `explorer/dist`, so that the binary has each file once: as nearly all browsers get it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use flate2::{Compression, Crc, write::GzEncoder};

const FILES: &str = "../../explorer/dist";

fn main() {
    println!("cargo::rerun-if-changed={FILES}");
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut entries: Vec<_> = fs::read_dir(FILES)
        .expect("the built files are in the repository")
        .map(|entry| entry.expect("the directory can be read"))
        .collect();
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    let mut table = format!("static FILES: [File; {}] = [\n", entries.len());
    for entry in entries {
        let name = entry.file_name().into_string().expect("names are UTF-8");
        let text = fs::read(entry.path()).expect("the file can be read");
        let mut sum = Crc::new();
        sum.update(&text);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&text).expect("a vector takes everything");
        let gzip = gzip.finish().expect("a vector takes everything");
        let path = output.join(format!("{name}.gz"));
        fs::write(&path, gzip).expect("the file can be written");
        let etag = format!("\"{:08x}-{:x}\"", sum.sum(), text.len());
        writeln!(
            table,
            "    File {{ name: {name:?}, etag: {etag:?}, gzip: include_bytes!({path:?}), text: OnceLock::new() }},"
        )
        .expect("a string takes everything");
    }
    table.push_str("];\n");
    fs::write(output.join("explorer.rs"), table).expect("the table can be written");
}
