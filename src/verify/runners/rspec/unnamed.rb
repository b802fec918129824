# Notes in the report which examples have no description of their own, and the group they stand in. RSpec names those
# after the last matcher that ran, so that such an example changes its name when it begins to pass.
require "rspec/core/formatters/json_formatter"

RSpec::Core::Formatters::JsonFormatter.prepend(Module.new do
  private

  def format_example(example)
    return super unless example.metadata[:description_args].empty?

    super.merge(:unnamed_in => example.example_group.metadata[:full_description])
  end
end)
