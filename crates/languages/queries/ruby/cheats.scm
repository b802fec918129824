; Code that could cheat a test run; names and texts are in `languages/ruby.rs`.
; A class may define its own `raise` or `==`. Redefining them for all objects, or a `==` that is always true, is matched.
([
    (module name: (constant) @_common body: (body_statement [
      (method name: (_) @_name)
      (alias name: (_) @_name)
    ]))
    (class name: (constant) @_common body: (body_statement [
      (method name: (_) @_name)
      (alias name: (_) @_name)
    ]))
  ] @defeats_assertions
  (#any-of? @_common "Kernel" "Object" "BasicObject") (#any-of? @_name "raise" "fail" "exit")
  (#set! what "another `raise` for every object"))
((call receiver: (constant) @_common method: (identifier) @_opens) @defeats_assertions
  (#any-of? @_common "Kernel" "Object" "BasicObject")
  (#any-of? @_opens "prepend" "module_eval" "class_eval" "define_method")
  (#match? @defeats_assertions "\\b(raise|fail|exit)\\b") (#set! what "another `raise` for every object"))
((method name: (_) @_equals body: (body_statement . (true) .)) @defeats_assertions
  (#any-of? @_equals "==" "eql?" "equal?" "===") (#set! what "an `==` that is always true"))
((method name: (_) @_equals body: (true)) @defeats_assertions
  (#any-of? @_equals "==" "eql?" "equal?" "===") (#set! what "an `==` that is always true"))
((method name: (_) @_equals body: (body_statement . (return (argument_list (true))) .)) @defeats_assertions
  (#any-of? @_equals "==" "eql?" "equal?" "===") (#set! what "an `==` that is always true"))
((call method: (identifier) @_defines arguments: (argument_list . (simple_symbol) @_equals)
  block: [(block body: (block_body . (true) .)) (do_block body: (body_statement . (true) .))]) @defeats_assertions
  (#eq? @_defines "define_method") (#eq? @_equals ":==") (#set! what "an `==` that is always true"))
; Special code for the test environment.
((binary left: (_) @_env operator: ["==" "==="] right: (string (string_content) @_test)) @reaches_for_the_runner
  (#match? @_env "(RACK|RAILS|APP)_ENV") (#eq? @_test "test") (#set! what "an environment of its own for tests"))
([
    (conditional condition: (call) @_env)
    (if condition: (call) @_env)
    (if_modifier condition: (call) @_env)
  ] @reaches_for_the_runner
  (#eq? @_env "Rails.env.test?") (#set! what "an environment of its own for tests"))
