; The whole `use` tree; `languages/rust.rs` expands it.
(use_declaration argument: (_) @module)
