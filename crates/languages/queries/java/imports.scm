((import_declaration [(scoped_identifier) (identifier)] @module (asterisk)) (#set! what "all"))
(import_declaration (scoped_identifier scope: (_) @module name: (identifier) @name) .)
