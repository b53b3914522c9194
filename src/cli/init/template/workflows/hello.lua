-- Drop a text into inbox/hello/; its word counts, checked, come out in outbox/hello/.
local mill   = require "tidemill"
local expect = require "tidemill.expect"

return mill.workflow {
  name     = "hello",
  triggers = { mill.drop { glob = "hello/*.txt" } },
  image    = mill.image { build = "images/python-data" },
  manifest = { ["input/text.txt"] = mill.input() },          -- what the agent finds in /workspace
  agent    = { model = "gpt-5.4", max_turns = 10 },
  prompt   = [[
Count the words of input/text.txt. Upper and lower case are the same, and punctuation is no part of a word.
Save output/words.csv with the columns word and count, the most frequent word first.]],
  limits   = { cost_usd = 0.10, wall = "5m" },
  outputs  = {                                               -- what must come out, and what makes it good
    ["output/words.csv"] = expect.csv { columns = { "word", "count" }, unique = { "word" }, min_rows = 1 },
  },
  repair   = { attempts = 1 },                               -- a failed check goes back to the agent once
}
