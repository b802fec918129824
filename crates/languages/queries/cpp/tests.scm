; Tests of GoogleTest, Catch2, doctest and Boost.Test, code that skips them, and code that always fails.
((function_definition declarator: (function_declarator
    declarator: (identifier) @_macro
    parameters: (parameter_list (parameter_declaration type: (type_identifier) @name) .))) @test
  (#match? @_macro "^(TEST|TEST_F|TEST_P|TYPED_TEST|BOOST_AUTO_TEST_CASE)$"))
((call_expression
    function: (identifier) @_macro
    arguments: (argument_list . (string_literal (string_content) @name))) @test
  (#any-of? @_macro "TEST_CASE" "SCENARIO" "TEST_CASE_METHOD"))
((function_definition declarator: (function_declarator
    parameters: (parameter_list (parameter_declaration type: (type_identifier) @_name) .))) @skip
  (#match? @_name "^DISABLED_"))
((call_expression function: (identifier) @_skip) @skip (#any-of? @_skip "GTEST_SKIP" "SKIP"))
((call_expression function: (identifier) @_fail) @vacuous
  (#any-of? @_fail "FAIL" "ADD_FAILURE" "FAIL_CHECK" "BOOST_FAIL" "BOOST_ERROR"))
((call_expression function: (identifier) @_assert arguments: (argument_list . (false) .)) @vacuous
  (#any-of? @_assert "EXPECT_TRUE" "ASSERT_TRUE" "REQUIRE" "CHECK" "assert" "BOOST_TEST" "BOOST_CHECK"))
((call_expression
    function: (identifier) @_assert
    arguments: (argument_list
      . [(number_literal) (string_literal) (true) (false)]
      . [(number_literal) (string_literal) (true) (false)] .)) @vacuous
  (#any-of? @_assert "EXPECT_EQ" "ASSERT_EQ" "EXPECT_STREQ" "ASSERT_STREQ" "BOOST_CHECK_EQUAL"))
