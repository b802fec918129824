# Adds to RSpec's JSON report what it leaves out:
#
# - The group of each example without a description. RSpec names such an example after the last matcher that ran, so its
#   name would change when it starts to pass.
# - Which examples ended with the exception of `skip` although nothing called `skip`. RSpec counts them as passed.
# - The number of all examples, so that examples that never started are noticed.
require "rspec/core/formatters/json_formatter"

left = {}.compare_by_identity
if defined?(RSpec::Core::Pending::SkipDeclaredInExample)
  TracePoint.trace(:raise) do |at|
    example = RSpec.current_example
    skips = RSpec::Core::Pending::SkipDeclaredInExample === at.raised_exception
    left[example] = true if skips && example && !example.metadata[:skip]
  end
end

RSpec::Core::Formatters::JsonFormatter.prepend(Module.new do
  def dump_summary(summary)
    super
    output_hash[:summary][:expected_count] = RSpec.world.example_count
  end

  define_method(:format_example) do |example|
    entry = super(example)
    entry[:unnamed_in] = example.example_group.metadata[:full_description] if example.metadata[:description_args].empty?
    entry[:left_as_if_skipped] = true if left.key?(example)
    entry
  end
end)
