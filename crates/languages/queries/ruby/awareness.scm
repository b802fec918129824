; Ruby code that detects how it is run. Each match is only a flag.
((identifier) @aware
  (#match? @aware "^(caller|caller_locations|at_exit|exit)$|^exit!$")
  (#set! why "looks at its callers or leaves the process"))
((constant) @aware
  (#match? @aware "^(ENV|ARGV|ObjectSpace|TracePoint|RSpec|Minitest)$")
  (#set! why "depends on the environment or on the runner"))
((global_variable) @aware
  (#match? @aware "^\\$(PROGRAM_NAME|0)$")
  (#set! why "depends on how the program was started"))
((string (string_content) @aware) (#match? @aware "^(rspec/mocks|minitest/mock|mocha|rr)(/|$)")
  (#set! id "imports_mock") (#set! why "uses a library for mocks"))
((method name: (_) @_name parameters: (method_parameters) @operands body: (body_statement) @body) @aware
  (#any-of? @_name "==" "===" "eql?" "!=" "include?")
  (#set! id "ignores_operand") (#set! why "never uses what it compares with"))
