//! Table rows: inputs versus expected values, and the rows of one test.

use super::*;

#[test]
fn input_column_is_changed_only_in_assertion() {
    let source = "package a

func TestSame(t *testing.T) {
	rows := []struct{ name string; votes int }{{name: \"two\", votes: 2}}
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			if got := Same(tc.votes); got != tc.votes {
				t.Errorf(\"got %d, want %d\", got, tc.votes)
			}
		})
	}
}
";
    let name = TestName::from("example.com/a TestSame/two");
    let found = FalsifiableTests::find(Path::new("a_test.go"), source, &[name])
        .expect("a language we know");
    for seed in 0..20 {
        let (text, is_sure) = first_change(&found, seed);
        assert!(
            text.contains("votes: 2}"),
            "the input must not change: {text}"
        );
        assert!(!text.contains("got != tc.votes"), "{text}");
        assert!(is_sure);
    }
    // The name of a row and a message are not inputs.
    let named = source
        .replace("Same(tc.votes)", "Same(2)")
        .replace("tc.name", "tc.votes");
    let name = TestName::from("example.com/a TestSame/two");
    let found = FalsifiableTests::find(Path::new("a_test.go"), &named, &[name])
        .expect("a language we know");
    let (text, _) = first_change(&found, 1);
    assert!(
        text.contains("got != tc.votes") && !text.contains("votes: 2}"),
        "{text}"
    );
}

fn first_change(tests: &FalsifiableTests, seed: u64) -> (String, bool) {
    let challenges = tests.challenges(&mut fastrand::Rng::with_seed(seed));
    let made = tests.with_changes(&challenges, &[(0, 0)]);
    (made.files.text, made.tests[0].is_sure)
}

#[test]
fn row_target_includes_all_passed_rows() {
    let plain = crate::baseline::tests::run(
        "+a:TestRows +a:TestRows/I +a:TestRows/II +b:TestRows/I -a:TestRows/III",
    );
    let mut found = tests("a_test.go", GO, &["a:TestRows/I"]);
    found.include_rows(&plain);
    let names: Vec<&str> = found.targets[0]
        .names
        .iter()
        .map(|name| name.0.as_str())
        .collect();
    assert_eq!(names, ["a:TestRows/I", "a:TestRows", "a:TestRows/II"]);
    assert_eq!(
        found.single_test(&plain),
        Some(TestName::from("a:TestRows"))
    );
}
