; The expectations of Elixir tests. Captures and settings are explained in `src/verify/falsify.rs`.
((call target: (identifier) @_group (arguments . (_) @title) (do_block)) @group
  (#match? @_group "^(describe|defmodule)$"))
((call target: (identifier) @_test (arguments . (string) @title) (do_block) @body) @test
  (#match? @_test "^(test|property)$")
  (#set! fails "assert {1} == {2}"))

[(integer) (float)] @number
(string) @text
(char) @char
(boolean) @flag
(nil) @nothing

((call target: (identifier) @_assert (arguments . (binary_operator left: (_) @left operator: "==" right: (_) @right))) @equal
  (#eq? @_assert "assert")
  (#set! fails "assert {1} == {2}") (#set! instead "\"{word}\""))
((call target: (identifier) @_assert (arguments . (binary_operator left: (_) @right operator: "=" right: (_) @left))) @equal
  (#eq? @_assert "assert"))
((call target: (identifier) @flip (arguments)) @holds
  (#eq? @flip "assert") (#set! flips "refute"))
((call target: (identifier) @flip (arguments)) @holds
  (#eq? @flip "refute") (#set! flips "assert"))
((call target: (identifier) @_raise (arguments . (alias) @error)) @raises
  (#eq? @_raise "assert_raise")
  (#set! other "ArithmeticError"))

(binary_operator left: (identifier) @name operator: "=" right: (_) @value) @binding

(anonymous_function) @scope @maybe
((call target: (identifier) @_maybe (do_block)) @maybe
  (#match? @_maybe "^(if|unless|case|cond|try|receive|with|for)$"))

; Calls that may be assertions, and functions that tests may call.
(do_block (call target: (_) @callee (arguments) @arguments) @check)
((call target: (identifier) @_def (arguments (call target: (identifier) @name (arguments) @params))) @helper
  (#match? @_def "^defp?$"))
