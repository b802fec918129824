; The expectations of Python tests. Captures and settings are explained in `src/verify/falsify.rs`.
(class_definition name: (identifier) @title) @group
((function_definition name: (identifier) @title body: (block) @body) @test
  (#set! fails "assert {1} == {2}"))

[(integer) (float)] @number
(string) @text
[(true) (false)] @flag
(none) @nothing

((assert_statement . (comparison_operator . (_) @left "==" (_) @right .)) @equal
  (#set! fails "assert {1} == {2}") (#set! instead "'{word}'"))
((call
    function: (attribute attribute: (identifier) @_method) @callee
    arguments: (argument_list . (_) @left . (_) @right)) @equal
  (#match? @_method "^assert(Equals?|(List|Dict|Set|Tuple|Sequence|MultiLine|Count|AlmostEqual|Almost)Equal)$")
  (#set! fails "{callee}({1}, {2})") (#set! instead "'{word}'"))

((call function: (attribute attribute: (identifier) @flip)) @holds
  (#eq? @flip "assertTrue") (#set! flips "assertFalse"))
((call function: (attribute attribute: (identifier) @flip)) @holds
  (#eq? @flip "assertFalse") (#set! flips "assertTrue"))
((call function: (attribute attribute: (identifier) @flip)) @holds
  (#eq? @flip "assertIsNone") (#set! flips "assertIsNotNone"))
((assert_statement . (_) @condition) @holds
  (#set! negated "not ({condition})"))
((assert_statement . (comparison_operator . (_) @left "in" . (_) @right .)) @contains)
((call function: (attribute attribute: (identifier) @_in) arguments: (argument_list . (_) @left . (_) @right)) @contains
  (#eq? @_in "assertIn"))
((call
    function: (attribute attribute: (identifier) @_method) @callee
    arguments: (argument_list
      (keyword_argument name: (identifier) @_first value: (_) @left)
      (keyword_argument name: (identifier) @_second value: (_) @right))) @equal
  (#match? @_method "^assert(List|Dict|Set|Tuple|Sequence|MultiLine|Count)?Equals?$")
  (#eq? @_first "first") (#eq? @_second "second")
  (#set! fails "{callee}({1}, {2})") (#set! instead "'{word}'"))
((call function: (attribute attribute: (identifier) @flip)) @holds
  (#eq? @flip "assertNotEqual") (#set! flips "assertEqual"))
((call function: (attribute attribute: (identifier) @flip)) @holds
  (#eq? @flip "assertNotIn") (#set! flips "assertIn"))
((call function: (attribute attribute: (identifier) @flip)) @holds
  (#eq? @flip "assertIsNotNone") (#set! flips "assertIsNone"))
((call function: (attribute attribute: (identifier) @flip)) @holds
  (#eq? @flip "assertIsInstance") (#set! flips "assertNotIsInstance"))
((call function: (attribute attribute: (identifier) @flip)) @holds
  (#match? @flip "^assert(Greater|GreaterEqual)$") (#set! flips "assertLess"))
((call function: (attribute attribute: (identifier) @flip)) @holds
  (#match? @flip "^assert(Less|LessEqual)$") (#set! flips "assertGreater"))

((call function: (_) @_raises arguments: (argument_list . (_) @error)) @raises
  (#match? @_raises "(^|\\.)(raises|assertRaises|assertRaisesRegex)$")
  (#set! other "ZeroDivisionError"))

(assignment left: (identifier) @name right: (_) @value) @binding
(for_statement left: (_) @params right: (_) @rows) @table
((decorated_definition
    (decorator (call function: (_) @_parametrize arguments: (argument_list . (_) @params . (_) @rows)))) @table
  (#match? @_parametrize "parametrize$"))

(return_statement) @return
[(function_definition) (lambda)] @scope
[(if_statement) (try_statement) (while_statement) (match_statement) (lambda)] @maybe

; Calls that may be assertions, and functions that tests may call.
(expression_statement [
  (call function: (_) @callee arguments: (argument_list) @arguments)
  (await (call function: (_) @callee arguments: (argument_list) @arguments))
]) @check
(function_definition name: (identifier) @name parameters: (_) @params) @helper
