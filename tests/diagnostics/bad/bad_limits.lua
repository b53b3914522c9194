local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide", max_turns = 0 },
  prompt = "Count the rows.",
  limits = {
    cost_usd = 0,
    tokens = 0,
    wall = "1m",
    command = "10m",
    memory = "1MB",
    cpus = -1,
    pids = 2,
    disk = "20 parsecs",
  },
  guardrails = { guard.input_size { max = 0 } },
  repair = { attempts = 1000 },
}
