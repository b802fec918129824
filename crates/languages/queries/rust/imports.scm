; The whole tree of a `use`; it is taken apart in `languages/rust.rs`.
(use_declaration argument: (_) @module)
