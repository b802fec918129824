; TypeScript adds nothing to what JavaScript says here.
