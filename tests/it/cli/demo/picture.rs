//! The picture of the demo in the README: the part of the screen in which the tests decide about three answers, as SVG.

use std::fmt::Write as _;

const LINE_HEIGHT: usize = 18;
const MARGIN: usize = 14;

/// The lines from `GREEN` up to `REFACTOR`, coloured as a terminal would show them.
pub(super) fn svg(screen: &str) -> String {
    let lines: Vec<&str> = screen
        .lines()
        .skip_while(|line| !line.starts_with("GREEN"))
        .take_while(|line| !line.starts_with("REFACTOR"))
        .collect();
    let lines = lines.join("\n");
    let lines: Vec<&str> = lines.trim_end().lines().collect();
    let height = lines.len() * LINE_HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {height}\" role=\"img\">\n\
         <title>supervisor demo: two answers are refused, the third is accepted</title>\n\
         <rect width=\"720\" height=\"{height}\" rx=\"8\" fill=\"#16181d\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n"
    );
    for (index, line) in lines.iter().enumerate() {
        let y = MARGIN + index * LINE_HEIGHT + 13;
        // SVG collapses ordinary spaces.
        let text = line
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace(' ', "\u{a0}");
        writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{}\">{text}</text>",
            colour(line)
        )
        .unwrap();
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn colour(line: &str) -> &'static str {
    if line.contains("  accepted  ") || line.starts_with("    +") {
        "#7ec88b"
    } else if line.contains("  rejected  ")
        || line.contains("  tampered  ")
        || line.starts_with("    -")
    {
        "#e88388"
    } else if line.starts_with("GREEN") {
        "#ffffff"
    } else {
        "#b8bec9"
    }
}
