local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
  guardrails = { guard.commands { deny = { "curl *", "" } } },
  outputs = {
    ["a.csv"] = expect.csv { pattern = { id = "[0-9" }, ranges = { kwh = { 5, 1 } } },
    ["a.txt"] = expect.text { min_words = 9, max_words = 2 },
  },
}
