package policy

import _ "embed"

// Schema is the JSON Schema (draft 2020-12) of policy files: their form, and what every key means. Parse
// also refuses what a schema cannot say.
//
//go:embed schema.json
var Schema string
