; Code that could cheat a test run; names and texts are in `languages/go.rs`.
; Access to unexported names of another package.
((comment) @reaches_for_the_runner (#match? @reaches_for_the_runner "^//go:linkname") (#set! what "go:linkname"))
