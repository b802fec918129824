//! Changes a literal to a different value of the same type: another number, a longer string, the opposite boolean.

use supervisor_text::words;

/// The kind of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralKind {
    Number,
    Text,
    Char,
    Bool,
    Null,
    Pattern,
}

impl LiteralKind {
    pub(super) fn from_capture(capture: &str) -> Option<Self> {
        Some(match capture {
            "number" => Self::Number,
            "text" => Self::Text,
            "char" => Self::Char,
            "flag" => Self::Bool,
            "nothing" => Self::Null,
            "pattern" => Self::Pattern,
            _ => return None,
        })
    }
}

/// A different literal of the same kind; `None` if that cannot be done safely. What is added looks like the rest of the
/// file, in which the literal is.
pub(super) fn different_literal(
    kind: LiteralKind,
    text: &str,
    file: &str,
    rng: &mut fastrand::Rng,
) -> Option<String> {
    match kind {
        LiteralKind::Number => different_number(text, rng),
        LiteralKind::Text => different_text(text, file, rng),
        LiteralKind::Char => different_char(text, file, rng),
        LiteralKind::Bool => different_bool(text),
        // Only dynamically typed languages have this kind.
        LiteralKind::Null => Some(rng.u32(2..90).to_string()),
        LiteralKind::Pattern => {
            let (body, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
            Some(format!("/(?:{body}){}/{flags}", random_word(file, rng)))
        }
    }
}

/// How much of a file words are taken from.
const MAX_VOCABULARY_BYTES: usize = 64 << 10;

/// A word made of pieces of the file's own words, so that nothing tells it from them. The file does not contain it. Five
/// letters or more, because an assertion may only check for a part of a text, and shorter pieces are found easily.
pub(super) fn random_word(file: &str, rng: &mut fastrand::Rng) -> String {
    let start = words::cut_end(file, MAX_VOCABULARY_BYTES);
    let words: Vec<&str> = start
        .split(|c: char| !c.is_ascii_lowercase())
        .filter(|word| word.len() > 2)
        .collect();
    for _ in 0..200 {
        let Some((first, second)) = rng.choice(&words).zip(rng.choice(&words)) else {
            break;
        };
        let head = rng.usize(2..=first.len().min(4));
        let tail = rng.usize(2..=second.len().min(4));
        let word = format!("{}{}", &first[..head], &second[second.len() - tail..]);
        if word.len() >= 5 && !file.contains(&word) {
            return word;
        }
    }
    let own: Vec<char> = start.chars().filter(char::is_ascii_lowercase).collect();
    let mut longest = 7;
    loop {
        let length = rng.usize(5..=longest);
        longest += 1;
        let letter = |_| {
            let own = rng.choice(&own).copied();
            own.unwrap_or_else(|| rng.lowercase())
        };
        let word: String = (0..length).map(letter).collect();
        if !file.contains(&word) {
            return word;
        }
    }
}

/// Limits of common integer types; numbers just below them must not grow.
const TYPE_LIMITS: &[u128] = &[
    127,
    128,
    255,
    32_767,
    32_768,
    65_535,
    2_147_483_647,
    2_147_483_648,
    4_294_967_295,
    9_223_372_036_854_775_807,
];

fn different_number(text: &str, rng: &mut fastrand::Rng) -> Option<String> {
    let digits = text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '_')
            .len();
    let (whole, rest) = text.split_at(digits);
    let plain: String = whole.chars().filter(|c| *c != '_').collect();
    if plain.is_empty()
        || (plain.len() > 1 && plain.starts_with('0'))
        || rest.starts_with(['x', 'b', 'o', 'X'])
    {
        return None;
    }
    let value: u128 = plain.parse().ok()?;
    if let Some(fraction) = rest.strip_prefix('.') {
        // Far enough to exceed any tolerance.
        let distant = value
            .checked_mul(3)?
            .checked_add(7 + u128::from(rng.u8(..9)))?;
        return Some(format!("{distant}.{fraction}"));
    }
    let step = u128::from(rng.u8(1..=9));
    let is_near_limit = TYPE_LIMITS
        .iter()
        .any(|limit| *limit >= value && limit - value < 10)
        || value > 1 << 62;
    let other = if is_near_limit {
        value.checked_sub(step)?
    } else {
        value + step
    };
    Some(format!("{other}{rest}"))
}

