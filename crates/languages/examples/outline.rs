//! Prints the definitions and imports of a source file.
//!
//! `cargo run -p supervisor-languages --example outline -- src/main.rs` prints one line for each
//! definition (first and last line, kind, name) and one for each import. Without an argument it
//! reads its own source.
#![allow(clippy::print_stdout, reason = "the example prints its result")]

use std::error::Error;
use std::path::PathBuf;

use supervisor_languages::Language;

fn main() -> Result<(), Box<dyn Error>> {
    let own_source = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/outline.rs");
    let path = PathBuf::from(std::env::args().nth(1).unwrap_or(own_source.into()));
    let source = std::fs::read_to_string(&path)?;
    let language = Language::of_path(&path).ok_or("the language of this file is not supported")?;
    let tree = language
        .parse(&path, &source)
        .ok_or("the file is too large to parse")?;

    println!("{} ({})", path.display(), language.name);
    for definition in tree.definitions() {
        let (first, last) = (definition.lines.start + 1, definition.lines.end);
        let indent = "  ".repeat(definition.depth);
        println!(
            "{first:>5}-{last:<5} {indent}{:?} {}",
            definition.kind, definition.name
        );
    }
    for import in language.imports(&tree) {
        println!("imports {}", import.full_name("::"));
    }
    Ok(())
}
