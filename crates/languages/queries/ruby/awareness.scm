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
