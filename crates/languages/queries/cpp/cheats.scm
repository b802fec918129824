; Code that could cheat a test run; names and texts are in `languages/cpp.rs`.
((function_definition
    declarator: (function_declarator declarator: [
      (operator_name) @_equal
      (qualified_identifier name: (operator_name) @_equal)
    ])
    body: (compound_statement . (return_statement (true)) .)) @defeats_assertions
  (#match? @_equal "==") (#set! what "an `operator==` that is always true"))
([(preproc_function_def name: (identifier) @_macro) (preproc_def name: (identifier) @_macro)] @reaches_for_the_runner
  (#match? @_macro "^(TEST|TEST_[A-Z]|TEST_CASE|SECTION|(EXPECT|ASSERT|REQUIRE|CHECK)(_[A-Z]+)*|BOOST_[A-Z_]+|GTEST_[A-Z_]+|assert|NDEBUG)$")
  (#set! what "a macro of the test framework"))
((preproc_call directive: (preproc_directive) @_undef argument: (preproc_arg) @_macro) @reaches_for_the_runner
  (#eq? @_undef "#undef")
  (#match? @_macro "^(TEST|TEST_[A-Z]|TEST_CASE|(EXPECT|ASSERT|REQUIRE|CHECK)(_[A-Z]+)*|assert|NDEBUG)$")
  (#set! what "a macro of the test framework"))
((call_expression function: [(identifier) (qualified_identifier)] @_leave) @process_exit
  (#match? @_leave "^(std::|::)?(exit|_exit|_Exit|quick_exit)$") (#set! what "exit"))
((attribute_specifier) @knows_the_runner (#match? @knows_the_runner "constructor")
  (#set! what "code that is run before the program"))
