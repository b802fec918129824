; Python code that detects how it is run. Each match is only a flag.
((attribute object: (identifier) @_sys attribute: (identifier) @_what) @aware
  (#eq? @_sys "sys") (#match? @_what "^(modules|argv|settrace|setprofile)$")
  (#set! why "looks at the interpreter that runs it"))
((attribute object: (identifier) @_module) @aware
  (#match? @_module "^(linecache|gc|ctypes)$")
  (#set! why "looks at all objects"))
((attribute attribute: (identifier) @_what) @aware
  (#any-of? @_what "_getframe" "_current_frames" "currentframe" "getouterframes" "extract_stack" "f_back")
  (#set! id "inspects_frames") (#set! why "looks at its callers"))
((attribute object: (identifier) @_inspect attribute: (identifier) @_what) @aware
  (#eq? @_inspect "inspect") (#eq? @_what "stack")
  (#set! id "inspects_frames") (#set! why "looks at its callers"))
((attribute object: (identifier) @_os attribute: (identifier) @_what) @aware
  (#eq? @_os "os") (#eq? @_what "_exit")
  (#set! why "leaves the process"))
((string (string_content) @aware) (#eq? @aware "git")
  (#set! why "starts git"))
((import_from_statement module_name: (dotted_name) @_module) @aware
  (#match? @_module "^(unittest\\.mock|mock)(\\.|$)")
  (#set! id "imports_mock") (#set! why "uses a library for mocks"))
((import_from_statement module_name: (dotted_name) @_module name: (dotted_name) @_name) @aware
  (#eq? @_module "unittest") (#eq? @_name "mock")
  (#set! id "imports_mock") (#set! why "uses a library for mocks"))
((import_statement name: (dotted_name) @_module) @aware
  (#match? @_module "^(unittest\\.mock|mock)$")
  (#set! id "imports_mock") (#set! why "uses a library for mocks"))
((function_definition name: (identifier) @_name parameters: (parameters) @operands body: (block) @body) @aware
  (#any-of? @_name "__eq__" "__ne__" "__contains__")
  (#set! id "ignores_operand") (#set! why "never uses what it compares with"))