fn different_text(text: &str, file: &str, rng: &mut fastrand::Rng) -> Option<String> {
    let word = random_word(file, rng);
    if let Some(symbol) = text.strip_prefix(':') {
        return symbol
            .ends_with(|c: char| c.is_alphanumeric())
            .then(|| format!("{text}_{word}"));
    }
    // Letters can be appended even if the string has placeholders that are filled at run time.
    let close = text.rfind(['"', '\'', '`'])?;
    let quote = &text[close..=close];
    let run = text[..=close].len() - text[..=close].trim_end_matches(quote).len();
    let open = text.find(quote)?;
    let length = if run >= 3 && text[open..].starts_with(&quote.repeat(3)) {
        3
    } else {
        1
    };
    let end = (close + 1)
        .checked_sub(length)
        .filter(|end| *end >= open + length)?;
    if text[..end].contains('\n') {
        let first = text[open + length..end]
            .char_indices()
            .find(|(_, c)| c.is_alphanumeric())?;
        let at = open + length + first.0;
        return (!text[..at].contains('\\'))
            .then(|| format!("{}{word}{}", &text[..at], &text[at..]));
    }
    Some(format!("{}{word}{}", &text[..end], &text[end..]))
}

fn different_char(text: &str, file: &str, rng: &mut fastrand::Rng) -> Option<String> {
    let letters = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let other = |c: &char| c.is_ascii_lowercase() && !letters.contains(*c);
    let mut others: Vec<char> = file.chars().filter(other).collect();
    if others.is_empty() {
        others = ('a'..='z').filter(other).collect();
    }
    Some(format!("'{}'", rng.choice(&others)?))
}

fn different_bool(text: &str) -> Option<String> {
    let other = match text {
        "true" => "false",
        "false" => "true",
        "True" => "False",
        "False" => "True",
        _ => return None,
    };
    Some(other.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_literal_can_change() {
        let mut rng = fastrand::Rng::with_seed(7);
        for (kind, text) in [
            (LiteralKind::Number, "6"),
            (LiteralKind::Number, "0"),
            (LiteralKind::Number, "255"),
            (LiteralKind::Number, "1_000u64"),
            (LiteralKind::Number, "2.5"),
            (LiteralKind::Text, "\"IX\""),
            (LiteralKind::Text, "''"),
            (LiteralKind::Text, "r#\"a\"b\"#"),
            (LiteralKind::Text, "\"\"\"a\nb\"\"\""),
            (LiteralKind::Text, "f'{a}'"),
            (LiteralKind::Text, ":ok"),
            (LiteralKind::Char, "'a'"),
            (LiteralKind::Bool, "True"),
            (LiteralKind::Pattern, "/a|b/i"),
        ] {
            for _ in 0..50 {
                let other = different_literal(kind, text, text, &mut rng).expect(text);
                assert_ne!(other, text);
            }
        }
        assert_eq!(
            different_literal(LiteralKind::Number, "0xff", "", &mut rng),
            None
        );
        for _ in 0..50 {
            let below =
                different_literal(LiteralKind::Number, "255", "", &mut rng).expect("a number");
            assert!(below.parse::<u8>().is_ok(), "{below} must still fit");
        }
        let text = different_literal(LiteralKind::Text, "\"\"\"\"\"\"", "", &mut rng)
            .expect("an empty text of three quotes");
        assert!(
            text.starts_with("\"\"\"") && text.ends_with("\"\"\"") && text.len() > 6,
            "{text}"
        );
    }

    #[test]
    fn random_words_look_like_their_file() {
        let file = "def test_roman():\n    assert roman(9) == 'nine'\n";
        let mut rng = fastrand::Rng::with_seed(7);
        for file in [file, "ab", ""] {
            for _ in 0..200 {
                let word = random_word(file, &mut rng);
                assert!(word.len() >= 5 && !file.contains(&word), "{word}");
                let is_own = |c: char| file.is_empty() || file.contains(c);
                assert!(word.chars().all(is_own), "{word} has letters of its own");
            }
        }
    }
}
