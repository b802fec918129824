((preproc_include path: [(string_literal) (system_lib_string)] @module) (#set! what "all"))
(using_declaration (qualified_identifier scope: (_) @module name: (_) @name))
(namespace_alias_definition name: (namespace_identifier) @bound [(nested_namespace_specifier) (namespace_identifier)] @module)
