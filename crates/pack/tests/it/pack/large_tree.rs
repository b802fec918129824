//! Measures how long the first and the second prompt of a large tree take.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use supervisor_languages::GO;
use supervisor_pack as pack;
use supervisor_pack::{PackRequest, ProjectIndex};
use supervisor_text::redact::Redactor;

const PACKAGES: usize = 1_000;
const FILES: usize = 30;

/// 30,000 files of about 60 lines that use each other's names.
fn write_tree(root: &Path) {
    fs::write(root.join("go.mod"), "module example.com/large\n\ngo 1.22\n").unwrap();
    for package in 0..PACKAGES {
        let dir = root.join(format!("pkg/area{}/p{package}", package % 40));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..FILES {
            let mut text = format!("package p{package}\n\n");
            for function in 0..6 {
                let name = format!("Do{package}x{file}x{function}");
                let _ = writeln!(
                    text,
                    "// {name} returns the sum of the values and Helper.\nfunc {name}(values []int) int {{\n\ttotal := 0\n\
                     \tfor _, value := range values {{\n\t\ttotal += value\n\t}}\n\treturn total + Helper{package}()\n}}\n"
                );
            }
            fs::write(dir.join(format!("file{file}.go")), text).unwrap();
        }
        let helper =
            format!("package p{package}\n\nfunc Helper{package}() int {{\n\treturn 1\n}}\n");
        fs::write(dir.join("util.go"), helper).unwrap();
    }
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "the figures are the point")]
fn prompt_of_large_tree_is_timed() {
    let dir = tempfile::tempdir().unwrap();
    write_tree(dir.path());
    let test = "package p500\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tvalues := []int{1, 2}\n\
                \tif total := Do500x3x1(values); total != 4 {\n\t\tt.Fatal(total, Helper500())\n\t}\n}\n";
    let path = Path::new("pkg/area20/p500/file3_test.go");
    fs::write(dir.path().join(path), test).unwrap();
    let parsed = std::sync::Arc::default();
    for round in ["first", "second"] {
        let began = Instant::now();
        let index = ProjectIndex::with_parsed(dir.path(), std::sync::Arc::clone(&parsed));
        let listed = began.elapsed();
        let packed = pack::files(&PackRequest {
            project: &index,
            ecosystem: Some(&GO),
            test_path: path,
            test_source: test,
            failing_output: "file3_test.go:8: 4 1",
            failing: &[String::from("example.com/large/pkg/area20/p500 TestSum")],
            caller_text: "",
            extra_files: &[],
            co_changed: &[],
            window_bytes: 60_000,
            redactor: &Redactor::patterns_only(),
        });
        eprintln!(
            "{round}: {:.2} s, of which {:.2} s for the list of {} files",
            began.elapsed().as_secs_f64(),
            listed.as_secs_f64(),
            index.len()
        );
        let shown = packed
            .shown
            .iter()
            .any(|file| file.ends_with("p500/file3.go"));
        assert!(shown, "{:?}", packed.shown);
    }
}
