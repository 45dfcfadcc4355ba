//! The forms of binary JSON, each against its text, and the outcome for hostile bodies.

use serde_json::Value;

use super::*;

fn bytes(hex: &str) -> Bytes {
    let byte = |byte| u8::from_str_radix(byte, 16).expect("the test writes hex");
    hex.split_ascii_whitespace().map(byte).collect()
}

fn decoded(body: impl Into<Bytes>) -> Result<String> {
    let text = to_text(&body.into())?;
    Ok(String::from_utf8(text.to_vec()).expect("JSON text is UTF-8"))
}

fn size(body: &[u8]) -> Size {
    TextBudget::of_one().size(body)
}

fn text(hex: &str) -> Result<String> {
    decoded(bytes(hex))
}

/// A body of one value, in the format of .NET's writer.
fn body(marker: u8, parts: &[&[u8]]) -> Vec<u8> {
    [&[MARK, marker], parts.concat().as_slice()].concat()
}

/// Numbers of `bits` bits, low ones first.
fn packed(numbers: impl IntoIterator<Item = u8>, bits: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut rest, mut filled) = (0_u32, 0);
    for number in numbers {
        rest |= u32::from(number) << filled;
        filled += bits;
        while filled >= 8 {
            bytes.push((rest & 0xFF) as u8);
            rest >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        bytes.push((rest & 0xFF) as u8);
    }
    bytes
}

/// `length` characters of an alphabet, in a mixed order.
fn characters(alphabet: &str, length: usize) -> String {
    let alphabet = alphabet.as_bytes();
    let character = |at: usize| char::from(alphabet[(at * 7 + at / 3) % alphabet.len()]);
    (0..length).map(character).collect()
}

fn assert_string(body: Vec<u8>, string: &str) {
    let json = serde_json::to_string(string).expect("a string has a text");
    assert_eq!(decoded(body.clone()).expect("well formed"), json, "{body:02X?}");
}

