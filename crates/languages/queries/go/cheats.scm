; Shapes that could deceive a test run; names and texts stand in `languages/go.rs`.
; Another package's insides, whatever it exports.
((comment) @reaches_for_the_runner (#match? @reaches_for_the_runner "^//go:linkname") (#set! what "go:linkname"))
