local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
  manifest = {
    ["../etc/passwd"] = mill.input(),
    ["/etc/shadow"] = mill.text "x",
    ["a"] = mill.text "x",
    ["a/b"] = mill.text "x",
    ["folder/"] = mill.text "x",
    ["tariff.md"] = mill.file "../../etc/passwd",
  },
}
