local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

local agent = {
  model = "tide",
  max_turn = 3,
}

return mill.workflow {
  name   = "bad",
  image  = mill.image "alpine:3",
  agent  = agent,
  promtp = "Count the rows.",
  outputs = {
    ["output/rows.csv"] = expect.csv { colums = { "a" } },
  },
}
