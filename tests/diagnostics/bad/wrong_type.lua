local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  name = "bad",
  image = "alpine:3",
  agent = { model = 5 },
  prompt = expect.text {},
  description = 7,
  triggers = mill.drop { glob = "*.csv" },
  manifest = { "input.csv" },
  limits = { wall = true, tokens = 1.5, memory = {} },
  guardrails = { guard.deny("no"), "none" },
  outputs = { ["output/a.txt"] = "text", ["output/b.csv"] = expect.csv { columns = "a", types = { a = "integr" } } },
  validate = "later",
}
