; The definitions of a JavaScript or TypeScript file. Variables count only at the top level.
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(class_declaration name: (_) @name) @definition.type
(method_definition name: (_) @name) @definition.function
(export_statement declaration: (function_declaration name: (identifier) @name)) @definition.function
(export_statement declaration: (generator_function_declaration name: (identifier) @name)) @definition.function
(export_statement declaration: (class_declaration name: (_) @name)) @definition.type

; Required modules are defined elsewhere.
((program [
    (lexical_declaration (variable_declarator name: (identifier) @name value: (_)? @_value))
    (variable_declaration (variable_declarator name: (identifier) @name value: (_)? @_value))
  ] @definition.constant)
  (#not-match? @_value "^(await\\s+)?(require|import)\\s*\\("))
(program (export_statement declaration: [
    (lexical_declaration (variable_declarator name: (identifier) @name))
    (variable_declaration (variable_declarator name: (identifier) @name))
  ]) @definition.constant)

; `exports.total = …`, `res.send = function …`, `Cart.prototype.total = …`.
(expression_statement (assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(function_expression) (arrow_function) (class) (generator_function)])) @definition.function
((expression_statement (assignment_expression
  left: (member_expression object: (identifier) @_exports property: (property_identifier) @name)
  right: [(number) (string) (template_string) (object) (array) (regex) (new_expression) (binary_expression) (call_expression)])
  ) @definition.constant
  (#eq? @_exports "exports"))

; `module.exports = class Cart …` has its own name; an unnamed value is the default export.
((expression_statement (assignment_expression
  left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
  right: [(function_expression name: (identifier) @name) (class name: (_) @name)])) @definition.function
  (#eq? @_module "module") (#eq? @_exports "exports"))
((expression_statement (assignment_expression
  left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
  right: [(function_expression !name) (class !name) (arrow_function)])) @definition.function
  (#eq? @_module "module") (#eq? @_exports "exports") (#set! name "default"))
((export_statement "default" value: [
    (function_expression) (arrow_function) (class) (object) (array) (call_expression) (new_expression)
    (string) (template_string) (number) (binary_expression)
  ]) @definition.function (#set! name "default"))
