; Methods that JUnit and TestNG run, code that skips them, and code that always fails.
((method_declaration
    (modifiers [
      (marker_annotation name: (_) @_annotation)
      (annotation name: (_) @_annotation)
    ])
    name: (identifier) @name) @test
  (#match? @_annotation "^([a-z.]+\\.)?(Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Theory|Property)$"))
((method_declaration name: (identifier) @name) @test (#match? @name "^test[A-Z0-9_]"))
([(marker_annotation name: (_) @_skip) (annotation name: (_) @_skip)] @skip
  (#match? @_skip "^([a-z.]+\\.)?(Disabled|Ignore)$"))
((method_invocation name: (identifier) @_debug) @debugging (#eq? @_debug "printStackTrace"))
((expression_statement (method_invocation name: (identifier) @_fail)) @vacuous (#eq? @_fail "fail"))
((expression_statement (method_invocation
    name: (identifier) @_assert
    arguments: (argument_list (false)))) @vacuous
  (#eq? @_assert "assertTrue"))
((expression_statement (method_invocation
    name: (identifier) @_assert
    arguments: (argument_list (true)))) @vacuous
  (#eq? @_assert "assertFalse"))
((expression_statement (method_invocation
    name: (identifier) @_assert
    arguments: (argument_list
      . [(decimal_integer_literal) (string_literal) (true) (false)]
      . [(decimal_integer_literal) (string_literal) (true) (false)] .))) @vacuous
  (#eq? @_assert "assertEquals"))
