local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = mill.file "prompts/none.md",
  manifest = {
    ["tariff.md"] = mill.file "reference/tarif.md",
    ["all/"] = mill.dir "referense",
  },
  outputs = { ["a.json"] = expect.json { schema = "schemas/none.json" } },
}
