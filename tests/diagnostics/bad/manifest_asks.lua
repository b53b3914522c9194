local mill = require "tidemill"

local entries = {}
for _, artifact in ipairs(mill.artifacts { workflow = "energy", since = "7d" }) do
  entries["input/" .. artifact.name] = artifact
end

return mill.workflow {
  name     = "weekly",
  image    = mill.image "alpine:3",
  manifest = entries,
  agent    = { model = "tide", memory = "yes" },
  prompt   = "x",
}
