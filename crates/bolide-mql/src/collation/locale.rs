//! Names of locales in ICU's form: `en`, `fr_CA`, `de@collation=phonebook`.

use icu_locale_core::Locale;
use icu_locale_core::locale;

/// The languages that MongoDB 7.0 knows rules for.
const LANGUAGES: [&str; 114] = [
    "af", "am", "ar", "ars", "as", "az", "be", "bg", "bn", "bo", "bs", "ca", "ceb", "chr", "cs", "cy", "da", "de",
    "dsb", "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "fy", "ga", "gl", "gu", "ha",
    "haw", "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km", "kn", "ko",
    "kok", "ku", "ky", "lb", "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl",
    "nn", "no", "om", "or", "pa", "pl", "ps", "pt", "ro", "ru", "sa", "se", "si", "sk", "sl", "smn", "sq", "sr", "sv",
    "sw", "ta", "te", "th", "tk", "to", "tr", "tt", "ug", "uk", "ur", "uz", "vi", "vo", "wae", "wo", "xh", "yi", "yo",
    "yue", "zh", "zu",
];

/// Languages whose rules are those of the root, so that of the rules with `backwards` (only Canadian French has them) only `backwards` differs.
const ROOT_RULES: [&str; 13] = [
    "de", "en", "fr", "ga", "id", "it", "lb", "ms", "nl", "pt", "sw", "xh", "zu",
];

/// Names of variants of rules: ICU's, and the short ones of BCP 47.
const VARIANTS: [(&str, &str); 4] = [
    ("dictionary", "dict"),
    ("phonebook", "phonebk"),
    ("traditional", "trad"),
    ("gb2312han", "gb2312"),
];

/// Returns the locale of a name; `None` if MongoDB knows no such locale.
pub(super) fn parse(name: &str) -> Option<Locale> {
    let (base, keywords) = match name.split_once('@') {
        Some((base, keywords)) => (base, Some(keywords)),
        None => (name, None),
    };
    if base.contains('-') {
        return None;
    }
    let mut text = match base {
        "en_US_POSIX" => "en-US-u-va-posix".to_owned(),
        base => base.replace('_', "-"),
    };
    if let Some(keywords) = keywords {
        let variant = keywords.strip_prefix("collation=")?;
        let short = VARIANTS
            .iter()
            .find(|(long, _)| *long == variant)
            .map_or(variant, |(_, short)| short);
        text.push_str(if text.contains("-u-") { "-co-" } else { "-u-co-" });
        text.push_str(short);
    }
    let locale = Locale::try_from_str(&text).ok()?;
    // ICU's names have the language in small letters, then a script, then a region; another spelling is another name.
    let spelled_as_icu = locale.id.to_string().replace('-', "_") == base || base == "en_US_POSIX";
    let is_known = LANGUAGES.contains(&locale.id.language.as_str()) && locale.id.variants.is_empty();
    (spelled_as_icu && is_known).then_some(locale)
}

/// Tells whether the rules of a locale compare accents from the end of the text.
pub(super) fn is_backwards(locale: &Locale) -> bool {
    locale.id == locale!("fr-CA").id
}

/// Returns a locale whose rules compare accents from the end or not, as asked, and are the same otherwise; `None` if there is none.
pub(super) fn with_backwards(locale: Locale, backwards: bool) -> Option<Locale> {
    if is_backwards(&locale) == backwards {
        return Some(locale);
    }
    if !backwards {
        return Some(locale!("fr"));
    }
    let has_root_rules = ROOT_RULES.contains(&locale.id.language.as_str()) && locale.extensions.is_empty();
    has_root_rules.then_some(locale!("fr-CA"))
}