#[test]
fn items_of_the_sdks_are_read() {
    let item = text("80 ED 0C 02 82 69 64 81 31 85 63 6F 75 6E 74 07");
    assert_eq!(item.expect("of the Rust SDK"), r#"{"id":"1","count":7}"#);
    let item = text("80 EA 19 2C 75 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 82 70 6B C8 28 35 81 61 ");
    assert!(item.is_err(), "one byte too long");
    let item = text("80 EA 1A 2C 75 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 82 70 6B C8 28 35 81 61");
    assert_eq!(
        item.expect("of .NET's"),
        r#"{"id":"00102030-4050-6070-8090-a0b0c0d0e0f0","pk":40,"name":"a"}"#
    );
}

/// One value for each marker, and its text; the other markers are invalid. The rows have the same shape on purpose: it is a table.
const MARKERS: &[(&str, &str)] = &[
    ("71 01 01 66 6F", r#""Zm8=""#),
    ("72 01 00 FD 41", r#""QQ""#),
    ("73 01 00 FB FF FE", r#""-__-""#),
    ("74 01 00 00 FB FF FE", r#""-__-""#),
    (
        "75 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F",
        r#""00102030-4050-6070-8090-a0b0c0d0e0f0""#,
    ),
    (
        "76 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F",
        r#""00102030-4050-6070-8090-A0B0C0D0E0F0""#,
    ),
    (
        "77 00 00 84 21 00 00 20 00 00 00 A6 F7 9A A8 00 00",
        r#""\"00004812-0000-0200-0000-6a7fa98a0000\"""#,
    ),
    ("78 04 A1 B2", r#""1a2b""#),
    ("79 03 A1 0B", r#""1AB""#),
    ("7A 07 13 53 1C 02", r#""2024-01""#),
    ("7B 04 30 10 32", r#""0123""#),
    ("7C 03 61 20 08", r#""abc""#),
    ("7D 04 61 40 20 0C", r#""abcd""#),
    ("7E 02 C8 34", r#""Hi""#),
    ("7F 02 00 C8 34", r#""Hi""#),
    ("C0 02 22 0A", r#""\"\n""#),
    ("C1 01 00 61", r#""a""#),
    ("C2 02 00 00 00 C3 A9", r#""é""#),
    ("C7 FF FF FF FF FF FF FF FF", "18446744073709551615"),
    ("C8 C8", "200"),
    ("C9 FE FF", "-2"),
    ("CA 70 11 01 00", "70000"),
    ("CB 00 0E FA D5 FE FF FF FF", "-5000000000"),
    ("CC 00 00 00 00 00 00 F8 3F", "1.5"),
    ("CD 00 00 C0 BF", "-1.5"),
    ("CE 00 00 00 00 00 00 08 40", "3"),
    ("D0", "null"),
    ("D1", "false"),
    ("D2", "true"),
    (
        "D3 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F",
        r#""03020100-0504-0706-0809-0a0b0c0d0e0f""#,
    ),
    ("D7 C8", "200"),
    ("D8 FB", "-5"),
    ("D9 18 FC", "-1000"),
    ("DA 90 EE FE FF", "-70000"),
    ("DB FF FF FF FF FF FF FF FF", "-1"),
    ("DC FE FF FF FF", "4294967294"),
    ("DD 04 DE AD BE EF", r#""3q2+7w==""#),
    ("DE 00 00", r#""""#),
    ("DF 03 00 00 00 00 01 02", r#""AAEC""#),
    ("E0", "[]"),
    ("E1 01", "[1]"),
    ("E2 02 01 02", "[1,2]"),
    ("E3 02 00 01 02", "[1,2]"),
    ("E4 02 00 00 00 01 02", "[1,2]"),
    ("E5 02 02 01 02", "[1,2]"),
    ("E6 02 00 02 00 01 02", "[1,2]"),
    ("E7 02 00 00 00 02 00 00 00 01 02", "[1,2]"),
    ("E8", "{}"),
    ("E9 2C E0", r#"{"id":[]}"#),
    ("EA 02 2C 01", r#"{"id":1}"#),
    ("EB 02 00 2C 01", r#"{"id":1}"#),
    ("EC 02 00 00 00 2C 01", r#"{"id":1}"#),
    ("ED 02 01 2C 01", r#"{"id":1}"#),
    ("EE 02 00 01 00 2C 01", r#"{"id":1}"#),
    ("EF 02 00 00 00 01 00 00 00 2C 01", r#"{"id":1}"#),
    ("F0 D7 03 0A 14 FF", "[10,20,255]"),
    ("F0 D8 03 FB 00 05", "[-5,0,5]"),
    ("F1 D9 03 00 FF FF 00 00 E8 03", "[-1,0,1000]"),
    ("F0 DA 01 03 00 00 00", "[3]"),
    ("F0 DB 01 02 00 00 00 00 00 00 00", "[2]"),
    ("F0 DC 02 FE FF FF FF 00 00 00 00", "[4294967294,0]"),
    ("F0 CD 02 00 00 C0 3F 00 00 80 BE", "[1.5,-0.25]"),
    ("F0 CE 01 00 00 00 00 00 00 02 C0", "[-2.25]"),
    ("F0 DA 00", "[]"),
    ("F2 F0 D8 02 03 01 02 03 04 05 06", "[[1,2],[3,4],[5,6]]"),
    ("F3 F1 D9 01 00 02 00 01 00 FF FF", "[[1],[-1]]"),
    ("F2 F0 D7 00 02", "[[],[]]"),
];

#[test]
fn every_marker_is_read_or_undefined() {
    for (hex, json) in MARKERS {
        assert_eq!(text(&format!("80 {hex}")).expect(hex), *json, "{hex}");
    }
    let has_value = |marker: u8| {
        let known = MARKERS.iter().any(|(hex, _)| bytes(hex)[0] == marker);
        // Markers with ranges have separate tests.
        known || matches!(marker, 0x00..=0x3F | 0x80..=0xBF | 0xC3..=0xC6)
    };
    for marker in (0..=u8::MAX).filter(|marker| !has_value(*marker)) {
        let error = decoded(body(marker, &[&[0; 40]])).expect_err("stands for nothing");
        assert!(error.to_string().contains(&format!("marker 0x{marker:02X}")), "{error}");
    }
}

#[test]
fn small_numbers_are_their_own_markers() {
    for number in 0..0x20 {
        assert_eq!(decoded(body(number, &[])).expect("a number"), number.to_string());
    }
}

#[test]
fn system_strings_are_names_and_values() {
    let name = |marker: u8| decoded(body(marker, &[])).expect("a system string");
    assert_eq!(name(0x20), r#""$s""#);
    assert_eq!(name(0x2C), r#""id""#);
    assert_eq!(name(0x30), r#""LineString""#);
    assert_eq!(name(0x35), r#""name""#);
    assert_eq!(name(0x3F), r#""_id""#);
    assert_eq!(text("80 E9 3B 38").expect("an object"), r#"{"type":"Point"}"#);
}

#[test]
fn plain_strings_of_every_length_are_read() {
    for length in 0..=64_u8 {
        let string = characters("abcdefg \"\\", usize::from(length));
        if length < 64 {
            assert_string(body(MARK | length, &[string.as_bytes()]), &string);
        }
        assert_string(body(0xC0, &[&[length], string.as_bytes()]), &string);
    }
    let string = characters("grün", 70_001).replace(|other: char| !other.is_ascii(), "ü");
    let length = u32::try_from(string.len()).expect("small");
    assert_string(body(0xC2, &[&length.to_le_bytes(), string.as_bytes()]), &string);
}

#[test]
fn digits_of_every_length_are_read() {
    for (marker, alphabet) in [
        (0x78, "0123456789abcdef"),
        (0x79, "0123456789ABCDEF"),
        (0x7A, " 0123456789:-.TZ"),
    ] {
        for length in 0..=u8::MAX {
            let string = characters(alphabet, usize::from(length));
            let at = |character| alphabet.find(character).expect("of the alphabet") as u8;
            let halves = packed(string.chars().map(at), 4);
            assert_string(body(marker, &[&[length], &halves]), &string);
        }
    }
}

#[test]
fn packed_strings_of_every_length_are_read() {
    for (marker, bits, alphabet) in [
        (0x7B, 4, "./0123456789:;<="),
        (0x7C, 5, "abcdefghijklmnopqrstuvwxyz{|}~"),
        (0x7D, 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"),
    ] {
        let base = alphabet.bytes().min().expect("not empty");
        for length in 0..=u8::MAX {
            let string = characters(alphabet, usize::from(length));
            let numbers = packed(string.bytes().map(|byte| byte - base), bits);
            assert_string(body(marker, &[&[length, base], &numbers]), &string);
        }
    }
    let alphabet = "The quick brown fox\t{}~\u{7F}";
    for length in 0..=u8::MAX {
        let string = characters(alphabet, usize::from(length));
        assert_string(body(0x7E, &[&[length], &packed(string.bytes(), 7)]), &string);
    }
    let string = characters(alphabet, 5_000);
    assert_string(
        body(0x7F, &[&5_000_u16.to_le_bytes(), &packed(string.bytes(), 7)]),
        &string,
    );
}

#[test]
fn base64_of_every_length_is_read_with_and_without_padding() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
    for length in 0..=130_usize {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 97 + length) as u8).collect();
        let units = length.div_ceil(3) as u8;
        let missing = (usize::from(units) * 3 - length) as u8;
        for (marker, padding, string) in [
            (0x71, missing, STANDARD.encode(&bytes)),
            (0x71, !missing, STANDARD_NO_PAD.encode(&bytes)),
            (0x73, missing, URL_SAFE.encode(&bytes)),
            (0x73, !missing, URL_SAFE_NO_PAD.encode(&bytes)),
        ] {
            assert_string(body(marker, &[&[units, padding], &bytes]), &string);
            assert_string(body(marker + 1, &[&[units, 0, padding], &bytes]), &string);
        }
    }
    assert!(text("80 71 01 03 66 6F 6F").is_err(), "three signs of padding");
    assert!(text("80 71 00 01").is_err(), "padding of nothing");
}

#[test]
fn references_lead_to_strings_of_any_kind() {
    for (hex, json) in [
        ("80 E2 05 82 68 69 C3 03", r#"["hi","hi"]"#),
        ("80 E2 06 82 68 69 C4 03 00", r#"["hi","hi"]"#),
        ("80 E2 07 82 68 69 C5 03 00 00", r#"["hi","hi"]"#),
        ("80 E2 08 82 68 69 C6 03 00 00 00", r#"["hi","hi"]"#),
        ("80 E2 05 78 02 A1 C3 03", r#"["1a","1a"]"#),
        ("80 EA 09 82 68 69 01 82 68 6A C3 03", r#"{"hi":1,"hj":"hi"}"#),
    ] {
        assert_eq!(text(hex).expect(hex), json, "{hex}");
    }
    for hex in [
        "80 E2 02 C3 03",
        "80 E2 07 C0 01 78 C3 08 C3 03",
        "80 E2 02 C3 FE",
        "80 E2 05 C6 FF FF FF FF",
        "80 E2 04 C0 00 C3 01",
        "80 E2 04 C0 00 C3 00",
    ] {
        let error = text(hex).expect_err(hex);
        assert!(
            error.to_string().contains("does not lead to a string"),
            "{hex}: {error}"
        );
    }
}

#[test]
fn incomplete_or_inconsistent_bodies_are_refused() {
    for hex in [
        "80",
        "80 01 01",
        "80 81 FF",
        "80 7E 02 C8",
        "80 7B 02 71 FF",
        "80 78 01 1F",
        "80 CC 00 00 00 00 00 00 F0 7F",
        "80 CD 00 00 C0 7F",
        "80 E5 02 02 01",
        "80 E5 02 03 01 02",
        "80 E2 01 C8 01",
        "80 EA 03 2C 01 2C",
        "80 E9 01 01",
        "80 E9 D0 01",
        "80 F0 C8 01 01",
        "80 F2 F1 D8 01 01 01",
        "80 E7 00 00 00 00 FF FF FF FF",
    ] {
        assert!(text(hex).is_err(), "{hex}");
    }
    for (hex, _) in MARKERS {
        let body = bytes(&format!("80 {hex}"));
        for length in 1..body.len() {
            assert!(decoded(body.slice(..length)).is_err(), "{hex} to {length}");
        }
    }
}

#[test]
fn a_changed_byte_gives_json_or_a_refusal() {
    for (hex, _) in MARKERS {
        let body = bytes(&format!("80 E1 {hex}"));
        for at in 1..body.len() {
            for byte in 0..=u8::MAX {
                let mut changed = body.to_vec();
                changed[at] = byte;
                let changed = Bytes::from(changed);
                if let Ok(text) = to_text(&changed) {
                    let json: serde_json::Result<Value> = serde_json::from_slice(&text);
                    assert!(json.is_ok(), "{changed:02X?}");
                    assert_eq!(size(&changed).text_bytes, text.len());
                }
            }
        }
    }
}

#[test]
fn nesting_without_end_is_refused_early() {
    for marker in [0xE1, 0xE9] {
        let mut bytes = vec![MARK];
        let level: &[u8] = if marker == 0xE9 { &[0xE9, 0x2C] } else { &[0xE1] };
        bytes.extend(level.repeat(100_000));
        let error = decoded(bytes).expect_err("too deep");
        assert!(error.to_string().contains("too deep"), "{error}");
    }
}

#[test]
fn a_few_bytes_cannot_expand_beyond_the_limit() {
    let string = vec![b'x'; 60_000];
    let mut elements = [&[0xC1][..], &60_000_u16.to_le_bytes(), &string].concat();
    elements.extend([0xC3, 0x06].repeat(10_000));
    let length = u32::try_from(elements.len()).expect("small");
    let references = body(0xE4, &[&length.to_le_bytes(), &elements]);
    assert_eq!(
        decoded(references.clone()).expect_err("600 MB").kind,
        ErrorKind::TooLarge
    );
    assert!(size(&references).text_bytes <= 2 * TEXT_BYTES);
    let empty_arrays = body(0xF3, &[&[0xF1, 0xD9, 0, 0, 0xFF, 0xFF]]);
    let error = decoded(empty_arrays.clone()).expect_err("65,535 arrays in 8 bytes");
    assert!(error.to_string().contains("more values than bytes"), "{error}");
    assert!(size(&empty_arrays).values <= 10);
}

#[test]
fn the_computed_size_equals_that_of_decoding() {
    let item = bytes("80 EA 1A 2C 75 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 82 70 6B C8 28 35 81 61");
    let text_bytes = decoded(item.clone()).expect("well formed").len();
    assert_eq!(size(&item), Size { values: 7, text_bytes });
}

#[test]
fn text_passes_untouched() {
    let body = Bytes::from_static(br#"{"id":"1"}"#);
    assert_eq!(to_text(&body).expect("text"), body);
}

/// Returns a repeatable sequence of random numbers.
struct RandomChoices(fastrand::Rng);

impl RandomChoices {
    fn of_seed(seed: u64) -> RandomChoices {
        RandomChoices(fastrand::Rng::with_seed(seed))
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0.u64(..sides)
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.roll(if depth > 4 { 6 } else { 9 }) {
            0 => Value::Null,
            1 => (self.roll(2) == 0).into(),
            2 => (self.roll(40) as i64 - 5).into(),
            3 => (self.roll(u64::MAX >> 11) as i64 - (1 << 52)).into(),
            4 => (self.roll(1_000_000) as f64 / 64.0 + 0.5 / 128.0).into(),
            5 => self.string().into(),
            6 => (0..self.roll(40)).map(|_| self.value(depth + 1)).collect(),
            7 => (0..self.roll(9)).map(|n| Value::from(300 * n)).collect(),
            _ => Value::Object(
                (0..self.roll(9))
                    .map(|_| (self.string(), self.value(depth + 1)))
                    .collect(),
            ),
        }
    }

    fn string(&mut self) -> String {
        match self.roll(4) {
            0 => strings::SYSTEM[self.roll(32) as usize].to_owned(),
            1 => characters("né\"\\\u{1}😀", self.roll(3) as usize).replace(|c: char| !c.is_ascii(), "é"),
            _ => characters("abcdefghij", self.roll(300) as usize),
        }
    }
}

/// Writes values in one of their possible forms, chosen at random.
struct Encoder {
    choices: RandomChoices,
    /// Positions of strings that were written completely.
    strings: Vec<(String, usize)>,
    out: Vec<u8>,
}

impl Encoder {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push(0xD0),
            Value::Bool(value) => self.out.push(0xD1 + u8::from(*value)),
            Value::Number(number) => self.number(number),
            Value::String(string) => self.string(string),
            Value::Array(items)
                if self.choices.roll(2) == 0
                    && items
                        .iter()
                        .all(|item| item.as_i64().is_some_and(|n| (0..30_000).contains(&n))) =>
            {
                self.out.extend([0xF0, 0xD9, items.len() as u8]);
                let numbers = items.iter().filter_map(Value::as_i64);
                self.out
                    .extend(numbers.flat_map(|number| (number as i16).to_le_bytes()));
            }
            Value::Array(items) => self.elements(0xE0, items.len(), |encoder| {
                items.iter().for_each(|item| encoder.value(item));
            }),
            Value::Object(members) => self.elements(0xE8, members.len(), |encoder| {
                for (name, value) in members {
                    encoder.string(name);
                    encoder.value(value);
                }
            }),
        }
    }

    fn number(&mut self, number: &Number) {
        match number.as_i64() {
            Some(small @ 0..32) if self.choices.roll(2) == 0 => self.out.push(small as u8),
            Some(number) if i16::try_from(number).is_ok() && self.choices.roll(2) == 0 => {
                self.out.push(0xC9);
                self.out.extend((number as i16).to_le_bytes());
            }
            Some(number) => {
                self.out.push(if self.choices.roll(2) == 0 { 0xCB } else { 0xDB });
                self.out.extend(number.to_le_bytes());
            }
            None => {
                self.out.push(if self.choices.roll(2) == 0 { 0xCC } else { 0xCE });
                self.out.extend(number.as_f64().expect("a double").to_le_bytes());
            }
        }
    }

    fn string(&mut self, string: &str) {
        if let Some((_, at)) = self.strings.iter().find(|(known, _)| known == string)
            && self.choices.roll(2) == 0
        {
            let at = *at;
            let width = if at < 256 && self.choices.roll(2) == 0 {
                1
            } else {
                2 + self.choices.roll(3) as usize
            };
            if at < 1 << (8 * width) {
                self.out.push(0xC2 + width as u8);
                self.out.extend(&at.to_le_bytes()[..width]);
                return;
            }
        }
        self.strings.push((string.to_owned(), self.out.len()));
        let bytes = string.as_bytes();
        if let Some(system) = strings::SYSTEM.iter().position(|name| *name == string) {
            self.out.push(0x20 + system as u8);
        } else if bytes.len() < 64 && self.choices.roll(2) == 0 {
            self.out.push(MARK | bytes.len() as u8);
            self.out.extend(bytes);
        } else if string.is_ascii() && bytes.len() < 256 && self.choices.roll(2) == 0 {
            self.out.extend([0x7E, bytes.len() as u8]);
            self.out.extend(packed(string.bytes(), 7));
        } else {
            self.out.push(0xC1);
            self.out.extend((bytes.len() as u16).to_le_bytes());
            self.out.extend(bytes);
        }
    }

    /// An array or object with its length, or length and count, in four bytes.
    fn elements(&mut self, marker: u8, count: usize, write: impl FnOnce(&mut Encoder)) {
        match count {
            0 if self.choices.roll(2) == 0 => return self.out.push(marker),
            1 if self.choices.roll(2) == 0 => {
                self.out.push(marker + 1);
                return write(self);
            }
            _ => {}
        }
        let has_count = self.choices.roll(2) == 0;
        self.out.push(marker + if has_count { 7 } else { 4 });
        let at = self.out.len();
        self.out.extend([0; 4]);
        if has_count {
            self.out.extend((count as u32).to_le_bytes());
        }
        let start = self.out.len();
        write(self);
        let length = (self.out.len() - start) as u32;
        self.out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Also for changed bytes: whatever is accepted is JSON of the size that was counted.
#[test]
fn every_value_comes_back_from_every_form() {
    for seed in 0..400 {
        let value = RandomChoices::of_seed(seed).value(0);
        let mut encoder = Encoder {
            choices: RandomChoices::of_seed(!seed),
            strings: Vec::new(),
            out: vec![MARK],
        };
        encoder.value(&value);
        let body = Bytes::from(encoder.out);
        let text = decoded(body.clone()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(
            serde_json::from_str::<Value>(&text).expect("JSON"),
            value,
            "seed {seed}"
        );
        let mut choices = RandomChoices::of_seed(seed ^ 0xFFFF);
        for _ in 0..50 {
            let mut changed = body.to_vec();
            for _ in 0..=choices.roll(3) {
                let at = choices.roll(changed.len() as u64) as usize;
                changed[at] = choices.roll(256) as u8;
            }
            changed.truncate(1 + choices.roll(2 * changed.len() as u64) as usize);
            changed[0] = MARK;
            if let Ok(text) = decoded(changed.clone()) {
                assert!(
                    serde_json::from_str::<Value>(&text).is_ok(),
                    "seed {seed}: {changed:02X?}"
                );
                assert_eq!(size(&changed).text_bytes, text.len());
            }
        }
    }
}
