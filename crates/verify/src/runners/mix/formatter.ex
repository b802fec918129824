defmodule @MODULE@ do
  @moduledoc false
  use GenServer

  def init(_options) do
    {:ok, File.open!("@REPORT@", [:write, :binary, :exclusive])}
  end

  def handle_cast({:suite_started, _}, file), do: say(file, "B")
  def handle_cast({:suite_finished, _}, file), do: say(file, "E")
  def handle_cast({:suite_finished, _, _}, file), do: say(file, "E")

  def handle_cast({:test_finished, test}, file) do
    {state, message} =
      case test.state do
        nil -> {"passed", ""}
        {:skipped, _} -> {"skipped", ""}
        {:excluded, _} -> {"excluded", ""}
        {:failed, failures} -> {"failed", ExUnit.Formatter.format_test_failure(test, failures, 1, 100, fn _, text -> text end)}
        other -> {"failed", inspect(other)}
      end

    say(file, "T #{state} #{hex(inspect(test.module))} #{hex(Atom.to_string(test.name))} #{hex(message)}")
  end

  def handle_cast(_, file), do: {:noreply, file}

  defp say(file, line) do
    IO.binwrite(file, [line, "\n"])
    {:noreply, file}
  end

  defp hex(text), do: Base.encode16(IO.chardata_to_string(text), case: :lower)
end
