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
