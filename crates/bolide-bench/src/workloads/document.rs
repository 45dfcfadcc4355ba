//! The items of the workloads: documents of exactly 1 KB, 100 to a partition.

/// Bytes of a document.
pub const BYTES: usize = 1024;
/// Items with the same partition key: what a short scan or a range of times may reach.
pub const IN_PARTITION: u64 = 100;
/// The time of item 0, in Unix seconds; each further item is one second later.
pub const FIRST_AT: u64 = 1_700_000_000;

/// The id of an item; ids have the order of the keys.
pub fn id(key: u64) -> String {
    format!("{key:012}")
}

/// The partition key of an item.
pub fn partition(key: u64) -> String {
    format!("p{:010}", key / IN_PARTITION)
}

/// The time of an item, in Unix seconds.
pub fn at(key: u64) -> u64 {
    FIRST_AT + key
}

/// A document. `version` changes its text, so that an update changes what is stored. `ttl`: seconds, if it has its own.
pub fn document(key: u64, version: u64, ttl: Option<i32>) -> String {
    let ttl = ttl.map(|seconds| format!(",\"ttl\":{seconds}")).unwrap_or_default();
    let mut text = format!(
        "{{\"id\":\"{}\",\"pk\":\"{}\",\"at\":{}{ttl},\"version\":{version},\"text\":\"",
        id(key),
        partition(key),
        at(key)
    );
    const END: &str = "\"}";
    // Letters without a pattern, so that a store that compresses has no advantage from padding.
    let mut letters = fastrand::Rng::with_seed(key ^ version.rotate_left(32));
    while text.len() < BYTES - END.len() {
        text.push(letters.alphanumeric());
    }
    text.push_str(END);
    text
}

#[cfg(test)]
mod tests;
