//! Splitting of lists, prose, letters and code.

use proptest::prelude::*;

use super::*;

fn split(text: &str) -> Vec<String> {
    RequirementItems::split(text)
        .expect("not too long")
        .items
        .into_iter()
        .map(|item| item.text)
        .collect()
}

#[test]
fn bullets_numbers_and_letters_are_one_requirement_each() {
    for text in [
        "- read CSV\n- write JSON",
        "* read CSV\n* write JSON",
        "1. read CSV\n2. write JSON",
        "1) read CSV\n\n2) write JSON",
        "(1) read CSV\n(2) write JSON",
        "a) read CSV\nb) write JSON",
        "R1: read CSV\nR2: write JSON",
        "- [ ] read CSV\n- [x] write JSON",
        "• read CSV\r\n• write JSON",
        "# Import\n- read CSV\n## Export\n- write JSON",
        "It must:\n- read CSV\n- write JSON",
        "- formats:\n  - read CSV\n  - write JSON",
        "- read\n  CSV\n- write JSON",
    ] {
        assert_eq!(split(text), ["read CSV", "write JSON"], "{text}");
    }
}

#[test]
fn prose_is_split_into_sentences() {
    assert_eq!(
        split("It reads CSV. It writes JSON!"),
        ["It reads CSV.", "It writes JSON!"]
    );
    assert_eq!(
        split("It reads CSV\n\nIt writes JSON"),
        ["It reads CSV", "It writes JSON"]
    );
    let whole = [
        "Keep 1.5 GB free, e.g. On disk.",
        "uses main.rs and v2.0 now",
        "Ask Dr. Who. ",
        "Use `a. B` here",
    ];
    for text in whole {
        assert_eq!(split(text), [text.trim()], "{text}");
    }
    assert_eq!(split("読む。書く。"), ["読む。", "書く。"]);
}

#[test]
fn table_rows_and_labelled_lines_are_requirements() {
    let table = "| Id | What | Prio |\n|----|:-----|---|\n| F1 | read CSV | must |\n| F2 | write JSON | should |";
    assert_eq!(
        split(table),
        ["F1; read CSV; must", "F2; write JSON; should"]
    );
    assert_eq!(
        split("| read CSV |\n| write JSON |"),
        ["read CSV", "write JSON"]
    );
    let own = "REQ-001 The tool reads CSV\nand TSV\nNFR-2: no personal data in logs";
    assert_eq!(
        split(own),
        [
            "REQ-001 The tool reads CSV and TSV",
            "NFR-2: no personal data in logs"
        ]
    );
    assert_eq!(
        split("users can log in\nusers can log out\nlimit of `5`"),
        ["users can log in", "users can log out", "limit of `5`"]
    );
    assert_eq!(
        split("Intro line\n---\n> quoted demand\n\n    indented demand"),
        ["Intro line", "quoted demand", "indented demand"]
    );
    assert_eq!(
        split("- read CSV\n\n  with a header\n- write **JSON**"),
        ["read CSV with a header", "write **JSON**"]
    );
    for whole in [
        "make the report\nfaster",
        "It reads CSV,\nTSV and JSON",
        "UTF-8 is read.\nso is Latin",
    ] {
        assert_eq!(split(whole).len(), 1, "{whole}");
    }
}

#[test]
fn lists_and_prose_can_be_mixed() {
    let text = "A tool for tables. It is small.\n\n- read CSV\n- write JSON\n\nNo network.";
    assert_eq!(
        split(text),
        [
            "A tool for tables.",
            "It is small.",
            "read CSV",
            "write JSON",
            "No network."
        ]
    );
}

#[test]
fn unsplittable_text_is_one_requirement() {
    for text in [
        "make it better",
        "???",
        "---",
        "# Only a heading",
        "Formats:",
    ] {
        assert_eq!(split(text), [text], "{text}");
    }
    assert_eq!(
        split("- print this:\n```\n- not an item\n\n1. nor this\n```"),
        ["print this:\n```\n- not an item\n\n1. nor this\n```"]
    );
}

#[test]
fn code_block_belongs_to_the_preceding_sentence() {
    let text = "Add `merge`. It prints:\n\n```\n$ merge a b\n  09:00 start\n```\n\nOverlaps fail:\n~~~\nerror: x\n~~~\nExit code 3.";
    assert_eq!(
        split(text),
        [
            "Add `merge`.",
            "It prints:\n```\n$ merge a b\n  09:00 start\n```",
            "Overlaps fail:\n~~~\nerror: x\n~~~",
            "Exit code 3."
        ]
    );
    assert_eq!(
        split("```\nmake all\n```\nIt builds."),
        ["```\nmake all\n```", "It builds."]
    );
}

#[test]
fn list_items_and_exclusions_are_recognised() {
    let of = |text: &str| RequirementItems::split(text).expect("not too long");
    assert!(of("- sorted lists").is_listed(0) && !of("Sorted lists are good.").is_listed(0));
    let asks_for_exclusion = |text: &str| of(text).asks_for_exclusion(0);
    assert!(
        asks_for_exclusion("Fines: not now.")
            && asks_for_exclusion("Works without a network")
            && asks_for_exclusion("Excel is out of scope")
    );
    for wanted in ["Read CSV files", "A notice is sent", "Support --no-color"] {
        assert!(!asks_for_exclusion(wanted), "{wanted}");
    }
}

#[test]
fn too_many_sentences_fall_back_to_paragraphs() {
    let prose = format!(
        "{}\n\n{}",
        "It does this. ".repeat(40),
        "It does that. ".repeat(40)
    );
    assert_eq!(split(&prose).len(), 2);
    let list = "- one more\n".repeat(61);
    assert_eq!(
        RequirementItems::split(&list),
        Err(RequirementsTooLong::Items { is: 61 })
    );
    assert_eq!(split(&"- one more\n".repeat(60)).len(), 60);
    assert!(matches!(
        RequirementItems::split(&"x".repeat(40_000)),
        Err(RequirementsTooLong::Bytes { .. })
    ));
}

#[test]
fn ids_are_matched_leniently() {
    let two = RequirementItems::split("- a\n- b").expect("two");
    assert_eq!(
        (
            two.find("R2"),
            two.find(" r1 "),
            two.find("R3"),
            two.find("R0")
        ),
        (Some(1), Some(0), None, None)
    );
    assert_eq!(
        (two.find("2"), two.find("R-1"), two.find("R+1")),
        (None, None, None)
    );
    assert_eq!(two.range(), "R1 to R2");
}

proptest! {
    #[test]
    fn no_word_is_lost(words in proptest::collection::vec("[a-z]{2,8}", 1..40), marks in proptest::collection::vec("( |\n|\n\n|\n- |\\. A |\n1\\. )", 40)) {
        let text: String = words.iter().zip(&marks).map(|(w, m)| format!("{w}{m}")).collect();
        let all = split(&text).join(" ");
        for word in &words {
            prop_assert!(all.contains(word.as_str()), "{} lost in {:?}", word, all);
        }
    }
}
