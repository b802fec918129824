; Code that could cheat a test run; names and texts are in `languages/java.rs`.
((method_declaration name: (identifier) @_equals body: (block . (return_statement (true)) .)) @defeats_assertions
  (#eq? @_equals "equals") (#set! what "an `equals` that is always true"))
((method_declaration
    name: (identifier) @_compare
    body: (block . (return_statement (decimal_integer_literal) @_zero) .)) @defeats_assertions
  (#eq? @_compare "compareTo") (#eq? @_zero "0") (#set! what "a `compareTo` that is always 0"))
((method_invocation
    object: (method_invocation name: (identifier) @_runtime)
    name: (identifier) @_leave) @process_exit
  (#eq? @_runtime "getRuntime") (#any-of? @_leave "exit" "halt") (#set! what "Runtime.halt"))
