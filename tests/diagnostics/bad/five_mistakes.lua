local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  name = "energy anomalies",
  image = mill.image { build = "images/python-dat" },
  triggers = { mill.drop { glob = "energy/[*.csv" } },
  agent = { model = "tide", max_turns = "many" },
  promtp = "Look for abnormal events.",
  prompt = "Look for abnormal events.",
  outputs = {
    ["../anomalies.csv"] = expect.csv { unique = { "timestamp" } },
  },
}
