# Records the results of minitest and test-unit in the format of `report_lines.rs`, in every process that runs tests. This
# file is required before anything else, so it waits for the framework and hooks in when the framework's module has been
# defined.
module SupervisorTestReport
  PATH = File.join(__dir__, "report.jsonl").freeze

  def self.write(line)
    require "json"
    File.open(PATH, "a") { |file| file.write(JSON.generate(line) + "\n") }
  end

  def self.file_of(location, owner = nil)
    declared = owner && owner.name && Object.const_defined?(owner.name) ? Object.const_source_location(owner.name) : nil
    path = (declared && declared[0]) || (location && location[0]) || ""
    root = Dir.pwd + "/"
    path = File.expand_path(path) unless path.empty?
    path.start_with?(root) ? path[root.length..] : path
  rescue NameError
    ""
  end

  # The method of a spec is `test_0030_is written`. Its number depends on the specs before it and only orders the results.
  def self.note(name, file, state, message = "")
    _, owner, number, title = *name.match(/\A([^#]*#)test_(\d{4})_(.+)\z/m)
    name = owner + title if owner
    write(test: name, file: file, state: state, message: message.to_s.scrub, order: number.to_i)
  end

  module ForMinitest
    def self.join_in
      return if @joined || !(defined?(::Minitest::StatisticsReporter) && ::Minitest.respond_to?(:extensions))
      @joined = true
      reporter = Class.new(::Minitest::AbstractReporter) do
        def start = SupervisorTestReport.write(state: "begin")

        def record(result)
          owner = result.respond_to?(:klass) ? result.klass : result.class.name
          constant = owner && Object.const_defined?(owner) ? Object.const_get(owner) : nil rescue nil
          # `describe Rack::Static` has the name of the class under test, but is not that class.
          constant = nil unless constant.is_a?(Class) && constant <= ::Minitest::Runnable
          file = SupervisorTestReport.file_of((result.source_location if result.respond_to?(:source_location)), constant)
          state = result.skipped? ? "skipped" : result.passed? ? "passed" : "failed"
          message = result.failures.map { |f| "#{f.message}\n#{Array(f.backtrace).first(5).join("\n")}" }.join("\n")
          SupervisorTestReport.note("#{owner}##{result.name}", file, state, message)
        end

        def report = SupervisorTestReport.write(state: "end")
        def passed? = true
      end
      ::Minitest.define_singleton_method(:plugin_supervisor_report_init) { |_| ::Minitest.reporter << reporter.new }
      ::Minitest.extensions << "supervisor_report"
    end
  end

  module ForTestUnit
    def self.join_in
      join_tests
      # `at_exit` may be defined later than `TestCase`, which a project can load on its own.
      return if @ends || !@joined || !::Test::Unit.respond_to?(:at_exit)
      @ends = true
      ::Test::Unit.at_exit { SupervisorTestReport.write(state: "end") if begun }
    end

    def self.join_tests
      return if @joined || !defined?(::Test::Unit::TestCase) || !::Test::Unit::TestCase.method_defined?(:run)
      return if defined?(::Minitest::Test) && ::Test::Unit::TestCase <= ::Minitest::Test
      @joined = true
      ::Test::Unit::TestCase.prepend(Module.new do
        def run(result, *rest, **options, &block)
          unless SupervisorTestReport::ForTestUnit.begun
            SupervisorTestReport::ForTestUnit.begun = true
            SupervisorTestReport.write(state: "begin")
          end
          before = result.faults.length
          super
          faults = result.faults[before..] || []
          kinds = faults.map { |f| f.class.name.split("::").last }
          state = kinds.any? { |k| %w[Failure Error].include?(k) } ? "failed" : kinds.any? { |k| %w[Omission Pending].include?(k) } ? "skipped" : "passed"
          location = method(method_name).source_location rescue nil
          message = faults.map { |f| f.message.to_s }.join("\n")
          SupervisorTestReport.note("#{self.class.name}##{method_name}", SupervisorTestReport.file_of(location, self.class), state, message)
        end
      end)
    end

    class << self
      attr_accessor :begun
    end
  end
end

TracePoint.new(:end) do |at|
  name = at.self.respond_to?(:name) ? (Module.instance_method(:name).bind_call(at.self) rescue nil) : nil
  SupervisorTestReport::ForMinitest.join_in if name == "Minitest"
  SupervisorTestReport::ForTestUnit.join_in if name == "Test::Unit" || name == "Test::Unit::TestCase"
end.enable
