; The expectations of Ruby tests. Captures and settings are explained in `src/verify/falsify.rs`.
(class name: (_) @title) @group
((call method: (identifier) @_group arguments: (argument_list . (_) @title) block: (_)) @group
  (#match? @_group "^(describe|context|feature|xdescribe|fdescribe)$"))
((call method: (identifier) @_test arguments: (argument_list . (_) @title) block: [(do_block) (block)] @body) @test
  (#match? @_test "^(it|specify|example|scenario|test|fit)$")
  (#set! fails "expect({1}).to eq({2})"))
((method name: (identifier) @title) @test @body
  (#match? @title "^test_")
  (#set! fails "assert_equal({1}, {2})"))

[(integer) (float)] @number
[(string) (simple_symbol)] @text
[(true) (false)] @flag
(nil) @nothing
(regex) @pattern

((call
    receiver: (call method: (identifier) @_expect arguments: (argument_list . (_) @left)) @_subject
    method: (identifier) @_to
    arguments: (argument_list . (call method: (identifier) @_matcher arguments: (argument_list . (_) @right)))) @equal
  (#eq? @_expect "expect") (#eq? @_to "to") (#match? @_matcher "^(eq|eql|equal|be|match_array|contain_exactly)$")
  (#set! fails "expect({1}).to eq({2})") (#set! instead "'{word}'") (#set! expected "right"))
((call method: (identifier) @callee arguments: (argument_list . (_) @left . (_) @right)) @equal
  (#match? @callee "^assert_equal$")
  (#set! fails "{callee}({1}, {2})") (#set! instead "'{word}'") (#set! expected "left"))
((call receiver: (_) @left method: (identifier) @_matcher arguments: (argument_list . (_) @right)) @equal
  (#eq? @_matcher "must_equal") (#set! instead "'{word}'") (#set! expected "right"))

((call method: (identifier) @flip arguments: (argument_list)) @holds
  (#eq? @flip "assert") (#set! flips "refute"))
((call method: (identifier) @flip arguments: (argument_list)) @holds
  (#eq? @flip "refute") (#set! flips "assert"))
((call method: (identifier) @flip arguments: (argument_list)) @holds
  (#eq? @flip "assert_nil") (#set! flips "refute_nil"))
((call
    receiver: (call method: (identifier) @_expect)
    method: (identifier) @flip
    arguments: (argument_list . (identifier) @_matcher)) @holds
  (#eq? @_expect "expect") (#eq? @flip "to") (#match? @_matcher "^be_") (#set! flips "not_to"))

((call method: (identifier) @_raises arguments: (argument_list . (constant) @error)) @raises
  (#match? @_raises "^(raise_error|assert_raises)$")
  (#set! other "ZeroDivisionError"))

(assignment left: (identifier) @name right: (_) @value) @binding
((call receiver: (_) @rows method: (identifier) @_each block: (_ parameters: (block_parameters) @params)) @table
  (#eq? @_each "each"))

(return) @return
[(method) (lambda)] @scope
[(if) (unless) (case) (while) (begin) (if_modifier) (unless_modifier)] @maybe

; Calls that may be assertions, and functions that tests may call.
(body_statement (call method: (_) @callee arguments: (argument_list) @arguments) @check)
(block_body (call method: (_) @callee arguments: (argument_list) @arguments) @check)
(method name: (identifier) @name parameters: (method_parameters) @params) @helper
((call method: (identifier) @_in arguments: (argument_list . (_) @right . (_) @left)) @contains
  (#eq? @_in "assert_includes"))
((call method: (identifier) @flip) @holds (#eq? @flip "refute_equal") (#set! flips "assert_equal"))
((call method: (identifier) @flip) @holds (#eq? @flip "refute_nil") (#set! flips "assert_nil"))
((call method: (identifier) @flip) @holds (#eq? @flip "refute_includes") (#set! flips "assert_includes"))
((call method: (identifier) @flip) @holds (#eq? @flip "assert_empty") (#set! flips "refute_empty"))
((call method: (identifier) @flip) @holds (#eq? @flip "assert_predicate") (#set! flips "refute_predicate"))
((call method: (identifier) @flip) @holds (#eq? @flip "refute_predicate") (#set! flips "assert_predicate"))
((call
    receiver: (call method: (identifier) @_expect)
    method: (identifier) @flip
    arguments: (argument_list . [(binary) (call method: (identifier) @_matcher)])) @holds
  (#eq? @_expect "expect") (#eq? @flip "to")
  (#not-match? @_matcher "^(eq|eql|equal|be|match_array|contain_exactly|raise_error|include|match|start_with|end_with|have_attributes)$")
  (#set! flips "not_to"))
((call
    receiver: (call method: (identifier) @_expect)
    method: (identifier) @flip) @holds
  (#eq? @_expect "expect") (#match? @flip "^(not_to|to_not)$") (#set! flips "to"))
((call
    receiver: (call method: (identifier) @_expect arguments: (argument_list . (_) @right))
    method: (identifier) @_to
    arguments: (argument_list . (call method: (identifier) @_matcher arguments: (argument_list . (_) @left .)))) @contains
  (#eq? @_expect "expect") (#eq? @_to "to") (#match? @_matcher "^(include|match|start_with|end_with)$"))
