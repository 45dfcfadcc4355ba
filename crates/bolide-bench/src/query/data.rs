//! The items: orders with a customer, three lines and a note, of exactly 1 KB.

use std::fmt::Write;

/// Bytes of a document.
pub const BYTES: usize = 1024;
/// The time of the first order, in seconds after 1970.
pub const FIRST_CREATED: u64 = 1_700_000_000;

const CITIES: [&str; 20] = [
    "Oslo", "Bergen", "Turku", "Espoo", "Malmo", "Uppsala", "Aarhus", "Odense", "Gdansk", "Lodz", "Brno", "Ostrava",
    "Graz", "Linz", "Basel", "Geneva", "Turin", "Parma", "Porto", "Braga",
];
const TIERS: [&str; 4] = ["basic", "silver", "gold", "platinum"];
const STATUSES: [&str; 6] = ["new", "paid", "packed", "shipped", "delivered", "returned"];
const WORDS: [&str; 12] = [
    "please", "deliver", "after", "noon", "and", "ring", "twice", "at", "the", "side", "door", "thanks",
];

/// The document with a number; always the same for the same number.
pub fn document(number: u64) -> String {
    let mut random = fastrand::Rng::with_seed(number);
    let mut text = String::with_capacity(BYTES);
    let city = CITIES[random.usize(..20)];
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{{\"id\":\"{number:012}\",\"kind\":\"order\",\"created\":{created},\"customer\":{{\"name\":\"Customer {customer}\",\
         \"tier\":\"{tier}\",\"address\":{{\"street\":\"Long Street {house}\",\"city\":\"{city} {district}\",\"zip\":\"{zip:05}\"}}}},\"lines\":[",
        created = FIRST_CREATED + number,
        customer = random.u64(..50_000),
        tier = TIERS[random.usize(..4)],
        house = random.u64(..400),
        district = random.u64(..5),
        zip = random.u64(..100_000),
    );
    for line in 0..3 {
        let comma = if line > 0 { "," } else { "" };
        let _ = write!(
            text,
            "{comma}{{\"sku\":\"sku-{:04}\",\"quantity\":{},\"price\":{}.5,\"gift\":{}}}",
            random.u64(..1000),
            1 + random.u64(..9),
            1 + random.u64(..200),
            random.u64(..2) == 0
        );
    }
    let _ = write!(text, "],\"total\":{},\"note\":\"", random.u64(..1_000_000_000));
    let end = format!(
        "\",\"status\":\"{}\",\"weight\":{}.25}}",
        STATUSES[random.usize(..6)],
        random.u64(..500)
    );
    while text.len() + end.len() < BYTES {
        let word = WORDS[random.usize(..12)];
        text.push_str(&word[..word.len().min(BYTES - end.len() - text.len())]);
        if text.len() + end.len() < BYTES {
            text.push(' ');
        }
    }
    text.push_str(&end);
    text
}

#[cfg(test)]
mod tests;
