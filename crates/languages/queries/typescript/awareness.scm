; TypeScript code is aware of what JavaScript code is.
