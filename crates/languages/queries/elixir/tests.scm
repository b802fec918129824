((call target: (identifier) @_test (arguments . (string (quoted_content) @name))) @test
  (#any-of? @_test "test" "property"))
((unary_operator operator: "@" operand: (call target: (identifier) @_tag (arguments . (atom) @_skip))) @skip
  (#any-of? @_tag "tag" "moduletag" "describetag") (#eq? @_skip ":skip"))
((unary_operator operator: "@" operand: (call target: (identifier) @_tag
  (arguments (keywords (pair key: (keyword) @_skip))))) @skip
  (#any-of? @_tag "tag" "moduletag" "describetag") (#match? @_skip "^skip:"))
((call target: (dot left: (alias) @_module right: (identifier) @_function)) @debugging
  (#eq? @_module "IO") (#eq? @_function "inspect"))
((call target: (dot left: (alias) @_module right: (identifier) @_function)) @debugging
  (#eq? @_module "IEx") (#eq? @_function "pry"))
