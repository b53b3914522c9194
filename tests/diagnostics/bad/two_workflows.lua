local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

local first = mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
}
return mill.workflow { name = "other", image = mill.image "a", agent = { model = "tide" }, prompt = "x" }
