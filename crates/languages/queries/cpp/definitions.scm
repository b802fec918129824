; The definitions and declarations of a C++ file, without the macros that start a test.
((function_definition declarator: [
    (function_declarator declarator: [(identifier) (field_identifier) (operator_name) (destructor_name)] @name)
    (pointer_declarator declarator: (function_declarator declarator: [(identifier) (field_identifier)] @name))
    (reference_declarator (function_declarator declarator: [(identifier) (field_identifier) (operator_name)] @name))
  ]) @definition.function
  (#not-match? @name "^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|BOOST_[A-Z_]+)$"))
(function_definition declarator: (function_declarator declarator: (qualified_identifier
    scope: (_) @owner
    name: [(identifier) (operator_name) (destructor_name)] @name))) @definition.function
(function_definition declarator: (function_declarator declarator: (qualified_identifier
    name: (qualified_identifier
      scope: (_) @owner
      name: [(identifier) (operator_name) (destructor_name)] @name)))) @definition.function
(template_declaration (function_definition declarator: (function_declarator
    declarator: (identifier) @name))) @definition.function
(template_declaration (class_specifier name: (type_identifier) @name body: (_))) @definition.type
(template_declaration (struct_specifier name: (type_identifier) @name body: (_))) @definition.type
(declaration declarator: (function_declarator declarator: (identifier) @name)) @definition.function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @definition.function
(class_specifier name: (type_identifier) @name body: (_)) @definition.type
(struct_specifier name: (type_identifier) @name body: (_)) @definition.type
(enum_specifier name: (type_identifier) @name body: (_)) @definition.type
(union_specifier name: (type_identifier) @name body: (_)) @definition.type
(alias_declaration name: (type_identifier) @name) @definition.type
(namespace_definition name: (namespace_identifier) @name) @definition.module
(declaration declarator: (init_declarator declarator: (identifier) @name)) @definition.constant
(preproc_def name: (identifier) @name) @definition.constant
(preproc_function_def name: (identifier) @name) @definition.function
