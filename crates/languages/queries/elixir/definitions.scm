; The definitions of an Elixir file. All of them are calls.
((call target: (identifier) @_def (arguments (alias) @name)) @definition.module
  (#any-of? @_def "defmodule" "defprotocol"))
((call target: (identifier) @_def (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (identifier) @name operator: "when")
    (binary_operator left: (call target: (identifier) @name) operator: "when")
  ])) @definition.function
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp"))
((call target: (identifier) @_def) @definition.constant
  (#any-of? @_def "defstruct" "defexception") (#set! name "__struct__"))
