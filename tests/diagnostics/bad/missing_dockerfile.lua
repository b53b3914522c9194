local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  name = "bad",
  image = mill.image { build = "images/nothing" },
  agent = { model = "tide" },
  prompt = "Count the rows.",
}
