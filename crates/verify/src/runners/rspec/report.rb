# Writes the results in the format of `report_lines.rs`. RSpec's own JSON report has no usable names for examples without
# a description and does not tell which examples never started.
require "json"
require "rspec/core"

class SupervisorTestReport
  RSpec::Core::Formatters.register self, :message, :dump_summary

  # Examples that ended with the exception of `skip` although nothing called `skip`. RSpec counts them as passed.
  LEFT = {}.compare_by_identity
  if defined?(RSpec::Core::Pending::SkipDeclaredInExample)
    TracePoint.trace(:raise) do |at|
      example = RSpec.current_example
      skips = RSpec::Core::Pending::SkipDeclaredInExample === at.raised_exception
      LEFT[example] = true if skips && example && !example.metadata[:skip]
    end
  end

  def initialize(output)
    @output, @messages = output, []
  end

  def message(notification)
    @messages << notification.message
  end

  def dump_summary(summary)
    summary.examples.each { |example| record(example) }
    missing = RSpec.world.example_count - summary.examples.length
    write("doubt", message: "#{missing} #{missing == 1 ? "example" : "examples"} never began") if missing > 0
    if summary.to_h[:errors_outside_of_examples_count].to_i > 0
      errors = @messages.grep(/An error occurred while loading /)
      errors << "an error occurred outside of the examples" if errors.empty?
      errors.each { |error| write("unloaded", message: error) }
    end
    write("end")
    @output.flush
  end

  def record(example)
    metadata, error = example.metadata, example.exception
    file = (metadata[:rerun_file_path] || metadata[:file_path]).sub(%r{\A(\./)+}, "")
    # RSpec names an example without a description after the last matcher that ran, which depends on the result.
    unnamed = metadata[:description_args].empty?
    name = unnamed ? "#{example.example_group.metadata[:full_description]} (unnamed)" : example.full_description
    status = LEFT.key?(example) ? :pending : example.execution_result.status
    state = { passed: "passed", pending: "skipped" }.fetch(status, "failed")
    write(state, file: file, test: name, message: error ? "#{error.class}: #{error.message.strip}" : status.to_s)
    write("doubt", message: "`#{file} #{name}` was left as if skipped, by code that is no example") if LEFT.key?(example)
  end

  def write(state, **fields)
    @output.puts(JSON.generate(state: state, **fields.transform_values(&:scrub)))
  end
end
