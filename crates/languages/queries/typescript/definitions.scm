; Definitions that only TypeScript has, in addition to the JavaScript queries.
(interface_declaration name: (_) @name) @definition.type
(type_alias_declaration name: (_) @name) @definition.constant
(enum_declaration name: (_) @name) @definition.type
(abstract_class_declaration name: (_) @name) @definition.type
(internal_module name: (identifier) @name) @definition.module
(function_signature name: (identifier) @name) @definition.function
(method_signature name: (_) @name) @definition.function
(abstract_method_signature name: (_) @name) @definition.function
(export_statement declaration: (interface_declaration name: (_) @name)) @definition.type
(export_statement declaration: (type_alias_declaration name: (_) @name)) @definition.constant
(export_statement declaration: (enum_declaration name: (_) @name)) @definition.type
(export_statement declaration: (abstract_class_declaration name: (_) @name)) @definition.type
(export_statement declaration: (function_signature name: (identifier) @name)) @definition.function
