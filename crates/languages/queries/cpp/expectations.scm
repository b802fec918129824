; The expectations of C++ tests. Captures and settings are explained in `src/verify/falsify.rs`.
((function_definition
    declarator: (function_declarator
      declarator: (identifier) @_macro
      parameters: (parameter_list
        . (parameter_declaration type: (type_identifier) @suite)
        . (parameter_declaration type: (type_identifier) @title) .))
    body: (compound_statement) @body) @test
  (#match? @_macro "^(TEST|TEST_F|TEST_P|TYPED_TEST)$")
  (#set! fails "EXPECT_EQ({1}, {2});"))
((function_definition
    declarator: (function_declarator
      declarator: (identifier) @_macro
      parameters: (parameter_list . (parameter_declaration type: (type_identifier) @title) .))
    body: (compound_statement) @body) @test
  (#eq? @_macro "BOOST_AUTO_TEST_CASE")
  (#set! fails "BOOST_CHECK_EQUAL({1}, {2});"))
((expression_statement (call_expression
    function: (identifier) @_macro
    arguments: (argument_list . (string_literal) @title)))
  . (compound_statement) @test @body
  (#any-of? @_macro "TEST_CASE" "SCENARIO")
  (#set! fails "REQUIRE({1} == {2});"))
; A program is one test; its name is not in the source.
((function_definition
    declarator: (function_declarator declarator: (identifier) @title)
    body: (compound_statement) @body) @test
  (#eq? @title "main") (#set! title "any")
  (#set! fails "if ({1} != {2}) return 1;") (#set! where "first"))

(number_literal) @number
[(string_literal) (raw_string_literal)] @text
(char_literal) @char
[(true) (false)] @flag

((call_expression
    function: (identifier) @callee
    arguments: (argument_list . (_) @left . (_) @right)) @equal
  (#any-of? @callee "EXPECT_EQ" "ASSERT_EQ" "BOOST_CHECK_EQUAL" "BOOST_REQUIRE_EQUAL")
  (#set! fails "{callee}({1}, {2});"))
((call_expression
    function: (identifier) @_callee
    arguments: (argument_list . (_) @left . (_) @right)) @equal
  (#match? @_callee "^(EXPECT|ASSERT)_(STREQ|STRCASEEQ|DOUBLE_EQ|FLOAT_EQ|NEAR)$"))
((call_expression
    function: (identifier) @callee
    arguments: (argument_list . (binary_expression left: (_) @left operator: "==" right: (_) @right) .)) @equal
  (#any-of? @callee "REQUIRE" "CHECK" "assert" "EXPECT_TRUE" "ASSERT_TRUE" "BOOST_TEST" "BOOST_CHECK" "BOOST_REQUIRE")
  (#set! fails "{callee}({1} == {2});"))

((call_expression function: (identifier) @flip) @holds (#eq? @flip "EXPECT_TRUE") (#set! flips "EXPECT_FALSE"))
((call_expression function: (identifier) @flip) @holds (#eq? @flip "EXPECT_FALSE") (#set! flips "EXPECT_TRUE"))
((call_expression function: (identifier) @flip) @holds (#eq? @flip "ASSERT_TRUE") (#set! flips "ASSERT_FALSE"))
((call_expression function: (identifier) @flip) @holds (#eq? @flip "ASSERT_FALSE") (#set! flips "ASSERT_TRUE"))
((call_expression function: (identifier) @flip) @holds (#eq? @flip "REQUIRE_FALSE") (#set! flips "REQUIRE"))
((call_expression function: (identifier) @flip) @holds (#eq? @flip "CHECK_FALSE") (#set! flips "CHECK"))
((call_expression function: (identifier) @_callee arguments: (argument_list . (_) @condition .)) @holds
  (#any-of? @_callee "REQUIRE" "CHECK" "assert" "BOOST_TEST" "BOOST_CHECK" "BOOST_REQUIRE")
  (#set! negated "!({condition})"))

((call_expression function: (identifier) @_throws arguments: (argument_list . (_) . (_) @error)) @raises
  (#any-of? @_throws "EXPECT_THROW" "ASSERT_THROW" "REQUIRE_THROWS_AS" "CHECK_THROWS_AS" "BOOST_CHECK_THROW")
  (#set! other "std::bad_alloc"))

(init_declarator declarator: (identifier) @name value: (_) @value) @binding
(for_range_loop declarator: (_) @params right: (_) @rows) @table

(return_statement) @return
[(lambda_expression) (function_definition)] @scope
[
  (if_statement)
  (while_statement)
  (switch_statement)
  (try_statement)
  (conditional_expression)
  (lambda_expression)
] @maybe

; Calls that may be assertions, and functions that tests may call.
(expression_statement (call_expression function: (_) @callee arguments: (argument_list) @arguments)) @check
(function_definition declarator: (function_declarator declarator: (identifier) @name parameters: (parameter_list) @params)) @helper
((call_expression function: (identifier) @flip) @holds (#eq? @flip "EXPECT_NE") (#set! flips "EXPECT_EQ"))
((call_expression function: (identifier) @flip) @holds (#eq? @flip "ASSERT_NE") (#set! flips "ASSERT_EQ"))
