; Code that could cheat a test run; names and texts are in `languages/rust.rs`.
; A macro that shadows an assertion for tests in the same file.
((macro_definition name: (identifier) @_name) @reaches_for_the_runner
  (#match? @_name "^(assert|debug_assert|panic)") (#set! what "macro_rules! assert"))
((use_as_clause alias: (identifier) @_name) @reaches_for_the_runner
  (#match? @_name "^(assert|debug_assert|panic)") (#set! what "as assert"))
((macro_invocation macro: (identifier) @_cfg (token_tree (identifier) @_test)) @knows_the_runner
  (#eq? @_cfg "cfg") (#eq? @_test "test") (#set! what "cfg!(test)"))
