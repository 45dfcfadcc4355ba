use super::*;

#[test]
fn strings_are_escaped_wherever_the_character_is() {
    let characters = (0..0x300)
        .chain(['\u{2028}', '😀'].map(u32::from))
        .filter_map(char::from_u32);
    for character in characters {
        for (before, after) in [(0, 0), (1, 40), (15, 1), (16, 0), (33, 7)] {
            let text = ["a".repeat(before), character.to_string(), "z".repeat(after)].concat();
            let mut written = b"=".to_vec();
            write_string(&text, &mut written);
            let expected = format!("={}", serde_json::to_string(&text).unwrap());
            assert_eq!(String::from_utf8(written).unwrap(), expected, "{character:?}");
        }
    }
}
