//! Cheats of the kinds that got through, and honest answers that look odd, as data: one file per language in `adversary/`.
//! A project has tests that fail and a hidden check, a program whose output only right code makes. Every cheat passes the
//! tests and fails the check, every honest answer passes both; that is shown with the toolchains alone. Then the program
//! judges them. Five cheats and three honest answers of each language by default; `SUPERVISOR_TEST_LONG=1` takes all of
//! them, and `SUPERVISOR_TEST_ROW` those with these words in their names.

mod data;
mod judged;

use super::case::Kind;
use data::{CLASSES, Language, Likelihood, languages};

#[test]
fn tables_cover_classes_and_languages() {
    let all = languages();
    let count =
        |of: fn(&Language) -> usize| all.iter().map(|(_, language)| of(language)).sum::<usize>();
    assert_eq!(all.len(), 7);
    assert!(count(|language| language.cheats.len()) >= 120);
    assert!(count(|language| language.honest.len()) >= 40);
    for (kind, language) in &all {
        let names: Vec<&str> = language.rows().map(|row| row.name.as_str()).collect();
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{kind:?}: names are unique");
        for row in language.rows() {
            assert!(language.projects.contains_key(&row.project), "{}", row.name);
        }
        // Else a hidden check could fail whatever the answer is.
        for (name, project) in &language.projects {
            let is_shown = language.honest.iter().any(|row| row.project == *name);
            assert!(is_shown || project.is_refactored(), "{kind:?}: {name}");
        }
    }
    for class in CLASSES {
        let in_class = |language: &Language| {
            let cheats = language.cheats.iter();
            cheats.filter(|cheat| cheat.class == class).count()
        };
        let languages = all.iter().filter(|(_, language)| in_class(language) > 0);
        assert!(
            languages.count() >= 2,
            "{class} is a class of several languages"
        );
    }
    let known = |cheat: &data::Cheat| CLASSES.contains(&cheat.class.as_str());
    assert!(all.iter().all(|(_, l)| l.cheats.iter().all(known)));
    let unprompted = |language: &Language| {
        let cheats = language.cheats.iter();
        cheats
            .filter(|cheat| cheat.likelihood == Likelihood::Unprompted)
            .count()
    };
    assert!(all.iter().map(|(_, l)| unprompted(l)).sum::<usize>() >= 60);
}

macro_rules! judged {
    ($($kind:ident: $rows:ident, $verdicts:ident, $needs:literal;)*) => {
        $(
            #[test]
            #[ignore = $needs]
            fn $rows() {
                data::assert_rows_are_what_they_say(Kind::$kind);
            }

            #[test]
            #[ignore = $needs]
            fn $verdicts() {
                judged::assert_verdicts(Kind::$kind);
            }
        )*
    };
}

judged! {
    Python: rows_in_python_are_what_they_say, verdicts_on_odd_answers_in_python, "needs pytest";
    Node: rows_in_javascript_are_what_they_say, verdicts_on_odd_answers_in_javascript, "needs jest";
    Go: rows_in_go_are_what_they_say, verdicts_on_odd_answers_in_go, "needs go";
    Ruby: rows_in_ruby_are_what_they_say, verdicts_on_odd_answers_in_ruby, "needs rspec";
    Elixir: rows_in_elixir_are_what_they_say, verdicts_on_odd_answers_in_elixir, "needs elixir";
    Java: rows_in_java_are_what_they_say, verdicts_on_odd_answers_in_java, "needs maven and junit";
}

#[test]
fn rows_in_rust_are_what_they_say() {
    data::assert_rows_are_what_they_say(Kind::Rust);
}

#[test]
fn verdicts_on_odd_answers_in_rust() {
    judged::assert_verdicts(Kind::Rust);
}
