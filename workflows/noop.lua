-- The benchmark's workflow: as little as a run can be, so that what is measured is Tidemill. The model decides
-- how many shell turns there are; one of them writes the output.
local mill   = require "tidemill"
local expect = require "tidemill.expect"

return mill.workflow {
  name        = "noop",
  description = "Run what the model asks for and publish one small file; for benchmarks.",

  image    = mill.image { build = "images/python-data" },
  manifest = { ["input/note.txt"] = mill.text "Nothing to see here.\n" },

  agent  = { model = "gpt-5.4", max_turns = 1000 },
  prompt = "Run the commands you are told to, then write output/done.txt.",

  limits  = { wall = "30m" },
  outputs = { ["output/done.txt"] = expect.text { min_words = 1 } },
}
