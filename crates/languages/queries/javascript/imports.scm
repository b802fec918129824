; import d, * as m, { a as b } from 'x'
((import_statement (import_clause (identifier) @bound) source: (string) @module) (#set! name "default"))
(import_statement (import_clause (namespace_import (identifier) @bound)) source: (string) @module)
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @name alias: (_)? @bound)))
  source: (string) @module)

; export * from 'x', export * as m from 'x', export { a as b } from 'x'
((export_statement "*" source: (string) @module) (#set! what "all"))
(export_statement (namespace_export (_) @bound) source: (string) @module)
(export_statement
  (export_clause (export_specifier name: (_) @name alias: (_)? @bound))
  source: (string) @module)

; export { a as b } and export default a: another name for a definition of this file.
(export_statement (export_clause (export_specifier name: (_) @name alias: (_) @bound)) !source)
((export_statement "default" value: (identifier) @name) (#set! bound "default"))

; const x = require('x'): the whole module, or its default export.
((variable_declarator
  name: (identifier) @bound
  value: [
    (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @module))
    (await_expression (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @module)))
  ])
  (#any-of? @_require "require" "import"))
((variable_declarator
  name: (identifier) @bound
  value: [
    (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @module))
    (await_expression (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @module)))
  ])
  (#any-of? @_require "require" "import") (#set! name "default"))

; const { a, b: c } = require('x')
((variable_declarator
  name: (object_pattern [
    (shorthand_property_identifier_pattern) @name
    (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)
    (pair_pattern key: (property_identifier) @name value: (identifier) @bound)
  ])
  value: [
    (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @module))
    (await_expression (call_expression function: [(identifier) (import)] @_require arguments: (arguments . (string) @module)))
  ])
  (#any-of? @_require "require" "import"))

; const x = require('x').y, and `.y` of any other `require` call.
((variable_declarator
  name: (identifier) @bound
  value: (member_expression
    object: (call_expression function: (identifier) @_require arguments: (arguments . (string) @module))
    property: (property_identifier) @name))
  (#eq? @_require "require"))
((assignment_expression
  right: (member_expression
    object: (call_expression function: (identifier) @_require arguments: (arguments . (string) @module))
    property: (property_identifier) @name))
  (#eq? @_require "require"))

; `require` calls without a local name.
(([
    (expression_statement (call_expression function: (identifier) @_require arguments: (arguments . (string) @module)))
    (spread_element (call_expression function: (identifier) @_require arguments: (arguments . (string) @module)))
    (assignment_expression right: (call_expression function: (identifier) @_require arguments: (arguments . (string) @module)))
    (arguments (call_expression function: (identifier) @_require arguments: (arguments . (string) @module)))
  ])
  (#eq? @_require "require") (#set! what "all"))
((pair
  key: (property_identifier) @bound
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @module)))
  (#eq? @_require "require") (#set! name "default"))

; module.exports = a, module.exports = { b: a }, exports.b = a: another name for a definition of this file.
((assignment_expression left: (member_expression) @_exports right: (identifier) @name)
  (#eq? @_exports "module.exports") (#set! bound "default"))
((assignment_expression
  left: (member_expression) @_exports
  right: (object (pair key: (property_identifier) @bound value: (identifier) @name)))
  (#eq? @_exports "module.exports"))
((assignment_expression
  left: (member_expression object: (_) @_exports property: (property_identifier) @bound)
  right: (identifier) @name)
  (#any-of? @_exports "exports" "module.exports"))
