; What a Python file defines. A decorator belongs to what it decorates.
(function_definition name: (identifier) @name) @definition.function
(class_definition name: (identifier) @name) @definition.type
(decorated_definition definition: (function_definition name: (identifier) @name)) @definition.function
(decorated_definition definition: (class_definition name: (identifier) @name)) @definition.type
; Constants of the module; what is assigned in a function is nobody else's.
(module (expression_statement (assignment left: (identifier) @name)) @definition.constant)
