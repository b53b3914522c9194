local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  name = "Bad Name",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
}
