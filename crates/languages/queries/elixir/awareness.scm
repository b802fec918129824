; Elixir code that detects how it is run. Each match is only a flag.
((alias) @aware (#match? @aware "^(Mix|ExUnit)(\\.|$)")
  (#set! why "depends on the build tool or on the runner"))
((dot) @aware
  (#match? @aware "^(System\\.(get_env|fetch_env|halt|stop|at_exit)|Application\\.(started_applications|loaded_applications)|Process\\.info|:init\\..*|:code\\..*)$")
  (#set! why "depends on the environment or on the runner"))
