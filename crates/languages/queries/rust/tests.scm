; Functions that a test harness runs, code that skips them, and debugging leftovers.
((attribute_item (attribute [
    (identifier) @_attribute
    (scoped_identifier name: (identifier) @_attribute)
  ]))
  . (attribute_item)*
  . (function_item name: (identifier) @name) @test
  (#any-of? @_attribute "test" "rstest" "test_case" "quickcheck" "wasm_bindgen_test" "test_log"))
((attribute_item (attribute (identifier) @_ignore)) @skip (#eq? @_ignore "ignore"))
((macro_invocation macro: (identifier) @_dbg) @debugging (#eq? @_dbg "dbg"))
