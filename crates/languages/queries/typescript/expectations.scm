; TypeScript tests expect what JavaScript tests do.
