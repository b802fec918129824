; The expectations of Rust tests. Captures and settings are explained in `src/verify/falsify.rs`.
(mod_item name: (identifier) @title) @group
((function_item name: (identifier) @title body: (block) @body) @test
  (#set! fails "assert_eq!({1}, {2});"))
(function_item body: (block (_expression) @tail .))
((attribute_item (attribute (identifier) @_panics)) @panics (#eq? @_panics "should_panic"))

[(integer_literal) (float_literal)] @number
[(string_literal) (raw_string_literal)] @text
(char_literal) @char
(boolean_literal) @flag

((macro_invocation macro: (_) @callee (token_tree) @sides) @equal
  (#match? @callee "(^|::)(debug_)?assert_eq$")
  (#set! fails "{callee}!({1}, {2});") (#set! opposite "assert_ne"))
((macro_invocation macro: (_) @_callee (token_tree) @conditions) @holds
  (#match? @_callee "(^|::)(debug_)?assert$")
  (#set! negated "!({condition})"))

; Only a whole condition: of `!a.contains("b")` or `a.contains("b") || c` no change must be noticed.
((macro_invocation macro: (_) @_callee
    (token_tree (identifier) @right . (identifier) @_in . (token_tree . (_) @left .)) @_all) @contains
  (#match? @_callee "(^|::)(debug_)?assert$")
  (#any-of? @_in "contains" "contains_key" "starts_with" "ends_with")
  (#match? @_all "^\\(\\s*\\w[^!|&]*\\.\\w+\\([^()]*\\)\\s*(,|\\)$)"))

(let_declaration pattern: (identifier) @name value: (_) @value) @binding
(const_item name: (identifier) @name value: (_) @value) @binding
(static_item name: (identifier) @name value: (_) @value) @binding
(for_expression pattern: (_) @params value: (_) @rows) @table

(return_expression) @return
[(closure_expression) (function_item)] @scope
[(if_expression) (match_expression) (while_expression) (closure_expression)] @maybe

; Calls that may be assertions, and functions that tests may call.
(expression_statement (call_expression function: (_) @callee arguments: (arguments) @arguments)) @check
((macro_invocation macro: (_) @callee (token_tree) @arguments) @check
  (#match? @callee "assert")
  (#not-match? @callee "(^|::)(debug_)?assert(_eq|_ne)?$"))
(function_item name: (identifier) @name parameters: (parameters) @params) @helper
((macro_invocation macro: (identifier) @flip) @holds
  (#eq? @flip "assert_ne") (#set! flips "assert_eq"))
