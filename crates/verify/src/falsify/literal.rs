//! Another value of the same type: a number that differs, a text with letters added, the opposite of a truth.

/// What kind of value a literal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralKind {
    Number,
    Text,
    Char,
    Flag,
    Nothing,
    Pattern,
}

impl LiteralKind {
    pub(super) fn named(capture: &str) -> Option<Self> {
        Some(match capture {
            "number" => Self::Number,
            "text" => Self::Text,
            "char" => Self::Char,
            "flag" => Self::Flag,
            "nothing" => Self::Nothing,
            "pattern" => Self::Pattern,
            _ => return None,
        })
    }
}

/// Another literal of the same kind; `None` if that cannot be made safely.
pub(super) fn another(kind: LiteralKind, text: &str, dice: &mut fastrand::Rng) -> Option<String> {
    match kind {
        LiteralKind::Number => another_number(text, dice),
        LiteralKind::Text => another_text(text, dice),
        LiteralKind::Char => another_char(text, dice),
        LiteralKind::Flag => another_flag(text),
        // Asked only where a name has no type.
        LiteralKind::Nothing => Some(dice.u32(2..90).to_string()),
        LiteralKind::Pattern => {
            let (body, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
            Some(format!("/(?:{body}){}/{flags}", random_word(dice)))
        }
    }
}

/// Letters that stand in no text: an assertion may ask only whether they are a part of one, and two or three are soon found,
/// such as `ns` in `translation`.
pub(super) fn random_word(dice: &mut fastrand::Rng) -> String {
    let length = dice.usize(5..=7);
    (0..length)
        .map(|_| char::from(b"bcdfghjklmnpqrstvwxz"[dice.usize(..20)]))
        .collect()
}

/// Largest values of common types, which may not grow.
const LARGEST: &[u128] = &[
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

fn another_number(text: &str, dice: &mut fastrand::Rng) -> Option<String> {
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
        // Far enough away for any tolerance.
        let further = value
            .checked_mul(3)?
            .checked_add(7 + u128::from(dice.u8(..9)))?;
        return Some(format!("{further}.{fraction}"));
    }
    let step = u128::from(dice.u8(1..=9));
    let near_a_border = LARGEST
        .iter()
        .any(|most| *most >= value && most - value < 10)
        || value > 1 << 62;
    let other = if near_a_border {
        value.checked_sub(step)?
    } else {
        value + step
    };
    Some(format!("{other}{rest}"))
}

fn another_text(text: &str, dice: &mut fastrand::Rng) -> Option<String> {
    let word = random_word(dice);
    if let Some(symbol) = text.strip_prefix(':') {
        return symbol
            .ends_with(|c: char| c.is_alphanumeric())
            .then(|| format!("{text}_{word}"));
    }
    // What is filled in at run time may hold anything, but letters can be added behind it all the same.
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

fn another_char(text: &str, dice: &mut fastrand::Rng) -> Option<String> {
    let letters = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let other = b"bcdfghjklmnpqrstvwxz"
        .iter()
        .map(|b| char::from(*b))
        .filter(|c| !letters.contains(*c));
    let other: Vec<char> = other.collect();
    Some(format!(
        "'{}'",
        other.get(dice.usize(..other.len().max(1)))?
    ))
}

fn another_flag(text: &str) -> Option<String> {
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
    fn every_kind_of_literal_has_another_of_its_kind() {
        let mut dice = fastrand::Rng::with_seed(7);
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
            (LiteralKind::Flag, "True"),
            (LiteralKind::Pattern, "/a|b/i"),
        ] {
            for _ in 0..50 {
                let other = another(kind, text, &mut dice).expect(text);
                assert_ne!(other, text);
            }
        }
        assert_eq!(another(LiteralKind::Number, "0xff", &mut dice), None);
        for _ in 0..50 {
            let below = another(LiteralKind::Number, "255", &mut dice).expect("a number");
            assert!(below.parse::<u8>().is_ok(), "{below} must still fit");
        }
        for _ in 0..50 {
            let word = random_word(&mut dice);
            assert!(
                word.len() >= 5 && !word.contains(['a', 'e', 'i', 'o', 'u', 'y']),
                "{word} may be a part of a text"
            );
        }
        let text = another(LiteralKind::Text, "\"\"\"\"\"\"", &mut dice)
            .expect("an empty text of three quotes");
        assert!(
            text.starts_with("\"\"\"") && text.ends_with("\"\"\"") && text.len() > 6,
            "{text}"
        );
    }
}
