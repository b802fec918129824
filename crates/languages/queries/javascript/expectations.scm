; The expectations of JavaScript tests. Captures and settings are explained in `src/verify/falsify.rs`.
((call_expression
    function: [(identifier) @_group (member_expression object: (identifier) @_group)]
    arguments: (arguments . (_) @title [(arrow_function) (function_expression)])) @group
  (#match? @_group "^(describe|suite|context|xdescribe|fdescribe)$"))

((call_expression
    function: [
      (identifier) @_test
      (member_expression object: (identifier) @_test)
      (call_expression function: (member_expression object: (identifier) @_test))
    ]
    arguments: (arguments . (_) @title [
      (arrow_function body: (statement_block) @body)
      (function_expression body: (statement_block) @body)
    ])) @test
  (#match? @_test "^(test|it|specify|t|Deno|xit|xtest|fit)$")
  (#set! fails "throw new Error('{1} is not {2}');"))
((call_expression
    function: [
      (identifier) @_test
      (member_expression object: (identifier) @_test)
      (call_expression function: (member_expression object: (identifier) @_test))
    ]
    arguments: (arguments . (_) @title (arrow_function body: [(call_expression) (await_expression)] @expression))) @test
  (#match? @_test "^(test|it|specify|t|Deno|xit|xtest|fit)$")
  (#set! fails "throw new Error('{1} is not {2}');")
  (#set! wrapped "Promise.resolve({expression}).then(() => { {statement} })"))

(number) @number
[(string) (template_string)] @text
[(true) (false)] @flag
[(null) (undefined)] @nothing
(regex) @pattern

((call_expression
    function: (member_expression object: (identifier) @_object property: (property_identifier) @_method) @callee
    arguments: (arguments . (_) @left . (_) @right)) @equal
  (#match? @_object "^(assert|t|chai)$")
  (#match? @_method "^(equal|equals|strictEqual|deepEqual|deepStrictEqual|is|same|eql)$")
  (#set! fails "{callee}({1}, {2});") (#set! instead "'{word}'"))
((call_expression
    function: (member_expression
      object: [
        (call_expression function: (identifier) @expect arguments: (arguments . (_) @left))
        (member_expression
          object: (call_expression function: (identifier) @expect arguments: (arguments . (_) @left))
          property: (property_identifier) @_resolves)
      ]
      property: (property_identifier) @_matcher)
    arguments: (arguments . (_) @right)) @equal
  (#eq? @expect "expect")
  (#match? @_resolves "^(resolves|rejects)$")
  (#match? @_matcher "^(toBe|toEqual|toStrictEqual|toHaveLength|toMatch|toContainEqual|toMatchObject|toThrow|toThrowError|toBeCloseTo)$")
  (#set! fails "{expect}({1}).toBe({2});") (#set! instead "'{word}'") (#set! expected "right"))
((call_expression
    function: (member_expression
      object: (member_expression
        object: (call_expression function: (identifier) @expect arguments: (arguments . (_) @left)))
      property: (property_identifier) @_matcher)
    arguments: (arguments . (_) @right)) @equal
  (#eq? @expect "expect")
  (#match? @_matcher "^(equal|equals|eql|eq)$")
  (#set! fails "{expect}({1}).to.equal({2});") (#set! instead "'{word}'") (#set! expected "right"))

((call_expression
    function: (member_expression
      object: (call_expression function: (identifier) @_expect)
      property: (property_identifier) @flip)) @holds
  (#eq? @_expect "expect") (#eq? @flip "toBeTruthy") (#set! flips "toBeFalsy"))
((call_expression
    function: (member_expression
      object: (call_expression function: (identifier) @_expect)
      property: (property_identifier) @flip)) @holds
  (#eq? @_expect "expect") (#eq? @flip "toBeFalsy") (#set! flips "toBeTruthy"))
((call_expression
    function: (member_expression
      object: (call_expression function: (identifier) @_expect)
      property: (property_identifier) @flip)) @holds
  (#eq? @_expect "expect") (#match? @flip "^(toBeNull|toBeUndefined|toBeDefined|toBeNaN|toThrow)$")
  (#set! flips "not.{flip}"))
((call_expression
    function: [(identifier) @_assert (member_expression object: (identifier) @_assert property: (property_identifier) @_ok)]
    arguments: (arguments . (_) @condition)) @holds
  (#match? @_assert "^(assert|t)$") (#match? @_ok "^(ok|true|assert)$")
  (#set! negated "!({condition})"))

(variable_declarator name: (identifier) @name value: (_) @value) @binding
(for_in_statement left: (_) @params right: (_) @rows) @table
((call_expression
    function: (call_expression
      function: (member_expression property: (property_identifier) @_each)
      arguments: (arguments . (_) @rows))
    arguments: (arguments . (_) [
      (arrow_function parameters: (_) @params)
      (function_expression parameters: (_) @params)
    ])) @table
  (#eq? @_each "each"))
((call_expression
    function: (member_expression object: (_) @rows property: (property_identifier) @_each)
    arguments: (arguments . [
      (arrow_function parameters: (_) @params)
      (arrow_function parameter: (_) @params)
      (function_expression parameters: (_) @params)
    ])) @table
  (#eq? @_each "forEach"))

(return_statement) @return
[(arrow_function) (function_expression) (function_declaration) (method_definition)] @scope
[(if_statement) (try_statement) (while_statement) (switch_statement) (ternary_expression)
 (arrow_function) (function_expression)] @maybe

; Calls that may be assertions, and functions that tests may call.
(expression_statement [
  (call_expression function: (_) @callee arguments: (arguments) @arguments)
  (await_expression (call_expression function: (_) @callee arguments: (arguments) @arguments))
]) @check
(function_declaration name: (identifier) @name parameters: (formal_parameters) @params) @helper
(variable_declarator name: (identifier) @name
  value: [(arrow_function parameters: (formal_parameters) @params) (function_expression parameters: (formal_parameters) @params)]) @helper
((call_expression
    function: (identifier) @callee
    arguments: (arguments . (_) @left . (_) @right)) @equal
  (#match? @callee "^(equal|strictEqual|deepEqual|deepStrictEqual|assertEquals|assertStrictEquals)$")
  (#set! fails "{callee}({1}, {2});") (#set! instead "'{word}'"))
; The opposite of an assertion without a value.
((call_expression
    function: (member_expression
      object: (member_expression
        object: (call_expression function: (identifier) @_expect) @positive
        property: (property_identifier) @_not) @flip)) @holds
  (#eq? @_expect "expect") (#eq? @_not "not") (#set! flips "{positive}"))
((call_expression
    function: (member_expression
      object: (call_expression function: (identifier) @_expect arguments: (arguments . (_) @right .))
      property: (property_identifier) @_matcher)
    arguments: (arguments . (_) @left .)) @contains
  (#eq? @_expect "expect") (#eq? @_matcher "toContain"))
((call_expression
    function: (member_expression
      object: (call_expression function: (identifier) @_expect)
      property: (property_identifier) @flip)) @holds
  (#eq? @_expect "expect")
  (#match? @flip "^(toBeGreaterThan|toBeGreaterThanOrEqual|toBeLessThan|toBeLessThanOrEqual|toBeInstanceOf|toHaveBeenCalled)$")
  (#set! flips "not.{flip}"))
((call_expression
    function: (member_expression object: (identifier) @_object property: (property_identifier) @flip)) @holds
  (#match? @_object "^(assert|t)$") (#eq? @flip "notEqual") (#set! flips "equal"))
((call_expression
    function: (member_expression object: (identifier) @_object property: (property_identifier) @flip)) @holds
  (#match? @_object "^(assert|t)$") (#eq? @flip "notStrictEqual") (#set! flips "strictEqual"))
((call_expression
    function: (member_expression object: (identifier) @_object property: (property_identifier) @flip)) @holds
  (#match? @_object "^(assert|t)$") (#eq? @flip "notDeepStrictEqual") (#set! flips "deepStrictEqual"))
((call_expression
    function: (member_expression object: (identifier) @_object property: (property_identifier) @flip)) @holds
  (#match? @_object "^(assert|t)$") (#eq? @flip "throws") (#set! flips "doesNotThrow"))
((call_expression
    function: (member_expression object: (identifier) @_object property: (property_identifier) @flip)) @holds
  (#match? @_object "^(assert|t)$") (#eq? @flip "rejects") (#set! flips "doesNotReject"))
