; Code that could cheat a test run; names and texts are in `languages/python.rs`.
((function_definition name: (identifier) @_eq
  body: (block . (expression_statement (string))? . (return_statement (true)) .)) @defeats_assertions
  (#eq? @_eq "__eq__") (#set! what "an `__eq__` that is always true"))
((assignment left: (_) @_eq right: (lambda body: (true))) @defeats_assertions
  (#match? @_eq "__eq__$") (#set! what "an `__eq__` that is always true"))
(assignment left: (attribute) @assigned)
