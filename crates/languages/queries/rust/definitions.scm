; The definitions of a Rust file. `@name` is the name, `@definition.*` the whole definition.
(function_item name: (identifier) @name) @definition.function
(function_signature_item name: (identifier) @name) @definition.function
(macro_definition name: (identifier) @name) @definition.function
(struct_item name: (type_identifier) @name) @definition.type
(enum_item name: (type_identifier) @name) @definition.type
(union_item name: (type_identifier) @name) @definition.type
(trait_item name: (type_identifier) @name) @definition.type
(type_item name: (type_identifier) @name) @definition.constant
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.constant
; `mod x;` is only a declaration.
(mod_item name: (identifier) @name body: (declaration_list)) @definition.module
(impl_item
  type: [
    (type_identifier) @name
    (scoped_type_identifier name: (type_identifier) @name)
    (generic_type type: (type_identifier) @name)
    (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
    (reference_type type: (type_identifier) @name)
  ]) @definition.extension
