; Go code that detects how it is run. Each match is only a flag.
((call_expression function: (selector_expression) @aware)
  (#match? @aware "^(runtime\\.(Caller|Callers|Stack|FuncForPC)|debug\\.(Stack|PrintStack))$")
  (#set! why "looks at its callers"))
((call_expression function: (selector_expression) @aware)
  (#match? @aware "^(flag\\.Lookup|os\\.(Exit|Executable|Getenv|LookupEnv|Environ)|syscall\\.Exit|testing\\..*)$")
  (#set! why "depends on how the program was started, or leaves it"))
((selector_expression) @aware (#eq? @aware "os.Args")
  (#set! why "depends on how the program was started"))
((import_spec path: (_) @aware) (#match? @aware "gomock|testify/mock|go-sqlmock")
  (#set! id "imports_mock") (#set! why "is a library for mocks"))
((method_declaration name: (field_identifier) @_name parameters: (parameter_list) @operands body: (block) @body) @aware
  (#eq? @_name "Equal")
  (#set! id "ignores_operand") (#set! why "never uses what it compares with"))
