; The definitions of a Python file. A decorator belongs to its definition.
(function_definition name: (identifier) @name) @definition.function
(class_definition name: (identifier) @name) @definition.type
(decorated_definition definition: (function_definition name: (identifier) @name)) @definition.function
(decorated_definition definition: (class_definition name: (identifier) @name)) @definition.type
; Constants of the module, without assignments in functions.
(module (expression_statement (assignment left: (identifier) @name)) @definition.constant)
