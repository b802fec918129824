; Functions that pytest and unittest run, code that skips them, and debugging leftovers. Conditional skips do not count.
((function_definition name: (identifier) @name) @test (#match? @name "^test"))
((decorator [
    (attribute) @_skip
    (call function: (attribute) @_skip)
  ]) @skip
  (#any-of? @_skip "pytest.mark.skip" "unittest.skip"))
((call function: (attribute) @_skip) @skip
  (#any-of? @_skip "pytest.skip" "self.skipTest"))
((call function: [(identifier) (attribute)] @_stop) @debugging
  (#any-of? @_stop "breakpoint" "pdb.set_trace" "ipdb.set_trace"))
((import_statement name: (dotted_name) @_debugger) @debugging (#any-of? @_debugger "pdb" "ipdb"))
