; Shapes that could deceive a test run; names and texts stand in `languages/elixir.rs`.
; Routes for `[:dev, :test]` are what generators write; an answer of its own for `:test` is not.
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
