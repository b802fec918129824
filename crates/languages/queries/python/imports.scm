(import_from_statement module_name: (_) @module name: (dotted_name) @name)
(import_from_statement
  module_name: (_) @module
  name: (aliased_import name: (dotted_name) @name alias: (identifier) @bound))
((import_from_statement module_name: (_) @module (wildcard_import)) (#set! what "all"))
(import_statement name: (dotted_name) @module)
(import_statement name: (aliased_import name: (dotted_name) @module alias: (identifier) @bound))
