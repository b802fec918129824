; C++ code that detects how it is run. Each match is only a flag.
((call_expression function: [(identifier) (qualified_identifier)] @aware)
  (#match? @aware "^(std::|::)?(getenv|secure_getenv|getppid|readlink|dlsym|dladdr|backtrace|ptrace)$")
  (#set! why "looks at the process that runs it"))
((identifier) @aware (#any-of? @aware "program_invocation_name" "program_invocation_short_name" "environ" "__progname")
  (#set! why "depends on how the program was started"))
((string_literal (string_content) @aware) (#match? @aware "^/proc/self/")
  (#set! why "looks at the process that runs it"))
([(preproc_ifdef name: (identifier) @aware) (preproc_defined (identifier) @aware)]
  (#match? @aware "^(NDEBUG|UNIT_TEST.*|TESTING|GTEST_.*|.*_TESTS?)$")
  (#set! why "is another program when it is built for tests"))
