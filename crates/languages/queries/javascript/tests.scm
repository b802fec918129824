; Calls that declare a test, code that skips them, and debugging leftovers.
((call_expression
  function: [
    (identifier) @_it
    (member_expression object: (identifier) @_it)
  ]
  arguments: (arguments . [
    (string (string_fragment) @name)
    (template_string) @name
  ])) @test
  (#any-of? @_it "it" "test" "specify" "xit" "xtest"))
((call_expression function: (identifier) @_it) @skip (#any-of? @_it "xit" "xtest" "xdescribe"))
((call_expression
  function: (member_expression object: (identifier) @_it property: (property_identifier) @_how)) @skip
  (#any-of? @_it "it" "test" "describe" "suite") (#any-of? @_how "skip" "only" "todo"))
((call_expression
  function: (member_expression object: (identifier) @_console property: (property_identifier) @_how)) @debugging
  (#eq? @_console "console") (#any-of? @_how "log" "debug"))
(debugger_statement) @debugging
