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
((string (string_fragment) @aware) (#any-of? @aware "sinon" "@jest/globals" "vitest" "jest-mock" "testdouble")
  (#set! id "imports_mock") (#set! why "is a library for tests"))
((property_identifier) @aware (#eq? @aware "asymmetricMatch")
  (#set! id "imports_mock") (#set! why "makes comparisons of tests hold"))
((member_expression object: (identifier) @_jest property: (property_identifier) @_what) @aware
  (#any-of? @_jest "jest" "vi" "expect") (#any-of? @_what "fn" "mock" "spyOn" "anything" "any" "stringMatching")
  (#set! id "imports_mock") (#set! why "uses a library for mocks"))
((method_definition name: (property_identifier) @_name parameters: (formal_parameters) @operands body: (statement_block) @body) @aware
  (#any-of? @_name "equals" "asymmetricMatch")
  (#set! id "ignores_operand") (#set! why "never uses what it compares with"))
