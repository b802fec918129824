# Writes the results in the format of `report_lines.rs`, next to this file.
defmodule @MODULE@ do
  @moduledoc false
  use GenServer

  def init(_options) do
    {:ok, File.open!(Path.join(__DIR__, "report.jsonl"), [:write, :binary, :exclusive])}
  end

  def handle_cast({:suite_finished, _}, file), do: say(file, "end")
  def handle_cast({:suite_finished, _, _}, file), do: say(file, "end")

  def handle_cast({:test_finished, test}, file) do
    {state, message} =
      case test.state do
        nil -> {"passed", ""}
        {:skipped, _} -> {"skipped", ""}
        {:excluded, _} -> {"skipped", ""}
        {:failed, failures} -> {"failed", ExUnit.Formatter.format_test_failure(test, failures, 1, 100, fn _, text -> text end)}
        other -> {"failed", inspect(other)}
      end

    say(file, state, "#{inspect(test.module)} #{test.name}", message)
  end

  def handle_cast(_, file), do: {:noreply, file}

  # Elixir has no JSON encoder before 1.18.
  defp say(file, state, test \\ "", message \\ "") do
    IO.binwrite(file, ~s({"state":"#{state}","test":"#{escape(test)}","message":"#{escape(message)}"}\n))
    {:noreply, file}
  end

  defp escape(text) do
    Regex.replace(~r/[\x00-\x1f"\\]/, IO.chardata_to_string(text), fn c -> "\\u00" <> Base.encode16(c) end)
  end
end
