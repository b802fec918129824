; The expectations of Java tests. Captures and settings are explained in `src/verify/falsify.rs`.
(class_declaration name: (identifier) @title) @group
((method_declaration name: (identifier) @title body: (block) @body) @test
  (#set! fails "if ({1} != {2}) throw new AssertionError(\"{1} is not {2}\");"))
((annotation arguments: (annotation_argument_list (element_value_pair key: (identifier) @_expected)) @panics)
  (#eq? @_expected "expected"))

[(decimal_integer_literal) (decimal_floating_point_literal)] @number
(string_literal) @text
(character_literal) @char
[(true) (false)] @flag

; The message is the last argument in JUnit 5 and the first in JUnit 4.
((method_invocation
    !object
    name: (identifier) @callee
    arguments: (argument_list . (_) @left . (_) @right .)) @equal
  (#eq? @callee "assertEquals")
  (#set! fails "assertEquals({1}, {2});"))
((method_invocation
    object: (_) @object
    name: (identifier) @callee
    arguments: (argument_list . (_) @left . (_) @right .)) @equal
  (#eq? @callee "assertEquals")
  (#set! fails "{object}.assertEquals({1}, {2});"))
((method_invocation
    name: (identifier) @_callee
    arguments: (argument_list . (_) @left . (_) @right .)) @equal
  (#any-of? @_callee "assertSame" "assertArrayEquals" "assertIterableEquals" "assertLinesMatch"))
((method_invocation
    name: (identifier) @_callee
    arguments: (argument_list . (_) @left . (_) @right . [(string_literal) (lambda_expression) (decimal_floating_point_literal)])) @equal
  (#any-of? @_callee "assertEquals" "assertSame" "assertArrayEquals" "assertIterableEquals"))
((method_invocation
    name: (identifier) @_callee
    arguments: (argument_list
      . (string_literal)
      . (_) @left
      . [(method_invocation) (identifier) (field_access) (decimal_integer_literal) (object_creation_expression)] @right)) @equal
  (#any-of? @_callee "assertEquals" "assertSame" "assertArrayEquals"))
((method_invocation
    object: (method_invocation name: (identifier) @_that arguments: (argument_list . (_) @left .))
    name: (identifier) @_equal
    arguments: (argument_list . (_) @right .)) @equal
  (#eq? @_that "assertThat") (#any-of? @_equal "isEqualTo" "isSameAs" "contains" "hasSize" "containsExactly"))
((method_invocation
    name: (identifier) @_that
    arguments: (argument_list
      . (_) @left
      . (method_invocation name: (identifier) @_is arguments: (argument_list . (_) @right .)) .)) @equal
  (#eq? @_that "assertThat") (#any-of? @_is "is" "equalTo"))

((method_invocation name: (identifier) @flip) @holds (#eq? @flip "assertTrue") (#set! flips "assertFalse"))
((method_invocation name: (identifier) @flip) @holds (#eq? @flip "assertFalse") (#set! flips "assertTrue"))
((method_invocation name: (identifier) @flip) @holds (#eq? @flip "assertNull") (#set! flips "assertNotNull"))
((method_invocation name: (identifier) @flip) @holds (#eq? @flip "assertNotNull") (#set! flips "assertNull"))
((method_invocation object: (method_invocation name: (identifier) @_that) name: (identifier) @flip) @holds
  (#eq? @_that "assertThat") (#eq? @flip "isTrue") (#set! flips "isFalse"))
((method_invocation object: (method_invocation name: (identifier) @_that) name: (identifier) @flip) @holds
  (#eq? @_that "assertThat") (#eq? @flip "isFalse") (#set! flips "isTrue"))

((method_invocation
    name: (identifier) @_throws
    arguments: (argument_list . (class_literal) @error)) @raises
  (#any-of? @_throws "assertThrows" "assertThrowsExactly" "isInstanceOf")
  (#set! other "ArrayStoreException.class"))

(variable_declarator name: (identifier) @name value: (_) @value) @binding
(enhanced_for_statement name: (identifier) @params value: (_) @rows) @table

(return_statement) @return
[(lambda_expression) (method_declaration) (class_body)] @scope
[
  (if_statement)
  (while_statement)
  (try_statement)
  (try_with_resources_statement)
  (switch_expression)
  (ternary_expression)
  (lambda_expression)
] @maybe

; Calls that may be assertions, and functions that tests may call.
(expression_statement (method_invocation name: (_) @callee arguments: (argument_list) @arguments)) @check
(method_declaration name: (identifier) @name parameters: (formal_parameters) @params) @helper
((method_invocation name: (identifier) @flip) @holds (#eq? @flip "assertNotEquals") (#set! flips "assertEquals"))
((method_invocation name: (identifier) @flip) @holds (#eq? @flip "assertNotSame") (#set! flips "assertSame"))
