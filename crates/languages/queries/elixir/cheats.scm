; Code that could cheat a test run; names and texts are in `languages/elixir.rs`.
; Generators write routes for `[:dev, :test]`, so only special code for `:test` alone is matched.
((binary_operator operator: "==" right: (atom) @_test) @reaches_for_the_runner
  (#eq? @_test ":test") (#set! with "Mix.env") (#set! what "Mix.env == :test"))
((binary_operator left: (atom) @_test operator: "==") @reaches_for_the_runner
  (#eq? @_test ":test") (#set! with "Mix.env") (#set! what "Mix.env == :test"))
((call target: (identifier) @_case (arguments . [(call) (dot)] @_env)
  (do_block (stab_clause left: (arguments (atom) @_test)))) @reaches_for_the_runner
  (#eq? @_case "case") (#match? @_env "^Mix\\.env") (#eq? @_test ":test") (#set! what "case Mix.env"))
((call target: (identifier) @_def (arguments . (alias) @_module)) @defeats_assertions
  (#eq? @_def "defmodule") (#eq? @_module "Kernel") (#set! what "defmodule Kernel"))
((call target: (identifier) @_def (arguments . (alias) @_module)) @reaches_for_the_runner
  (#eq? @_def "defmodule") (#eq? @_module "Mix.Tasks.Test") (#set! what "defmodule Mix.Tasks.Test"))
