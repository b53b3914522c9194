local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  triggers = { mill.drop {} },
  agent = { name = "nobody" },
  guardrails = { { on = "prompt" } },
  repair = {},
}
