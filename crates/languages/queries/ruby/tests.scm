((call method: (identifier) @_it arguments: (argument_list . (string (string_content) @name))) @test
  (#any-of? @_it "it" "specify" "example" "test" "scenario" "xit"))
((method name: (identifier) @name) @test (#match? @name "^test_"))
((call method: (identifier) @_it) @skip (#any-of? @_it "xit" "xdescribe" "xcontext" "xspecify" "skip"))
((pair key: (hash_key_symbol) @_skip) @skip (#eq? @_skip "skip"))
((call receiver: (identifier) @_binding method: (identifier) @_stop) @debugging
  (#eq? @_binding "binding") (#any-of? @_stop "pry" "irb"))
((identifier) @debugging (#eq? @debugging "byebug"))
