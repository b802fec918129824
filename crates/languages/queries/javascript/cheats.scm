; Code that could cheat a test run; names and texts are in `languages/javascript.rs`.
((assignment_expression left: (member_expression
  object: (identifier) @_global property: (property_identifier) @_name)) @reaches_for_the_runner
  (#any-of? @_global "global" "globalThis")
  (#any-of? @_name "it" "test" "describe" "expect" "jest" "vi" "mocha" "before" "after" "beforeEach" "afterEach" "beforeAll" "afterAll")
  (#set! what "a global of the runner"))
((assignment_expression left: (subscript_expression
  object: (identifier) @_global index: (string (string_fragment) @_name))) @reaches_for_the_runner
  (#any-of? @_global "global" "globalThis")
  (#any-of? @_name "it" "test" "describe" "expect" "jest" "vi" "mocha" "before" "after" "beforeEach" "afterEach" "beforeAll" "afterAll")
  (#set! what "a global of the runner"))
((program (expression_statement (assignment_expression left: (identifier) @_name)) @reaches_for_the_runner)
  (#any-of? @_name "it" "test" "describe" "expect") (#set! what "a global of the runner"))
((unary_expression operator: "typeof" argument: (identifier) @_name) @reaches_for_the_runner
  (#any-of? @_name "jest" "vi" "describe" "expect") (#set! what "typeof a global of the runner"))
((binary_expression left: (_) @_env operator: ["==" "==="] right: (string (string_fragment) @_test)) @reaches_for_the_runner
  (#match? @_env "NODE_ENV") (#eq? @_test "test") (#set! what "NODE_ENV === 'test'"))
((binary_expression left: (string (string_fragment) @_test) operator: ["==" "==="] right: (_) @_env) @reaches_for_the_runner
  (#match? @_env "NODE_ENV") (#eq? @_test "test") (#set! what "NODE_ENV === 'test'"))
((call_expression
  function: (member_expression property: (property_identifier) @_asks)
  arguments: (arguments (string (string_fragment) @_name))) @reaches_for_the_runner
  (#any-of? @_asks "includes" "indexOf") (#match? @_name "^(expect|@jest/.*|@vitest/.*|(jest|vitest|mocha|chai)([-/].*)?)$")
  (#set! what "a module of the runner"))
((assignment_expression left: (member_expression
  object: (call_expression arguments: (arguments . (string) @_module)))) @reaches_for_the_runner
  (#match? @_module "assert|test|expect|chai|jest|vitest|mocha") (#set! what "a module of the runner"))
((assignment_expression left: (member_expression) @_is) @defeats_assertions
  (#eq? @_is "Object.is") (#set! what "Object.is"))
(assignment_expression left: (member_expression) @assigned)
((call_expression function: (member_expression object: (identifier) @_jest)) @reaches_for_the_runner
  (#eq? @_jest "jest") (#set! what "a global of the runner"))
