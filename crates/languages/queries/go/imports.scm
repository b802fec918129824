(import_spec !name path: (_) @module)
(import_spec name: (package_identifier) @bound path: (_) @module)
((import_spec name: (dot) path: (_) @module) (#set! what "all"))
