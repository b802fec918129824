# What RSpec's own report does not say.
#
# Which examples have no description of their own, and the group they stand in: RSpec names those after the last matcher
# that ran, so that such an example changes its name when it begins to pass.
# Which examples were left by the exception of `skip` without any `skip`: RSpec takes that for a pass.
# How many examples there are, so that those which never began are missed.
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
    told = super(example)
    told[:unnamed_in] = example.example_group.metadata[:full_description] if example.metadata[:description_args].empty?
    told[:left_as_if_skipped] = true if left.key?(example)
    told
  end
end)
