((function_declaration name: (identifier) @name) @test (#match? @name "^(Test|Fuzz|Example|Benchmark)"))
((call_expression
  function: (selector_expression operand: (identifier) @_t field: (field_identifier) @_skip)) @skip
  (#any-of? @_t "t" "b" "tb") (#any-of? @_skip "Skip" "Skipf" "SkipNow"))
((call_expression
  function: (selector_expression operand: (identifier) @_spew field: (field_identifier) @_dump)) @debugging
  (#eq? @_spew "spew") (#eq? @_dump "Dump"))
