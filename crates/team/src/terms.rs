//! Finds inconsistent terms: synonyms that are used side by side.

use std::collections::{BTreeMap, BTreeSet};

use super::document::TeamDocument;
use super::verdict::EvidenceLocation;

/// Synonyms that are used side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermDrift {
    /// The most frequent term.
    pub main: String,
    /// The other terms, each with its first occurrence.
    pub others: Vec<(String, EvidenceLocation)>,
}

/// Finds groups of which more than one term is used. Terms declared in a glossary are allowed.
pub fn find_drift(documents: &[&TeamDocument], groups: &[Vec<String>]) -> Vec<TermDrift> {
    let declared = declared_terms(documents);
    groups
        .iter()
        .filter_map(|group| drift_of(documents, group, &declared))
        .collect()
}

fn drift_of(
    documents: &[&TeamDocument],
    group: &[String],
    declared: &BTreeSet<String>,
) -> Option<TermDrift> {
    let mut used: BTreeMap<String, (usize, EvidenceLocation)> = BTreeMap::new();
    for document in documents {
        for (line, text) in document.lines() {
            let words = fold_words(text);
            for term in group
                .iter()
                .map(|term| fold_words(term))
                .filter(|term| !term.is_empty())
            {
                let times = words
                    .windows(term.len())
                    .filter(|window| *window == term.as_slice())
                    .count();
                if times > 0 {
                    let place = || EvidenceLocation {
                        file: document.path.clone(),
                        line,
                        text: text.trim().to_owned(),
                    };
                    used.entry(term.join(" ")).or_insert_with(|| (0, place())).0 += times;
                }
            }
        }
    }
    // Two declared terms mean two different things.
    let mut used: Vec<(String, (usize, EvidenceLocation))> = used.into_iter().collect();
    let undeclared = used
        .iter()
        .filter(|(term, _)| !declared.contains(term))
        .count();
    if used.len() < 2 || undeclared == 0 {
        return None;
    }
    // A declared term wins, then the most frequent, then the alphabetically first.
    used.sort_by_key(|(term, (times, _))| (!declared.contains(term), std::cmp::Reverse(*times)));
    let mut used = used.into_iter();
    let (main, _) = used.next()?;
    let others: Vec<_> = used
        .filter(|(t, _)| !declared.contains(t))
        .map(|(term, (_, place))| (term, place))
        .collect();
    (!others.is_empty()).then_some(TermDrift { main, others })
}

/// Terms declared in a glossary: table rows or list items in a section of that name, or the field
/// `terminology`.
fn declared_terms(documents: &[&TeamDocument]) -> BTreeSet<String> {
    let is_glossary = |section: &str| {
        let section = section.to_lowercase();
        section.contains("glossary") || section.contains("terminology")
    };
    let mut terms = BTreeSet::new();
    for document in documents {
        let rows = document
            .rows
            .iter()
            .filter(|row| is_glossary(&row.section))
            .filter_map(|row| row.cells.first());
        let items = document
            .items
            .iter()
            .filter(|item| is_glossary(&item.section));
        let heads = items.filter_map(|item| item.text.split([':', '–', '—']).next());
        let field = document.front_text("terminology").unwrap_or_default();
        let all = rows
            .map(String::as_str)
            .chain(heads)
            .chain(field.split(", "))
            .map(|term| fold_words(term).join(" "));
        terms.extend(all.filter(|term| !term.is_empty()));
    }
    terms
}

/// Splits into words, in lower case and singular.
fn fold_words(text: &str) -> Vec<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(|word| singular(&word.to_lowercase())).collect()
}

fn singular(word: &str) -> String {
    match word {
        _ if word.len() < 4
            || word.ends_with("ss")
            || word.ends_with("us")
            || word.ends_with("is") =>
        {
            word.to_owned()
        }
        _ if word.ends_with("ies") => format!("{}y", &word[..word.len() - 3]),
        _ if word.ends_with("sses")
            || word.ends_with("xes")
            || word.ends_with("ches")
            || word.ends_with("shes") =>
        {
            word[..word.len() - 2].to_owned()
        }
        _ => word.strip_suffix('s').unwrap_or(word).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drift(texts: &[&str]) -> Vec<String> {
        let documents: Vec<_> = texts
            .iter()
            .map(|t| TeamDocument::new("d.md", "d.md", t.as_bytes()))
            .collect();
        let group = vec![
            vec!["user".to_owned(), "customer".into()],
            vec!["sign in".into(), "log in".into()],
        ];
        let found = find_drift(&documents.iter().collect::<Vec<_>>(), &group);
        found
            .into_iter()
            .map(|d| format!("{} not {}", d.main, d.others[0].0))
            .collect()
    }

    #[test]
    fn undeclared_synonyms_are_found() {
        assert_eq!(
            drift(&["Users and users", "The Customers pay"]),
            ["user not customer"]
        );
        assert_eq!(
            drift(&["users sign in", "users sign in again"]),
            Vec::<String>::new()
        );
        assert_eq!(
            drift(&["they log in", "sign in, sign in"]),
            ["sign in not log in"]
        );
        let glossary = "# Glossary\n\n- customer: who pays\n- user: who types\n";
        assert_eq!(
            drift(&[glossary, "users and customers"]),
            Vec::<String>::new()
        );
        assert_eq!(
            drift(&[
                "# Glossary\n\n- customer: who pays\n",
                "users, users, customers"
            ]),
            ["customer not user"]
        );
        assert_eq!(drift(&["bus status and process"]), Vec::<String>::new());
    }
}
