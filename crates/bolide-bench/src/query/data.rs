//! The items: orders with a customer, three lines and a note, of exactly 1 KB.

use std::fmt::Write;

/// Bytes of a document.
pub const BYTES: usize = 1024;

const CITIES: [&str; 20] = [
    "Oslo", "Bergen", "Turku", "Espoo", "Malmo", "Uppsala", "Aarhus", "Odense", "Gdansk", "Lodz", "Brno", "Ostrava",
    "Graz", "Linz", "Basel", "Geneva", "Turin", "Parma", "Porto", "Braga",
];
const TIERS: [&str; 4] = ["basic", "silver", "gold", "platinum"];
const STATUSES: [&str; 6] = ["new", "paid", "packed", "shipped", "delivered", "returned"];
const WORDS: [&str; 12] = [
    "please", "deliver", "after", "noon", "and", "ring", "twice", "at", "the", "side", "door", "thanks",
];

/// The document of a number; always the same for the same number.
pub fn document(number: u64) -> String {
    let mut dice = Dice(number);
    let mut text = String::with_capacity(BYTES);
    let city = CITIES[dice.below(20) as usize];
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{{\"id\":\"{number:012}\",\"kind\":\"order\",\"created\":{created},\"customer\":{{\"name\":\"Customer {customer}\",\
         \"tier\":\"{tier}\",\"address\":{{\"street\":\"Long Street {house}\",\"city\":\"{city} {district}\",\"zip\":\"{zip:05}\"}}}},\"lines\":[",
        created = 1_700_000_000 + number,
        customer = dice.below(50_000),
        tier = TIERS[dice.below(4) as usize],
        house = dice.below(400),
        district = dice.below(5),
        zip = dice.below(100_000),
    );
    for line in 0..3 {
        let comma = if line > 0 { "," } else { "" };
        let _ = write!(
            text,
            "{comma}{{\"sku\":\"sku-{:04}\",\"quantity\":{},\"price\":{}.5,\"gift\":{}}}",
            dice.below(1000),
            1 + dice.below(9),
            1 + dice.below(200),
            dice.below(2) == 0
        );
    }
    let _ = write!(text, "],\"total\":{},\"note\":\"", dice.below(1_000_000_000));
    let end = format!(
        "\",\"status\":\"{}\",\"weight\":{}.25}}",
        STATUSES[dice.below(6) as usize],
        dice.below(500)
    );
    while text.len() + end.len() < BYTES {
        let word = WORDS[dice.below(12) as usize];
        text.push_str(&word[..word.len().min(BYTES - end.len() - text.len())]);
        if text.len() + end.len() < BYTES {
            text.push(' ');
        }
    }
    text.push_str(&end);
    text
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0.wrapping_mul(0xD134_2543_DE82_EF95);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

#[cfg(test)]
mod tests;
