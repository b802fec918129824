; Python code that detects how it is run. Each match is only a flag.
((attribute object: (identifier) @_sys attribute: (identifier) @_what) @aware
  (#eq? @_sys "sys") (#match? @_what "^(modules|_getframe|argv|settrace|setprofile|_current_frames|exit)$")
  (#set! why "looks at the interpreter that runs it"))
((attribute object: (identifier) @_module) @aware
  (#match? @_module "^(inspect|traceback|linecache|gc|ctypes)$")
  (#set! why "looks at its callers or at all objects"))
((attribute object: (identifier) @_os attribute: (identifier) @_what) @aware
  (#eq? @_os "os") (#match? @_what "^(environ|getenv|_exit)$")
  (#set! why "depends on the environment or leaves the process"))
((string (string_content) @aware) (#eq? @aware "git")
  (#set! why "starts git"))
