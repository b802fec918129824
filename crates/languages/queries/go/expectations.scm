; The expectations of Go tests. Captures and settings are explained in `src/verify/falsify.rs`.
((function_declaration
    name: (identifier) @title
    parameters: (parameter_list . (parameter_declaration name: (identifier) @t type: (pointer_type) @_type))
    body: (block) @body) @test
  (#eq? @_type "*testing.T")
  (#set! fails "defer {t}.Errorf(\"%d is not %d\", {1}, {2});")
  (#set! where "first"))

[(int_literal) (float_literal)] @number
[(interpreted_string_literal) (raw_string_literal)] @text
(rune_literal) @char
[(true) (false)] @flag

((if_statement
    condition: (binary_expression left: (_) @left operator: "!=" right: (_) @right)
    consequence: (block) @_says) @equal
  (#not-eq? @right "nil")
  (#match? @_says "\\.(Error|Fatal|Fail)"))
((if_statement
    condition: (unary_expression operand: (call_expression
      function: (_) @_deep
      arguments: (argument_list . (_) @left . (_) @right)))
    consequence: (block) @_says) @equal
  (#match? @_deep "(DeepEqual|Equal)$")
  (#match? @_says "\\.(Error|Fatal|Fail)"))
((call_expression
    function: (selector_expression operand: (identifier) @_library field: (field_identifier) @_method)
    arguments: (argument_list . (_) . (_) @left . (_) @right)) @equal
  (#match? @_library "^(assert|require)$")
  (#match? @_method "^(Equal|Equalf|EqualValues|Exactly)$"))

(short_var_declaration left: (expression_list . (identifier) @name .) right: (expression_list . (_) @value .)) @binding
(var_spec name: (identifier) @name value: (expression_list . (_) @value .)) @binding
(const_spec name: (identifier) @name value: (expression_list . (_) @value .)) @binding
(for_statement (range_clause left: (expression_list (identifier) @params .) right: (_) @rows)) @table

(return_statement) @return
[(func_literal) (function_declaration)] @scope
; An assertion is itself a condition; code inside it may not be reached.
(if_statement consequence: (block) @maybe)
(if_statement alternative: (_) @maybe)
[(expression_switch_statement) (type_switch_statement) (select_statement)] @maybe

; Calls that may be assertions, and functions that tests may call.
(expression_statement (call_expression function: (_) @callee arguments: (argument_list) @arguments)) @check
(function_declaration name: (identifier) @name parameters: (parameter_list) @params) @helper
(const_spec name: (identifier) @name value: (expression_list . (_) @value .)) @binding
; A condition without a value to change.
((if_statement
    condition: [
      (unary_expression)
      (identifier)
      (binary_expression operator: ["==" "<" ">" "<=" ">=" "||" "&&"])
      (binary_expression operator: "!=" right: (nil))
    ] @condition
    consequence: (block) @_says) @holds
  (#not-match? @condition "(DeepEqual|Equal)\\(")
  (#match? @_says "\\.(Error|Fatal|Fail)")
  (#set! negated "!({condition})"))
((call_expression
    function: (selector_expression operand: (identifier) @_library field: (field_identifier) @flip)) @holds
  (#match? @_library "^(assert|require)$") (#eq? @flip "NoError") (#set! flips "Error"))
((call_expression
    function: (selector_expression operand: (identifier) @_library field: (field_identifier) @flip)) @holds
  (#match? @_library "^(assert|require)$") (#eq? @flip "Error") (#set! flips "NoError"))
((call_expression
    function: (selector_expression operand: (identifier) @_library field: (field_identifier) @flip)) @holds
  (#match? @_library "^(assert|require)$") (#eq? @flip "True") (#set! flips "False"))
((call_expression
    function: (selector_expression operand: (identifier) @_library field: (field_identifier) @flip)) @holds
  (#match? @_library "^(assert|require)$") (#eq? @flip "False") (#set! flips "True"))
