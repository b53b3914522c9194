local mill = require "tidemill"

return mill.workflow {
  name = "empty-network",
  image = mill.image { build = "images/python-data" },
  agent = { model = "tide" },
  prompt = "x",
  network = {},
}
