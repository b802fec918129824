; The definitions of a Go file. `@owner` is the type that a method belongs to.
(function_declaration name: (identifier) @name) @definition.function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @owner
    (pointer_type (type_identifier) @owner)
    (generic_type type: (type_identifier) @owner)
    (pointer_type (generic_type type: (type_identifier) @owner))
  ]))
  name: (field_identifier) @name) @definition.function
(type_spec name: (type_identifier) @name) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(type_declaration . (type_spec name: (type_identifier) @name) .) @definition.type
(method_elem name: (field_identifier) @name) @definition.function
(source_file (const_declaration (const_spec name: (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @definition.constant)))
(source_file (var_declaration . (var_spec name: (identifier) @name) .) @definition.constant)
(source_file (const_declaration . (const_spec name: (identifier) @name) .) @definition.constant)
