//! Does a sentence ask for something, or does it tell how it came about? A weak test, on the safe side: one word of
//! demanding, one number or one piece of code is a demand. Whatever is called a story is named in the result.

/// Words that demand, allow or forbid, in the languages that requirements mostly come in.
const DEMANDING: &[&str] = &[
    "must", "shall", "should", "need", "needs", "want", "wants", "require", "requires", "required", "please", "may",
    "can", "cannot", "will", "would", "never", "not", "no", "only", "always", "ensure", "add", "support", "supports",
    "allow", "allows", "able", "muss", "müssen", "soll", "sollen", "sollte", "sollten", "darf", "dürfen", "kann",
    "können", "bitte", "möchte", "möchten", "brauchen", "braucht", "wollen", "nicht", "kein", "keine", "nur", "immer",
    "moet", "moeten", "mag", "kan", "graag", "doit", "doivent", "peut", "peuvent", "faut", "debe", "deben", "puede",
    "pueden",
];

/// Words by which something is left out.
const DECLINING: &[&str] = &[
    "no", "not", "never", "without", "exclude", "excluded", "later", "nicht", "kein", "keine", "ohne", "später",
    "niet", "geen", "pas", "sans", "sin", "nunca",
];

/// What in a sentence makes it a demand.
pub(super) fn find(sentence: &str) -> Option<String> {
    if sentence.contains('`') {
        return Some(String::from("code"));
    }
    let asks =
        |word: &&str| DEMANDING.contains(&word.to_lowercase().as_str()) || word.bytes().any(|b| b.is_ascii_digit());
    let two = |pair: &[&str]| matches!(pair, [has, to] if ["has", "have", "had"].contains(has) && *to == "to");
    let words = words(sentence);
    let found = words.iter().find(|word| asks(word)).map(|word| (*word).to_owned());
    found.or_else(|| words.windows(2).find(|pair| two(pair)).map(|pair| pair.join(" ")))
}

/// Does it say what is not wanted?
pub(super) fn declines(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    words(&lower).iter().any(|word| DECLINING.contains(word)) || lower.contains("out of scope")
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_of_demanding_is_enough() {
        for (sentence, word) in [
            ("The importer SHALL read files.", "SHALL"),
            ("What we want: a list.", "want"),
            ("It has to be live in July.", "has to"),
            ("A reminder 3 days before.", "3"),
            ("Der Kunde darf nur eigene sehen.", "darf"),
            ("Prints `ok`.", "code"),
            ("Fines: not now.", "not"),
        ] {
            assert_eq!(find(sentence).as_deref(), Some(word), "{sentence}");
        }
        for story in ["The main pain is overdue books.", "That takes her half a day.", "Joost pointed it out."] {
            assert_eq!(find(story), None, "{story}");
        }
    }

    #[test]
    fn what_is_not_wanted_is_told_from_what_is() {
        assert!(
            declines("Fines: not now.") && declines("Works without a network") && declines("Excel is out of scope")
        );
        assert!(!declines("Read CSV files") && !declines("A notice is sent"));
    }
}
