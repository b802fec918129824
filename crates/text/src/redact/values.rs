//! Recognises secrets by value: one automaton over all encodings of each value.

use std::borrow::Cow;
use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Shorter values occur by chance: a key `test` would remove the word from a log.
pub(super) const MIN_SECRET_LEN: usize = 8;

/// The characters that `encodeURIComponent` and most clients escape.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(super) struct Values {
    /// `None` if there is nothing to search for.
    forms: Option<AhoCorasick>,
    pub(super) ignored_values: usize,
}

impl Values {
    pub(super) fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let (mut forms, mut ignored_values) = (BTreeSet::new(), 0);
        for secret in secrets {
            // A value read from a file often ends with a newline that is not part of the key.
            match secret.as_ref().trim() {
                "" => {}
                secret if secret.len() < MIN_SECRET_LEN => ignored_values += 1,
                secret => forms.extend(forms_of(secret)),
            }
        }
        let forms = (!forms.is_empty()).then(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(forms)
                .expect("a handful of short literals is far below the automaton's limits")
        });
        Self {
            forms,
            ignored_values,
        }
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.forms
            .as_ref()
            .is_some_and(|forms| forms.is_match(text))
    }

    /// Replaces each value by what `mark` makes of it.
    pub(super) fn replace<'a>(
        &self,
        text: &'a str,
        mark: &mut dyn FnMut(&str) -> String,
    ) -> Cow<'a, str> {
        let Some(forms) = self.forms.as_ref().filter(|forms| forms.is_match(text)) else {
            return Cow::Borrowed(text);
        };
        let mut out = String::with_capacity(text.len());
        forms.replace_all_with(text, &mut out, |_, found, out| {
            out.push_str(&mark(found));
            true
        });
        Cow::Owned(out)
    }
}

fn forms_of(secret: &str) -> Vec<String> {
    let escaped = utf8_percent_encode(secret, ESCAPED).to_string();
    let quoted = serde_json::to_string(secret).expect("a string is always JSON");
    let mut forms = vec![
        secret.to_owned(),
        lower_hex(&escaped),
        escaped.replace("%20", "+"), // as forms write it
        escaped,
        quoted[1..quoted.len() - 1].to_owned(),
    ];
    for lead in 0..3 {
        forms.extend(base64_core(secret.as_bytes(), lead));
    }
    forms
}

/// The part of the base64 text that depends only on the secret, if `lead` bytes of other text (such
/// as a user name) share its first group of three.
fn base64_core(secret: &[u8], lead: usize) -> Vec<String> {
    let mut bytes = vec![0; lead];
    bytes.extend_from_slice(secret);
    // Each character holds six bits. Characters that also hold bits of a neighbour are dropped at
    // both ends.
    let (first, last) = ((lead * 8).div_ceil(6), bytes.len() * 8 / 6);
    [
        STANDARD_NO_PAD.encode(&bytes),
        URL_SAFE_NO_PAD.encode(&bytes),
    ]
    .into_iter()
    .map(|text| text[first..last].to_owned())
    .filter(|text| text.len() >= MIN_SECRET_LEN)
    .collect()
}

/// Lower-cases the hex digits of escapes: `%2F` becomes `%2f`.
fn lower_hex(escaped: &str) -> String {
    let mut digits = 0;
    escaped
        .chars()
        .map(|c| match c {
            '%' => {
                digits = 2;
                c
            }
            _ if digits > 0 => {
                digits -= 1;
                c.to_ascii_lowercase()
            }
            _ => c,
        })
        .collect()
}
