; TypeScript adds nothing to the JavaScript queries.
