; JavaScript code that detects how it is run. Each match is only a flag.
((member_expression object: (identifier) @_object property: (property_identifier) @_what) @aware
  (#eq? @_object "process") (#match? @_what "^(env|argv|exit|mainModule)$")
  (#set! why "depends on the environment or leaves the process"))
((member_expression object: (identifier) @_object property: (property_identifier) @_what) @aware
  (#match? @_object "^(require|module)$") (#match? @_what "^(main|cache|parent)$")
  (#set! why "looks at who loads it"))
((member_expression property: (property_identifier) @_what) @aware
  (#match? @_what "^(stack|caller|callee|captureStackTrace)$")
  (#set! why "looks at its callers"))
((unary_expression operator: "typeof" argument: (identifier) @aware)
  (#match? @aware "^(describe|it|test|expect|jest|vi|beforeEach|suite)$")
  (#set! why "asks whether the runner is there"))
