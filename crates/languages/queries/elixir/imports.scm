; alias A.B, use A.B
((call target: (identifier) @_alias (arguments . (alias) @module .)) (#any-of? @_alias "alias" "use"))
((call target: (identifier) @_alias (arguments . (alias) @module (keywords) @_options .))
  (#any-of? @_alias "alias" "use") (#not-match? @_options "^as:"))
; alias A.B, as: C
((call target: (identifier) @_alias
  (arguments . (alias) @module (keywords (pair key: (keyword) @_as value: (alias) @bound))))
  (#eq? @_alias "alias") (#match? @_as "^as:"))
; alias A.{B, C}
((call target: (identifier) @_alias (arguments . (dot left: (alias) @module right: (tuple (alias) @name))))
  (#eq? @_alias "alias") (#set! join "."))
((call target: (identifier) @_import (arguments . (alias) @module)) (#eq? @_import "import") (#set! what "all"))
; defdelegate f(x), to: A.B, as: :g
((call target: (identifier) @_delegate
  (arguments . (call target: (identifier) @name) (keywords . (pair key: (keyword) @_to value: (alias) @module) .)))
  (#eq? @_delegate "defdelegate") (#match? @_to "^to:"))
((call target: (identifier) @_delegate
  (arguments . (call target: (identifier) @bound) (keywords
    (pair key: (keyword) @_to value: (alias) @module)
    (pair key: (keyword) @_as value: (atom) @name))))
  (#eq? @_delegate "defdelegate") (#match? @_to "^to:") (#match? @_as "^as:"))
