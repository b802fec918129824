use super::*;

static GREETING: &[Prompt] = &[Prompt {
    name: "greeting",
    text: "Hello {{name}},\n{{ task }} {\"a\": {\"b\": 1}} {{name}}\n",
}];

fn load(folder: Option<&Path>) -> Result<Template, PromptError> {
    Prompts::new(GREETING, folder.map(Path::to_owned)).load("greeting")
}

fn folder(text: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("temp dir");
    std::fs::write(folder.path().join("greeting.md"), text).expect("write");
    folder
}

fn refused(text: &[u8]) -> String {
    let folder = folder(text);
    let error = load(Some(folder.path()))
        .expect_err("must not be used")
        .to_string();
    assert!(error.contains("greeting.md"), "{error}");
    error
}

#[test]
fn slots_are_filled_and_values_are_data() {
    let filled = load(None)
        .expect("built in")
        .fill(&[("name", "{{task}}"), ("task", "do {{name}}")]);
    assert_eq!(
        filled.expect("both slots"),
        "Hello {{task}},\ndo {{name}} {\"a\": {\"b\": 1}} {{task}}\n"
    );
}

#[test]
fn user_file_overrides_built_in() {
    let folder = folder(b"{{task}} for {{name}}");
    let own = load(Some(folder.path())).expect("sound");
    assert_eq!(
        own.origin(),
        &PromptOrigin::File(folder.path().join("greeting.md"))
    );
    assert_eq!(
        own.fill(&[("name", "n"), ("task", "t")]).expect("filled"),
        "t for n"
    );
    let empty = tempfile::tempdir().expect("temp dir");
    let missing = load(Some(Path::new("/nowhere/at/all"))).expect_err("refused");
    assert!(
        missing.to_string().contains("`/nowhere/at/all`"),
        "{missing}"
    );
    for none in [None, Some(empty.path())] {
        assert_eq!(
            load(none).expect("built in").origin().to_string(),
            "built-in"
        );
    }
}

#[test]
fn unknown_and_missing_slots_are_named() {
    let text = refused(b"{{tsk}} {{name}}");
    assert!(
        text.contains("`tsk`") && text.contains("did you mean `task`?"),
        "{text}"
    );
    let text = refused(b"only {{name}}");
    assert!(text.contains("the slot `task` is missing"), "{text}");
    let template = load(None).expect("built in");
    let error = template
        .fill(&[("name", "n")])
        .expect_err("task is not given")
        .to_string();
    assert!(
        error.contains("prompts/greeting.md") && error.contains("`task`"),
        "{error}"
    );
    let error = template
        .fill(&[("name", "n"), ("task", "t"), ("diff", "d")])
        .expect_err("no place for it")
        .to_string();
    assert!(error.contains("`diff` is missing"), "{error}");
}

#[test]
fn unusable_file_is_an_error() {
    for (text, expected) in [
        (&b"\xff\xfe{{name}}{{task}}"[..], "not UTF-8"),
        (b" \n", "is empty"),
        (b"{{name}}\n\n{{task", ":3: `{{` opens no slot"),
        (b"{{name}} {{task}} {{A b}}", ":1: `{{` opens no slot"),
        (&vec![b'x'; 300 * 1024], "longer than 256 KiB"),
    ] {
        assert!(
            refused(text).contains(expected),
            "{} does not say {expected}",
            refused(text)
        );
    }
    let folder = tempfile::tempdir().expect("temp dir");
    std::fs::create_dir(folder.path().join("greeting.md")).expect("mkdir");
    assert!(load(Some(folder.path())).is_err(), "a directory");
    std::fs::remove_dir(folder.path().join("greeting.md")).expect("rmdir");
    std::os::unix::fs::symlink("gone", folder.path().join("greeting.md")).expect("symlink");
    assert!(load(Some(folder.path())).is_err(), "a link to nothing");
}
