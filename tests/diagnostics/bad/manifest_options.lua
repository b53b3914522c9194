local mill = require "tidemill"

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
  manifest = {
    ["a"] = mill.text("x", { mode = "4755" }),
    ["b"] = mill.text("x", { mode = "rwx" }),
    ["c"] = mill.text("x", { mode = 0666 }),
    ["d"] = mill.text("x", { mode = "0600" }),
    ["e"] = mill.text("x", { access = "rx", mod = "0644" }),
    ["f"] = mill.bytes(12),
    ["g/"] = mill.dir("reference", { ignore = { "a{b", "", "*.tmp" } }),
    ["h/"] = mill.artifacts("Energy"),
    ["i"] = mill.artifacts("energy"),
    ["j"] = mill.artifacts("energy", { which = "newest", path = "output/" }),
  },
}
