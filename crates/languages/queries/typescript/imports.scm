; import x = require('x')
(import_statement (import_require_clause (identifier) @bound source: (string) @module))
